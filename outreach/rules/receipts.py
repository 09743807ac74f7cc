"""Whether an account gets no receipts for longer than usual."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

NOTED_EVERY: Final = timedelta(minutes=10)
"""How exactly it is known when an account got its last report: one write in that time, however many come."""

SILENCE: Final = timedelta(hours=1)
"""Carriers report that a message was sent within seconds, and hold their receipts back for minutes when they are busy:
an hour without any is longer than usual."""

LOOK_BACK: Final = timedelta(days=1)
"""Older messages say nothing about the callback URL of today."""

FEWEST: Final = 20
"""That many messages without a receipt; fewer may all have gone to networks that report nothing."""

MOST_COUNTED: Final = 1_000
"""Where more are silent, the number says no more."""


def time_without_receipts(
    last_report_at: datetime | None, now: datetime, *, connected_at: datetime, always_reports: bool
) -> tuple[datetime, datetime] | None:
    """Return the period whose accepted messages should have brought a receipt by now: after, up to and including.

    None if there is no such period: receipts came lately, or none is expected.

    Args:
        last_report_at: When the account last got a report; None if it never did.
        now: The present time.
        connected_at: When the account was connected.
        always_reports: Whether receipts are expected before the first one came. Not from an adapter of one's own,
            whose carrier may send none, and not without a callback URL.
    """
    if last_report_at is not None:
        expected_after = last_report_at + NOTED_EVERY
    elif always_reports:
        expected_after = connected_at
    else:
        return None
    after, until = max(expected_after, now - LOOK_BACK), now - SILENCE
    return (after, until) if after < until else None


def is_silent(accepted: int) -> bool:
    """Return whether so many accepted messages of that time make an account silent."""
    return accepted >= FEWEST
