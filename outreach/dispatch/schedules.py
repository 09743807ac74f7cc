"""Having the runs of schedules made, by the one worker that leads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from outreach.core.log_throttle import LogThrottle

RunsDue = Callable[[], Awaitable[bool]]
"""Does the next thing for each schedule that is due; returns whether anything was done."""

_POLL_SECONDS: Final = 5.0
_BACKOFF_SECONDS: Final = 30.0


class ScheduleKeeper:
    """Looks for runs that are due, beside the sending.

    Args:
        run_due: Makes and starts them; None where nothing does.
        leads: Returns whether this worker does what only one is to do. Two that believe so do no harm.
        log_throttle: Logs failures; they are tried again.
    """

    def __init__(self, *, run_due: RunsDue | None, leads: Callable[[], bool], log_throttle: LogThrottle) -> None:
        self._run_due = run_due
        self._leads = leads
        self._log_throttle = log_throttle

    async def serve(self) -> None:
        """Have due runs made until cancelled."""
        while self._run_due is not None:
            pause = _POLL_SECONDS
            try:
                if self._leads() and await self._run_due():
                    pause = 0
            except Exception as error:
                self._log_throttle.failure("schedules_failed", error, "Could not look for runs of schedules.")
                pause = _BACKOFF_SECONDS
            await anyio.sleep(pause)
