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
from outreach.models.account import AccountHold
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, Outcome
from outreach.models.reports import Report
from outreach.models.work import DueWork, HighWater
from outreach.notices import DATABASE, Notices, account
from outreach.operations import account_holds, leases, matching, settling, singles, trail
from outreach.policy.settlement import Backoff
from outreach.protocols.analyser import Analyser
from outreach.protocols.storage import Storage
from outreach.runners.batches import Batches
from outreach.runners.verdicts import ToldAnalyser
from outreach.working_set import Transaction

_log = logging.getLogger(__name__)

_LAST_NOTE_SECONDS: Final = 0.5
"""How long an end in order waits for the last note; the lock must be given back soon."""

PAUSES: Final = {
    "missed_start": "its start was missed by more than the grace",
    "agent_unavailable": "its agent may not call any more",
    "provider_auth": "its provider does not accept the account's credentials, or they cannot be used here",
    "provider_funds": "its account at the provider has run out of funds",
    "error_budget": "too many of its latest requests failed for reasons that are not its contacts'",
    "moved": "the database was moved to another host or path",
    "restored": "the database is older than it was: it was restored from a copy",
}
"""What the engine pauses campaigns for by itself, in words."""

_MOST_PAUSES: Final = 10_000
"""Campaigns of which it is remembered that their pause was told."""

_SLICE: Final = 200
"""Rows that one transaction of housekeeping touches at the most; outcomes and reports that share one."""


def backoff_of(config: EngineConfig) -> Backoff:
    """Return how long things wait after an outcome."""
    return Backoff(
        first=timedelta(seconds=config.backoff_seconds),
        longest=timedelta(seconds=config.backoff_max_seconds),
        receipt=timedelta(seconds=config.receipt_wait_seconds),
    )


