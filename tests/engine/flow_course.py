"""Drives a flow campaign by hand: waves, outcomes and the clock, without a dispatcher."""

from __future__ import annotations

import random
from datetime import timedelta

from outreach.core.clock import UuidV7Source
from outreach.core.config import EngineConfig
from outreach.dispatch.outbox import SmsChannel
from outreach.ledger.settling import ledger
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.plans import (
    Advance,
    Ending,
    Intent,
    Postponement,
    Wave,
    WavePlan,
    WaveResult,
)
from outreach.models.resources import FlowStep
from outreach.models.states import CampaignStatus
from outreach.protocols.storage import Storage
from outreach.rules.deciding import LocalRules
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_flow
from outreach.testing.clock import ManualClock
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests.engine.given import EPOCH, commit_wave, given_active, plan_wave
from tests.engine.provider_pool import provider_pool_of

HOUR = timedelta(hours=1)


class Course:
    """One flow campaign, and the clock that it goes by."""

    def __init__(self, storage: Storage, clock: ManualClock, campaign: Campaign) -> None:
        self.storage, self.clock, self.campaign = storage, clock, campaign
        provider_pool = provider_pool_of(ScriptedCarrier(), ScriptedVoice())
        ids = UuidV7Source(clock=clock, rng=random.Random(1))
        self._channel = SmsChannel(ids=ids, config=EngineConfig(), provider_pool=provider_pool)

    @classmethod
    async def begin(cls, storage: Storage, clock: ManualClock, *steps: FlowStep, count: int = 1) -> Course:
        """Write a flow and an active campaign that it drives."""
        flow = make_flow(steps=steps)
        await storage.write(lambda tx: tx.flows.insert(flow))
        campaign = await given_active(storage, count, message_source="flow", flow_id=flow.id, started_at=clock.now())
        return cls(storage, clock, campaign)

    async def wave(self) -> tuple[Dispatch, ...]:
        """Decide about the contacts that are due and commit that; return the intents."""
        plan = await self._plan()
        if plan.campaign.status is not CampaignStatus.ACTIVE:
            return ()
        wave = self._decide(plan)
        committed: WaveResult = await self.storage.write(lambda tx: commit_wave(tx, wave, clock_now=self.clock.now))
        return tuple(committed.dispatches)

    async def decided(self) -> Wave:
        """Decide about the contacts that are due."""
        return self._decide(await self._plan())

    async def rest(self) -> bool:
        """Let time pass until somebody is due; return False when nobody will be."""
        plan = await self._plan()
        if plan.campaign.status is not CampaignStatus.ACTIVE or (plan.next_due is None and not plan.due):
            return False
        if plan.next_due is not None:
            self.clock.advance(max((plan.next_due - self.clock.now()).total_seconds(), 0.0) + 0.001)
            await self.storage.write(
                lambda tx: ledger.expire_receipt_waits(
                    tx, THIS_WORKSPACE, self.campaign.id, now=self.clock.now(), limit=99
                )
            )
        return True

    async def _plan(self) -> WavePlan:
        def operation(tx: Transaction) -> WavePlan | None:
            return plan_wave(tx, THIS_WORKSPACE, self.campaign.id, now=self.clock.now(), limit=99)

        plan = await self.storage.read(operation)
        assert plan is not None
        return plan

    def _decide(self, plan: WavePlan) -> Wave:
        now = self.clock.now()
        decisions = [self._channel.decide(plan, LocalRules(plan.workspace), one, now) for one in plan.due]
        return Wave(
            workspace_id=THIS_WORKSPACE,
            campaign_id=self.campaign.id,
            epoch=EPOCH,
            basis=plan.basis,
            intents=[one for one in decisions if isinstance(one, Intent)],
            endings=[one for one in decisions if isinstance(one, Ending)],
            advances=[one for one in decisions if isinstance(one, Advance)],
            postponements=[one for one in decisions if isinstance(one, Postponement)],
            not_before=now,
            look_ahead=HOUR,
            latest=now + HOUR,
            spacing=timedelta(milliseconds=1),
            intent_lifetime=timedelta(seconds=5),
        )
