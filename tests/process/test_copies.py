from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import httpx
import pytest

from tests.process.books import Books
from tests.process.place import Place
from tests.process.waiting import PATIENCE, wait_for


def at(place: Place, database: Path) -> Place:
    """Return the same place with another database."""
    return attrs.evolve(place, database=database, books=Books(database=database, log=place.books.log))


def killed_with_a_log(place: Place, backup: Path) -> str:
    """Make a backup, send for a while, kill the server, and return the campaign; its log is left behind."""
    (campaign,) = place.create(campaigns=1, recipients=200)
    place.command("db", "backup", str(backup))
    server = place.serve()
    wait_for("some messages", lambda: place.books.sent() >= 10)
    server.kill()
    assert Path(f"{place.database}-wal").stat().st_size > 0
    return campaign


def put_in_place(place: Place, backup: Path, *, renamed: bool) -> None:
    """Put a backup where the database is, as another file or over the one that is there."""
    if renamed:
        shutil.copyfile(backup, place.directory / "other.db")
        os.replace(place.directory / "other.db", place.database)
    else:
        shutil.copyfile(backup, place.database)


def refused(place: Place, *command: str) -> str:
    """Run a command that fails, and return what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "outreach_server", "--database", place.url, *command],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, **place.environment},
    )
    assert done.returncode == 1, done.stderr
    return done.stderr


def test_an_older_file_over_a_log_that_was_left_is_not_sent_from(place: Place) -> None:
    """SQLite would mix both: the server does not start, no command touches it, and what is said to do works."""
    backup = place.directory / "backup.db"
    campaign = killed_with_a_log(place, backup)
    sent = place.books.sent()
    shutil.copyfile(backup, place.database)
    before = place.database.read_bytes(), Path(f"{place.database}-wal").read_bytes()
    for command in (
        ("serve", "--port", "0"),
        ("workspaces", "list"),
        ("db", "backup", str(backup) + "2"),
        ("db", "check"),
    ):
        said = refused(place, *command)
        assert "outreach-server db restore FILE" in said
        assert "Traceback" not in said
    assert (place.database.read_bytes(), Path(f"{place.database}-wal").read_bytes()) == before
    kept = Path(place.command("db", "restore", str(backup))["kept"])
    assert kept.read_bytes() == before[0]
    server = place.serve()
    place.prove_that_it_sends(server)
    assert place.books.sent() == sent + 1, "the campaign went on by itself"
    found = place.books.campaigns()[campaign]
    assert (found["status"], found["pause_reason"]) == ("paused", "restored")


def test_a_crash_alone_is_no_restore(place: Place) -> None:
    """The data is looked through, and the campaign goes on by itself."""
    (campaign,) = place.create(campaigns=1, recipients=60)
    server = place.serve()
    wait_for("some messages", lambda: place.books.sent() >= 10)
    server.kill()
    again = place.serve()
    wait_for("everybody", lambda: not place.books.unfinished())
    assert place.books.campaigns()[campaign]["status"] in {"active", "completed"}
    assert "The database is intact" in again.errors()
    place.books.check()
    assert again.stop() == 0
    # It ended in order, and nothing is looked through.
    third = place.serve()
    assert "checking the database" not in third.errors()


def test_a_damaged_file_is_not_sent_from_after_a_crash(place: Place) -> None:
    """The server answers, says what is wrong and how to fix it, and sends nothing."""
    place.create(campaigns=1, recipients=200)
    server = place.serve()
    wait_for("some messages", lambda: place.books.sent() >= 5)
    server.kill()
    place.command("workspaces", "list")  # takes the log into the file
    raw = bytearray(place.database.read_bytes())
    page = 4096
    # The trail and the audit trail lie behind what the server needs for its start.
    raw[-page * 3 :] = os.urandom(page * 3)
    place.database.write_bytes(raw)
    sent = place.books.sent()
    server = place.serve()
    refused = wait_for("the refusal", lambda: server.health()["refused"])
    assert refused == "damaged"
    assert "Dispatch disabled: The database is damaged: " in server.errors()
    assert httpx.get(f"{server.url}/readyz", timeout=PATIENCE).status_code == 503
    assert "db restore FILE" in server.errors()
    assert place.books.sent() == sent


@pytest.mark.turn(3, "waits for seconds until what should not be sent was not")
@pytest.mark.parametrize("renamed", [False, True])
def test_a_file_that_is_put_in_the_place_of_a_running_one_stops_the_sending(place: Place, renamed: bool) -> None:
    """Within a heartbeat; it is said, and a stop and a restore put it right."""
    backup = place.directory / "backup.db"
    place.create(campaigns=1, recipients=300)
    place.command("db", "backup", str(backup))
    server = place.serve()
    wait_for("some messages", lambda: place.books.sent() >= 10)
    put_in_place(place, backup, renamed=renamed)
    assert wait_for("the refusal", lambda: server.health()["refused"]) == "replaced"
    assert "db restore FILE" in server.errors()
    assert "The database is intact" not in server.errors()
    log = place.books.log.read_bytes()
    assert server.stop() == 0
    assert place.books.log.read_bytes() == log
    # The log stays beside the file, so that a server that is started on both as they are sends nothing.
    assert "db restore FILE" in refused(place, "serve", "--port", "0")
    place.command("db", "restore", str(backup))
    again = place.serve()
    place.prove_that_it_sends(again)
    assert {campaign["pause_reason"] for campaign in place.books.campaigns().values()} == {"restored"}


@pytest.mark.turn(3, "waits for seconds until what should not be sent was not")
@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("waits", [False, True])
def test_a_server_that_sends_nothing_notices_a_file_that_was_put_in_the_place(
    place: Place, waits: bool, renamed: bool
) -> None:
    """One that stands by at once, one that is not to send with the first request; no answer is made of a mixture."""
    backup = place.directory / "backup.db"
    place.create(campaigns=1, recipients=300)
    place.command("db", "backup", str(backup))
    sending = place.serve()
    other = place.serve() if waits else place.serve("--no-dispatch")
    wait_for("some messages", lambda: place.books.sent() >= 10)
    with place.client(other) as client:
        # What it has answered once it keeps.
        assert client.get("/sms-campaigns").status_code == 200
        put_in_place(place, backup, renamed=renamed)
        if waits:
            assert wait_for("the refusal", lambda: other.health()["refused"]) == "replaced"
        else:
            wait_for("an error", lambda: client.get("/sms-campaigns").status_code == 500)
    ready = httpx.get(f"{other.url}/readyz", timeout=PATIENCE)
    assert ready.status_code == 503
    assert any("db restore FILE" in reason for reason in ready.json()["reasons"])
    wait_for("the log", lambda: "db restore FILE" in other.errors())
    assert "Traceback" not in other.errors()
    assert wait_for("the refusal", lambda: sending.health()["refused"]) == "replaced"
    assert other.stop() == 0
    assert sending.stop() == 0
