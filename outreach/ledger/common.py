"""Helpers shared by all operations."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from outreach.errors import InvalidRequest, LeaseLost, NotFound, WorkspaceUnavailable
from outreach.models.campaign import Campaign
from outreach.models.settings import CallSettings, ReplySettings, SmsSettings
from outreach.models.states import CampaignStatus, WorkspaceStatus
from outreach.models.work import AuditEntry, WorkerLease, WorkUnit
from outreach.models.workspace import Workspace
from outreach.rules.texts import text_problem
from outreach.storage.unit_of_work import Transaction

_SMS_SETTINGS: Final = SmsSettings()


def workspace_of(tx: Transaction, workspace_id: str) -> Workspace:
    """Return a workspace, or raise `NotFound`."""
    workspace = tx.workspaces.get(workspace_id)
    if workspace is None:
        raise NotFound("workspace", workspace_id)
    return workspace


def require_available(workspace: Workspace) -> None:
    """Raise `WorkspaceUnavailable` unless a workspace is active (docs/interface.md#5)."""
    if workspace.status is not WorkspaceStatus.ACTIVE:
        raise WorkspaceUnavailable(f"The workspace is {workspace.status}. Its owner can tell why and change that.")


def require_worker(tx: Transaction, epoch: int) -> WorkerLease:
    """Return a worker's lease, or raise `LeaseLost` if it has ended: the fencing of every intent."""
    worker = tx.workers.get(epoch)
    if worker is None:
        raise LeaseLost("Another worker has taken over what this one did.")
    return worker


def quarantine_reason(tx: Transaction, epoch: int) -> str | None:
    """Return the reason of a quarantine that began after an epoch, or None.

    What was requested before a quarantine is not requested again (docs/delivery-contract.md#rule-10).
    """
    lease = tx.leases.current()
    quarantined = lease is not None and lease.quarantine_epoch is not None and epoch < lease.quarantine_epoch
    return lease.quarantine_reason if lease is not None and quarantined else None


def settings_of(tx: Transaction, workspace_id: str) -> SmsSettings:
    """Return a workspace's SMS settings, or the defaults."""
    return tx.settings.get(workspace_id) or _SMS_SETTINGS


def call_settings_of(tx: Transaction, workspace_id: str) -> CallSettings:
    """Return a workspace's call settings, or the defaults."""
    return tx.call_settings.get(workspace_id) or CallSettings()


def reply_settings_of(tx: Transaction, workspace_id: str) -> ReplySettings:
    """Return a workspace's reply settings, or the defaults."""
    return tx.reply_settings.get(workspace_id) or ReplySettings()


def campaign_of(tx: Transaction, workspace_id: str, campaign_id: str) -> Campaign:
    """Return a campaign, or raise `NotFound`."""
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if campaign is None:
        raise NotFound("campaign", campaign_id)
    return campaign


def campaign_unit(campaign: Campaign) -> WorkUnit:
    """Return a campaign's unit of work."""
    return WorkUnit("campaign", campaign.workspace_id, campaign.id)


def provider_of(tx: Transaction, campaign: Campaign) -> str | None:
    """Return a campaign's carrier or voice provider; None if it has none."""
    if campaign.channel == "sms":
        return campaign.carrier
    agent = tx.agents.get(campaign.workspace_id, campaign.agent_id) if campaign.agent_id else None
    return agent.provider if agent else None


def wake_running_campaigns(tx: Transaction, workspace_id: str, now: datetime) -> None:
    """Wake every active and scheduled campaign of a workspace."""
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
    """Append to the audit log.

    Raises:
        InvalidRequest: The actor, or what an application records by itself, is no storable text.
    """
    for path, text in (("actor", actor), ("action", action), ("subject", subject)):
        problem = text_problem(text)
        if problem is not None:
            raise InvalidRequest.at(path, problem)
    tx.audit.append(
        AuditEntry(at=now, workspace_id=workspace_id, actor=actor, action=action, subject=subject, detail=detail)
    )


def time_left(tx: Transaction, since: datetime, wait: timedelta, moment: datetime) -> timedelta:
    """Return how much of a wait since a time was left at a moment; zero if it was certainly over.

    Only time that the lease holder has seen pass without a clock step counts.
    """
    lease = tx.leases.current()
    if lease is None or lease.steady_since is None or lease.steady_until is None:
        return wait
    over_at = max(since, lease.steady_since) + wait
    return max(over_at - min(moment, lease.steady_until), timedelta())
