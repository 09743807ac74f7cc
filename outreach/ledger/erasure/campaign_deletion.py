"""Deleting campaigns: drafts whole, ended ones as an erasure that keeps the ledger's figures."""

from __future__ import annotations

from datetime import datetime

import attrs
import orjson

from outreach.errors import Conflict
from outreach.ledger.common import campaign_of, campaign_unit, record_audit
from outreach.models.campaign import Campaign
from outreach.models.campaign_report import CampaignReport, FailureCount
from outreach.models.states import UNSTARTED_STATUSES
from outreach.serialization.json_reports import write_campaign_report
from outreach.storage.unit_of_work import Transaction


def has_never_started(campaign: Campaign) -> bool:
    """Return whether a campaign has no requests: a draft or ready one, but for one that was unscheduled under way.

    That was scheduled again because the clock was set back.
    """
    return campaign.status in UNSTARTED_STATUSES and campaign.started_at is None


def require_deletable(campaign: Campaign) -> None:
    """Raise `Conflict` unless a campaign has not started, or has ended with nothing open."""
    if has_never_started(campaign):
        return
    if not campaign.is_terminal:
        raise Conflict(f"A campaign that is {campaign.status} cannot be deleted: cancel it first.")
    if campaign.counters.open:
        raise Conflict(
            f"{campaign.counters.open} of its contacts are still open: their requests are on their way, or they are "
            "being closed. Delete it when they have ended."
        )


def discard(tx: Transaction, campaign: Campaign, *, now: datetime, actor: str) -> bool:
    """Hide a campaign that has not started; its rows are deleted in slices. Return whether it was there."""
    unit = campaign_unit(campaign)
    if tx.work.get(unit) is not None:
        tx.work.schedule(unit, None)
    _record(tx, campaign, "campaign.delete", now=now, actor=actor)
    return tx.erasures.hide_campaign(campaign.workspace_id, campaign.id, now=now)


def begin_erasure(tx: Transaction, report: CampaignReport, *, now: datetime, actor: str) -> Campaign:
    """Note that a campaign is erased, with the report that it keeps; return it. An erased one stays.

    Raises:
        NotFound: It is not there.
        Conflict: It has not ended, or has open contacts.
    """
    campaign = campaign_of(tx, report.workspace_id, report.campaign_id)
    if campaign.erased_at is not None:
        return campaign
    require_deletable(campaign)
    kept = attrs.evolve(report, erased_at=now, failures=[_without_words(one) for one in report.failures])
    figures = orjson.dumps(write_campaign_report(kept)).decode()
    tx.erasures.begin(campaign.workspace_id, campaign.id, figures=figures)
    tx.archives.note_erasure(campaign.workspace_id, campaign.id, figures=figures)
    tx.campaigns.update(
        attrs.evolve(
            campaign,
            description=None,
            body=None,
            csv_column_headers=(),
            variable_names=None,
            metadata=None,
            erased_at=now,
            archived_at=campaign.archived_at or now,
            revision=campaign.revision + 1,
        )
    )
    _record(tx, campaign, "campaign.erase", now=now, actor=actor)
    return campaign_of(tx, campaign.workspace_id, campaign.id)


def _record(tx: Transaction, campaign: Campaign, action: str, *, now: datetime, actor: str) -> None:
    contacts = f"{campaign.counters.total} contacts"
    record_audit(tx, campaign.workspace_id, action, campaign.id, actor=actor, now=now, detail=contacts)


def _without_words(count: FailureCount) -> FailureCount:
    """Return a cause of failures without the provider's words, which may name somebody."""
    return attrs.evolve(count, failure=attrs.evolve(count.failure, error_message=None))


def erase_slice(tx: Transaction, workspace_id: str | None, *, limit: int) -> bool:
    """Erase a slice of a campaign whose erasure has begun; return whether there was one."""
    found = tx.erasures.unfinished(workspace_id)
    if found is None:
        return False
    owner, campaign_id, first = found
    tx.erasures.erase_positions(owner, campaign_id, first, limit=limit)
    return True
