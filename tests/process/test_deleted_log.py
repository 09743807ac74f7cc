"""The log beside a database is deleted while a server has it open: nobody is contacted twice."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.process.place import Place
from tests.process.server import ServerProcess
from tests.process.test_copies import refused
from tests.process.waiting import PATIENCE, wait_for


@pytest.mark.turn(3, "waits for seconds until what should not be sent was not")
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_server_whose_log_is_deleted_sends_nothing_more(place: Place, ending: str, killed: bool) -> None:
    """It says so, commands touch nothing, and what ran is paused at the next start, with all that was sent."""
    (campaign,) = place.create(campaigns=1, recipients=80)
    server = place.serve()
    wait_for("some messages", lambda: place.books.sent() >= 10)
    Path(f"{place.database}{ending}").unlink()
    assert wait_for("the refusal", lambda: server.health()["refused"]) == "log_deleted"
    sent = place.books.log.read_bytes()
    ready = httpx.get(f"{server.url}/readyz", timeout=PATIENCE)
    assert ready.status_code == 503
    assert any("log of the database was deleted" in reason for reason in ready.json()["reasons"])
    assert ready.json()["storage"]["write_error"] == "database_log_deleted"
    assert "was deleted or replaced while it is open" in server.errors()
    if ending == "-wal":
        said = refused(place, "campaigns", "pause", campaign)
        assert "was deleted while another process has it open" in said
        assert "Traceback" not in said
    if killed:
        server.kill()
    else:
        assert server.stop() == 0
    assert place.books.log.read_bytes() == sent
    before = place.books.sent()
    again = place.serve()
    place.prove_that_it_sends(again)
    assert place.books.sent() == before + 1, "the campaign went on by itself"
    found = place.books.campaigns()[campaign]
    assert (found["status"], found["pause_reason"]) == ("paused", "restored")
    place.command("campaigns", "resume", campaign, "--yes")
    wait_for("everybody", lambda: not place.books.unfinished())
    assert max(Counter(entry.to for entry in place.books.accepted()).values()) == 1
    place.books.check_counters()


def _differs(file: Path, content: bytes) -> bool:
    return file.read_bytes() != content


def kill_between_heartbeats(place: Place, server: ServerProcess, checkpoint: str | None) -> None:
    """Kill a server that has sent some messages after a heartbeat and a checkpoint, before the next heartbeat."""
    note = Path(f"{place.database}.dispatch-note")
    for _ in range(20):
        wait_for("a heartbeat", partial(_differs, note, note.read_bytes()))
        heartbeat = note.read_bytes()
        if checkpoint is not None:
            with closing(sqlite3.connect(place.database, timeout=PATIENCE)) as raw:
                raw.execute(f"PRAGMA wal_checkpoint({checkpoint})")
        wait_for("more messages", place.books.more_sent(3))
        os.kill(server.process.pid, signal.SIGSTOP)
        if note.read_bytes() == heartbeat:
            server.kill()
            return
        os.kill(server.process.pid, signal.SIGCONT)
    raise AssertionError("The machine is too busy: a heartbeat came before three messages, again and again.")


@pytest.mark.turn(3, "kills a server for each case")
@pytest.mark.parametrize("checkpoint", [None, "PASSIVE", "TRUNCATE"])
def test_what_ran_is_paused_where_the_log_of_a_killed_server_was_deleted(place: Place, checkpoint: str | None) -> None:
    """Also where the last heartbeat is in the file: what was committed after it shows."""
    (campaign,) = place.create(campaigns=1, recipients=400)
    server = place.serve()
    wait_for("some messages", lambda: place.books.sent() >= 10)
    kill_between_heartbeats(place, server, checkpoint)
    Path(f"{place.database}-wal").unlink()
    before = place.books.sent()
    # The first program that opens it reports the loss, and the server pauses what ran.
    found = {one["code"] for one in place.command("doctor", "--offline", statuses={0, 3, 4})["findings"]}
    assert "database_restored" in found
    again = place.serve()
    place.prove_that_it_sends(again)
    assert place.books.sent() == before + 1, "the campaign went on by itself"
    row = place.books.campaigns()[campaign]
    assert (row["status"], row["pause_reason"]) == ("paused", "restored")
    assert max(Counter(entry.to for entry in place.books.accepted()).values()) == 1
    assert "held_back" in again.errors() or "was restored" in again.errors()


def _nothing(place: Place) -> None:
    """Leave everything as the kill left it."""


def _ask_for_status(place: Place) -> None:
    place.command("status", statuses={0, 3, 4})


def _look_with_sqlite(place: Place) -> None:
    with closing(sqlite3.connect(place.database)) as raw:
        raw.execute("SELECT count(*) FROM dispatches").fetchone()


def _add_and_delete_the_log(place: Place) -> None:
    with closing(sqlite3.connect(place.database)) as raw:
        raw.execute("PRAGMA wal_checkpoint(PASSIVE)")
        # As a copy of the file alone would be after that.
        copy = shutil.copy2(place.database, place.directory / "copy.db")
    os.replace(copy, place.database)
    for ending in ("-wal", "-shm"):
        Path(f"{place.database}{ending}").unlink(missing_ok=True)


def _compact(place: Place) -> None:
    place.command("db", "compact")


@pytest.mark.turn(3, "kills a server for each case")
@pytest.mark.parametrize("what", [_nothing, _ask_for_status, _look_with_sqlite, _add_and_delete_the_log, _compact])
def test_a_killed_server_goes_on_where_nothing_was_lost(place: Place, what: Callable[[Place], None]) -> None:
    """The first program that opened the file added its log to it."""
    place.create(campaigns=1, recipients=400)
    server = place.serve()
    wait_for("some messages", lambda: place.books.sent() >= 10)
    kill_between_heartbeats(place, server, "PASSIVE")
    what(place)
    again = place.serve()
    wait_for("more messages", place.books.more_sent(5))
    assert again.stop() == 0
    assert max(Counter(entry.to for entry in place.books.accepted()).values()) == 1
    assert {row["status"] for row in place.books.campaigns().values()} == {"active"}
