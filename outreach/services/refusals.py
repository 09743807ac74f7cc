"""Telling of callbacks that are refused: anybody who knows an address can send as many as he likes."""

from __future__ import annotations

import logging
from typing import Final

from outreach.clock import Clock

EVERY_SECONDS: Final = 60.0
_MOST: Final = 1000

_log = logging.getLogger("outreach.services.callbacks")


class Refusals:
    """Logs the first refusal of an account for a reason, and then how many there were, once a minute.

    Args:
        clock: Where the minutes are measured.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[tuple[str, str], float] = {}
        self._untold: dict[tuple[str, str], int] = {}

    def tell(self, account_id: str, reason: str) -> None:
        """Count a refusal, and log it where none like it was logged for a minute."""
        now, what = self._clock.monotonic(), (account_id, reason)
        count = self._untold.get(what, 0) + 1
        told = self._told.get(what)
        if told is not None and now - told < EVERY_SECONDS:
            self._untold[what] = count
            return
        if len(self._told) >= _MOST:
            self._told.clear()
            self._untold.clear()
        self._told[what] = now
        self._untold.pop(what, None)
        more = f" ({count} times since that was last said)" if count > 1 else ""
        _log.warning(
            "A callback for account %s was refused: %s%s",
            account_id,
            reason,
            more,
            extra={"action": "callback_refused", "account_id": account_id, "count": count},
        )
