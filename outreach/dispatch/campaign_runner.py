"""Running a campaign: wave after wave, at its pace and within its hours."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from outreach.core.clock import Clock
from outreach.core.config import EngineConfig
from outreach.dispatch.batcher import Batcher
from outreach.dispatch.claims import SliceClaims
from outreach.dispatch.forecast_keeper import ForecastKeeper
from outreach.dispatch.outbox import CampaignChannel, Decision, Outbox
from outreach.dispatch.sender_rotation import SenderRotation
from outreach.dispatch.worker import Worker
from outreach.ledger.campaigns import trail, transitions
from outreach.ledger.leases import clock_steps
from outreach.ledger.leases.leases import Wanted
from outreach.ledger.sending import committing
from outreach.ledger.settling import ledger
from outreach.models.account import ProviderThrottle
from outreach.models.base import Channel
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.plans import Advance, Ending, Intent, Postponement, SenderPace, Wave, WavePlan, WaveResult
from outreach.models.states import CampaignStatus, TrailRule, WorkspaceStatus
from outreach.models.work import WorkUnit
from outreach.protocols.dispatcher import WakeSignal
from outreach.protocols.storage import Operation, Storage, Within
from outreach.providers.pool import ProviderPool, ProviderRequest, account_key
from outreach.rules.deciding import LocalRules
from outreach.rules.opening import OpeningState, earliest, opening_state
from outreach.storage.base.slices import SliceSize
from outreach.storage.unit_of_work import Transaction

T = TypeVar("T")

_MAX_ROWS: Final = 300
"""Rows that one closing or releasing transaction changes; 500 blocked the writer for 83 to 106 ms."""

_MAX_PLANNED: Final = 1000
"""Recipients that are planned together, of any campaigns."""

_MAX_COMMITTED: Final = 300
"""Recipients and campaigns in one operation that commits waves."""

_MAX_COLLECTING_SECONDS: Final = 0.02
"""How long waves are collected for one transaction, at most."""

_COLLECTING_PART: Final = 0.2
"""How much of the time between a wave and its first slot that takes, at most: for its plan, and for its commit."""

_ENOUGH_WAVES: Final = 60
"""Waves that are not collected any longer: what each operation costs is a small part of theirs."""

_MIN_RECORDED_PAUSE: Final = timedelta(seconds=5)
"""Shorter throttles get no trail entry: a provider may throttle every second for hours."""

_MAX_CLOSED_WAVE: Final = 200
"""Recipients in one wave while no contact is allowed."""

_FIRST_WAVE: Final = 10
"""Recipients in a campaign's first wave."""

_MAX_TURN_WAIT_SECONDS: Final = 1.0
"""A campaign next in line at a shared number checks at most this long after the next slot."""

_MIN_TURN_WAIT_SECONDS: Final = 0.01

_LOW_WATER: Final = 0.4
"""The next wave begins when this share of the look-ahead is left."""

_EMPTY_WAVE_PAUSE_SECONDS: Final = 0.05
"""The pause after a wave without a change, which the cause may need to pass."""


