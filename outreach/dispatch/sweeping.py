"""Deleting what is no longer needed, and erasing by age."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from outreach.core.clock import Clock
from outreach.core.config import EngineConfig
from outreach.core.log_throttle import DATABASE, LogThrottle
from outreach.ledger import webhooks
from outreach.ledger.access import logins
from outreach.ledger.campaigns import adding, trail
from outreach.ledger.erasure.applying import apply_retention
from outreach.ledger.leases import clock_steps
from outreach.models.webhook import ATTEMPT_DAYS
from outreach.protocols.ledger_archives import LedgerArchives
from outreach.protocols.storage import Storage, Within
from outreach.storage.unit_of_work import Transaction

_MAX_ERASED_SLICES: Final = 100
"""Of one sweep: the next one goes on."""

_MAX_SWEPT_SLICES: Final = 100
"""The same for each kind of rows that are no longer needed."""

_MAX_CHUNKS: Final = 16
"""Chunks of expired uploads that one housekeeping transaction deletes; a chunk is large."""

_MAX_ROWS: Final = 200
"""Rows that one transaction deletes."""


class Sweeper:
    """Deletes what is no longer needed, in slices.

    Args:
        storage: The database.
        clock: The source of time.
        config: How long things are kept.
        archives: Erases campaigns in the files that they were moved into.
        log_throttle: The engine's log.
    """

    def __init__(
        self,
        *,
        storage: Storage,
        clock: Clock,
        config: EngineConfig,
        archives: LedgerArchives,
        log_throttle: LogThrottle,
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._config = config
        self._archives = archives
        self._log_throttle = log_throttle

    async def sweep(self) -> None:
        """Delete leftovers of failed loads, what has expired, idle units, callbacks, attempts, uploads; erase by age.

        Deletion by age starts once the clock has run for an hour without being set.
        """
        leftovers = await self._storage.read(lambda tx: tx.campaigns.leftovers(self._clock.now()))
        for workspace_id, campaign_id in leftovers:
            await self._delete_leftover(workspace_id, campaign_id)
        await self._clear(lambda tx, limit: tx.requests.sweep(self._clock.now(), limit=limit), _MAX_ROWS)
        await self._clear(lambda tx, limit: logins.sweep_failures(tx, self._clock.now(), limit=limit), _MAX_ROWS)
        await self._clear(lambda tx, limit: tx.work.delete_idle(limit=limit), _MAX_ROWS)
        now = self._clock.now()
        trusted = await self._storage.read(lambda tx: clock_steps.is_trusted(tx, now))
        if trusted:
            oldest = now - timedelta(days=self._config.callback_retention_days)
            await self._clear(lambda tx, limit: tx.callbacks.sweep(oldest, limit=limit), _MAX_ROWS)
            await self._clear(lambda tx, limit: logins.sweep(tx, now, limit=limit), _MAX_ROWS)
            await self._clear(lambda tx, limit: tx.uploads.sweep(now, limit=limit), _MAX_CHUNKS)
        await self._clear_attempts(now - timedelta(days=ATTEMPT_DAYS) if trusted else None)
        result = await apply_retention(
            self._storage,
            self._clock,
            self._archives,
            workspace_id=None,
            actor=trail.ENGINE,
            limit=_MAX_ROWS,
            max_slices=_MAX_ERASED_SLICES,
            # An erasure by a wrong clock cannot be undone.
            by_age=trusted,
        )
        for problem in result.unreachable:
            self._log_throttle.problem(
                DATABASE, problem, "Erased campaigns are still in an archive. %s", problem, action="archive_missing"
            )

    async def _clear(self, delete: Callable[[Transaction, int], int], limit: int) -> None:
        """Delete slices until nothing is left, or a sweep's share is done.

        `delete` deletes at most `limit` rows and returns how many it deleted.
        """
        for _ in range(_MAX_SWEPT_SLICES):
            if await self._storage.write(lambda tx: delete(tx, limit), bulk=True) < limit:
                return

    async def _clear_attempts(self, since: datetime | None) -> None:
        """Delete attempts of deliveries to webhooks before a moment, and those that are too many."""
        for one, first in await self._storage.read(lambda tx: webhooks.old_attempts(tx, since=since)):
            await self._clear(
                lambda tx, limit, one=one, first=first: tx.webhook_attempts.delete_before(  # type: ignore[misc]
                    one.workspace_id, one.id, first, limit=limit
                ),
                _MAX_ROWS,
            )

    async def _delete_leftover(self, workspace_id: str, campaign_id: str) -> None:
        """Delete the leftover of a failed load, or finish an addition, in slices: it may have a million recipients."""
        limit = self._config.insert_batch_size
        while not await self._storage.write(
            Within(
                [workspace_id],
                lambda tx: adding.clear_loading(tx, workspace_id, campaign_id, now=self._clock.now(), limit=limit),
            ),
            bulk=True,
        ):
            pass
