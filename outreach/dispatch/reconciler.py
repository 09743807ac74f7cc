"""Looking up unknown dispatches at their providers, until there is evidence or the deadline passes."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Final

import anyio
from anyio.abc import TaskGroup

from outreach.core.clock import Clock
from outreach.core.config import EngineConfig
from outreach.dispatch.looking_up import LookUps
from outreach.dispatch.worker import Worker
from outreach.ledger.common import workspace_of
from outreach.ledger.settling import reconciling
from outreach.ledger.settling.callback_events import merge_early_events
from outreach.ledger.settling.reconciling import Deadlines
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.protocols.storage import Storage
from outreach.providers.pool import ProviderPool, account_key
from outreach.storage.unit_of_work import Transaction

_MAX_LOOKUPS_PER_PROVIDER: Final = 64
"""Concurrent look-ups at one provider."""

_MAX_LOOKUPS_PER_ACCOUNT: Final = 8
"""Concurrent look-ups at one account, so that a hanging provider leaves room for others."""

_MAX_PER_ACCOUNT_AND_ROUND: Final = 40
"""Look-ups at one account in one round, oldest first, so that one account does not delay the provider's others."""

_MAX_ROWS: Final = 200
"""Unknown dispatches that are read at a time."""

_Due = Mapping[str, Mapping[str, Sequence[Dispatch]]]
"""Dispatches by provider and account."""


def reconcile_deadlines(config: EngineConfig) -> Deadlines:
    """Return the time limits of unknown dispatches.

    A retry waits until no request of the old worker can be in flight: time to the slot, the intent's life, the
    provider's timeout and the lease. A short `reconcile_delay_seconds` therefore never takes a request in flight for
    not sent.
    """
    on_its_way = config.look_ahead_seconds + config.max_intent_age_seconds + config.provider_timeout_seconds
    return Deadlines(
        retry_after=timedelta(seconds=on_its_way + config.lease_seconds),
        unconfirmed_after=timedelta(seconds=config.reconcile_deadline_seconds),
    )


