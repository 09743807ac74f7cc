from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import psycopg
import pytest

from benchmarks.sides.counting import count_round_trips, count_statements
from benchmarks.sides.scraped import Telling
from outreach import Outreach
from outreach.core.clock import SystemClock
from outreach.integrations.prometheus import EngineMetrics
from outreach.protocols.storage import OneQuery
from outreach.storage.postgres import postgres_storage_from_url
from outreach.storage.postgres.pipelined_reader import PipelinedReader
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests.monitoring.exposition import exposed, value
from tests.postgres import empty_database, server


def test_a_statement_for_many_rows_is_one_that_runs_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a cursor and of a connection; a commit is one where something was written."""
    monkeypatch.setattr(sqlite3, "connect", sqlite3.connect)  # put back at the end
    counts = count_statements()
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE numbers (number INTEGER)")
        connection.cursor().executemany("INSERT INTO numbers VALUES (?)", [(1,), (2,), (3,)])
        assert (counts.statements, counts.runs, counts.commits) == (2, 4, 0)
        connection.commit()
        connection.commit()
        assert connection.execute("SELECT  COUNT(*)\nFROM numbers").fetchone() == (3,)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("COMMIT")
    assert (counts.statements, counts.runs, counts.commits) == (5, 7, 2)
    assert counts.texts["SELECT COUNT(*) FROM numbers"] == 1


def test_statements_that_share_a_round_trip_are_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements in one text are asked in one; rows that are copied take two, however many they are."""
    for kind, name in (
        (psycopg.Cursor, "execute"),
        (psycopg.Cursor, "copy"),
        (psycopg.Pipeline, "__exit__"),
        (PipelinedReader, "_send_one"),
    ):
        monkeypatch.setattr(kind, name, getattr(kind, name))  # put back at the end
    counts = count_round_trips()
    with psycopg.connect(server().url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE TEMPORARY TABLE numbers (number bigint); SELECT 1")
        assert (counts.statements, counts.round_trips, counts.commits) == (2, 1, 0)
        with connection.cursor().copy("COPY numbers FROM STDIN") as copy:
            for number in range(3):
                copy.write_row((number,))
        assert (counts.statements, counts.round_trips) == (3, 3)
        with connection.pipeline():
            for number in range(3):
                connection.execute("INSERT INTO numbers VALUES (%s)", (number,))
        assert (counts.statements, counts.round_trips) == (6, 4)
        connection.execute("BEGIN")
        assert connection.execute("SELECT  count(*)\nFROM numbers").fetchone() == (6,)
        connection.execute("COMMIT")
    assert (counts.statements, counts.round_trips, counts.commits) == (9, 7, 1)
    assert counts.texts["SELECT count(*) FROM numbers"] == 1


@pytest.mark.anyio
async def test_questions_of_the_event_loop_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement and a round trip each, though they pass by psycopg's cursors."""
    for kind, name in (
        (psycopg.Cursor, "execute"),
        (psycopg.Cursor, "copy"),
        (psycopg.Pipeline, "__exit__"),
        (PipelinedReader, "_send_one"),
    ):
        monkeypatch.setattr(kind, name, getattr(kind, name))  # put back at the end
    counts = count_round_trips()
    async with postgres_storage_from_url(empty_database(), clock=SystemClock()) as storage:
        assert storage._open is not None
        async with asyncio.timeout(60):
            while not storage._open.pipelined.connected:
                await storage.read(OneQuery(lambda tx: tx.stops.count(THIS_WORKSPACE)))
                await asyncio.sleep(0.001)
        before = counts.statements, counts.round_trips
        await storage.read(OneQuery(lambda tx: tx.stops.count(THIS_WORKSPACE)))
        assert (counts.statements, counts.round_trips) == (before[0] + 1, before[1] + 1)


def test_the_engine_tells_its_metrics_nothing_while_they_are_off() -> None:
    """As if it had none; turned on again they count."""
    metrics = EngineMetrics()
    engine = Outreach(MemoryStorage(), instrumentation=[metrics])
    telling = Telling(engine)
    for on, leases_lost in ((False, 0), (True, 1), (False, 1)):
        telling.turn(on=on)
        engine._instruments.lease_lost()
        assert value(exposed(metrics), "outreach_leases_lost_total") == leases_lost
