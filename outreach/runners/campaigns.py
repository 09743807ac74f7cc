"""Running a campaign: wave after wave, at its pace, within its hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.clock import Clock
from outreach.config import EngineConfig
from outreach.models.account import ProviderThrottle
from outreach.models.base import Channel
from outreach.models.campaign import Campaign
from outreach.models.plans import (
    Advance,
    Ending,
    Intent,
    Postponement,
    SenderPace,
    Wave,
    WavePlan,
    WaveResult,
)
from outreach.models.states import CampaignStatus, WorkspaceStatus
from outreach.models.trail import TrailRule
from outreach.models.work import WorkUnit
from outreach.operations.campaigns import closing, trail, transitions
from outreach.operations.waves import committing, planning, postponements
from outreach.policy.opening import OpeningState, earliest, opening_state
from outreach.protocols.dispatcher import WakeSignal
from outreach.protocols.storage import Storage
from outreach.providers.pool import ProviderRequest, account_key
from outreach.runners.batcher import Batcher
from outreach.runners.channels import CampaignChannel, Decision
from outreach.runners.outbox import Outbox
from outreach.runners.sender_rotation import SenderRotation
from outreach.runners.worker import Worker
from outreach.working_set import Transaction

_MAX_ROWS: Final = 300
"""Rows that one transaction of closing or releasing touches: five hundred held the writer for 83 to 106 ms."""

_MAX_PLANNED: Final = 1000
"""Recipients that are looked at together, of whatever campaigns."""

_MAX_COMMITTED: Final = 300
"""Recipients, and campaigns, that one transaction of waves is about at the most."""

_MIN_RECORDED_PAUSE: Final = timedelta(seconds=5)
"""A provider that is left alone for less makes no entry of its own: it may say so every second, for hours."""

_MAX_CLOSED_WAVE: Final = 200
"""Recipients that one wave looks at, at the most, while nobody may be contacted."""

_FIRST_WAVE: Final = 10
"""Recipients that are looked at before anything is known of their campaign."""

_MAX_TURN_WAIT_SECONDS: Final = 1.0
"""Seconds after the next slot of a shared number within which one that is not far behind looks again."""

_MIN_TURN_WAIT_SECONDS: Final = 0.01
"""The shortest such wait."""

_LOW_WATER: Final = 0.4
"""The share of the look-ahead that is left of the slots that are taken when the next wave begins."""

_EMPTY_WAVE_PAUSE_SECONDS: Final = 0.05
"""The pause after a wave of which nothing came: what is in the way changes by itself, but not at once."""


class CampaignRunner:
    """Does the work on campaigns of both channels."""

    def __init__(
        self,
        *,
        storage: Storage,
        clock: Clock,
        config: EngineConfig,
        worker: Worker,
        outbox: Outbox,
        channels: Mapping[Channel, CampaignChannel],
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._config = config
        self._worker = worker
        self._outbox = outbox
        self._channels = channels
        self._plans = Batcher(self._plan_all, max_size=_MAX_PLANNED, size=lambda wanted: wanted[2])
        self._commits = Batcher(self._commit_all, max_size=_MAX_COMMITTED, size=_size)
        self._rotation = SenderRotation()
        self._senders: dict[str, str] = {}

    async def run_slice(self, unit: WorkUnit, *, epoch: int, until: float, wake_signal: WakeSignal) -> datetime | None:
        """Work on a campaign until nothing is due; see `protocols.dispatcher.SliceRunner`."""
        due = None
        try:
            due = await self._run(unit, epoch=epoch, until=until, wake_signal=wake_signal)
        finally:
            key = self._senders.get(unit.id)
            if key is not None and due is not None:
                self._rotation.leave(key, unit.id)
            elif key is not None:
                self._rotation.forget(key, unit.id)
                del self._senders[unit.id]
        return due

    async def _run(self, unit: WorkUnit, *, epoch: int, until: float, wake_signal: WakeSignal) -> datetime | None:
        look_at, most = _FIRST_WAVE, 0
        while not wake_signal.stopping and self._clock.monotonic() < until:
            plan = await self._plans.submit((unit.workspace_id, unit.id, max(look_at, most)))
            if plan is None:
                return None
            campaign, channel = plan.campaign, self._channels[plan.campaign.channel]
            if transitions.is_transition_due(campaign, self._clock.now()):
                moved = await self._advance(campaign)
                if moved is not None and moved.status is CampaignStatus.ACTIVE:
                    continue
                return await self._close(moved, until, wake_signal) if moved is not None else None
            if campaign.status is not CampaignStatus.ACTIVE:
                return await self._close(campaign, until, wake_signal)
            most = channel.max_wave_size(campaign)
            if campaign.counters.open == 0:
                await self._complete(campaign)
                return None
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
            if not await self._wait_for_slot(plan, channel, wake_signal):
                continue
            committed = await self._run_wave(plan, channel, most, epoch, hours, wake_signal)
            if committed.stale:
                # What has changed may stay so (a lease that is over): never decide on it again at full speed.
                return self._clock.now() + timedelta(seconds=self._config.change_poll_seconds)
            if not committed.changed:
                await wake_signal.wait(_EMPTY_WAVE_PAUSE_SECONDS)
            # At night a whole campaign is put off until the morning: in few large waves, not in many small ones.
            look_at = 0 if committed.dispatches else min(4 * max(look_at, most), _MAX_CLOSED_WAVE)
        return self._clock.now()

    async def _advance(self, campaign: Campaign) -> Campaign | None:
        """Make the move that the clock asks for; return the campaign as it is then, None when it is gone."""
        grace = timedelta(seconds=self._config.missed_start_grace_seconds)
        return await self._storage.write(
            lambda tx: transitions.apply_schedule(
                tx, campaign.workspace_id, campaign.id, now=self._clock.now(), grace=grace
            )
        )

    async def _close(self, campaign: Campaign, until: float, wake_signal: WakeSignal) -> datetime | None:
        """End the open recipients of a campaign that is over; for any other state, tell when to look again."""
        if not campaign.is_terminal:
            return await self._storage.read(lambda tx: transitions.next_check_at(tx, campaign, self._clock.now()))
        while not wake_signal.stopping and self._clock.monotonic() < until:
            more = await self._storage.write(
                lambda tx: closing.close_open_recipients(
                    tx, campaign.workspace_id, campaign.id, now=self._clock.now(), limit=_MAX_ROWS
                ),
                bulk=True,
            )
            if not more:
                return None
        return self._clock.now()

    async def _pause_without_agent(self, campaign: Campaign) -> datetime | None:
        """Pause a calling campaign whose agent may not call any more, and tell when to look again."""
        now = self._clock.now()
        held = await self._storage.write(
            lambda tx: transitions.pause_without_agent(tx, campaign.workspace_id, campaign.id, now=now)
        )
        return transitions.due_time(held, now) if held is not None else None

    async def _wait_for_throttle(self, campaign: Campaign, hold: ProviderThrottle) -> datetime | None:
        """Tell why nobody is contacted while the provider wants to be left alone, and when to look again."""
        if hold.until - hold.since >= _MIN_RECORDED_PAUSE:
            # What was on its way may make it longer, many times: that is one hold.
            await self._record_closure(campaign, TrailRule.PROVIDER_HOLD, hold.until, since=hold.since)
        return earliest(hold.until, await self._expire_receipt_waits(campaign), campaign.scheduled_expires_at)

    async def _record_closure(
        self, campaign: Campaign, rule: TrailRule, until: datetime, *, since: datetime | None = None
    ) -> None:
        """Have the decision trail tell that nobody is reached until then, once for each time."""
        told = await self._storage.read(
            lambda tx: trail.is_closure_recorded(tx, campaign, rule=rule, until=until, since=since)
        )
        if not told:
            await self._storage.write(
                lambda tx: trail.record_campaign_closure(
                    tx, campaign.workspace_id, campaign.id, rule=rule, until=until, now=self._clock.now(), since=since
                )
            )

    async def _plan_all(self, wanted: Sequence[tuple[str, str, int]]) -> Sequence[WavePlan | None]:
        """Read what is due in all campaigns that ask for it now."""
        return await self._storage.read(lambda tx: planning.plan_waves(tx, wanted, now=self._clock.now()))

    async def _commit_all(self, decided: Sequence[Wave]) -> Sequence[WaveResult]:
        """Commit the waves of all campaigns that have decided on one now."""
        return await self._storage.write(lambda tx: committing.commit_waves(tx, decided, clock_now=self._clock.now))

    async def _release_postponed(self, campaign: Campaign) -> None:
        """Make a slice of those due again whom rules put off that have changed since."""
        await self._storage.write(
            lambda tx: postponements.release_postponed(
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
        """Complete a campaign in which nobody is open, at whatever hour."""
        await self._storage.write(
            lambda tx: transitions.complete_if_done(
                tx, tx.campaigns.get(campaign.workspace_id, campaign.id) or campaign, now=self._clock.now()
            )
        )

    async def _expire_receipt_waits(self, campaign: Campaign) -> datetime | None:
        """End a slice of the waits for receipts that are over, also while nobody is contacted; tell the next one."""

        def operation(tx: Transaction) -> datetime | None:
            now = self._clock.now()
            closing.expire_receipt_waits(tx, campaign.workspace_id, campaign.id, now=now, limit=_MAX_ROWS)
            return closing.next_receipt_deadline(tx, campaign.workspace_id, campaign.id, now=now)

        due = await self._storage.read(
            lambda tx: closing.next_receipt_deadline(tx, campaign.workspace_id, campaign.id, now=self._clock.now())
        )
        if due is None or due > self._clock.now():
            return due or self._receipt_deadline(campaign)
        return await self._storage.write(operation, bulk=True) or self._receipt_deadline(campaign)

    async def _next_due_time(self, plan: WavePlan) -> datetime | None:
        """Settle what is over without anything to send, and tell when the campaign is due next."""
        if plan.next_due is not None and plan.next_due <= self._clock.now():
            await self._expire_receipt_waits(plan.campaign)
            return self._clock.now()
        # What is in flight may be accepted, and then waits for its receipt; nobody tells when that wait is over.
        return earliest(plan.next_due, self._receipt_deadline(plan.campaign), plan.campaign.scheduled_expires_at)

    def _receipt_deadline(self, campaign: Campaign) -> datetime | None:
        """Return when the wait for the receipt of what is in flight now is over at the latest."""
        wait = timedelta(seconds=self._config.receipt_timeout_seconds)
        return self._clock.now() + wait if campaign.channel == "sms" else None

    def _look_ahead(self, plan: WavePlan, channel: CampaignChannel) -> float:
        """Return how many seconds before its slot an intent may be committed."""
        several = channel.spacing(plan.campaign).total_seconds() < self._config.look_ahead_seconds
        return self._config.look_ahead_seconds if several else self._config.sparse_look_ahead_seconds

    def _free_slots(self, plan: WavePlan, channel: CampaignChannel) -> int:
        """Return how many slots lie within the look-ahead: the commit would leave out whom none is free for."""
        spacing = channel.spacing(plan.campaign).total_seconds()
        if not spacing:
            return len(plan.due)
        wait = self._seconds_until(plan.next_slot_at, self._outbox.earliest_start(plan.campaign.id))
        return 1 + max(int((self._look_ahead(plan, channel) - wait) / spacing), 0)

    def _low_water(self, plan: WavePlan, channel: CampaignChannel) -> float:
        """Return how many seconds before the next free slot a wave begins, which fills the look-ahead."""
        look_ahead = self._look_ahead(plan, channel)
        return look_ahead * _LOW_WATER if look_ahead == self._config.look_ahead_seconds else look_ahead

    async def _wait_for_slot(self, plan: WavePlan, channel: CampaignChannel, wake_signal: WakeSignal) -> bool:
        """Wait until the next slot is near; return whether what was planned still serves (else look at all again)."""
        campaign, sender = plan.campaign, plan.sender
        near = self._low_water(plan, channel)
        wait = self._seconds_until(plan.next_slot_at, self._outbox.earliest_start(campaign.id)) - near
        if sender is not None:
            wait = self._wait_for_number(campaign.id, sender, wait, near)
        if wait <= 0:
            return True
        begun = self._clock.monotonic()
        await wake_signal.wait(wait)
        # The commit looks at everything again; what is due does not change much in so short a time, unless told so.
        undisturbed = self._clock.monotonic() - begun >= wait - _MIN_TURN_WAIT_SECONDS
        return undisturbed and sender is None and wait <= self._config.look_ahead_seconds

    def _wait_for_number(self, campaign_id: str, sender: SenderPace, own_wait: float, look_ahead: float) -> float:
        """Return how many seconds a campaign waits for its own slot or for a turn at its number; 0 or less for none."""
        self._senders[campaign_id] = sender.key
        if own_wait > 0:
            # Whoever waits for a slot of its own lets the others go.
            self._rotation.leave(sender.key, campaign_id)
            return own_wait
        now = self._clock.monotonic()
        slot_in = self._seconds_until(sender.next_slot_at, self._outbox.earliest_start(sender.key))
        wait = max(slot_in - look_ahead, 0.0)
        before = self._rotation.request_turn(sender.key, campaign_id, now=now, back_in=wait)
        if before:
            turns = before * sender.spacing.total_seconds()
            # One of those before may go away: who is far behind looks less often.
            wait = max(
                slot_in + min(turns, max(turns / 4, _MAX_TURN_WAIT_SECONDS)) - look_ahead, _MIN_TURN_WAIT_SECONDS
            )
            self._rotation.request_turn(sender.key, campaign_id, now=now, back_in=wait)
        return wait

    def _seconds_until(self, *moments: datetime | None) -> float:
        """Return in how many seconds the last of some moments comes; 0 where all have passed."""
        now = self._clock.now()
        return max((max((moment - now).total_seconds(), 0.0) for moment in moments if moment is not None), default=0.0)

    async def _run_wave(
        self,
        plan: WavePlan,
        channel: CampaignChannel,
        most: int,
        epoch: int,
        hours: OpeningState,
        wake_signal: WakeSignal,
    ) -> WaveResult:
        account = account_key(plan.campaign.workspace_id, channel.provider_name(plan))
        wanted = min(most, len(plan.due), self._free_slots(plan, channel))
        reserved = await self._outbox.reserve(account, wake_signal, wanted=wanted)
        if not reserved:
            return WaveResult(stale=False, changed=False, dispatches=())
        try:
            # Decided on when there are places: whoever waits for one decides nothing that is too old then.
            decisions = self._decide(plan, channel, reserved)
            intents = [decision for decision in decisions if isinstance(decision, Intent)]
            committed = await self._commit(plan, channel, epoch, hours, decisions)
        except BaseException:
            self._outbox.release(account, reserved)
            raise
        self._outbox.release(account, reserved - len(committed.dispatches))
        if plan.sender is not None and committed.dispatches:
            self._rotation.record_turn(plan.sender.key, plan.campaign.id)
        by_dispatch = {intent.dispatch_id: intent for intent in intents}
        paces = self._paces(plan, channel)
        for dispatch in committed.dispatches:
            intent = by_dispatch[dispatch.id]
            # What the provider gets may lie with it for hours: it is told what the engine itself keeps to.
            not_after = earliest(hours.until, intent.latest, plan.campaign.scheduled_expires_at)
            self._outbox.send(
                ProviderRequest(
                    dispatch=dispatch,
                    resolve_provider=channel.build_request(plan, intent, dispatch, not_after=not_after),
                    account=account,
                    paces=paces,
                    stops=committed.stops,
                )
            )
        return committed

    def _decide(self, plan: WavePlan, channel: CampaignChannel, most: int) -> Sequence[Decision]:
        """Decide about those that are due, until so many are to be contacted."""
        now, decisions = self._clock.now(), list[Decision]()
        for recipient in plan.due:
            if not most:
                break
            decisions.append(channel.decide(plan, recipient, now))
            most -= isinstance(decisions[-1], Intent)
        return decisions

    def _paces(self, plan: WavePlan, channel: CampaignChannel) -> Mapping[str, timedelta]:
        """Return the paces that a request keeps: the campaign's, and that of the sending number if it has one."""
        campaign = plan.campaign
        paces: dict[str, timedelta] = {}
        if spacing := channel.spacing(campaign):
            paces[campaign.id] = spacing
        if plan.sender is not None:
            paces[plan.sender.key] = plan.sender.spacing
        return paces

    def _earliest_start(self, plan: WavePlan) -> datetime | None:
        keys = [plan.campaign.id]
        if plan.sender is not None:
            keys.append(plan.sender.key)
        starts = (self._outbox.earliest_start(key) for key in keys)
        return max((start for start in starts if start is not None), default=None)

    async def _commit(
        self,
        plan: WavePlan,
        channel: CampaignChannel,
        epoch: int,
        hours: OpeningState,
        decisions: Sequence[Decision],
    ) -> WaveResult:
        campaign, now = plan.campaign, self._clock.now()
        lease_end = now + timedelta(seconds=max(self._worker.lease_seconds_left, 0.0))
        wave = Wave(
            workspace_id=campaign.workspace_id,
            campaign_id=campaign.id,
            epoch=epoch,
            basis=plan.basis,
            intents=[decision for decision in decisions if isinstance(decision, Intent)],
            endings=[decision for decision in decisions if isinstance(decision, Ending)],
            advances=[decision for decision in decisions if isinstance(decision, Advance)],
            postponements=[decision for decision in decisions if isinstance(decision, Postponement)],
            not_before=self._earliest_start(plan) or now,
            look_ahead=timedelta(seconds=self._look_ahead(plan, channel)),
            latest=earliest(lease_end, hours.until, campaign.scheduled_expires_at) or lease_end,
            spacing=channel.spacing(campaign),
            intent_lifetime=timedelta(seconds=self._config.max_intent_age_seconds),
        )
        return await self._commits.submit(wave)


def _size(wave: Wave) -> int:
    """Return how many rows a wave is about."""
    return 1 + len(wave.recipients)
