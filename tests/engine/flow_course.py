"""Drives a flow campaign by hand: waves, outcomes and the clock, without a dispatcher."""

from __future__ import annotations

import random
from datetime import timedelta

from outreach.config import EngineConfig
from outreach.ids import UuidV7Source
from outreach.models.campaign import Campaign
from outreach.models.directory import FlowStep
from outreach.models.dispatch import Dispatch
from outreach.models.states import CampaignStatus
from outreach.operations import closing
from outreach.operations.wave import Committed, Ending, Hold, Intent, Move, Plan, Wave
from outreach.protocols.storage import Storage
from outreach.runners.sms_channel import SmsChannel
from outreach.testing.builders import make_flow
from outreach.testing.carriers import ScriptedCarrier, ScriptedVoice
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import HERE
from outreach.working_set import Transaction
from tests.engine.desk import desk_of
from tests.engine.given import EPOCH, commit_wave, given_active, plan_wave

HOUR = timedelta(hours=1)


class Course:
    """One flow campaign, and the clock that it goes by."""

    def __init__(self, storage: Storage, clock: ManualClock, campaign: Campaign) -> None:
        self.storage, self.clock, self.campaign = storage, clock, campaign
        desk = desk_of(ScriptedCarrier(), ScriptedVoice())
        ids = UuidV7Source(clock=clock, rng=random.Random(1))
        self._channel = SmsChannel(ids=ids, config=EngineConfig(), desk=desk)

    @classmethod
    async def begin(cls, storage: Storage, clock: ManualClock, *steps: FlowStep, count: int = 1) -> Course:
        """Write a flow and an active campaign that it drives."""
        flow = make_flow(steps=steps)
        await storage.write(lambda tx: tx.flows.insert(flow))
        campaign = await given_active(
            storage, count, sms_message_source="flow", sms_flow_id=flow.id, started_at=clock.now()
        )
        return cls(storage, clock, campaign)

    async def wave(self) -> tuple[Dispatch, ...]:
        """Decide about whoever is due and commit that; return the intents."""
        plan = await self._plan()
        if plan.campaign.status is not CampaignStatus.ACTIVE:
            return ()
        wave = self._decide(plan)
        committed: Committed = await self.storage.write(lambda tx: commit_wave(tx, wave, clock_now=self.clock.now))
        return tuple(committed.dispatches)

    async def rest(self) -> bool:
        """Let time pass until somebody is due; return False when nobody will be."""
        plan = await self._plan()
        if plan.campaign.status is not CampaignStatus.ACTIVE or (plan.next_due is None and not plan.due):
            return False
        if plan.next_due is not None:
            self.clock.advance(max((plan.next_due - self.clock.now()).total_seconds(), 0.0) + 0.001)
            await self.storage.write(
                lambda tx: closing.end_receipt_waits(tx, HERE, self.campaign.id, now=self.clock.now(), limit=99)
            )
        return True

    async def _plan(self) -> Plan:
        def operation(tx: Transaction) -> Plan | None:
            return plan_wave(tx, HERE, self.campaign.id, now=self.clock.now(), limit=99)

        plan = await self.storage.read(operation)
        assert plan is not None
        return plan

    def _decide(self, plan: Plan) -> Wave:
        now = self.clock.now()
        decisions = [self._channel.decide(plan, one, now) for one in plan.due]
        return Wave(
            workspace_id=HERE,
            campaign_id=self.campaign.id,
            epoch=EPOCH,
            basis=plan.basis,
            intents=[one for one in decisions if isinstance(one, Intent)],
            endings=[one for one in decisions if isinstance(one, Ending)],
            moves=[one for one in decisions if isinstance(one, Move)],
            holds=[one for one in decisions if isinstance(one, Hold)],
            not_before=now,
            look_ahead=HOUR,
            latest=now + HOUR,
            spacing=timedelta(milliseconds=1),
            intent_lifetime=timedelta(seconds=5),
        )
