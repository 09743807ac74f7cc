"""Running an SMS campaign: wave after wave, at its pace, within its hours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.clock import Clock
from outreach.config import EngineConfig
from outreach.ids import IdSource
from outreach.models.business_hours import BusinessHours
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, Outcome
from outreach.models.recipient import Recipient
from outreach.models.states import CampaignStatus, RecipientStatus, WorkspaceStatus
from outreach.models.work import Unit
from outreach.models.workspace import Workspace
from outreach.operations import campaign_moves, waves
from outreach.operations.waves import Committed, Ending, Intent, Plan, Wave
from outreach.policy.holidays import closed_dates
from outreach.policy.opening import closes_at, next_open
from outreach.policy.pacing import spacing
from outreach.policy.rendering import compose, recipient_values
from outreach.policy.segments import count_segments
from outreach.protocols.carrier import OutboundMessage
from outreach.protocols.dispatcher import Nudge
from outreach.protocols.storage import Storage, Transaction
from outreach.runners.desk import ProviderDesk
from outreach.runners.outbox import Errand, Outbox
from outreach.runners.worker import Worker

_SLICE: Final = 500
_MAX_WAVE: Final = 50
_NO_OPENING: Final = timedelta(days=1)
"""When hours have no opening within a year, look again a day later: somebody may change the clock's rules."""


@attrs.frozen(kw_only=True)
class _Hours:
    """When a campaign may send: now until a moment, or not before a moment."""

    open: bool
    until: datetime | None
    again_at: datetime


