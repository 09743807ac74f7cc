"""Small pieces that every operation shares."""

from __future__ import annotations

from datetime import datetime

from outreach.errors import LeaseLost, NotFound, WorkspaceUnavailable
from outreach.models.campaign import Campaign
from outreach.models.resources import Agent, Flow, Trunk
from outreach.models.settings import CallSettings, ReplySettings, SmsSettings
from outreach.models.states import CampaignStatus, WorkspaceStatus
from outreach.models.work import AuditEntry, Lease, WorkUnit
from outreach.models.workspace import Workspace
from outreach.working_set import Transaction


def workspace_of(tx: Transaction, workspace_id: str) -> Workspace:
    """Return a workspace.

    Raises:
        NotFound: There is none with this id.
    """
    workspace = tx.workspaces.get(workspace_id)
    if workspace is None:
        raise NotFound("workspace", workspace_id)
    return workspace


def require_available(workspace: Workspace) -> None:
    """Check that a workspace may work (docs/interface.md#5).

    Raises:
        WorkspaceUnavailable: It is suspended, paywalled or unavailable.
    """
    if workspace.status is not WorkspaceStatus.ACTIVE:
        raise WorkspaceUnavailable(f"The workspace is {workspace.status}. Its owner can tell why and change that.")


def require_lease(tx: Transaction, epoch: int) -> Lease:
    """Return the lease, which must be this epoch's: the fence of every intent.

    Raises:
        LeaseLost: Another worker has taken over.
    """
    lease = tx.leases.current()
    if lease is None or lease.epoch != epoch:
        raise LeaseLost("Another worker has taken over this database.")
    return lease


def quarantine_reason(tx: Transaction, epoch: int) -> str | None:
    """Return why what was asked for under an epoch is not asked again by itself; None when it may be.

    A database that was moved or restored does not start sending what it had before (docs/delivery-contract.md#rule-10).
    """
    lease = tx.leases.current()
    held = lease is not None and lease.held_epoch is not None and epoch < lease.held_epoch
    return lease.held_reason if lease is not None and held else None


def settings_of(tx: Transaction, workspace_id: str) -> SmsSettings:
    """Return a workspace's SMS settings, the defaults before any change."""
    return tx.settings.get(workspace_id) or SmsSettings()


def call_settings_of(tx: Transaction, workspace_id: str) -> CallSettings:
    """Return a workspace's settings of calling campaigns, the defaults before any change."""
    return tx.call_settings.get(workspace_id) or CallSettings()


def reply_settings_of(tx: Transaction, workspace_id: str) -> ReplySettings:
    """Return how a workspace answers keywords, the defaults before any change."""
    return tx.reply_settings.get(workspace_id) or ReplySettings()


def agent_of(tx: Transaction, workspace_id: str, agent_id: str) -> Agent:
    """Return an agent of a workspace.

    Raises:
        NotFound: The workspace has none with this id.
    """
    agent = tx.agents.get(workspace_id, agent_id)
    if agent is None:
        raise NotFound("agent", agent_id)
    return agent


def flow_of(tx: Transaction, workspace_id: str, flow_id: str) -> Flow:
    """Return a flow of a workspace that has not been removed.

    Raises:
        NotFound: The workspace has none with this id.
    """
    flow = tx.flows.get(workspace_id, flow_id)
    if flow is None or flow.removed_at is not None:
        raise NotFound("flow", flow_id)
    return flow


def trunk_of(tx: Transaction, workspace_id: str, trunk_id: str) -> Trunk:
    """Return a trunk of a workspace that has not been removed.

    Raises:
        NotFound: The workspace has none with this id.
    """
    trunk = tx.trunks.get(workspace_id, trunk_id)
    if trunk is None or trunk.removed_at is not None:
        raise NotFound("trunk", trunk_id)
    return trunk


def campaign_of(tx: Transaction, workspace_id: str, campaign_id: str) -> Campaign:
    """Return a campaign of a workspace.

    Raises:
        NotFound: The workspace has none with this id.
    """
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if campaign is None:
        raise NotFound("campaign", campaign_id)
    return campaign


def campaign_unit(campaign: Campaign) -> WorkUnit:
    """Return the unit of work that a campaign is."""
    return WorkUnit("campaign", campaign.workspace_id, campaign.id)


def provider_of(tx: Transaction, campaign: Campaign) -> str | None:
    """Return the carrier or voice provider that a campaign goes to; None where it has none (yet, or any more)."""
    if campaign.channel == "sms":
        return campaign.carrier
    agent = tx.agents.get(campaign.workspace_id, campaign.agent_id) if campaign.agent_id else None
    return agent.provider if agent else None


def wake_running_campaigns(tx: Transaction, workspace_id: str, now: datetime) -> None:
    """Have every campaign of a workspace that runs or is scheduled looked at now."""
    statuses = {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}
    for campaign in tx.campaigns.in_status(statuses, workspace_id=workspace_id):
        tx.work.schedule(campaign_unit(campaign), now)


def record_audit(
    tx: Transaction,
    *,
    now: datetime,
    workspace_id: str | None,
    actor: str,
    action: str,
    subject: str,
    detail: str | None = None,
) -> None:
    """Append to the audit trail."""
    tx.audit.append(
        AuditEntry(at=now, workspace_id=workspace_id, actor=actor, action=action, subject=subject, detail=detail)
    )
