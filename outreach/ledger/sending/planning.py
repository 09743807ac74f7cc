"""The recipients due in many campaigns, with all that deciding about them needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from outreach.ledger import provider_throttles
from outreach.ledger.campaigns.recipients import steps_of
from outreach.ledger.common import provider_of, settings_of
from outreach.ledger.sending.pace import frequency_capped_until, prefetch_sender_paces, sender_paces
from outreach.ledger.unreachable import left_out
from outreach.models.campaign import Campaign
from outreach.models.plans import DecisionBasis, WavePlan
from outreach.models.recipient import Recipient
from outreach.models.states import CampaignStatus
from outreach.models.workspace import Workspace
from outreach.rules.deciding import next_slot, spacing
from outreach.rules.holding import are_contact_rules_outdated
from outreach.storage.unit_of_work import Transaction


def plan_waves(tx: Transaction, wanted: Sequence[tuple[str, str, int]], *, now: datetime) -> Sequence[WavePlan | None]:
    """Return the plans of many campaigns, given as workspace, campaign and maximum number of recipients."""
    prefetch_campaigns(tx, [(workspace_id, campaign_id) for workspace_id, campaign_id, _ in wanted])
    by_limit: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for workspace_id, campaign_id, limit in wanted:
        campaign = tx.campaigns.get(workspace_id, campaign_id)
        if campaign is not None and campaign.status is CampaignStatus.ACTIVE:
            by_limit[limit].append((workspace_id, campaign_id))
    due = {
        key: recipients
        for limit, keys in by_limit.items()
        for key, recipients in zip(keys, tx.recipients.due_for_campaigns(keys, now, limit=limit), strict=True)
    }
    next_due = tx.recipients.next_due_of_campaigns(key for key, recipients in due.items() if not recipients)
    return [
        _plan(tx, workspace_id, campaign_id, due.get((workspace_id, campaign_id), ()), next_due.get(campaign_id), now)
        for workspace_id, campaign_id, _ in wanted
    ]


def _plan(
    tx: Transaction,
    workspace_id: str,
    campaign_id: str,
    due: Sequence[Recipient],
    next_due: datetime | None,
    now: datetime,
) -> WavePlan | None:
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    workspace = tx.workspaces.get(workspace_id)
    if campaign is None or workspace is None:
        return None
    settings = settings_of(tx, workspace_id)
    active = campaign.status is CampaignStatus.ACTIVE
    run = tx.runs.get(workspace_id, campaign_id) if active else None
    senders = sender_paces(tx, campaign, now) if active else {}
    agent = tx.agents.get(workspace_id, campaign.agent_id) if campaign.agent_id else None
    return WavePlan(
        campaign=campaign,
        workspace=workspace,
        settings=settings,
        basis=DecisionBasis(
            campaign=campaign.revision,
            workspace=workspace.revision,
            settings=settings.revision,
            agent=agent.revision if agent else None,
        ),
        due=due,
        next_due=next_due,
        next_slot_at=next_slot(run.next_slot_at, now, _spacing(campaign)) if run else None,
        senders=senders,
        capped_until=_capped(tx, workspace, due, now),
        unreachable=left_out(tx, workspace, campaign.channel, {one.phone for one in due if one.phone is not None}),
        agent=agent,
        trunk=tx.trunks.get(workspace_id, campaign.trunk_id) if campaign.trunk_id else None,
        in_flight=tx.recipients.in_flight(workspace_id, campaign_id) if campaign.channel == "call" else 0,
        steps=steps_of(tx, campaign),
        provider_throttle=provider_throttles.throttle_of_campaign(tx, campaign, now) if active else None,
        contact_rules_outdated=are_contact_rules_outdated(run, workspace),
    )


def prefetch_campaigns(tx: Transaction, keys: Sequence[tuple[str, str]]) -> None:
    """Read the rows that many campaigns need, in one go."""
    workspace_ids = {workspace_id for workspace_id, _ in keys}
    tx.campaigns.prefetch(keys)
    tx.workspaces.prefetch(workspace_ids)
    tx.settings.prefetch(workspace_ids)
    tx.runs.prefetch(key for key in keys if tx.campaigns.get(*key) is not None)
    found = [campaign for campaign in (tx.campaigns.get(*key) for key in keys) if campaign is not None]
    prefetch_sender_paces(tx, found)
    providers = ((campaign.workspace_id, provider_of(tx, campaign)) for campaign in found)
    tx.provider_throttles.prefetch(
        (workspace_id, provider) for workspace_id, provider in providers if provider is not None
    )


def _spacing(campaign: Campaign) -> timedelta:
    """Return how far apart a campaign's requests start; calls are limited in flight instead."""
    return spacing(campaign.rate_per_minute or 1) if campaign.channel == "sms" else timedelta()


def _capped(
    tx: Transaction, workspace: Workspace, recipients: Sequence[Recipient], now: datetime
) -> Mapping[int, datetime]:
    if workspace.frequency_cap is None:
        return {}
    known = (
        (one.position, frequency_capped_until(tx, workspace.id, one.phone, now))
        for one in recipients
        if one.phone is not None
    )
    return {position: until for position, until in known if until is not None}