class CampaignRunner:
    """Runs campaigns of both channels."""

    def __init__(
        self,
        *,
        storage: Storage,
        clock: Clock,
        config: EngineConfig,
        worker: Worker,
        outbox: Outbox,
        forecasts: ForecastKeeper,
        provider_pool: ProviderPool,
        channels: Mapping[Channel, CampaignChannel],
    ) -> None:
        self._forecasts = forecasts
        self._storage = storage
        self._clock = clock
        self._config = config
        self._worker = worker
        self._outbox = outbox
        self._provider_pool = provider_pool
        self._channels = channels
        margin = min(config.look_ahead_seconds * _LOW_WATER, config.sparse_look_ahead_seconds)
        collecting = min(_MAX_COLLECTING_SECONDS, margin * _COLLECTING_PART)
        self._plans = Batcher(
            self._plan_all,
            max_size=lambda: _MAX_PLANNED,
            size=lambda wanted: wanted[2],
            whose=lambda wanted: wanted[0],
            pause_seconds=collecting,
            enough=_ENOUGH_WAVES,
        )
        self._committed = SliceSize(clock, most=_MAX_COMMITTED)
        self._commits = Batcher(
            self._commit_all,
            max_size=self._committed.rows,
            size=_row_count,
            whose=lambda wave: wave.workspace_id,
            pause_seconds=collecting,
            enough=_ENOUGH_WAVES,
        )
        self._rotation = SenderRotation()
        self._turns_asked: defaultdict[str, set[str]] = defaultdict(set)

    async def run_slice(self, unit: WorkUnit, *, epoch: int, until: float, wake_signal: WakeSignal) -> datetime | None:
        """Run a campaign until nothing is due; see `protocols.dispatcher.SliceRunner`."""
        due = None
        try:
            with self._worker.claims.slice(unit) as slice_claims:
                due = await self._run(unit, slice_claims, epoch=epoch, until=until, wake_signal=wake_signal)
        finally:
            for key in self._turns_asked.get(unit.id, ()):
                (self._rotation.forget if due is None else self._rotation.leave)(key, unit.id)
            if due is None:
                self._turns_asked.pop(unit.id, None)
        return due

    async def _run(
        self, unit: WorkUnit, slice_claims: SliceClaims, *, epoch: int, until: float, wake_signal: WakeSignal
    ) -> datetime | None:
        look_at, most = _FIRST_WAVE, 0
        while not wake_signal.stopping and self._clock.monotonic() < until:
            plan = await self._plans.submit((unit.workspace_id, unit.id, max(look_at, most)))
            if plan is None:
                return None
            campaign, channel = plan.campaign, self._channels[plan.campaign.channel]
            if not await slice_claims.take(_wanted(plan)):
                # The feed returns it again once no worker drives it.
                return None
            if transitions.is_transition_due(campaign, self._clock.now()):
                moved = await self._advance(campaign)
                if moved is not None and moved.status is CampaignStatus.ACTIVE:
                    continue
                return await self._close(moved, until, wake_signal) if moved is not None else None
            if campaign.status is not CampaignStatus.ACTIVE:
                return await self._close(campaign, until, wake_signal)
            self._forecasts.note(campaign, plan.provider_throttle)
            most = channel.max_wave_size(campaign)
            if campaign.counters.open == 0:
                await self._complete(campaign)
                # One that stays open waits for contacts that are added, or for its expiry.
                return campaign.scheduled_expires_at if campaign.stay_open else None
            if plan.workspace.status is not WorkspaceStatus.ACTIVE:
                return earliest(await self._expire_receipt_waits(campaign), campaign.scheduled_expires_at)
            hours = opening_state(campaign, self._clock.now())
            if hours.rule is not None:
                await self._record_closure(campaign, hours.rule, hours.reopens_at)
                return earliest(
                    hours.reopens_at, await self._expire_receipt_waits(campaign), campaign.scheduled_expires_at
                )
            if plan.contact_rules_outdated:
                await self._release_postponed(campaign)
                continue
            if not plan.due:
                return await self._next_due_time(plan)
            if plan.provider_throttle is not None:
                return await self._wait_for_throttle(campaign, plan.provider_throttle)
            if not channel.has_capacity(plan):
                return earliest(campaign.scheduled_expires_at, hours.until)
            if plan.agent_missing:
                return await self._pause_without_agent(campaign)
            turns = await self._wait_for_slot(plan, channel, wake_signal)
            if turns is None:
                continue
            committed = await self._run_wave(plan, channel, most, epoch, hours, turns, wake_signal)
            if committed.stale:
                if committed.unclaimed:
                    self._worker.claims.doubt()
                # The cause may last (an expired lease), and must not be retried at full speed.
                return self._clock.now() + timedelta(seconds=self._config.change_poll_seconds)
            if not committed.changed:
                await wake_signal.wait(_EMPTY_WAVE_PAUSE_SECONDS)
            # At night a campaign is postponed until morning in a few large waves.
            look_at = 0 if committed.dispatches else min(4 * max(look_at, most), _MAX_CLOSED_WAVE)
        return self._clock.now()

    async def _advance(self, campaign: Campaign) -> Campaign | None:
        """Make the status change that is due; return the campaign, None if it does not exist."""
        grace = timedelta(seconds=self._config.missed_start_grace_seconds)
        return await self._write(
            campaign,
            lambda tx: transitions.apply_schedule(
                tx, campaign.workspace_id, campaign.id, now=self._clock.now(), grace=grace
            ),
        )

    async def _close(self, campaign: Campaign, until: float, wake_signal: WakeSignal) -> datetime | None:
        """End the open recipients of a campaign that is over; otherwise return its next check."""
        if not campaign.is_terminal:
            due = await self._storage.read(lambda tx: transitions.next_check_at(tx, campaign, self._clock.now()))
            if campaign.status is CampaignStatus.PAUSED and transitions.may_await_receipts(campaign):
                due = earliest(due, await self._expire_receipt_waits(campaign))
                # It may stay paused for months, and several workers look at all that is due again and again.
                await self._write(
                    campaign, lambda tx: transitions.note_next_check(tx, campaign, due, self._clock.now())
                )
            return due
        while not wake_signal.stopping and self._clock.monotonic() < until:
            more = await self._write(
                campaign,
                lambda tx: ledger.close_open_recipients(
                    tx, campaign.workspace_id, campaign.id, now=self._clock.now(), limit=_MAX_ROWS
                ),
                bulk=True,
            )
            if not more:
                return None
        return self._clock.now()

    async def _pause_without_agent(self, campaign: Campaign) -> datetime | None:
        """Pause a calling campaign whose agent may no longer call; return its next check."""
        now = self._clock.now()
        paused = await self._write(
            campaign, lambda tx: transitions.pause_without_agent(tx, campaign.workspace_id, campaign.id, now=now)
        )
        return transitions.due_time(paused, now) if paused is not None else None

    async def _wait_for_throttle(self, campaign: Campaign, throttle: ProviderThrottle) -> datetime | None:
        """Record the provider's throttle, if it is long, and return the campaign's next check."""
        if throttle.until - throttle.since >= _MIN_RECORDED_PAUSE:
            # Requests in flight may extend it many times: this stays one closure.
            await self._record_closure(campaign, TrailRule.PROVIDER_THROTTLE, throttle.until, since=throttle.since)
        return earliest(throttle.until, await self._expire_receipt_waits(campaign), campaign.scheduled_expires_at)

    async def _record_closure(
        self, campaign: Campaign, rule: TrailRule, until: datetime, *, since: datetime | None = None
    ) -> None:
        """Record in the trail, once for each closure, that the campaign has no open hours until `until`."""
        recorded = await self._storage.read(
            lambda tx: trail.is_closure_recorded(tx, campaign, rule=rule, until=until, since=since)
        )
        if not recorded:
            await self._write(
                campaign,
                lambda tx: trail.record_campaign_closure(
                    tx, campaign.workspace_id, campaign.id, rule=rule, until=until, now=self._clock.now(), since=since
                ),
            )

    async def _plan_all(self, wanted: Sequence[tuple[str, str, int]]) -> Sequence[WavePlan | None]:
        """Read the plans of all campaigns that wait for one."""
        return await self._storage.read(lambda tx: committing.plan_waves(tx, wanted, now=self._clock.now()))

    async def _commit_all(self, decided: Sequence[Wave]) -> Sequence[WaveResult]:
        """Commit the decided waves of all campaigns."""
        operation = self._committed.measured(
            lambda tx: committing.commit_waves(tx, decided, clock_now=self._clock.now), sum(map(_row_count, decided))
        )
        return await self._worker.commit(Within({wave.workspace_id for wave in decided}, operation))

    async def _write(self, campaign: Campaign, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation that writes in the workspace of a campaign."""
        return await self._storage.write(Within([campaign.workspace_id], operation), bulk=bulk)

    async def _release_postponed(self, campaign: Campaign) -> None:
        """Make a slice of the recipients due that outdated contact rules postponed."""
        await self._write(
            campaign,
            lambda tx: clock_steps.release_postponed(
                tx,
                campaign.workspace_id,
                campaign.id,
                receipt=self._worker.backoff.receipt,
                now=self._clock.now(),
                limit=_MAX_ROWS,
            ),
            bulk=True,
        )

    async def _complete(self, campaign: Campaign) -> None:
        """Complete a campaign without open recipients, also outside hours."""
        await self._write(
            campaign,
            lambda tx: transitions.complete_if_done(
                tx, tx.campaigns.get(campaign.workspace_id, campaign.id) or campaign, now=self._clock.now()
            ),
        )

    async def _expire_receipt_waits(self, campaign: Campaign) -> datetime | None:
        """End a slice of the receipt waits that are over; return the end of the next one."""

        def operation(tx: Transaction) -> datetime | None:
            now = self._clock.now()
            ledger.expire_receipt_waits(tx, campaign.workspace_id, campaign.id, now=now, limit=_MAX_ROWS)
            return ledger.next_receipt_deadline(tx, campaign.workspace_id, campaign.id, now=now)

        due = await self._storage.read(
            lambda tx: ledger.next_receipt_deadline(tx, campaign.workspace_id, campaign.id, now=self._clock.now())
        )
        if due is None or due > self._clock.now():
            return due or self._receipt_deadline(campaign)
        return await self._write(campaign, operation, bulk=True) or self._receipt_deadline(campaign)

    async def _next_due_time(self, plan: WavePlan) -> datetime | None:
        """Settle what is over without a request; return when the campaign is next due."""
        if plan.next_due is not None and plan.next_due <= self._clock.now():
            await self._expire_receipt_waits(plan.campaign)
            return self._clock.now()
        # Requests in flight may be accepted, and then wait for receipts.
        return earliest(plan.next_due, self._receipt_deadline(plan.campaign), plan.campaign.scheduled_expires_at)

    def _receipt_deadline(self, campaign: Campaign) -> datetime | None:
        """Return the latest end of the receipt waits of requests in flight."""
        wait = timedelta(seconds=self._config.receipt_timeout_seconds)
        return self._clock.now() + wait if campaign.channel == "sms" else None

    def _look_ahead(self, plan: WavePlan, channel: CampaignChannel) -> float:
        """Return how many seconds before its slot an intent may be committed."""
        several = channel.spacing(plan.campaign).total_seconds() < self._config.look_ahead_seconds
        return self._config.look_ahead_seconds if several else self._config.sparse_look_ahead_seconds

    def _free_slots(self, plan: WavePlan, channel: CampaignChannel) -> int:
        """Return how many slots lie within the look-ahead; the commit leaves out the rest."""
        spacing = channel.spacing(plan.campaign).total_seconds()
        if not spacing:
            return len(plan.due)
        wait = self._seconds_until(plan.next_slot_at, self._outbox.earliest_slot(plan.campaign.id))
        return 1 + max(int((self._look_ahead(plan, channel) - wait) / spacing), 0)

    def _low_water(self, plan: WavePlan, channel: CampaignChannel) -> float:
        """Return how many seconds before the next free slot a wave begins."""
        look_ahead = self._look_ahead(plan, channel)
        return look_ahead * _LOW_WATER if look_ahead == self._config.look_ahead_seconds else look_ahead

    async def _wait_for_slot(
        self, plan: WavePlan, channel: CampaignChannel, wake_signal: WakeSignal
    ) -> Mapping[str, datetime] | None:
        """Wait until the next slot is near.

        Returns:
            When it is the campaign's turn at those of its numbers that it has to wait for, by their keys; None if the
            plan is too old.
        """
        campaign, near = plan.campaign, self._low_water(plan, channel)
        wait = self._seconds_until(plan.next_slot_at, self._outbox.earliest_slot(campaign.id)) - near
        waits = {pace.key: self._wait_for_number(campaign.id, pace, wait, near) for pace in plan.paces}
        if waits and len(plan.paces) == len(plan.senders):
            # The numbers of a pool that are free go on alone.
            wait = min(waits.values())
        if wait <= 0:
            return {key: self._clock.now() + timedelta(seconds=near + one) for key, one in waits.items() if one > 0}
        begun = self._clock.monotonic()
        await wake_signal.wait(wait)
        # The commit checks everything again, and little changes in so short a time without a wake-up.
        undisturbed = self._clock.monotonic() - begun >= wait - _MIN_TURN_WAIT_SECONDS
        return {} if undisturbed and not waits and wait <= self._config.look_ahead_seconds else None

    def _wait_for_number(self, campaign_id: str, sender: SenderPace, own_wait: float, look_ahead: float) -> float:
        """Return how many seconds a campaign waits for its slot or for a turn at its number; 0 or less for none."""
        self._turns_asked[campaign_id].add(sender.key)
        if own_wait > 0:
            # Waiting for its own slot, it lets the others go first.
            self._rotation.leave(sender.key, campaign_id)
            return own_wait
        now = self._clock.monotonic()
        slot_in = self._seconds_until(sender.next_slot_at, self._outbox.earliest_slot(sender.key))
        wait = max(slot_in - look_ahead, 0.0)
        before = self._rotation.request_turn(sender.key, campaign_id, now=now, back_in=wait)
        if before:
            turns = before * sender.spacing.total_seconds()
            # Those before it may leave; the farther back, the less often it checks.
            wait = max(
                slot_in + min(turns, max(turns / 4, _MAX_TURN_WAIT_SECONDS)) - look_ahead, _MIN_TURN_WAIT_SECONDS
            )
            self._rotation.request_turn(sender.key, campaign_id, now=now, back_in=wait)
        return wait

    def _seconds_until(self, *moments: datetime | None) -> float:
        """Return the seconds until the last of some moments, at least 0."""
        now = self._clock.now()
        return max((max((moment - now).total_seconds(), 0.0) for moment in moments if moment is not None), default=0.0)

    async def _run_wave(
        self,
        plan: WavePlan,
        channel: CampaignChannel,
        most: int,
        epoch: int,
        hours: OpeningState,
        turns: Mapping[str, datetime],
        wake_signal: WakeSignal,
    ) -> WaveResult:
        account = account_key(plan.campaign.workspace_id, channel.provider_name(plan))
        wanted = min(most, len(plan.due), self._free_slots(plan, channel))
        reserved = await self._outbox.reserve(account, wake_signal, wanted=wanted)
        if not reserved:
            return WaveResult(stale=False, changed=False, dispatches=())
        try:
            # Decided once there are places, so that no decision grows old while waiting.
            decided_at = self._clock.now()
            decisions = self._decide(plan, channel, reserved, decided_at)
            intents = [decision for decision in decisions if isinstance(decision, Intent)]
            committed = await self._commit(plan, channel, epoch, hours, turns, decisions, decided_at)
        except BaseException:
            self._outbox.release(account, reserved)
            raise
        self._outbox.release(account, reserved - len(committed.dispatches))
        used = {dispatch.from_number for dispatch in committed.dispatches}
        for number, pace in plan.senders.items():
            if pace is not None and number in used:
                self._rotation.record_turn(pace.key, plan.campaign.id)
            elif pace is not None and plan.campaign.from_numbers:
                # Nothing was sent from it.
                self._rotation.leave(pace.key, plan.campaign.id)
        by_dispatch = {intent.dispatch_id: intent for intent in intents}
        for dispatch in committed.dispatches:
            intent = by_dispatch[dispatch.id]
            # The provider may queue the request for hours, and must keep the same limits.
            not_after = earliest(hours.until, intent.latest, plan.campaign.scheduled_expires_at)
            self._outbox.send(
                ProviderRequest(
                    dispatch=dispatch,
                    resolve_provider=channel.build_request(plan, intent, dispatch, not_after=not_after),
                    account=account,
                    paces=self._paces(plan, channel, dispatch),
                    stops=committed.stops,
                    revision=plan.basis.campaign,
                    driven=(plan.campaign.workspace_id, _wanted(plan).subjects[0]),
                    sandbox_provider=self._provider_pool.sandbox_provider(plan.workspace, dispatch),
                )
            )
        return committed

    def _decide(self, plan: WavePlan, channel: CampaignChannel, most: int, now: datetime) -> Sequence[Decision]:
        """Decide about the due recipients until `most` are to be contacted."""
        decisions = list[Decision]()
        local = LocalRules(plan.workspace)
        for recipient in plan.due:
            if not most:
                break
            decisions.append(channel.decide(plan, local, recipient, now))
            most -= isinstance(decisions[-1], Intent)
        return decisions

    def _paces(self, plan: WavePlan, channel: CampaignChannel, dispatch: Dispatch) -> Mapping[str, timedelta]:
        """Return a request's paces: the campaign's, and the sending number's if it has one."""
        campaign, number = plan.campaign, plan.senders.get(dispatch.from_number or "")
        paces: dict[str, timedelta] = {}
        if spacing := channel.spacing(campaign):
            paces[campaign.id] = spacing
        if number is not None:
            paces[number.key] = number.spacing
        return paces

    def _numbers_from(self, plan: WavePlan, turns: Mapping[str, datetime]) -> Mapping[str, datetime]:
        """Return the earliest slots of the campaign's numbers, by its turns and what the outbox has."""
        slots = {pace.key: (self._outbox.earliest_slot(pace.key), turns.get(pace.key)) for pace in plan.paces}
        known = {key: [slot for slot in both if slot is not None] for key, both in slots.items()}
        return {key: max(found) for key, found in known.items() if found}

    async def _commit(
        self,
        plan: WavePlan,
        channel: CampaignChannel,
        epoch: int,
        hours: OpeningState,
        turns: Mapping[str, datetime],
        decisions: Sequence[Decision],
        decided_at: datetime,
    ) -> WaveResult:
        campaign = plan.campaign
        lease_end = decided_at + timedelta(seconds=max(self._worker.lease_seconds_left, 0.0))
        wave = Wave(
            workspace_id=campaign.workspace_id,
            campaign_id=campaign.id,
            epoch=epoch,
            basis=plan.basis,
            intents=[decision for decision in decisions if isinstance(decision, Intent)],
            endings=[decision for decision in decisions if isinstance(decision, Ending)],
            advances=[decision for decision in decisions if isinstance(decision, Advance)],
            postponements=[decision for decision in decisions if isinstance(decision, Postponement)],
            # A clock that was set back meanwhile may show a time before the opening, of the campaign or of a contact.
            not_before=max(self._outbox.earliest_slot(campaign.id) or decided_at, hours.reopens_at, decided_at),
            look_ahead=timedelta(seconds=self._look_ahead(plan, channel)),
            latest=earliest(lease_end, hours.until, campaign.scheduled_expires_at) or lease_end,
            spacing=channel.spacing(campaign),
            intent_lifetime=timedelta(seconds=self._config.max_intent_age_seconds),
            numbers_from=self._numbers_from(plan, turns),
        )
        try:
            return await self._commits.submit(wave)
        except asyncio.CancelledError:
            # Another campaign's task may commit it all the same, and no task would start its requests.
            self._worker.doubt()
            raise


def _wanted(plan: WavePlan) -> Wanted:
    return Wanted(workspace_id=plan.campaign.workspace_id, campaign=plan.campaign, senders=plan.paces)


def _row_count(wave: Wave) -> int:
    return 1 + len(wave.recipients)
