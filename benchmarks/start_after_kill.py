"""How soon a killed server is back: a campaign of 100,000 recipients, half sent, and SIGKILL in the midst.

Shown are the times from the start of the process to its first answer and to its first message, several times over,
and for comparison with an empty database. That half is already sent is written into the database beforehand, as
sending 50,000 messages at 600 a minute would take more than an hour.

    python -m benchmarks.start_after_kill [--recipients 100000] [--kills 3]
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import httpx

from tests.process.place import Place, open_place
from tests.process.waiting import wait_for

_SENT_BEFORE_KILL: Final = 20

_HALF_SENT: Final = (
    """
    UPDATE recipients SET status = 'completed', attempts = 1, tries = 1, dispatched = 1, successful = 1,
        ended_at = '2026-01-01T00:00:00.000000Z'
    WHERE position < :half
    """,
    """
    INSERT INTO dispatches (
        id, workspace_id, channel, campaign_number, position, step, attempt, leg, try_number, provider, from_number,
        to_number, body, segments, state, slot_at, valid_until, epoch, created_at, settled_at
    )
    SELECT 'before-' || position, (SELECT id FROM workspaces), 'sms', campaign_number, position, 0, 1, 1, 1, 'twilio',
        '+14155550199', phone, 'Hi!', 1, 'accepted', '2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:05.000000Z', 0,
        '2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z'
    FROM recipients WHERE position < :half
    """,
    """
    UPDATE campaigns SET recipients_pending = recipients_pending - :half, recipients_open = recipients_open - :half,
        recipients_completed = :half, recipients_successful = :half
    """,
)


def make_half_sent(place: Place, recipients: int) -> None:
    """Make a running campaign of which half is sent."""
    place.create(campaigns=1, recipients=recipients)
    with closing(sqlite3.connect(place.database)) as connection, connection:
        for statement in _HALF_SENT:
            connection.execute(statement, {"half": recipients // 2})
    place.books.check_counters()


def started(place: Place, *, messages: bool) -> tuple[float, float]:
    """Start a server, let it send, kill it; return the seconds to its first answer and to its first message."""
    before = place.books.sent()
    server = place.serve()
    assert httpx.get(f"{server.url}/healthz").status_code == 200
    answered = time.monotonic() - server.started_at
    sent = 0.0
    if messages:
        wait_for("the first message", lambda: place.books.sent() > before)
        sent = time.monotonic() - server.started_at
        wait_for("some more", lambda: place.books.sent() >= before + _SENT_BEFORE_KILL)
    server.kill()
    return answered, sent


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recipients", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outreach-bench-") as name, open_place(Path(name)) as place:
        started(place, messages=False)
        empty, _ = started(place, messages=False)
        print(f"empty database          first answer {empty:5.2f} s")
        make_half_sent(place, given.recipients)
        started(place, messages=True)
        for number in range(given.kills):
            cut_off = len(place.books.dispatches("dispatching"))
            answered, sent = started(place, messages=True)
            print(
                f"after kill {number + 1}            first answer {answered:5.2f} s   first message {sent:5.2f} s   "
                f"{cut_off} cut off"
            )
        reached = [entry.to for entry in place.books.accepted()]
        assert len(reached) == len(set(reached)), "reached twice"
        print(f"{given.recipients} recipients, half of them sent; {place.database.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
