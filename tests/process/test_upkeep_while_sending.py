"""Backups, archives and compacting while a server sends from the database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from outreach.database import backup_database, check_database, compact_database, copy_database, restore_database
from outreach.errors import DatabaseInUse
from outreach.integrations.archives import archive_ledgers
from tests.process.place import Place
from tests.process.test_copies import at
from tests.process.waiting import wait_for


def ended_long_ago(place: Place) -> str:
    """Send a campaign, and have it end in 2020; return it."""
    (campaign,) = place.create(campaigns=1, recipients=5)
    server = place.serve()
    wait_for("the first campaign", lambda: place.books.campaigns()[campaign]["status"] == "completed")
    assert server.stop() == 0
    with closing(sqlite3.connect(place.database)) as raw, raw:
        raw.execute("UPDATE campaigns SET completed_at = '2020-01-01T00:00:00.000000Z'")
    return campaign


def test_a_database_is_backed_up_and_archived_while_it_is_sent_from(place: Place) -> None:
    """Nobody is contacted twice or left out, the copies are whole, and what must not be done meanwhile is refused."""
    old = ended_long_ago(place)
    (campaign,) = place.create(campaigns=1, recipients=200)
    server = place.serve()
    backups: list[Path] = []
    for number in range(5):
        wait_for("more messages", place.books.more_sent(3))
        backups.append(backup_database(place.url, place.directory / f"backup-{number}.db").file)
    archived = archive_ledgers(place.url, place.directory / "archive.db", before=datetime(2021, 1, 1, tzinfo=UTC))
    assert (archived.campaigns, archived.kept_back, archived.rows["recipients"]) == (1, {}, 5)
    with pytest.raises(DatabaseInUse):
        compact_database(place.url)
    with pytest.raises(DatabaseInUse):
        restore_database(place.url, backups[0])
    with pytest.raises(DatabaseInUse):
        copy_database(place.url, f"sqlite:///{place.directory / 'copy.db'}")
    assert place.books.unfinished(), "it was sent before everything was tried"
    wait_for("everybody", lambda: not place.books.unfinished())
    found = place.books.campaigns()[campaign]
    assert (found["status"], found["recipients_completed"]) == ("completed", 200)
    assert len(place.command("campaigns", "recipients", old)) == 5
    assert server.stop() == 0
    assert check_database(place.url).problems == []
    for backup in backups:
        assert check_database(f"sqlite:///{backup}").problems == []
        at(place, backup).books.check_counters()
    compact_database(place.url, delete_old=True)
    again = place.serve()
    (last,) = place.create(campaigns=1, recipients=3)
    wait_for("the last campaign", lambda: place.books.campaigns()[last]["status"] == "completed")
    assert again.stop() == 0
    assert len({entry.to for entry in place.books.accepted()}) == place.books.sent() == 5 + 200 + 3
