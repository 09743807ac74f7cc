"""Replaced credentials, which verify callbacks for a day more (docs/secret-key.md#changing-secrets-at-a-provider)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.core.vault import PreviousCredentials

ACCEPTED_FOR: Final = timedelta(hours=24)
"""Providers repeat a callback for up to a day or so, and sign it once."""

_MOST: Final = 3
"""Each costs one more verification of a callback that is refused."""


def accepted(known: Sequence[PreviousCredentials], now: datetime) -> Sequence[PreviousCredentials]:
    """Return those that verify callbacks at a moment."""
    return [one for one in known if one.until > now]


def replaced(
    before: Mapping[str, str],
    known: Sequence[PreviousCredentials],
    given: Mapping[str, str],
    now: datetime,
    *,
    verifying: Collection[str],
) -> Sequence[PreviousCredentials]:
    """Return the earlier credentials of an account whose credentials are replaced, the latest first.

    Args:
        before: The replaced credentials, by name.
        known: The earlier ones of these.
        given: The new ones.
        now: The moment of the change.
        verifying: The names of those that callbacks are verified with; where only others change, nothing is replaced.
    """
    latest = (
        [PreviousCredentials(values=before, until=now + ACCEPTED_FOR)]
        if any(given.get(name) != before.get(name) for name in verifying)
        else []
    )
    return [*latest, *accepted(known, now)][:_MOST]
