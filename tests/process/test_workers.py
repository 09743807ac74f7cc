from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.process.place import Place, open_place
from tests.process.waiting import wait_for

MAX_SECONDS = 15.0


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A place on PostgreSQL in which Procrastinate drives the work."""
    monkeypatch.setitem(os.environ, "OUTREACH_DISPATCHER", "procrastinate")
    monkeypatch.setitem(os.environ, "OUTREACH_SECRET_KEY", "A" * 43 + "=")
    monkeypatch.setitem(os.environ, "OUTREACH_LEASE_SECONDS", "5")
    with (
        postgres.server().database(template=postgres.template()) as name,
        open_place(tmp_path, server_url=postgres.server().url(name)) as place,
    ):
        place.command("db", "migrate")
        yield place


def test_workers_drain_at_a_signal_and_take_over_from_one_that_was_killed(jobs: Place) -> None:
    """Nobody is reached twice, nobody is lost, and every outcome of the one that drained is recorded."""
    first, second = jobs.work("--concurrency", "5"), jobs.work()
    jobs.create(campaigns=6, recipients=60)
    wait_for("the first messages", lambda: jobs.books.sent() > 20)
    begun = time.monotonic()
    assert first.stop(signal.SIGTERM) == 0, first.errors()
    assert time.monotonic() - begun < MAX_SECONDS
    assert "Traceback" not in first.errors(), first.errors()
    more = jobs.books.more_sent(20)
    wait_for("the other worker to go on", more)
    second.kill()
    third = jobs.work()
    wait_for("the others to be sent", lambda: not jobs.books.unfinished())
    jobs.books.check()
    assert third.stop() == 0
    assert "Traceback" not in third.errors(), third.errors()
