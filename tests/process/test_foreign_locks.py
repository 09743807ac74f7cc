"""Another program that holds the database: a copy of the file that takes long, or somebody at a prompt."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.process.place import Place, body, open_place
from tests.process.waiting import PATIENCE, wait_for

LIMIT = 600
LOCKED_SECONDS = 4.0
GETS = 40
MAX_MORE = 4.0
"""For the counting of the request, and a machine that is busy."""


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Place]:
    """A workspace with the request limit that there is by default."""
    with open_place(tmp_path, request_limit=LIMIT) as made:
        yield made


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the write lock."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def test_reads_need_no_writer(limited: Place) -> None:
    """Lists are answered while nothing can be written, soon, and are counted nevertheless."""
    server = limited.serve("--no-dispatch")
    with limited.client(server) as client:
        assert client.post("/sms-campaigns", json=body(limited.phones(2))).status_code == 201
        slowest = 0.0
        with locked(limited.database):
            until = time.monotonic() + LOCKED_SECONDS
            for _ in range(GETS):
                asked = time.monotonic()
                answer = client.get("/sms-campaigns")
                slowest = max(slowest, time.monotonic() - asked)
                assert answer.status_code == 200, answer.text
                assert answer.json()["pagination"]["total"] == 1
                time.sleep(max(0.0, (until - time.monotonic()) / GETS))
        # One waits for a second, at the most, before the others are let in without a word.
        assert slowest < PATIENCE / 3

        def settled() -> httpx.Response | None:
            answer = client.get("/sms-campaigns")
            left = int(answer.headers["RateLimit"].split("r=")[1].split(";")[0])
            return answer if LIMIT // 2 < left < LIMIT - GETS else None

        wait_for("what was let in to be counted", settled)
    assert "Traceback" not in server.errors()


def test_writes_are_answered_soon_and_a_stop_is_in_time(limited: Place) -> None:
    """Who wants to write is told to come again within seconds; the server ends while the lock is still held."""
    server = limited.serve("--no-dispatch")
    with limited.client(server) as client:
        assert client.post("/sms-campaigns", json=body(limited.phones(2))).status_code == 201
        with locked(limited.database):
            asked = time.monotonic()
            answer = client.patch("/sms/settings", json={"max_segments": 2}, timeout=PATIENCE)
            assert time.monotonic() - asked < 5.0 + MAX_MORE
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
            asked = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - asked < 10.0
        assert "Traceback" not in server.errors()
