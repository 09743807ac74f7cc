"""Whether this process can do its work now: a write that is timed, and how dispatching is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import anyio

from outreach.clock import Clock
from outreach.errors import DatabaseReplaced, StorageError
from outreach.log_throttle import DATABASE, LogThrottle
from outreach.models.status import DispatcherHealth, Readiness
from outreach.protocols.storage import Storage
from outreach.services.context import LoopGuard

WRITE_SECONDS: Final = 1.0
"""A database that takes longer for the smallest write is not ready."""

LATELY_SECONDS: Final = 10.0
"""A database that has refused anybody's write within so many seconds is not ready: the smallest one may fit into what
is left of a full disk."""

_LOCKED: Final = "locked"

_REPLACED: Final = (
    "Another file was put in the place of the database: stop the server, and put the backup there with "
    "`outreach-server db restore FILE`."
)

_FRESH_SECONDS: Final = 0.5
"""An answer so old is given again: whoever asks often does not make the database write more."""


class ReadinessProbe:
    """Finds out whether this process is ready; many that ask at once share one write."""

    def __init__(
        self,
        *,
        loop_guard: LoopGuard,
        storage: Storage,
        clock: Clock,
        health: Callable[[], DispatcherHealth],
        log_throttle: LogThrottle,
    ) -> None:
        self._loop_guard = loop_guard
        self._storage = storage
        self._clock = clock
        self._health = health
        self._log_throttle = log_throttle
        self._turn = anyio.Lock()
        self._looked_at = float("-inf")
        self._seconds: float | None = None
        self._error: str | None = None

    async def __call__(self) -> Readiness:
        """Write a little, and return how it is; takes `WRITE_SECONDS` and a little more at the most.

        Raises:
            ConfigError: The engine was opened elsewhere: nothing here answers for it.
        """
        self._loop_guard.require()
        async with self._turn:
            if self._clock.monotonic() - self._looked_at > _FRESH_SECONDS:
                await self._write()
                self._looked_at = self._clock.monotonic()
        health = self._health()
        reasons = list(dict.fromkeys((*self._storage_reasons(), *_dispatch_reasons(health))))
        return Readiness(
            ready=not reasons,
            reasons=reasons,
            write_seconds=self._seconds,
            write_error=self._error,
            dispatcher=health,
        )

    async def _write(self) -> None:
        begun = self._clock.monotonic()
        self._seconds, self._error = None, _LOCKED
        try:
            with anyio.move_on_after(WRITE_SECONDS):
                await self._storage.write(lambda _: None)
                self._seconds, self._error = self._clock.monotonic() - begun, None
        except StorageError as error:
            self._error = str(getattr(error.__cause__, "sqlite_errorname", error.code))
            self._log_throttle.failure("readiness_failed", error, "Nothing can be written.")
        if self._error == _LOCKED:
            self._log_throttle.problem(
                DATABASE,
                _LOCKED,
                "The database takes no write within %g s: another process keeps it locked, or its disk is slow.",
                WRITE_SECONDS,
                level=logging.ERROR,
                action="not_ready",
            )
        elif self._error is None:
            latest = self._log_throttle.latest_problem(DATABASE)
            if latest is not None and latest[0] != _LOCKED and latest[1] < LATELY_SECONDS:
                self._error = latest[0]
            else:
                self._log_throttle.recovered(DATABASE, "The database accepts writes again.", action="database_again")

    def _storage_reasons(self) -> Sequence[str]:
        if self._error is None:
            return ()
        if self._error == DatabaseReplaced.code:
            return (_REPLACED,)
        if self._error == _LOCKED:
            return (f"The database takes no write within {WRITE_SECONDS:g} s.",)
        return (f"The database refuses writes ({self._error}).",)


def _dispatch_reasons(health: DispatcherHealth) -> Sequence[str]:
    if health.refused_reason == "replaced":
        return (_REPLACED,)
    if health.state == "refused":
        return (f"Nothing may be dispatched from this database here ({health.refused_reason}).",)
    if health.lease_seconds_left is not None and health.lease_seconds_left <= 0:
        return (f"The right to dispatch is over: the last heartbeat was {health.heartbeat_seconds_ago:.0f} s ago.",)
    return ()
