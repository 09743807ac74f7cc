"""The right to dispatch, the feed of due work, and the merging of what providers tell."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final

import anyio

from outreach.clock import Clock, StepWatch
from outreach.config import EngineConfig
from outreach.errors import DispatchRefused, LeaseLost
from outreach.log_throttle import DATABASE, LogThrottle, account
from outreach.models.account import ProviderThrottle
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import Report
from outreach.models.work import HighWaterMark, WorkItem
from outreach.operations.campaigns import trail
from outreach.operations.settling import callbacks, ledger
from outreach.operations.waves import leases, provider_throttles, singles
from outreach.policy.settlement import Backoff
from outreach.protocols.storage import Storage
from outreach.protocols.voice import Analyser
from outreach.runners.batcher import Batcher
from outreach.runners.provider_log import SafeAnalyser
from outreach.working_set import Transaction

_log = logging.getLogger(__name__)

_FINAL_HIGH_WATER_SECONDS: Final = 0.5
"""How long an end in order waits for the last note; the lock must be given back soon."""

_ENGINE_PAUSE_TEXTS: Final = {
    "missed_start": "its start was missed by more than the grace",
    "agent_unavailable": "its agent may not call any more",
    "provider_auth": "its provider does not accept the account's credentials, or they cannot be used here",
    "provider_funds": "its account at the provider has run out of funds",
    "error_budget": "too many of its latest requests failed for reasons that are not its contacts'",
    "moved": "the database was moved to another host or path",
    "restored": "the database is older than it was: it was restored from a copy",
}
"""What the engine pauses campaigns for by itself, in words."""

_MAX_PAUSES: Final = 10_000
"""Campaigns of which it is remembered that their pause was told."""

_MAX_ROWS: Final = 200
"""Rows that one transaction of housekeeping touches at the most; outcomes and reports that share one."""


def backoff_of(config: EngineConfig) -> Backoff:
    """Return how long things wait after an outcome."""
    return Backoff(
        first=timedelta(seconds=config.backoff_initial_seconds),
        longest=timedelta(seconds=config.backoff_max_seconds),
        receipt=timedelta(seconds=config.receipt_timeout_seconds),
    )


class Worker:
    """This process's hold on a database.

    Args:
        storage: The database.
        clock: Where the time comes from.
        config: Lease, back-off.
        analyser: Decides what came of a call that has ended.
        log_throttle: Where the engine's log lines go; by default some of its own.

    Attributes:
        log_throttle: What is told in the log of this process's work.
        backoff: How long things wait after an outcome.
    """

    def __init__(
        self,
        *,
        storage: Storage,
        clock: Clock,
        config: EngineConfig,
        analyser: Analyser,
        log_throttle: LogThrottle | None = None,
    ) -> None:
        self.log_throttle = log_throttle or LogThrottle(clock)
        self._storage = storage
        self._clock = clock
        self._config = config
        self._analyser: Analyser = SafeAnalyser(analyser, self.log_throttle)
        self._lease_ends = float("-inf")
        self._epoch: int | None = None
        self._steps = StepWatch(clock)
        self._clock_set_back: timedelta | None = None
        self._takeover_starts: Mapping[str, float] = {}
        self._logged_pauses: dict[str, int] = {}
        self._last_trail_number = 0
        self.backoff = backoff_of(config)
        self._settling = Batcher(self._settle, max_size=_MAX_ROWS)
        self._reports = Batcher(self._merge, max_size=_MAX_ROWS)

    @property
    def analyser(self) -> Analyser:
        """The one that was given, whose errors are told and taken as "nobody can tell"."""
        return self._analyser

    @analyser.setter
    def analyser(self, analyser: Analyser) -> None:
        self._analyser = SafeAnalyser(analyser, self.log_throttle)

    @property
    def lease_seconds_left(self) -> float:
        """How long the lease still lasts, measured from before the request that renewed it."""
        return self._lease_ends - self._clock.monotonic()

    def earliest_start_after_takeover(self, pace: str) -> float:
        """Return from when on requests of a pace may begin for what an earlier worker began, on the monotonic clock.

        The slots say so too, as long as nobody sets the clock back.
        """
        return self._takeover_starts.get(pace, float("-inf"))

    async def acquire(self, *, on_integrity_check: Callable[[], None] = lambda: None) -> int | None:
        """Take the right to dispatch, and settle what an earlier worker left; see `protocols.dispatcher.Worker`."""
        lock = self._storage.lock
        if not lock.acquire():
            # Who stands by looks at the database too, so that it is noticed here as well where another one lies there.
            await self._storage.read(lambda _: None)
            return None
        try:
            if lock.ended_uncleanly():
                on_integrity_check()
                await self._run_integrity_check()
            before = self._clock.monotonic()
            # A step from before is found out by what the last worker has noted.
            self._steps.step()
            self._clock_set_back = None
            home, noted = lock.home(), lock.high_water()

            def operation(tx: Transaction) -> tuple[leases.Takeover, float]:
                now, taken_at = self._clock.now(), self._clock.monotonic()
                self._last_trail_number = tx.trail.last_number()
                takeover = leases.take_over(tx, home=home, noted=noted, now=now)
                if takeover.reason is not None:
                    singles.cancel_queued_singles(tx, reason=takeover.reason, now=now)
                return takeover, taken_at

            takeover, taken_at = await self._storage.write(operation)
            self._takeover_starts = {
                pace: taken_at + spacing.total_seconds() for pace, spacing in takeover.spacings.items()
            }
            self._lease_ends = before + self._config.lease_seconds
            self._epoch = takeover.epoch
            await self._settle_abandoned(takeover.epoch)
            lock.record_high_water(await self._storage.read(lambda tx: leases.high_water(tx, takeover.epoch)))
            held_back = takeover.paused_campaigns
            pauses = await self._storage.read(
                lambda tx: [trail.last_pause_number(tx, campaign) for campaign in held_back]
            )
        except BaseException:
            self._epoch = None
            lock.release()
            raise
        if takeover.reason is not None:
            _log.warning(
                "The database was %s: %d campaigns are paused until they are resumed.",
                takeover.reason,
                len(takeover.paused_campaigns),
                extra={"action": "held_back", "reason": takeover.reason},
            )
            for campaign, pause in zip(held_back, pauses, strict=True):
                self._log_pause(campaign, pause)
        _log.info("Dispatching under epoch %d.", takeover.epoch, extra={"action": "lease_taken"})
        return takeover.epoch

    async def _run_integrity_check(self) -> None:
        begun = self._clock.monotonic()
        _log.info(
            "The last process did not end in order: the database is looked through.", extra={"action": "checking"}
        )
        damage = await self._storage.lock.check_integrity()
        if damage is not None:
            raise DispatchRefused(
                f"The database is damaged, and nothing is sent: {damage}. Stop this process, and put a backup in the "
                "database's place with `outreach-server db restore FILE` (restore_database).",
                reason="damaged",
            )
        seconds = self._clock.monotonic() - begun
        _log.info("The database is sound; that took %.1f s.", seconds, extra={"action": "checked", "seconds": seconds})

    async def renew(self, epoch: int) -> None:
        """Keep the right; see `protocols.dispatcher.Worker`."""
        await self._renew(epoch, ended=False)

    def note_set_back(self, back: timedelta) -> None:
        """Have the next renewal correct what was noted by the time from before; see `protocols.dispatcher.Worker`."""
        self._clock_set_back = max(back, self._clock_set_back or timedelta())

    async def _renew(self, epoch: int, *, ended: bool) -> None:
        before = self._clock.monotonic()
        # Until it stands in the database: a heartbeat that fails leaves it to the next one.
        step, now = self._steps.step(), self._steps.looked_at
        if step:
            self.note_set_back(-step)

        told = self._clock_set_back

        def operation(tx: Transaction) -> HighWaterMark:
            return leases.renew(tx, epoch=epoch, now=now, back=told)

        mark = await self._storage.write(operation)
        self._lease_ends = before + self._config.lease_seconds
        if self._clock_set_back is told:
            self._clock_set_back = None
        self._storage.lock.record_high_water(mark, ended=ended)
        self.log_throttle.recovered(DATABASE, "The database takes writes again.", action="database_again")

    async def release(self) -> None:
        """Give the right back, having noted how far the database has come: also since the last heartbeat."""
        epoch, self._epoch = self._epoch, None
        try:
            if epoch is not None:
                with anyio.move_on_after(_FINAL_HIGH_WATER_SECONDS):
                    await self._renew(epoch, ended=True)
        except LeaseLost:
            # Another one has taken over, and notes how far it comes.
            pass
        except Exception as error:
            # The note is as old as the last heartbeat then. Whatever keeps it from being written, it ends here.
            _log.warning(
                "How far the database has come could not be noted at the end: %s.",
                type(error).__name__,
                extra={"action": "note_failed"},
            )
        finally:
            self._lease_ends = float("-inf")
            self._storage.lock.release()

    async def due(self) -> tuple[Sequence[WorkItem], int]:
        """Return everything that has a due time, and the highest change number."""
        return await self._storage.read(lambda tx: (tx.work.due(), tx.work.last_change()))

    async def since(self, change: int) -> Sequence[WorkItem]:
        """Return what has changed after a number, by change; tell of what the engine has paused, whoever did it."""

        def operation(tx: Transaction) -> tuple[Sequence[WorkItem], Sequence[tuple[Campaign, int]]]:
            changes = tx.work.since(change)
            # A paused one may be due: at its expiry, or because something of it was taken back since.
            touched = [work.unit for work in changes if work.unit.kind == "campaign"]
            campaigns = [tx.campaigns.get(unit.workspace_id, unit.id) for unit in touched]
            paused = [found for found in campaigns if found is not None and found.pause_reason in _ENGINE_PAUSE_TEXTS]
            return changes, [(found, trail.last_pause_number(tx, found)) for found in paused]

        changes, paused = await self._storage.read(operation)
        for campaign, pause in paused:
            self._log_pause(campaign, pause)
        return changes

    def _log_pause(self, campaign: Campaign, pause: int) -> None:
        """Tell of a pause, once: who changes a campaign that is paused has not paused it again."""
        reason = campaign.pause_reason or ""
        if self._logged_pauses.get(campaign.id, self._last_trail_number) >= pause:
            return
        self._logged_pauses[campaign.id] = pause
        while len(self._logged_pauses) > _MAX_PAUSES:
            del self._logged_pauses[next(iter(self._logged_pauses))]
        self.log_throttle.log(
            logging.WARNING,
            "Campaign %s of workspace %s was paused (%s): %s. It goes on when somebody resumes it.",
            campaign.id,
            campaign.workspace_id,
            reason,
            _ENGINE_PAUSE_TEXTS[reason],
            action="campaign_paused",
            workspace_id=campaign.workspace_id,
            campaign_id=campaign.id,
            reason=reason,
        )

    async def settle(self, dispatch: Dispatch, outcome: DispatchOutcome) -> None:
        """Record the outcome of a dispatch, and whether its provider wants to be left alone.

        Outcomes that come at the same time are recorded together; one that cannot be keeps no other from it.
        """
        self._log_provider_throttle(await self._settling.submit((dispatch, outcome)))

    async def _settle(self, outcomes: Sequence[tuple[Dispatch, DispatchOutcome]]) -> Sequence[ProviderThrottle | None]:
        return await self._storage.write(lambda tx: self._apply_outcomes(tx, outcomes))

    def _apply_outcomes(
        self, tx: Transaction, outcomes: Sequence[tuple[Dispatch, DispatchOutcome]]
    ) -> Sequence[ProviderThrottle | None]:
        now = self._clock.now()
        callbacks.prefetch_for_outcomes(tx, outcomes)
        holds = []
        for dispatch, outcome in outcomes:
            callbacks.merge_outcome(
                tx,
                dispatch.workspace_id,
                dispatch.id,
                outcome,
                backoff=self.backoff,
                analyser=self.analyser,
                now=now,
            )
            holds.append(provider_throttles.update_throttle(tx, dispatch, outcome, backoff=self.backoff, now=now))
        return holds

    def _log_provider_throttle(self, hold: ProviderThrottle | None) -> None:
        if hold is not None:
            self.log_throttle.problem(
                account(hold.workspace_id, hold.provider),
                "provider_hold",
                "%s wants to be left alone: workspace %s asks nothing of it for %g s.",
                hold.provider,
                hold.workspace_id,
                (hold.until - hold.since).total_seconds(),
                action="provider_hold",
                workspace_id=hold.workspace_id,
                provider=hold.provider,
            )

    async def report(self, event: Report) -> None:
        """Merge what a provider tells, together with what others tell at the same time; it is committed then."""
        await self._reports.submit(event)

    async def _merge(self, events: Sequence[Report]) -> Sequence[bool]:
        def operation(tx: Transaction) -> Sequence[bool]:
            now = self._clock.now()
            ledger.prefetch_for_reports(tx, events)
            return [
                callbacks.merge_report(tx, event, backoff=self.backoff, analyser=self.analyser, now=now)
                for event in events
            ]

        return await self._storage.write(operation)

    async def sweep(self) -> None:
        """Clear away what nobody needs: leftovers of loads that died, a slice of the keys that expired."""
        leftovers = await self._storage.read(lambda tx: tx.campaigns.leftovers(self._clock.now()))
        for workspace_id, campaign_id in leftovers:
            await self._delete_leftover(workspace_id, campaign_id)
        await self._storage.write(lambda tx: tx.requests.sweep(self._clock.now(), limit=_MAX_ROWS), bulk=True)
        await self._storage.write(lambda tx: tx.work.delete_idle(limit=_MAX_ROWS), bulk=True)
        oldest = self._clock.now() - timedelta(days=self._config.callback_retention_days)
        await self._storage.write(lambda tx: tx.callbacks.sweep(oldest, limit=_MAX_ROWS), bulk=True)

    async def _delete_leftover(self, workspace_id: str, campaign_id: str) -> None:
        """Delete what a load that died has left behind: all of it, in slices, for it may be a million people."""
        limit = self._config.insert_batch_size
        while not await self._storage.write(
            lambda tx: tx.campaigns.delete_loading(workspace_id, campaign_id, limit=limit), bulk=True
        ):
            pass

    async def _settle_abandoned(self, epoch: int) -> None:
        total = 0
        while True:
            count = await self._storage.write(
                lambda tx: ledger.mark_abandoned(
                    tx, epoch=epoch, backoff=self.backoff, now=self._clock.now(), limit=_MAX_ROWS
                )
            )
            total += count
            if count < _MAX_ROWS:
                break
        if total:
            _log.warning(
                "%d dispatches of an earlier worker have no outcome: they are unknown and are not sent again.",
                total,
                extra={"action": "abandoned", "count": total},
            )
