"""Readiness: a timed write to the database, and the dispatcher's health."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import Final

import anyio

from outreach.core.clock import Clock
from outreach.core.log_throttle import DATABASE, LogThrottle
from outreach.core.logged_errors import masked
from outreach.errors import StorageError, StorageUnreachable
from outreach.models.health import DispatcherHealth
from outreach.models.status import Readiness
from outreach.protocols.storage import RemoteStorage, Storage
from outreach.providers.registry import Adapters
from outreach.services.context import LoopGuard

WRITE_SECONDS: Final = 1.0
"""The smallest write may take this long in a ready database."""

LATELY_SECONDS: Final = 10.0
"""A database that refused a write within these seconds is not ready: a full disk may still take the smallest one."""

_LOCKED: Final = "locked"

_REPLACED: Final = (
    "The database file was replaced: stop the server, and restore the backup with `outreach-server db restore FILE`."
)

_LOG_DELETED: Final = (
    "The log of the database was deleted while it is open: nothing is sent. Stop the server and start it again; its "
    "running campaigns are paused then."
)

_NO_KEY: Final = "The secret key of this process opens no account, so that it sends nothing. Its log names the key."

FILES_GONE: Final = {"database_replaced": _REPLACED, "database_log_deleted": _LOG_DELETED}
"""The words for an error of the database's files, by its code."""

_PATH_OF_MARK: Final = re.compile(r"(?<=high-water mark ).*(?=cannot be written)")
"""In the words of a refusal: a probe needs no key, and is to learn no path."""

_FRESH_SECONDS: Final = 0.5
"""An answer is reused for this long, so that frequent probes do not write more."""


class ReadinessProbe:
    """Finds out whether this process is ready; concurrent calls share one write."""

    def __init__(
        self,
        *,
        loop_guard: LoopGuard,
        storage: Storage,
        clock: Clock,
        health: Callable[[], DispatcherHealth],
        log_throttle: LogThrottle,
        adapters: Adapters,
    ) -> None:
        self._loop_guard = loop_guard
        self._storage = storage
        self._clock = clock
        self._health = health
        self._log_throttle = log_throttle
        self._adapters = adapters
        self._turn = anyio.Lock()
        self._looked_at = float("-inf")
        self._seconds: float | None = None
        self._error: str | None = None
        self._unreachable: str | None = None
        self._refused: StorageError | None = None

    async def __call__(self) -> Readiness:
        """Write a little, and return the readiness; takes little more than `WRITE_SECONDS`.

        Where the write is not done by then, a server of the database is probed for some seconds.

        Raises:
            ConfigError: The engine was opened elsewhere.
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
            adapter_problems=self._adapters.problems,
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
            self._log_throttle.failure("readiness_failed", error, "database not writable")
        self._unreachable = self._refused = None
        if self._error is not None and isinstance(self._storage, RemoteStorage):
            self._unreachable = await self._storage.why_unreachable()
            if self._unreachable is None:
                self._refused = await self._storage.why_not_writable()
        if self._error == _LOCKED and self._unreachable is not None:
            self._error = StorageUnreachable.code
            self._log_throttle.problem(
                DATABASE,
                StorageUnreachable.code,
                "database unreachable: %s",
                masked(self._unreachable),
                level=logging.ERROR,
                action="not_ready",
            )
        elif self._error == _LOCKED and self._refused is not None:
            # The writer still repeats its write.
            self._error = self._refused.code
            self._log_throttle.failure("not_ready", self._refused, "database not writable")
        elif self._error == _LOCKED:
            self._log_throttle.problem(
                DATABASE,
                _LOCKED,
                "database write took over %g s: another process keeps it locked, or its disk is slow",
                WRITE_SECONDS,
                level=logging.ERROR,
                action="not_ready",
            )
        elif self._error is None:
            latest = self._log_throttle.latest_problem(DATABASE)
            if latest is not None and latest[0] != _LOCKED and latest[1] < LATELY_SECONDS:
                self._error = latest[0]
            else:
                self._log_throttle.recovered(DATABASE, "database writable again", action="database_again")

    def _storage_reasons(self) -> Sequence[str]:
        if self._error is None:
            return ()
        if self._unreachable is not None:
            return (f"The database is unreachable: {self._unreachable}",)
        if self._refused is not None:
            return (self._refused.message,)
        if self._error in FILES_GONE:
            return (FILES_GONE[self._error],)
        if self._error == _LOCKED:
            return (f"A write to the database takes over {WRITE_SECONDS:g} s.",)
        return (f"The database refuses writes ({self._error}).",)


def _dispatch_reasons(health: DispatcherHealth) -> Sequence[str]:
    gone = FILES_GONE.get(f"database_{health.refused_reason}")
    if gone is not None:
        return (gone,)
    if health.refused_reason in {"copied", "ended"} and health.refused is not None:
        return (health.refused,)
    if health.refused_reason == "note" and health.refused is not None:
        return (_PATH_OF_MARK.sub("", health.refused),)
    if health.refused_reason == "secret_key":
        return (_NO_KEY,)
    if health.state == "refused":
        return (f"Dispatch is disabled for this database here ({health.refused_reason}).",)
    if health.lease_seconds_left is not None and health.lease_seconds_left <= 0:
        return (f"The dispatch lease has expired: the last heartbeat was {health.heartbeat_seconds_ago:.0f} s ago.",)
    return ()
