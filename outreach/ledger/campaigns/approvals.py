"""Approvals of starts, within one transaction: the checks of people who start, approve or change a campaign."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

import attrs

from outreach.errors import AwaitsApproval, Conflict, InvalidRequest
from outreach.ledger.common import campaign_of, record_audit, workspace_of
from outreach.models.approval import Approval, PricedRevision, StartApproval, StartFigures
from outreach.models.campaign import Campaign, CampaignUpdate
from outreach.models.states import UNSTARTED_STATUSES, CampaignStatus
from outreach.rules.readiness import approval_reason, is_person
from outreach.storage.unit_of_work import Transaction

_APPROVED_FIELDS: Final = attrs.fields_dict(CampaignUpdate).keys() - {
    *("name", "description", "stay_open", "rate_per_minute", "batch_concurrency"),
    *("scheduled_start_at", "scheduled_expires_at", "business_hours", "holidays"),
}
"""The fields that decide a campaign's content and senders; they stay as they were approved. A new field is one."""


def approval_of(tx: Transaction, campaign: Campaign, priced: PricedRevision | None) -> StartApproval:
    """Return whether the start of a campaign needs approval, and the approval that it has.

    Args:
        tx: The transaction.
        campaign: The campaign.
        priced: Its price, as it was found before the transaction.
    """
    total = campaign.counters.total
    known = priced is not None and (priced.revision, priced.contacts) == (campaign.revision, total)
    amount = priced.amount if priced is not None and known else None
    found = tx.approvals.get(campaign.workspace_id, campaign.id, campaign.revision)
    if found is not None and found.figures.contacts != total:
        # Contacts were added, which changes no revision.
        found = None
    reason = approval_reason(workspace_of(tx, campaign.workspace_id), contacts=total, amount=amount)
    return StartApproval(
        campaign_id=campaign.id,
        revision=campaign.revision,
        reason=reason if campaign.status in UNSTARTED_STATUSES else None,
        changed_by=campaign.changed_by,
        approval=found,
    )


def require_unapproved(
    tx: Transaction, campaign: Campaign, changes: Collection[str] | None, *, added: int = 0, actor: str
) -> None:
    """Raise `AwaitsApproval` if a person changes what was approved of a campaign that is under way.

    Args:
        tx: The transaction.
        campaign: The campaign before the change.
        changes: The fields that change; None for new contacts.
        added: How many these are.
        actor: Who changes it.
    """
    under_way = campaign.status not in UNSTARTED_STATUSES and is_person(actor)
    if not under_way or (changes is not None and _APPROVED_FIELDS.isdisjoint(changes)):
        return
    workspace = workspace_of(tx, campaign.workspace_id)
    if approval_reason(workspace, contacts=campaign.counters.total + added, amount=None) is not None:
        what = "It gets no contacts" if changes is None else "What it says and from where stays"
        # Only a start that has not come yet can be taken back.
        first = "Take its start back first, or make" if campaign.status is CampaignStatus.SCHEDULED else "Make"
        raise AwaitsApproval(
            f"{what} while it is under way, because starts need approval in this workspace. {first} another campaign."
        )


def says_otherwise(before: Campaign, after: Campaign) -> bool:
    """Return whether a change of a campaign changes what it says, or from where."""
    return any(getattr(before, name) != getattr(after, name) for name in _APPROVED_FIELDS)


def approve(
    tx: Transaction,
    workspace_id: str,
    campaign_id: str,
    *,
    revision: int,
    figures: StartFigures,
    now: datetime,
    actor: str,
) -> Approval:
    """Keep the approval of a campaign's present revision, and return it; the same again changes nothing.

    Raises:
        NotFound: The workspace has no such campaign.
        Conflict: It is not ready, has changed meanwhile, or was changed last by this actor.
    """
    campaign = campaign_of(tx, workspace_id, campaign_id)
    if campaign.status is not CampaignStatus.READY:
        raise Conflict(f"A campaign that is {campaign.status} cannot be approved: only one that is ready to start.")
    if tx.campaigns.has_additions(workspace_id, campaign_id):
        raise Conflict("The campaign still gets contacts: approve it once they are all there.")
    if (campaign.revision, campaign.counters.total) != (revision, figures.contacts):
        raise Conflict("The campaign has changed meanwhile, so nothing was approved. Look at it again.")
    if campaign.changed_by == actor:
        raise Conflict("The person who changed a campaign last cannot approve it: another person has to.")
    known = tx.approvals.get(workspace_id, campaign_id, revision)
    if known is not None and known.figures.contacts == figures.contacts:
        return known
    made = Approval(revision=revision, approved_by=actor, approved_at=now, figures=figures)
    tx.approvals.put(workspace_id, campaign_id, made)
    detail = f"revision {revision}, {figures.contacts} contacts"
    record_audit(tx, workspace_id, "campaign.approve", campaign_id, actor=actor, now=now, detail=detail)
    return made


def check_revision(revision: object) -> None:
    """Raise `InvalidRequest` if a revision is none."""
    if isinstance(revision, bool) or not isinstance(revision, int) or not 0 <= revision < 2**31:
        raise InvalidRequest.at("revision", "must be the number of a revision")
