"""The worker's lease, the work feed, and merging outcomes and reports."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, TypeVar

import anyio
import attrs

from outreach.core.clock import Clock, StepWatch
from outreach.core.config import EngineConfig
from outreach.core.log_throttle import DATABASE, DISPATCH, LogThrottle
from outreach.core.logged_errors import masked
from outreach.dispatch.adapter_answers import SafeAnalyser, log_throttled, recordable_report
from outreach.dispatch.batcher import Batcher
from outreach.dispatch.claims import Claims, Team, WorkerPermits
from outreach.dispatch.sweeping import Sweeper
from outreach.errors import DispatchRefused, LeaseLost
from outreach.ledger import provider_throttles
from outreach.ledger.campaigns import trail
from outreach.ledger.leases import leases
from outreach.ledger.sending import singles
from outreach.ledger.sending.intents import Permits
from outreach.ledger.settling import callback_events, ledger
from outreach.models.account import ProviderThrottle
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import Report
from outreach.models.work import HighWaterMark, WorkItem, WorkUnit
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.ledger_archives import LedgerArchives
from outreach.protocols.storage import Operation, ReplicatedStorage, Storage, Within
from outreach.protocols.voice import Analyser
from outreach.rules.explanations import MOVED, RESTORED
from outreach.rules.settlement import MAX_RETRY_AFTER, Backoff
from outreach.storage.base.slices import SliceSize
from outreach.storage.base.writer import CommitUnknown
from outreach.storage.unit_of_work import Transaction

T = TypeVar("T")

_log = logging.getLogger(__name__)

_Recorded = tuple[DispatchOutcome, ProviderThrottle | None]
"""An outcome as it was recorded, and the throttle that came of it."""

_Merged = tuple[Dispatch | None, Report | None]
"""The dispatch of a report, and the report that was merged; None if a simulated event has overruled it."""

_FINAL_SECONDS: Final = 0.5
"""How long the end of a lease may take, in the database and in the high-water mark."""

_ENGINE_PAUSE_TEXTS: Final = {
    "missed_start": "its start was missed by more than the grace period",
    "agent_unavailable": "its agent may no longer call",
    "provider_auth": "its provider rejects the account's credentials, or they cannot be used here",
    "provider_funds": "its account at the provider has run out of funds",
    "error_budget": "too many of its latest requests failed for reasons that are not its contacts'",
    "moved": MOVED,
    "restored": RESTORED,
}
"""The reasons for which the engine pauses campaigns."""

_MAX_KNOWN: Final = 10_000
"""Campaigns whose logged pause is remembered; paces of other workers before those that are free are dropped."""

_MAX_ROWS: Final = 200
"""Outcomes and reports that share a transaction, and abandoned dispatches."""

_KEPT_RETRY_SECONDS: Final = 0.5

_SETTLING_PAUSE_SECONDS: Final = 0.05
"""Between transactions with outcomes of campaigns, for which no caller waits: few large ones take less computing."""

_SETTLED_PART: Final = 8
"""This part of all requests that may be in flight is enough outcomes: until it is recorded, each takes a place."""


def notify_report(
    instrumentation: Instrumentation,
    log_throttle: LogThrottle,
    dispatch: Dispatch | None,
    report: Report,
    now: datetime,
) -> None:
    """Report a merged report to the instrumentation, with the delay since its request."""
    if dispatch is not None and report.retry_after_seconds is not None:
        seconds = min(report.retry_after_seconds, MAX_RETRY_AFTER.total_seconds())
        log_throttled(log_throttle, dispatch.workspace_id, dispatch.provider, seconds)
    delay = None if dispatch is None else max((now - dispatch.slot_at).total_seconds(), 0.0)
    # In a sandbox they differ.
    observed = None if dispatch is None else attrs.evolve(dispatch, provider=report.provider)
    instrumentation.report_received(observed, report, delay_seconds=delay)


def _workspace_of(settled: tuple[Dispatch, DispatchOutcome]) -> str:
    return settled[0].workspace_id


def backoff_of(config: EngineConfig) -> Backoff:
    """Return the delays after outcomes."""
    return Backoff(
        first=timedelta(seconds=config.backoff_initial_seconds),
        longest=timedelta(seconds=config.backoff_max_seconds),
        receipt=timedelta(seconds=config.receipt_timeout_seconds),
    )


class Worker:
    """This process's right to dispatch from a database.

    Args:
        storage: The database.
        clock: The source of time.
        config: Lease and backoff.
        archives: Erases campaigns in the files that they were moved into.
        analyser: Determines the outcome of an ended call.
        log_throttle: The engine's log; a new one by default.
        instrumentation: Observes what happens; none by default.
        compare_clocks: Sets the clock right by the database's; called at each heartbeat.
        require_key: Raises `DispatchRefused` where this process has no key of the accounts.

    Attributes:
        log_throttle: The log of this process's work.
        instrumentation: Observes what happens.
        backoff: The delays after outcomes.
        claims: What this worker drives, where there are several.
        permits: What bounds its intents and requests.
    """

    def __init__(
        self,
        *,
        storage: Storage,
        clock: Clock,
        config: EngineConfig,
        analyser: Analyser,
        archives: LedgerArchives,
        log_throttle: LogThrottle | None = None,
        instrumentation: Instrumentation | None = None,
        compare_clocks: Callable[[Transaction], None] = lambda _: None,
        require_key: Callable[[Transaction], None] = lambda _: None,
    ) -> None:
        self._compare_clocks = compare_clocks
        self._require_key = require_key
        self._lacks_key: DispatchRefused | None = None
        self._has_compared = False
        self.log_throttle = log_throttle or LogThrottle(clock)
        self.instrumentation = instrumentation or Instrumentation()
        self._storage = storage
        self._clock = clock
        self._config = config
        self._sweeper = Sweeper(
            storage=storage, clock=clock, config=config, archives=archives, log_throttle=self.log_throttle
        )
        self._analyser: Analyser = SafeAnalyser(analyser, self.log_throttle)
        self._lease_ends = float("-inf")
        self._epoch: int | None = None
        self._place = 0
        self._leads = False
        self._in_doubt = False
        self._server_changes = 0
        self._intact = False
        self._others: Mapping[int, int] = {}
        self._stale_leases = leases.StaleLeaseDetector(clock)
        self._reload = False
        self._left_behind = False
        self._steps = StepWatch(clock)
        self._clock_set_back: timedelta | None = None
        self._takeover_starts: dict[str, float] = {}
        self._logged_pauses: dict[str, int] = {}
        self._last_trail_number = 0
        self.backoff = backoff_of(config)
        self.claims = Claims(
            storage=storage,
            clock=clock,
            idle_seconds=config.lease_seconds,
            note_pace=self._note_pace,
        )
        self.permits = WorkerPermits(config)
        self._settled = SliceSize(clock, most=_MAX_ROWS)
        self._settling = Batcher(
            self._settle,
            max_size=self._settled.rows,
            whose=_workspace_of,
            pause_seconds=_SETTLING_PAUSE_SECONDS,
            enough=max(config.max_requests_in_flight // _SETTLED_PART, 1),
        )
        self._settling_singles = Batcher(self._settle, max_size=self._settled.rows, whose=_workspace_of)
        self._merged = SliceSize(clock, most=_MAX_ROWS)
        self._reports = Batcher(self._merge, max_size=self._merged.rows, whose=lambda report: report.workspace_id)
        self._kept: dict[str, tuple[Dispatch, DispatchOutcome, float]] = {}

    @property
    def analyser(self) -> Analyser:
        """The given analyser, whose errors are logged and count as "unknown"."""
        return self._analyser

    @analyser.setter
    def analyser(self, analyser: Analyser) -> None:
        self._analyser = SafeAnalyser(analyser, self.log_throttle)

    @property
    def lease_seconds_left(self) -> float:
        """Seconds left of the lease, measured from before the request that renewed it."""
        return self._lease_ends - self._clock.monotonic()

    def _note_pace(self, pace: str, earliest_start: float) -> None:
        """Note when a pace that another worker used is free."""
        if len(self._takeover_starts) >= _MAX_KNOWN:
            now = self._clock.monotonic()
            for known in [known for known, at in self._takeover_starts.items() if at <= now]:
                del self._takeover_starts[known]
        self._takeover_starts[pace] = max(earliest_start, self.earliest_start_after_takeover(pace))

    @property
    def leads(self) -> bool:
        """Whether this worker does what only one is to do: looking up, sweeping."""
        return self._leads

    def earliest_start_after_takeover(self, pace: str) -> float:
        """Return when, on the monotonic clock, a pace that an earlier worker used is free.

        The slots say the same, unless the clock is set back.
        """
        return self._takeover_starts.get(pace, float("-inf"))

    async def acquire(self, *, on_integrity_check: Callable[[], None] = lambda: None) -> int | None:
        """Take a lease and settle what lost workers left; see `protocols.dispatcher.Worker`."""
        lock = self._storage.lock
        place = await lock.acquire()
        if not place:
            # Reading lets a standby process notice a replaced file, too.
            await self._storage.read(lambda _: None)
            await self._settle_kept()
            return None
        try:
            if not self._intact and lock.ended_uncleanly():
                on_integrity_check()
                await self._run_integrity_check()
                # What follows may fail and be tried again for hours, as on a full disk.
                self._intact = True
            # Before anything is planned: as the engine was opened, the database may have been away.
            await self._storage.read(self._look_before)
            self._has_compared, self._lacks_key = True, None
            # Else they would count as abandoned.
            await self._settle_kept()
            before = self._clock.monotonic()
            # The last worker's mark shows earlier clock steps.
            self._steps.step()
            self._clock_set_back = None
            home, in_use = lock.home(), self.permits.held()
            self._server_changes = self._count_server_changes()
            lasts = timedelta(seconds=self._config.lease_seconds)
            seem_over: Mapping[int, int] = {}
            gone: Collection[int] | None = None

            def operation(tx: Transaction) -> tuple[leases.Takeover, Permits] | None:
                nonlocal seem_over
                if gone is None and (seem_over := leases.seem_over(tx, place=place)):
                    return None
                now = self._clock.now()
                self._last_trail_number = tx.trail.last_number()
                takeover = leases.take_over(
                    tx,
                    home=home,
                    # Read here: the beginning of this transaction may have found that the database was set back.
                    noted=lock.high_water(),
                    now=now,
                    receipt=self.backoff.receipt,
                    place=place,
                    lasts=lasts,
                    gone=gone or (),
                    unrenewed=self._stale_leases.look(tx),
                )
                if takeover.reason is not None:
                    singles.cancel_queued_singles(tx, reason=takeover.reason, now=now)
                return takeover, self.permits.share(tx, takeover.epoch, in_use)

            while (taken := await self._storage.write(operation)) is None:
                # The clock may have been set forth. The locks are checked outside the transaction.
                gone = await self._find_gone(seem_over)
            takeover, portion = taken
            # From this commit on, the last checks of the earlier worker see the takeover.
            taken_at = self._clock.monotonic()
            self.permits.take_in(portion)
            self._takeover_starts.clear()
            for pace, spacing in takeover.spacings.items():
                self._takeover_starts[pace] = taken_at + spacing.total_seconds()
            self._lease_ends = before + self._config.lease_seconds
            self._epoch, self._place, self._leads = takeover.epoch, place, takeover.alone
            self._in_doubt = False
            self._others = takeover.others
            self.claims.begin(takeover.epoch, alone=takeover.alone)
            await self._settle_abandoned()
            # Before the mark, whose disk may be full: the pauses are committed.
            await self._log_quarantine(takeover)
            if takeover.alone:
                lock.record_high_water(await self._storage.read(lambda tx: leases.high_water(tx, takeover.epoch)))
            self._intact = False
        except BaseException:
            epoch, self._epoch = self._epoch, None
            try:
                if epoch is not None:
                    await self._end_unused(epoch)
            finally:
                await lock.release(place)
            raise
        _log.info("Dispatching under epoch %d.", takeover.epoch, extra={"action": "lease_taken"})
        return takeover.epoch

    async def _end_unused(self, epoch: int) -> None:
        """End a lease under which nothing was begun: a lease shows that its process dispatches."""
        # Where this fails, it expires.
        with suppress(Exception), anyio.move_on_after(_FINAL_SECONDS, shield=True):
            await self._storage.write(lambda tx: leases.end_worker(tx, epoch))

    def _look_before(self, tx: Transaction) -> None:
        self._compare_clocks(tx)
        self._require_key(tx)

    async def _log_quarantine(self, takeover: leases.Takeover) -> None:
        paused = takeover.paused_campaigns
        pauses = await self._storage.read(lambda tx: [trail.last_pause_number(tx, campaign) for campaign in paused])
        if takeover.reason is None:
            return
        # If no campaign ran, an operator has nothing to do.
        are = "campaign is" if len(paused) == 1 else "campaigns are"
        _log.log(
            logging.WARNING if paused else logging.INFO,
            "The database was %s: %s.",
            takeover.reason,
            f"{len(paused)} {are} paused until an operator resumes them" if paused else "no campaign ran",
            extra={"action": "held_back", "reason": takeover.reason},
        )
        for campaign, pause in zip(paused, pauses, strict=True):
            self._log_pause(campaign, pause)

    async def _run_integrity_check(self) -> None:
        begun = self._clock.monotonic()
        _log.info("The last process did not shut down cleanly: checking the database.", extra={"action": "checking"})
        damage = await self._storage.lock.check_integrity()
        if damage is not None:
            raise DispatchRefused(
                f"The database is damaged: {damage}. Stop this process and restore a backup with "
                "`outreach-server db restore FILE` (restore_database).",
                reason="damaged",
            )
        seconds = self._clock.monotonic() - begun
        _log.info(
            "The database is intact (checked in %.1f s).", seconds, extra={"action": "checked", "seconds": seconds}
        )

    async def commit(self, operation: Operation[T]) -> T:
        """Commit intents.

        Where it is unknown whether they were committed, no worker owns them (`doubt`).

        Raises:
            CommitUnknown: It is unknown whether they were committed.
            OutreachError: Nothing was committed.
        """
        try:
            result = await self._storage.write(operation)
        except (CommitUnknown, asyncio.CancelledError):
            self.doubt()
            raise
        if self._count_server_changes() != self._server_changes:
            # A database that was set back has contacts again that were sent to: none of these requests starts.
            self.doubt()
            self._lease_ends = min(self._lease_ends, self._clock.monotonic())
        return result

    def doubt(self) -> None:
        """Have the next heartbeat give the lease up, so that intents that may have no worker count as abandoned."""
        self._in_doubt = True

    async def lacks_key(self) -> bool:
        """Return whether this process has no key of the accounts; then no request starts, and the lease is given up."""
        try:
            await self._storage.read(self._require_key)
        except DispatchRefused as error:
            self._lacks_key = error
            self._lease_ends = min(self._lease_ends, self._clock.monotonic())
        return self._lacks_key is not None

    async def renew(self, epoch: int) -> None:
        """Renew the lease; see `protocols.dispatcher.Worker`."""
        if self._lacks_key is not None:
            raise self._lacks_key
        if self._in_doubt:
            # No further request begins under this lease, whose end would cut it off: the next lease sends it.
            self._lease_ends = min(self._lease_ends, self._clock.monotonic())
            raise LeaseLost(
                "It is unknown whether intents were committed: this worker starts a new lease, and they are unknown."
            )
        await self._renew(epoch, ended=False)
        await self._settle_kept()

    def _count_server_changes(self) -> int:
        return self._storage.server_changes if isinstance(self._storage, ReplicatedStorage) else 0

    def note_set_back(self, back: timedelta) -> None:
        """Let the next renewal repair the effects of a clock step; see `protocols.dispatcher.Worker`."""
        self._clock_set_back = max(back, self._clock_set_back or timedelta())

    async def _renew(self, epoch: int, *, ended: bool) -> None:
        gone = frozenset() if ended else await self._find_gone(self._others)
        before = self._clock.monotonic()
        lasts = timedelta(seconds=self._config.lease_seconds)
        step, now = self._steps.step(), self._steps.looked_at
        if step:
            self.note_set_back(-step)

        # What is noted from now on is the next heartbeat's.
        noted, self._clock_set_back = self._clock_set_back, None
        led, free = self._leads, self.claims.to_free()
        recorded = self._storage.lock.high_water()
        in_use = self.permits.in_use()

        def operation(tx: Transaction) -> tuple[HighWaterMark | None, Sequence[int], Team, Permits]:
            self._compare_clocks(tx)
            present = self._clock.now()
            mark = leases.renew(
                tx,
                epoch=epoch,
                now=now,
                noted=recorded,
                back=noted,
                present=present,
                lasts=lasts,
                led=led,
                receipt=self.backoff.receipt,
            )
            # A worker that ends leaves this to others.
            lost = () if ended else self._end_lost(tx, epoch, gone)
            team, portion = self.claims.look_around(tx, free), self.permits.share(tx, epoch, in_use)
            if ended:
                leases.end_worker(tx, epoch)
            return mark, lost, team, portion

        try:
            mark, lost, team, portion = await self._storage.write(operation)
        except BaseException:
            # Left to the next heartbeat: it may be unknown whether this one was committed.
            self._left_behind = True
            if noted is not None:
                self.note_set_back(noted)
            raise
        if self._count_server_changes() != self._server_changes:
            # Outcomes that are recorded here may be lost there, and no worker would look for them.
            self.doubt()
        self._left_behind = self._left_behind or bool(lost)
        self.permits.take_in(portion)
        self._others = team.others
        self._leads = mark is not None
        refused = self._record(mark, ended=ended and team.size == 1)
        # Without the mark, nothing would show that the database was set back.
        self._lease_ends = before + self._config.lease_seconds if refused is None else min(self._lease_ends, before)
        self.claims.note(team, free)
        self._reload = not self.claims.alone
        if self._left_behind:
            # Again at the next heartbeat if this fails: no other code looks for it.
            await self._settle_abandoned()
            self._left_behind = False
        self.log_throttle.recovered(DATABASE, "The database accepts writes again.", action="database_again")
        if refused is not None:
            raise refused

    def _record(self, mark: HighWaterMark | None, *, ended: bool) -> DispatchRefused | None:
        """Write the mark of a worker that leads; return why that failed."""
        if mark is not None:
            try:
                self._storage.lock.record_high_water(mark, ended=ended)
            except DispatchRefused as error:
                return error
        return None

    def _end_lost(self, tx: Transaction, epoch: int, gone: Collection[int]) -> Sequence[int]:
        return leases.end_lost(
            tx, but=epoch, unrenewed=self._stale_leases.look(tx), is_gone=lambda one: one.epoch in gone
        )

    async def _find_gone(self, others: Mapping[int, int]) -> Collection[int]:
        """Return which workers, given with their places, are certainly gone: their places are free now.

        A worker that has taken such a place since is another one. The check delays this heartbeat until the next one at
        most.
        """
        free: Collection[int] = ()
        if others:
            with anyio.move_on_after(self._config.heartbeat_interval_seconds):
                free = await self._storage.lock.find_free(set(others.values()))
        return frozenset(epoch for epoch, place in others.items() if place in free)

    async def release(self) -> None:
        """End the lease, free what was driven, and write the high-water mark."""
        epoch, self._epoch = self._epoch, None
        try:
            if epoch is not None:
                with anyio.move_on_after(_FINAL_SECONDS):
                    await self._renew(epoch, ended=True)
        except LeaseLost:
            # The new lease holder writes the mark.
            pass
        except DispatchRefused as error:
            self.log_throttle.problem(DISPATCH, error.reason, "%s", masked(error.message), action="note_failed")
        except Exception as error:
            # The mark stays that of the last heartbeat, which must not prevent the shutdown.
            _log.warning(
                "Could not write the high-water mark at the end: %s.",
                type(error).__name__,
                extra={"action": "note_failed"},
            )
        finally:
            self._lease_ends = float("-inf")
            place, self._place, self._leads = self._place, 0, False
            await self._storage.lock.release(place)

    async def due(self) -> tuple[Sequence[WorkItem], int]:
        """Return every unit with a due time, and the highest change number."""
        return await self._storage.read(lambda tx: (tx.work.due(), tx.work.last_change()))

    async def since(self, change: int) -> Sequence[WorkItem]:
        """Return the changes after a number, in order; log the engine's pauses among them, made by any process.

        With other workers, a unit that another one drives is returned as not due. After each heartbeat, the due units
        that no worker drives are returned again.
        """
        again, self._reload = self._reload, False

        def operation(tx: Transaction) -> tuple[Sequence[WorkItem], Sequence[tuple[Campaign, int]]]:
            changes = [*(tx.work.due() if again else ()), *tx.work.since(change)]
            # A paused campaign changes again when it expires or is edited.
            touched = [(work.unit.workspace_id, work.unit.id) for work in changes if work.unit.kind == "campaign"]
            paused = [one for one in tx.campaigns.paused_among(touched) if one.pause_reason in _ENGINE_PAUSE_TEXTS]
            return changes, [(found, trail.last_pause_number(tx, found)) for found in paused]

        changes, paused = await self._storage.read(operation)
        for campaign, pause in paused:
            self._log_pause(campaign, pause)
        if self.claims.alone:
            return changes
        return [attrs.evolve(work, due_at=None) if self.claims.is_others(work) else work for work in changes]

    async def refused_by(self, unit: WorkUnit) -> int | None:
        """Return which other worker kept the last slice of a unit from working; see `protocols.dispatcher.Worker`."""
        return await self.claims.refused_by(unit)

    def _log_pause(self, campaign: Campaign, pause: int) -> None:
        """Log a pause once, even if the paused campaign changes again."""
        reason = campaign.pause_reason or ""
        if self._logged_pauses.get(campaign.id, self._last_trail_number) >= pause:
            return
        self._logged_pauses[campaign.id] = pause
        while len(self._logged_pauses) > _MAX_KNOWN:
            del self._logged_pauses[next(iter(self._logged_pauses))]
        self.log_throttle.log(
            logging.WARNING,
            "Campaign %s of workspace %s was paused (%s): %s. Resume it when this is resolved.",
            campaign.id,
            campaign.workspace_id,
            reason,
            _ENGINE_PAUSE_TEXTS[reason],
            action="campaign_paused",
            workspace_id=campaign.workspace_id,
            campaign_id=campaign.id,
            reason=reason,
        )

    async def settle(self, dispatch: Dispatch, outcome: DispatchOutcome) -> DispatchOutcome:
        """Record a dispatch's outcome and its provider's throttle; return what was recorded (`ledger.believable`).

        Outcomes that arrive together are recorded together; one that fails does not affect the others.
        """
        settling = self._settling_singles if dispatch.campaign_id is None else self._settling
        recorded, throttle = await settling.submit((dispatch, outcome))
        self._log_provider_throttle(throttle)
        return recorded

    def keep(self, dispatch: Dispatch, outcome: DispatchOutcome) -> None:
        """Have an outcome recorded when the database can be reached again, under whatever lease.

        When a database is down for a while, the lease often ends, and providers answer meanwhile.
        """
        self._kept[dispatch.id] = dispatch, outcome, self._clock.monotonic()

    async def settle_kept(self) -> None:
        """Record the kept outcomes, retrying until all are recorded; the caller limits how long."""
        while self._kept:
            await self._settle_kept()
            if self._kept:
                await anyio.sleep(_KEPT_RETRY_SECONDS)

    async def _settle_kept(self) -> None:
        """Record what was kept; what cannot be recorded yet stays."""
        if self._kept:
            async with anyio.create_task_group() as tasks:
                for dispatch, outcome, since in list(self._kept.values()):
                    tasks.start_soon(self._settle_one_kept, dispatch, self._without_the_past(outcome, since))

    def _without_the_past(self, outcome: DispatchOutcome, since: float) -> DispatchOutcome:
        """Return a kept outcome whose provider asks to wait for what is left of its time, if anything is."""
        left = (outcome.retry_after_seconds or 0.0) - (self._clock.monotonic() - since)
        return attrs.evolve(
            outcome,
            retry_after_seconds=left if left > 0 else None,
            account_wide=outcome.account_wide and left > 0,
        )

    async def _settle_one_kept(self, dispatch: Dispatch, outcome: DispatchOutcome) -> None:
        try:
            await self.settle(dispatch, outcome)
        except Exception as error:
            self.log_throttle.failure(
                "outcome_not_recorded",
                error,
                "An outcome could not be recorded yet; trying again.",
                dispatch_id=dispatch.id,
            )
        else:
            self._kept.pop(dispatch.id, None)

    async def _settle(self, outcomes: Sequence[tuple[Dispatch, DispatchOutcome]]) -> Sequence[_Recorded]:
        operation = self._settled.measured(lambda tx: self._apply_outcomes(tx, outcomes), len(outcomes))
        return await self._storage.write(Within({dispatch.workspace_id for dispatch, _ in outcomes}, operation))

    def _apply_outcomes(
        self, tx: Transaction, outcomes: Sequence[tuple[Dispatch, DispatchOutcome]]
    ) -> Sequence[_Recorded]:
        now = self._now(tx)
        callback_events.prefetch_for_outcomes(tx, outcomes)
        recorded = []
        for dispatch, answer in outcomes:
            outcome = ledger.believable(tx, dispatch, answer)
            callback_events.merge_outcome(
                tx, dispatch.workspace_id, dispatch.id, outcome, backoff=self.backoff, analyser=self.analyser, now=now
            )
            throttle = provider_throttles.update_throttle(tx, dispatch, outcome, backoff=self.backoff, now=now)
            recorded.append((outcome, throttle))
        return recorded

    def _now(self, tx: Transaction) -> datetime:
        """Return the time of the database, also where it was away as the engine was opened."""
        if not self._has_compared:
            self._compare_clocks(tx)
            self._has_compared = True
        return self._clock.now()

    def _log_provider_throttle(self, throttle: ProviderThrottle | None) -> None:
        if throttle is not None:
            seconds = (throttle.until - throttle.since).total_seconds()
            log_throttled(self.log_throttle, throttle.workspace_id, throttle.provider, seconds)

    async def report(self, event: Report) -> None:
        """Merge a provider's report, together with others that arrive at the same time, and commit it."""
        event = recordable_report(event)
        dispatch, merged = await self._reports.submit(event)
        if merged is not None:
            notify_report(self.instrumentation, self.log_throttle, dispatch, merged, self._clock.now())

    async def _merge(self, events: Sequence[Report]) -> Sequence[_Merged]:
        def operation(tx: Transaction) -> Sequence[_Merged]:
            now = self._now(tx)
            ledger.prefetch_for_reports(tx, events)
            callback_events.prefetch_simulated(tx, events)
            merged = []
            for event in events:
                report = callback_events.as_simulated(tx, event, now=now)
                if report is not None:
                    callback_events.merge_report(tx, report, backoff=self.backoff, analyser=self.analyser, now=now)
                merged.append(report)
            return [(ledger.dispatch_of(tx, event), report) for event, report in zip(events, merged, strict=True)]

        within = {event.workspace_id for event in events}
        return await self._storage.write(Within(within, self._merged.measured(operation, len(events))))

    async def sweep(self) -> None:
        """Delete what is no longer needed, if this worker leads: one does so for all; see `Sweeper`."""
        if self._leads:
            await self._sweeper.sweep()

    async def _settle_abandoned(self) -> None:
        total = 0
        while True:
            count = await self._storage.write(
                lambda tx: ledger.mark_abandoned(tx, backoff=self.backoff, now=self._clock.now(), limit=_MAX_ROWS)
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
