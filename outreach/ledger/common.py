"""Workspaces and their keys, and the look-ups that all operations share."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, TypeVar

import attrs

from outreach.errors import Conflict, InvalidRequest, LeaseLost, NotFound, Unauthorized, WorkspaceUnavailable
from outreach.ledger.campaigns import trail
from outreach.models.base import set_fields
from outreach.models.campaign import Campaign, Recipient
from outreach.models.resources import Agent
from outreach.models.settings import CallSettings, PlaceHours, ReplySettings, SmsSettings
from outreach.models.states import CampaignStatus, WorkspaceStatus
from outreach.models.work import AuditEntry, WorkerLease, WorkUnit
from outreach.models.workspace import ApiAccess, ApiKey, Workspace, WorkspaceUpdate
from outreach.rules.deciding import contact_rules_key
from outreach.rules.segments import text_problem
from outreach.storage.unit_of_work import Transaction

T = TypeVar("T")

_SMS_SETTINGS: Final = SmsSettings()


def existing(row: T | None, kind: str, identifier: str) -> T:
    """Return a row that was looked up, or raise `NotFound` if there is none."""
    if row is None:
        raise NotFound(kind, identifier)
    return row


def workspace_of(tx: Transaction, workspace_id: str) -> Workspace:
    """Return a workspace, or raise `NotFound`."""
    return existing(tx.workspaces.get(workspace_id), "workspace", workspace_id)


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
    return existing(tx.campaigns.get(workspace_id, campaign_id), "campaign", campaign_id)


def recipient_of(tx: Transaction, campaign: Campaign, position: int) -> Recipient:
    """Return the recipient at a position of a campaign's list, or raise `NotFound`."""
    recipient = tx.recipients.get(campaign.workspace_id, campaign.id, position)
    return existing(recipient, "recipient", str(position))


def require_revision(campaign: Campaign, revision: int | None) -> None:
    """Raise `Conflict` if a campaign has another revision than one that is asked for."""
    if revision is not None and campaign.revision != revision:
        raise Conflict("The campaign has changed meanwhile, so nothing was done. Look at it again.")


def campaign_unit(campaign: Campaign) -> WorkUnit:
    """Return a campaign's unit of work."""
    return WorkUnit("campaign", campaign.workspace_id, campaign.id)


def caller_of(tx: Transaction, campaign: Campaign) -> Agent | None:
    """Return the agent of a calling campaign; None if it has none, or sends messages."""
    if campaign.channel != "call" or not campaign.agent_id:
        return None
    return tx.agents.get(campaign.workspace_id, campaign.agent_id)


def provider_of(tx: Transaction, campaign: Campaign) -> str | None:
    """Return a campaign's carrier or voice provider; None if it has none."""
    if campaign.channel == "sms":
        return campaign.carrier
    agent = caller_of(tx, campaign)
    return agent.provider if agent else None


def wake_running_campaigns(tx: Transaction, workspace_id: str, now: datetime) -> None:
    """Wake every active and scheduled campaign of a workspace."""
    statuses = {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}
    for campaign in tx.campaigns.in_status(statuses, workspace_id=workspace_id):
        tx.work.schedule(campaign_unit(campaign), now)


def record_audit(
    tx: Transaction,
    workspace_id: str | None,
    action: str,
    subject: str,
    *,
    actor: str,
    now: datetime,
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


_NOTED_EVERY: Final = timedelta(hours=1)


def create_workspace(tx: Transaction, workspace: Workspace, *, actor: str) -> Workspace:
    """Write a new workspace."""
    tx.workspaces.insert(workspace)
    record_audit(
        tx, workspace.id, "workspace.create", workspace.id, actor=actor, now=workspace.created_at, detail=workspace.mode
    )
    return workspace


def update_workspace(
    tx: Transaction, workspace_id: str, change: WorkspaceUpdate, *, now: datetime, actor: str
) -> Workspace:
    """Change a workspace and return it, or raise `NotFound`; its next request or message sees the change."""
    before = workspace_of(tx, workspace_id)
    after = attrs.evolve(before, **set_fields(change), revision=before.revision + 1, updated_at=now)
    tx.workspaces.update(after)
    wake_running_campaigns(tx, workspace_id, now)
    rules = contact_rules_key(after) if contact_rules_key(after) != contact_rules_key(before) else None
    if after.status is not before.status or rules is not None:
        trail.record_workspace_status(tx, workspace_id, after.status, reason=rules, actor=actor, now=now)
    changed = [
        f"{field.name}={_in_words(getattr(after, field.name))}"
        for field in attrs.fields(Workspace)
        if field.name not in {"revision", "updated_at"} and getattr(after, field.name) != getattr(before, field.name)
    ]
    record_audit(tx, workspace_id, "workspace.update", workspace_id, actor=actor, now=now, detail=", ".join(changed))
    return after


def _in_words(value: object) -> object:
    """Return the value of a field, as the audit trail tells it: of hours of places, which places."""
    if isinstance(value, tuple) and all(isinstance(one, PlaceHours) for one in value):
        return " ".join(f"{one.place} ({one.source})" for one in value)
    return value


def create_key(tx: Transaction, key: ApiKey, *, actor: str) -> ApiKey:
    """Write a new key, or raise `NotFound` if there is no such workspace."""
    workspace_of(tx, key.workspace_id)
    tx.keys.insert(key)
    record_audit(
        tx, key.workspace_id, "key.create", key.id, actor=actor, now=key.created_at, detail=", ".join(key.scopes)
    )
    return key


def revoke_key(tx: Transaction, workspace_id: str, key_id: str, *, now: datetime, actor: str) -> ApiKey:
    """Revoke a key, or raise `NotFound`; a revoked one stays as it is."""
    key = tx.keys.get(key_id)
    if key is None or key.workspace_id != workspace_id:
        raise NotFound("key", key_id)
    if key.revoked_at is not None:
        return key
    revoked = attrs.evolve(key, revoked_at=now)
    tx.keys.update(revoked)
    record_audit(tx, key.workspace_id, "key.revoke", key.id, actor=actor, now=now)
    return revoked


def authenticate(tx: Transaction, digest: str, now: datetime) -> tuple[ApiAccess, bool]:
    """Return what a key may do, in a workspace of any status, and whether its use is to be noted.

    Raises:
        Unauthorized: It is unknown or revoked.
    """
    key = tx.keys.by_digest(digest)
    if key is not None and key.revoked_at is None:
        workspace = tx.workspaces.get(key.workspace_id)
        if workspace is not None:
            return ApiAccess(workspace=workspace, scopes=key.scopes), _needs_note(key, now)
    raise Unauthorized("The API key is not valid: it is unknown, or was revoked.")


def note_use_of_key(tx: Transaction, digest: str, now: datetime) -> None:
    """Note that a key is used, unless that was noted lately or it was revoked."""
    key = tx.keys.by_digest(digest)
    if key is not None and key.revoked_at is None and _needs_note(key, now):
        tx.keys.update(attrs.evolve(key, last_used_at=now))


def _needs_note(key: ApiKey, now: datetime) -> bool:
    return key.last_used_at is None or now >= key.last_used_at + _NOTED_EVERY