class Reconciler:
    """Settles unknown dispatches by evidence from look-ups, which change nothing and may be repeated."""

    def __init__(
        self, *, storage: Storage, clock: Clock, config: EngineConfig, provider_pool: ProviderPool, worker: Worker
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._config = config
        self._look_ups = LookUps(config=config, provider_pool=provider_pool)
        self._worker = worker
        self._deadlines = reconcile_deadlines(config)
        self._looked_up: dict[str, datetime] = {}
        self._unknown_since: dict[str, float] = {}
        self._asked_providers: set[str] = set()
        self._has_more = anyio.Event()

    async def round(self) -> int:
        """Look up the unknown dispatches that are due, up to a round's size; return how many."""
        due = await self._due()
        async with anyio.create_task_group() as tasks:
            self._start_round(tasks, due)
        return sum(len(found) for accounts in due.values() for found in accounts.values())

    def _start_round(self, tasks: TaskGroup, due: _Due) -> None:
        for provider, accounts in due.items():
            self._asked_providers.add(provider)
            tasks.start_soon(self._ask_provider, provider, list(accounts.values()))

    async def _ask_provider(self, provider: str, accounts: Sequence[Sequence[Dispatch]]) -> None:
        """Look up dispatches of one provider: one that hangs delays the look-ups at no other."""
        places = anyio.CapacityLimiter(_MAX_LOOKUPS_PER_PROVIDER)
        try:
            async with anyio.create_task_group() as tasks:
                for of_account in accounts:
                    places_there = anyio.CapacityLimiter(_MAX_LOOKUPS_PER_ACCOUNT)
                    for dispatch in of_account:
                        tasks.start_soon(self._reconcile, dispatch, places_there, places)
        finally:
            self._asked_providers.discard(provider)
        if any(len(of_account) == _MAX_PER_ACCOUNT_AND_ROUND for of_account in accounts):
            self._has_more.set()

    async def _due(self) -> _Due:
        """Return the look-ups that are due, the longest due first, at the providers whose last round has ended.

        All unknown dispatches are read, so that old ones do not hide newer ones. Those that found no place until long
        after their deadline end here.
        """
        now = self._clock.now()
        waiting = defaultdict[str, defaultdict[str, list[tuple[datetime, Dispatch]]]](lambda: defaultdict(list))
        known: set[str] = set()
        expired: list[Dispatch] = []
        after: Dispatch | None = None
        while True:
            unknown = await self._storage.read(partial(_unknown_after, after))
            for dispatch in unknown:
                known.add(dispatch.id)
                self._unknown_since.setdefault(dispatch.id, self._clock.monotonic())
                due_at, provider = self._due_at(dispatch, now), dispatch.provider
                if self._is_overdue(dispatch, by_seconds=self._config.reconcile_retry_seconds):
                    expired.append(dispatch)
                elif due_at <= now and provider not in self._asked_providers:
                    waiting[provider][account_key(dispatch.workspace_id, provider)].append((due_at, dispatch))
            for accounts in waiting.values():
                for account, found in accounts.items():
                    accounts[account] = heapq.nsmallest(_MAX_PER_ACCOUNT_AND_ROUND, found, key=itemgetter(0))
            if len(unknown) < _MAX_ROWS:
                break
            after = unknown[-1]
        self._looked_up = {key: moment for key, moment in self._looked_up.items() if key in known}
        self._unknown_since = {key: moment for key, moment in self._unknown_since.items() if key in known}
        async with anyio.create_task_group() as tasks:
            for dispatch in expired[:_MAX_ROWS]:
                tasks.start_soon(self._settle, dispatch, None, now)
        return {
            provider: {account: [dispatch for _, dispatch in found] for account, found in accounts.items()}
            for provider, accounts in waiting.items()
        }

    def _is_overdue(self, dispatch: Dispatch, *, by_seconds: float = 0.0) -> bool:
        # Monotonic, because after a clock step the commit may lie hours ahead.
        since = self._unknown_since.get(dispatch.id, self._clock.monotonic())
        return self._clock.monotonic() - since >= self._config.reconcile_deadline_seconds + by_seconds

    def _due_at(self, dispatch: Dispatch, now: datetime) -> datetime:
        # A time ahead of now dates from before a clock step; an extra look-up changes nothing.
        last = self._looked_up.get(dispatch.id)
        wait = self._config.reconcile_retry_seconds if last is not None else self._config.reconcile_delay_seconds
        since = last or dispatch.created_at
        return since + timedelta(seconds=wait) if since <= now else now

    async def _reconcile(self, dispatch: Dispatch, *places: anyio.CapacityLimiter) -> None:
        async with AsyncExitStack() as taken:
            for place in places:
                await taken.enter_async_context(place)
            asked_at = self._clock.now()
            self._looked_up[dispatch.id] = asked_at
            await self._settle(dispatch, await self._look_up(dispatch), asked_at)

    async def _settle(self, dispatch: Dispatch, evidence: DispatchOutcome | None, asked_at: datetime) -> None:
        backoff, analyser = self._worker.backoff, self._worker.analyser

        def operation(tx: Transaction) -> None:
            now = self._clock.now()
            settled = reconciling.reconcile(
                tx,
                dispatch,
                evidence,
                asked_at=asked_at,
                overdue=self._is_overdue(dispatch),
                deadlines=self._deadlines,
                backoff=backoff,
                now=now,
            )
            merge_early_events(tx, settled, backoff=backoff, analyser=analyser, now=now)

        try:
            await self._storage.write(operation)
        except Exception as error:
            # One failure must not block the others.
            self._worker.log_throttle.failure(
                "confirm_failed",
                error,
                "Could not record the evidence on a dispatch; it is looked up again later.",
                dispatch_id=dispatch.id,
            )

    async def _look_up(self, dispatch: Dispatch) -> DispatchOutcome | None:
        try:
            workspace = await self._storage.read(lambda tx: workspace_of(tx, dispatch.workspace_id))
            return await self._look_ups.ask(workspace, dispatch)
        except Exception as error:
            self._worker.log_throttle.failure(
                "look_up_failed",
                error,
                "A look-up at %s failed; it is retried later.",
                dispatch.provider,
                dispatch_id=dispatch.id,
            )
            return None

    async def serve(self) -> None:
        """Run rounds until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._has_more = anyio.Event()
                try:
                    # Others would ask the providers the same.
                    if self._worker.leads:
                        self._start_round(tasks, await self._due())
                except Exception as error:
                    self._worker.log_throttle.failure(
                        "reconcile_failed", error, "Could not look up unknown dispatches."
                    )
                # Dispatches that a round could not settle are not due at once again.
                with anyio.move_on_after(self._config.reconcile_interval_seconds):
                    await self._has_more.wait()


def _unknown_after(after: Dispatch | None, tx: Transaction) -> Sequence[Dispatch]:
    begin = None if after is None else (after.created_at, after.id)
    return tx.dispatches.unknown(None, limit=_MAX_ROWS, after=begin)
