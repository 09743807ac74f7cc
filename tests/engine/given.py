"""What the tests of operations begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs

from outreach.ledger.common import settings_of
from outreach.ledger.sending import committing, singles
from outreach.ledger.sending.singles import IntentTerms
from outreach.ledger.settling import ledger
from outreach.models.call import Call
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.message import Message
from outreach.models.plans import (
    DecisionBasis,
    Ending,
    Intent,
    Wave,
    WavePlan,
    WaveResult,
)
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.resources import Agent
from outreach.models.settings import SmsSettings
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, MessageStatus
from outreach.protocols.storage import Storage
from outreach.rules.provider_analyser import ProviderAnalyser
from outreach.rules.settlement import Backoff
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_call,
    make_call_report,
    make_campaign,
    make_lease,
    make_message,
    make_message_report,
    make_prepared,
    make_worker,
    new_id,
)
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE, pending, publish

EPOCH = 1
BACKOFF = Backoff(first=timedelta(seconds=1), longest=timedelta(seconds=300))
SECOND = timedelta(seconds=1)

ACCEPTED = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id="p1")


def refused(reason: str = "invalid_number") -> DispatchOutcome:
    """Return a refusal."""
    return DispatchOutcome(state=DispatchState.REFUSED, reason=reason)


async def given_active(storage: Storage, count: int = 1, **changes: Any) -> Campaign:
    """Write an active campaign with pending recipients, and the lease of a worker."""
    fields = {"status": CampaignStatus.ACTIVE, "started_at": NOW, **changes}
    campaign = make_campaign(**fields)

    def operation(tx: Transaction) -> Campaign:
        publish(tx, campaign, pending(*(make_prepared() for _ in range(count))))
        if tx.leases.current() is None:
            tx.leases.put(make_lease(epoch=EPOCH))
            tx.workers.put(make_worker(epoch=EPOCH))
        return tx.campaigns.get(campaign.workspace_id, campaign.id) or campaign

    return await storage.write(operation)


async def given_settings(storage: Storage, **changes: Any) -> None:
    """Write SMS settings."""
    await storage.write(lambda tx: tx.settings.put(THIS_WORKSPACE, attrs.evolve(SmsSettings(), **changes)))


async def recipient(storage: Storage, campaign: Campaign, position: int = 0) -> Recipient:
    """Return a recipient as the ledger holds it."""
    found = await storage.read(lambda tx: tx.recipients.get(campaign.workspace_id, campaign.id, position))
    assert found is not None
    return found


async def reread(storage: Storage, campaign: Campaign) -> Campaign:
    """Return a campaign as it is stored, having checked that its counters equal a recount."""
    found, recounted = await storage.read(
        lambda tx: (
            tx.campaigns.get(campaign.workspace_id, campaign.id),
            tx.recipients.recount(campaign.workspace_id, campaign.id),
        )
    )
    assert found is not None
    assert found.counters == recounted
    return found


def plan_wave(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, limit: int) -> WavePlan | None:
    """Return what is due in one campaign."""
    [plan] = committing.plan_waves(tx, [(workspace_id, campaign_id, limit)], now=now)
    return plan


def commit_wave(tx: Transaction, wave: Wave, *, clock_now: Callable[[], datetime]) -> WaveResult:
    """Commit the wave of one campaign."""
    [committed] = committing.commit_waves(tx, [wave], clock_now=clock_now)
    return committed


def make_wave(
    tx: Transaction,
    campaign: Campaign,
    recipients: Sequence[Recipient],
    *,
    endings: Sequence[Ending] = (),
    now: datetime = NOW,
    **changes: Any,
) -> Wave:
    """Return a wave that nothing stands against: all of these recipients, at 60 a minute."""
    current = tx.campaigns.get(campaign.workspace_id, campaign.id)
    workspace = tx.workspaces.get(campaign.workspace_id)
    assert current is not None
    assert workspace is not None
    wave = Wave(
        workspace_id=campaign.workspace_id,
        campaign_id=campaign.id,
        epoch=EPOCH,
        basis=DecisionBasis(
            campaign=current.revision,
            workspace=workspace.revision,
            settings=settings_of(tx, campaign.workspace_id).revision,
        ),
        intents=tuple(
            Intent(
                dispatch_id=new_id(),
                recipient=one,
                provider="twilio",
                from_number="+14155550199",
                to=one.phone or "",
                body="Hello",
                segments=1,
            )
            for one in recipients
        ),
        endings=tuple(endings),
        not_before=now,
        look_ahead=timedelta(hours=1),
        latest=now + timedelta(hours=1),
        spacing=SECOND,
        intent_lifetime=timedelta(seconds=5),
    )
    return attrs.evolve(wave, **changes)


async def commit(
    storage: Storage, campaign: Campaign, *positions: int, now: datetime = NOW, **changes: Any
) -> WaveResult:
    """Commit a wave of these recipients (the first when none is named)."""

    def operation(tx: Transaction) -> WaveResult:
        chosen = [tx.recipients.get(campaign.workspace_id, campaign.id, position) for position in positions or (0,)]
        wave = make_wave(tx, campaign, [one for one in chosen if one is not None], now=now, **changes)
        return commit_wave(tx, wave, clock_now=lambda: now)

    return await storage.write(operation)


async def given_dispatch(storage: Storage, campaign: Campaign, position: int = 0, **changes: Any) -> Dispatch:
    """Commit the intent of one recipient and return it."""
    (dispatch,) = (await commit(storage, campaign, position, **changes)).dispatches
    return dispatch


async def given_requested(storage: Storage, count: int = 1, **changes: Any) -> tuple[Campaign, Dispatch]:
    """Write an active campaign of so many contacts, with the intent of the first of them."""
    campaign = await given_active(storage, count, **changes)
    return campaign, await given_dispatch(storage, campaign)


async def settle(storage: Storage, dispatch: Dispatch, outcome: DispatchOutcome, *, now: datetime = NOW) -> Dispatch:
    """Merge an outcome and return the dispatch as it is then."""
    settled = await storage.write(
        lambda tx: ledger.settle(tx, dispatch.workspace_id, dispatch.id, outcome, backoff=BACKOFF, now=now)
    )
    assert settled is not None
    return settled


def receipt(dispatch: Dispatch, status: MessageStatus = MessageStatus.DELIVERED, **changes: Any) -> MessageReport:
    """Return what a carrier reports of a message."""
    told = {"workspace_id": dispatch.workspace_id, "provider": dispatch.provider, "provider_id": dispatch.provider_id}
    return make_message_report(**{**told, "dispatch_id": dispatch.id, "status": status, **changes})


def call_event(dispatch: Dispatch, status: CallStatus = CallStatus.COMPLETED, **changes: Any) -> CallReport:
    """Return what a voice provider reports of a call."""
    told = {"workspace_id": dispatch.workspace_id, "provider": dispatch.provider, "provider_id": dispatch.provider_id}
    return make_call_report(**{**told, "dispatch_id": dispatch.id, "status": status, **changes})


async def report(storage: Storage, event: Report, *, now: datetime = NOW) -> bool:
    """Merge a report, and return whether it has changed anything."""
    analyser = ProviderAnalyser()
    return await storage.write(lambda tx: ledger.apply_report(tx, event, backoff=BACKOFF, analyser=analyser, now=now))


def intent_terms(now: datetime = NOW, **changes: Any) -> IntentTerms:
    """Return the terms of the intent of a single message or call."""
    terms = IntentTerms(
        dispatch_id=new_id(),
        epoch=EPOCH,
        latest=now + timedelta(hours=1),
        lifetime=5 * SECOND,
        stale_after=timedelta(minutes=10),
        backoff=BACKOFF,
    )
    return attrs.evolve(terms, **changes)


async def given_singles(storage: Storage) -> tuple[Agent, Call, Message]:
    """Write a worker, an agent, and a single call and a single message that are due."""
    agent = make_agent()
    call, message = make_call(agent_id=agent.id), make_message()
    await storage.write(lambda tx: tx.leases.put(make_lease()))
    await storage.write(lambda tx: tx.workers.put(make_worker()))
    await storage.write(lambda tx: tx.agents.insert(agent))
    await storage.write(lambda tx: singles.create_call(tx, call, now=NOW))
    await storage.write(lambda tx: singles.create_message(tx, message, now=NOW))
    return agent, call, message