class Worker:
    """This process's hold on a database.

    Args:
        storage: The database.
        clock: Where the time comes from.
        config: Lease, back-off.
        analyser: Decides what came of a call that has ended.
        notices: Where the engine's log lines go; by default some of its own.

    Attributes:
        notices: What is told in the log of this process's work.
        backoff: How long things wait after an outcome.
    """

    def __init__(
        self,
        *,
        storage: Storage,
        clock: Clock,
        config: EngineConfig,
        analyser: Analyser,
        notices: Notices | None = None,
    ) -> None:
        self.notices = notices or Notices(clock)
        self._storage = storage
        self._clock = clock
        self._config = config
        self._analyser: Analyser = ToldAnalyser(analyser, self.notices)
        self._lease_ends = float("-inf")
        self._epoch: int | None = None
        self._steps = StepWatch(clock)
        self._back: timedelta | None = None
        self._first_turns: Mapping[str, float] = {}
        self._told_pauses: dict[str, int] = {}
        self._told_before = 0
        self.backoff = backoff_of(config)
        self._settling = Batches(self._settle, most=_SLICE)
        self._reports = Batches(self._merge, most=_SLICE)

    @property
    def analyser(self) -> Analyser:
        """The one that was given, whose errors are told and taken as "nobody can tell"."""
        return self._analyser

    @analyser.setter
    def analyser(self, analyser: Analyser) -> None:
        self._analyser = ToldAnalyser(analyser, self.notices)

    @property
    def lease_seconds_left(self) -> float:
        """How long the lease still lasts, measured from before the request that renewed it."""
        return self._lease_ends - self._clock.monotonic()

    def first_turn(self, pace: str) -> float:
        """Return from when on requests of a pace may begin for what an earlier worker began, on the monotonic clock.

        The slots say so too, as long as nobody sets the clock back.
        """
        return self._first_turns.get(pace, float("-inf"))

    async def take(self, *, checking: Callable[[], None] = lambda: None) -> int | None:
        """Take the right to dispatch, and settle what an earlier worker left; see `protocols.dispatcher.Worker`."""
        lock = self._storage.lock
        if not lock.acquire():
            # Who stands by looks at the database too, so that it is noticed here as well where another one lies there.
            await self._storage.read(lambda _: None)
            return None
        try:
            if lock.crashed():
                checking()
                await self._look_through()
            before = self._clock.monotonic()
            # A step from before is found out by what the last worker has noted.
            self._steps.step()
            self._back = None
            home, noted = lock.home(), lock.high_water()

            def operation(tx: Transaction) -> tuple[leases.Takeover, float]:
                now, taken_at = self._clock.now(), self._clock.monotonic()
                self._told_before = tx.trail.last_number()
                takeover = leases.take_over(tx, home=home, noted=noted, now=now)
                if takeover.reason is not None:
                    singles.hold_back_singles(tx, reason=takeover.reason, now=now)
                return takeover, taken_at

            takeover, taken_at = await self._storage.write(operation)
            self._first_turns = {
                pace: taken_at + spacing.total_seconds() for pace, spacing in takeover.spacings.items()
            }
            self._lease_ends = before + self._config.lease_seconds
            self._epoch = takeover.epoch
            await self._settle_abandoned(takeover.epoch)
            lock.note(await self._storage.read(lambda tx: leases.high_water(tx, takeover.epoch)))
            held_back = takeover.held_back
            pauses = await self._storage.read(lambda tx: [trail.last_pause(tx, campaign) for campaign in held_back])
        except BaseException:
            self._epoch = None
            lock.release()
            raise
        if takeover.reason is not None:
            _log.warning(
                "The database was %s: %d campaigns are paused until they are resumed.",
                takeover.reason,
                len(takeover.held_back),
                extra={"action": "held_back", "reason": takeover.reason},
            )
            for campaign, pause in zip(held_back, pauses, strict=True):
                self._tell_of_pause(campaign, pause)
        _log.info("Dispatching under epoch %d.", takeover.epoch, extra={"action": "lease_taken"})
        return takeover.epoch

    async def _look_through(self) -> None:
        begun = self._clock.monotonic()
        _log.info(
            "The last process did not end in order: the database is looked through.", extra={"action": "checking"}
        )
        damage = await self._storage.lock.find_damage()
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
        self._back = max(back, self._back or timedelta())

    async def _renew(self, epoch: int, *, ended: bool) -> None:
        before = self._clock.monotonic()
        # Until it stands in the database: a heartbeat that fails leaves it to the next one.
        step, now = self._steps.step(), self._steps.looked_at
        if step:
            self.note_set_back(-step)

        told = self._back

        def operation(tx: Transaction) -> HighWater:
            return leases.renew(tx, epoch=epoch, now=now, back=told)

        mark = await self._storage.write(operation)
        self._lease_ends = before + self._config.lease_seconds
        if self._back is told:
            self._back = None
        self._storage.lock.note(mark, ended=ended)
        self.notices.over(DATABASE, "The database takes writes again.", action="database_again")

    async def release(self) -> None:
        """Give the right back, having noted how far the database has come: also since the last heartbeat."""
        epoch, self._epoch = self._epoch, None
        try:
            if epoch is not None:
                with anyio.move_on_after(_LAST_NOTE_SECONDS):
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

    async def due(self) -> tuple[Sequence[DueWork], int]:
        """Return everything that has a due time, and the highest change number."""
        return await self._storage.read(lambda tx: (tx.work.due(), tx.work.last_change()))

    async def since(self, change: int) -> Sequence[DueWork]:
        """Return what has changed after a number, by change; tell of what the engine has paused, whoever did it."""

        def operation(tx: Transaction) -> tuple[Sequence[DueWork], Sequence[tuple[Campaign, int]]]:
            changes = tx.work.since(change)
            # A paused one may be due: at its expiry, or because something of it was taken back since.
            touched = [work.unit for work in changes if work.unit.kind == "campaign"]
            campaigns = [tx.campaigns.get(unit.workspace_id, unit.id) for unit in touched]
            paused = [found for found in campaigns if found is not None and found.pause_reason in PAUSES]
            return changes, [(found, trail.last_pause(tx, found)) for found in paused]

        changes, paused = await self._storage.read(operation)
        for campaign, pause in paused:
            self._tell_of_pause(campaign, pause)
        return changes

    def _tell_of_pause(self, campaign: Campaign, pause: int) -> None:
        """Tell of a pause, once: who changes a campaign that is paused has not paused it again."""
        reason = campaign.pause_reason or ""
        if self._told_pauses.get(campaign.id, self._told_before) >= pause:
            return
        self._told_pauses[campaign.id] = pause
        while len(self._told_pauses) > _MOST_PAUSES:
            del self._told_pauses[next(iter(self._told_pauses))]
        self.notices.tell(
            logging.WARNING,
            "Campaign %s of workspace %s was paused (%s): %s. It goes on when somebody resumes it.",
            campaign.id,
            campaign.workspace_id,
            reason,
            PAUSES[reason],
            action="campaign_paused",
            workspace_id=campaign.workspace_id,
            campaign_id=campaign.id,
            reason=reason,
        )

    async def settle(self, dispatch: Dispatch, outcome: Outcome) -> None:
        """Record the outcome of a dispatch, and whether its provider wants to be left alone.

        Outcomes that come at the same time are recorded together; one that cannot be keeps no other from it.
        """
        self._tell_hold(await self._settling.ask((dispatch, outcome)))

    async def _settle(self, outcomes: Sequence[tuple[Dispatch, Outcome]]) -> Sequence[AccountHold | None]:
        return await self._storage.write(lambda tx: self._take_outcomes(tx, outcomes))

    def _take_outcomes(
        self, tx: Transaction, outcomes: Sequence[tuple[Dispatch, Outcome]]
    ) -> Sequence[AccountHold | None]:
        now = self._clock.now()
        matching.load_outcomes(tx, outcomes)
        holds = []
        for dispatch, outcome in outcomes:
            matching.take_outcome(
                tx,
                dispatch.workspace_id,
                dispatch.id,
                outcome,
                backoff=self.backoff,
                analyser=self.analyser,
                now=now,
            )
            holds.append(account_holds.learn(tx, dispatch, outcome, backoff=self.backoff, now=now))
        return holds

    def _tell_hold(self, hold: AccountHold | None) -> None:
        if hold is not None:
            self.notices.trouble(
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
        await self._reports.ask(event)

    async def _merge(self, events: Sequence[Report]) -> Sequence[bool]:
        def operation(tx: Transaction) -> Sequence[bool]:
            now = self._clock.now()
            settling.load_reported(tx, events)
            return [
                matching.take_report(tx, event, backoff=self.backoff, analyser=self.analyser, now=now)
                for event in events
            ]

        return await self._storage.write(operation)

    async def sweep(self) -> None:
        """Clear away what nobody needs: leftovers of loads that died, a slice of the keys that expired."""
        leftovers = await self._storage.read(lambda tx: tx.campaigns.leftovers(self._clock.now()))
        for workspace_id, campaign_id in leftovers:
            await self._delete_leftover(workspace_id, campaign_id)
        await self._storage.write(lambda tx: tx.requests.sweep(self._clock.now(), limit=_SLICE), bulk=True)
        await self._storage.write(lambda tx: tx.work.forget(limit=_SLICE), bulk=True)
        oldest = self._clock.now() - timedelta(days=self._config.callback_days)
        await self._storage.write(lambda tx: tx.callbacks.sweep(oldest, limit=_SLICE), bulk=True)

    async def _delete_leftover(self, workspace_id: str, campaign_id: str) -> None:
        """Delete what a load that died has left behind: all of it, in slices, for it may be a million people."""
        limit = self._config.chunk_rows
        while not await self._storage.write(
            lambda tx: tx.campaigns.delete_loading(workspace_id, campaign_id, limit=limit), bulk=True
        ):
            pass

    async def _settle_abandoned(self, epoch: int) -> None:
        total = 0
        while True:
            count = await self._storage.write(
                lambda tx: settling.abandon(tx, epoch=epoch, backoff=self.backoff, now=self._clock.now(), limit=_SLICE)
            )
            total += count
            if count < _SLICE:
                break
        if total:
            _log.warning(
                "%d dispatches of an earlier worker have no outcome: they are unknown and are not sent again.",
                total,
                extra={"action": "abandoned", "count": total},
            )