class SmsCampaignRunner:
    """Does the work on SMS campaigns."""

    def __init__(
        self,
        *,
        storage: Storage,
        clock: Clock,
        ids: IdSource,
        config: EngineConfig,
        desk: ProviderDesk,
        worker: Worker,
        outbox: Outbox,
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._ids = ids
        self._config = config
        self._desk = desk
        self._worker = worker
        self._outbox = outbox

    async def run_slice(self, unit: Unit, *, epoch: int, until: float, nudge: Nudge) -> datetime | None:
        """Work on a campaign until nothing is due; see `protocols.dispatcher.SliceRunner`."""
        campaign = await self._advance(unit)
        if campaign is None:
            return None
        if campaign.status is not CampaignStatus.ACTIVE:
            return await self._close(campaign, until, nudge)
        while not nudge.stopping and self._clock.monotonic() < until:
            plan = await self._plan(unit, campaign)
            if plan is None or plan.campaign.status is not CampaignStatus.ACTIVE:
                return self._clock.now() if plan is not None else None
            campaign = plan.campaign
            if campaign.effective_status(self._clock.now()) is CampaignStatus.EXPIRED:
                # Every wave would be stale from now on: the next slice begins with the move to expired.
                return self._clock.now()
            if plan.workspace.status is not WorkspaceStatus.ACTIVE:
                return campaign.scheduled_expires_at
            hours = _hours(campaign, self._clock.now())
            if not hours.open:
                return _earliest(hours.again_at, campaign.scheduled_expires_at)
            if not plan.due:
                return await self._idle(plan)
            if await self._wait_for_slot(plan, nudge):
                await self._wave(plan, epoch, hours, nudge)
        return self._clock.now()

    async def _advance(self, unit: Unit) -> Campaign | None:
        grace = timedelta(seconds=self._config.missed_start_seconds)
        campaign = await self._storage.read(lambda tx: tx.campaigns.get(unit.workspace_id, unit.id))
        if campaign is None or campaign.is_terminal:
            return campaign
        return await self._storage.write(
            lambda tx: campaign_moves.advance(tx, unit.workspace_id, unit.id, now=self._clock.now(), grace=grace)
        )

    async def _close(self, campaign: Campaign, until: float, nudge: Nudge) -> datetime | None:
        """End the open recipients of a campaign that is over; for any other state, tell when to look again."""
        if not campaign.is_terminal:
            return campaign_moves.due_time(campaign, self._clock.now())
        while not nudge.stopping and self._clock.monotonic() < until:
            more = await self._storage.write(
                lambda tx: waves.close_slice(
                    tx, campaign.workspace_id, campaign.id, now=self._clock.now(), limit=_SLICE
                ),
                bulk=True,
            )
            if not more:
                return None
        return self._clock.now()

    async def _plan(self, unit: Unit, campaign: Campaign) -> Plan | None:
        ahead = self._config.look_ahead_seconds / spacing(campaign.sms_rate_per_minute or 1).total_seconds()
        limit = min(_MAX_WAVE, 1 + int(ahead))

        def operation(tx: Transaction) -> Plan | None:
            return waves.plan(tx, unit.workspace_id, unit.id, now=self._clock.now(), limit=limit)

        return await self._storage.read(operation)

    async def _idle(self, plan: Plan) -> datetime | None:
        """Settle what is over without anything to send, and tell when the campaign is due next."""
        campaign, now = plan.campaign, self._clock.now()
        if campaign.counters.open == 0:
            await self._storage.write(
                lambda tx: campaign_moves.complete_if_done(
                    tx, tx.campaigns.get(campaign.workspace_id, campaign.id) or campaign, now=now
                )
            )
            return None
        if plan.next_due is not None and plan.next_due <= now:
            await self._storage.write(
                lambda tx: waves.end_receipt_waits(tx, campaign.workspace_id, campaign.id, now=now, limit=_SLICE),
                bulk=True,
            )
            return self._clock.now()
        return _earliest(plan.next_due, campaign.scheduled_expires_at)

    async def _wait_for_slot(self, plan: Plan, nudge: Nudge) -> bool:
        """Wait until the next slot is near; return whether it is (a nudge means: look at everything again)."""
        earliest = self._earliest_slot(plan)
        if earliest is None:
            return True
        ahead = (earliest - self._clock.now()).total_seconds() - self._config.look_ahead_seconds
        if ahead <= 0:
            return True
        await nudge.wait(ahead)
        return False

    def _earliest_slot(self, plan: Plan) -> datetime | None:
        return max(
            (
                moment
                for moment in (plan.next_slot_at, self._outbox.earliest_start(plan.campaign.id))
                if moment is not None
            ),
            default=None,
        )

    async def _wave(self, plan: Plan, epoch: int, hours: _Hours, nudge: Nudge) -> None:
        intents, endings = self._decide(plan)
        reserved = await self._reserve(len(intents), nudge)
        try:
            committed = await self._commit(plan, epoch, hours, intents[:reserved], endings)
        except BaseException:
            self._outbox.release(reserved)
            raise
        self._outbox.release(reserved - len(committed.dispatches))
        for dispatch in committed.dispatches:
            self._send(plan.campaign, plan.workspace, dispatch)

    async def _reserve(self, wanted: int, nudge: Nudge) -> int:
        """Take a place at the provider for each intent: wait for the first, take the others if they are free."""
        if not wanted or not await self._outbox.reserve(nudge):
            return 0
        reserved = 1
        while reserved < wanted and self._outbox.reserve_nowait():
            reserved += 1
        return reserved

    async def _commit(
        self, plan: Plan, epoch: int, hours: _Hours, intents: Sequence[Intent], endings: Sequence[Ending]
    ) -> Committed:
        campaign, now = plan.campaign, self._clock.now()
        lease_end = now + timedelta(seconds=max(self._worker.lease_seconds_left, 0.0))
        latest = _earliest(lease_end, hours.until, campaign.scheduled_expires_at) or lease_end
        wave = Wave(
            workspace_id=campaign.workspace_id,
            campaign_id=campaign.id,
            epoch=epoch,
            basis=plan.basis,
            intents=intents,
            endings=endings,
            not_before=self._outbox.earliest_start(campaign.id) or now,
            horizon=now + timedelta(seconds=self._config.look_ahead_seconds),
            latest=latest,
            spacing=spacing(campaign.sms_rate_per_minute or 1),
            intent_lifetime=timedelta(seconds=self._config.intent_seconds),
        )
        return await self._storage.write(lambda tx: waves.commit_wave(tx, wave, clock_now=self._clock.now))

    def _decide(self, plan: Plan) -> tuple[list[Intent], list[Ending]]:
        intents: list[Intent] = []
        endings: list[Ending] = []
        for recipient in plan.due:
            decision = self._decide_one(plan, recipient)
            if isinstance(decision, Intent):
                intents.append(decision)
            else:
                endings.append(decision)
        return intents, endings

    def _decide_one(self, plan: Plan, recipient: Recipient) -> Intent | Ending:
        campaign = plan.campaign
        if recipient.phone is None:
            return Ending(recipient=recipient, status=RecipientStatus.SKIPPED, reason="invalid_number")
        values = recipient_values(
            phone_number=recipient.phone_number,
            first_name=recipient.first_name,
            last_name=recipient.last_name,
            email=recipient.email,
            company=recipient.company,
            custom_variables=recipient.custom_variables,
        )
        text = compose(campaign.sms_message_body or "", values, plan.settings.footer)
        if not text:
            return Ending(recipient=recipient, status=RecipientStatus.FAILED, reason="empty_message")
        segments = count_segments(text).segments
        if segments > plan.settings.max_segments:
            return Ending(recipient=recipient, status=RecipientStatus.FAILED, reason="over_segment_cap")
        return Intent(
            dispatch_id=self._ids(),
            recipient=recipient,
            provider=campaign.sms_carrier or "",
            sender=campaign.sms_from_number or "",
            to=recipient.phone,
            body=text,
            segments=segments,
        )

    def _send(self, campaign: Campaign, workspace: Workspace, dispatch: Dispatch) -> None:
        message = OutboundMessage(
            dispatch_id=dispatch.id,
            workspace_id=dispatch.workspace_id,
            sender=dispatch.sender,
            to=dispatch.to,
            body=dispatch.body or "",
            not_after=campaign.scheduled_expires_at,
        )

        async def ask() -> Outcome:
            return await self._desk.carrier(workspace, dispatch.provider).send(message)

        self._outbox.send(
            Errand(
                dispatch=dispatch,
                ask=ask,
                pace_key=campaign.id,
                spacing=spacing(campaign.sms_rate_per_minute or 1),
            )
        )


def _hours(campaign: Campaign, now: datetime) -> _Hours:
    if campaign.business_hours is None and campaign.holidays is None:
        return _Hours(open=True, until=None, again_at=now)
    hours = campaign.business_hours or BusinessHours(
        enabled=False, timezone="UTC", schedule={}, batch_concurrency=campaign.batch_concurrency
    )
    dates = closed_dates(campaign.holidays) if campaign.holidays else frozenset()
    opening = next_open(hours, now, closed_dates=dates)
    if opening is None or opening > now:
        return _Hours(open=False, until=None, again_at=opening or now + _NO_OPENING)
    return _Hours(open=True, until=closes_at(hours, now, closed_dates=dates), again_at=now)


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
