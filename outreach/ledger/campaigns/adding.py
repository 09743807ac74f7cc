"""Adding contacts to a campaign that exists: in one transaction, or in chunks under a hidden campaign, then moved.

Once the hidden campaign is staged, all of its contacts belong to the other one: the request that loaded them moves them
in slices, and after a crash a dispatcher does, so that no half is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

import attrs

from outreach.errors import Conflict
from outreach.ledger.campaigns.approvals import require_unapproved
from outreach.ledger.campaigns.recipients import ChunkResult, extend_loading, loading_stalled, write_chunk
from outreach.ledger.campaigns.transitions import complete_if_done, due_time, has_expired
from outreach.ledger.common import campaign_of, campaign_unit, record_audit
from outreach.models.campaign import Campaign, Counters, PreparedRecipient
from outreach.models.states import CampaignStatus, RecipientStatus
from outreach.rules.numbering import person_key
from outreach.storage.unit_of_work import Transaction

MAX_NAMES: Final = 1000
"""Above this many names the contacts have no common columns, and the names are dropped."""

_MAX_LOOKED_UP: Final = 5000


def growing_campaign(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime) -> Campaign:
    """Return a campaign that takes contacts.

    Raises:
        NotFound: The workspace has no such campaign.
        Conflict: It has ended.
    """
    campaign = campaign_of(tx, workspace_id, campaign_id)
    if campaign.is_terminal or has_expired(campaign, now):
        status = campaign.effective_status(now)
        raise Conflict(
            f"The campaign is {status} and takes no contacts. Nothing was added: create another campaign for them."
        )
    return campaign


def known_in(tx: Transaction, campaign: Campaign, phones: Collection[str]) -> Collection[str]:
    """Return those of the numbers that a campaign has, in any spelling."""
    wanted = list(phones)
    return {
        phone
        for start in range(0, len(wanted), _MAX_LOOKED_UP)
        for phone in tx.recipients.known_phones(
            campaign.workspace_id, campaign.id, wanted[start : start + _MAX_LOOKED_UP]
        )
    }


def add_chunk(tx: Transaction, campaign: Campaign, chunk: Sequence[PreparedRecipient], *, now: datetime) -> ChunkResult:
    """Write contacts behind the last one of a campaign, and count them."""
    workspace_id = campaign.workspace_id
    first = tx.recipients.next_position(workspace_id, campaign.id)
    phones = {recipient.phone for recipient in chunk if recipient.phone is not None}
    stopped = tx.register.stopped(workspace_id, campaign.channel, phones)
    known = known_in(tx, campaign, phones - stopped)
    loaded = write_chunk(tx, campaign, chunk, stopped=stopped, known=known, position=first, now=now)
    if loaded.counters.total:
        tx.recipients.mark_added(workspace_id, campaign.id, first=first, now=now)
        _count(tx, campaign, loaded.counters, now=now)
    return loaded


def note_added(
    tx: Transaction, campaign: Campaign, variable_names: Sequence[str] | None, *, added: int, now: datetime, actor: str
) -> None:
    """Record an addition, and the names of its contacts' variables.

    Raises:
        AwaitsApproval: A person adds contacts to a campaign that is under way, and with them needs approval.
    """
    require_unapproved(tx, campaign, None, added=added, actor=actor)
    names = _all_names(campaign.variable_names, variable_names)
    if (names, actor) != (campaign.variable_names, campaign.changed_by):
        # Decisions depend on neither, so the revision stays, and with it what is planned.
        tx.campaigns.update(attrs.evolve(campaign, variable_names=names, changed_by=actor))
    detail = f"{added} contacts"
    record_audit(tx, campaign.workspace_id, "campaign.add_recipients", campaign.id, actor=actor, now=now, detail=detail)


def stage(
    tx: Transaction, loading: Campaign, target: Campaign, *, loaded: Counters, since: datetime, now: datetime
) -> Counters:
    """Let the contacts of a loaded hidden campaign belong to another one, and return what they count.

    Numbers that came onto the register during the load are removed first.

    Raises:
        StorageError: The hidden campaign was deleted as a leftover.
    """
    extend_loading(tx, loading.workspace_id, loading.id, now)
    first = tx.recipients.first_rows(loading.workspace_id, loading.id, limit=1)
    if loaded.total and (not first or first[0].position):
        # The first slice is deleted first.
        raise loading_stalled()
    dropped = tx.recipients.delete_stopped_since(loading.workspace_id, loading.id, loading.channel, since)
    tx.campaigns.stage_addition(loading.workspace_id, loading.id, target.id)
    return loaded - dropped


def clear_loading(tx: Transaction, workspace_id: str, loading_id: str, *, now: datetime, limit: int) -> bool:
    """Move a slice of a staged campaign's contacts, or delete one of another loading campaign; return whether all.

    Contacts of a campaign that was deleted, erased or moved to an archive meanwhile are deleted too.
    """
    target_id = tx.campaigns.addition_target(workspace_id, loading_id)
    target = None if target_id is None else tx.campaigns.get(workspace_id, target_id)
    gone = target is None or target.erased_at is not None
    if target is None or gone or tx.archives.of_campaign(workspace_id, target.id) is not None:
        return tx.campaigns.delete_loading(workspace_id, loading_id, limit=limit)
    rows = tx.recipients.first_rows(workspace_id, loading_id, limit=limit)
    if rows:
        waiting = {row.position: row.phone for row in rows if row.status is RecipientStatus.PENDING}
        # Somebody else may have added them since they were loaded.
        known = {person_key(phone) for phone in known_in(tx, target, {one for one in waiting.values() if one})}
        duplicates = {position for position, phone in waiting.items() if phone and person_key(phone) in known}
        tx.recipients.move(workspace_id, loading_id, target.id, rows, duplicates=duplicates, now=now)
        pending = len(waiting) - len(duplicates)
        _count(tx, target, Counters(total=len(rows), pending=pending, open=pending), now=now)
    if len(rows) == limit:
        extend_loading(tx, workspace_id, loading_id, now)
        return False
    tx.campaigns.delete_loading(workspace_id, loading_id, limit=limit)
    complete_if_done(tx, tx.campaigns.get(workspace_id, target.id) or target, now=now)
    return True


def _count(tx: Transaction, campaign: Campaign, added: Counters, *, now: datetime) -> None:
    counters = tx.campaigns.add_counters(campaign.workspace_id, campaign.id, added)
    if campaign.status is CampaignStatus.ACTIVE or campaign.is_terminal:
        # One that ended while they were moved closes them as it closed its others.
        tx.work.schedule(campaign_unit(campaign), due_time(attrs.evolve(campaign, counters=counters), now))


def _all_names(known: tuple[str, ...] | None, more: Sequence[str] | None) -> tuple[str, ...] | None:
    if known is None or more is None:
        return None
    names = {*known, *more}
    return None if len(names) > MAX_NAMES else tuple(sorted(names))
