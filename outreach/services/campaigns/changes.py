"""Changing campaigns before and after their start, and putting them away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from outreach.errors import Conflict, InvalidRequest, Problem
from outreach.ledger.campaigns import transitions as moves
from outreach.ledger.campaigns.approvals import require_unapproved, says_otherwise
from outreach.ledger.campaigns.ended_approvals import take_start_back
from outreach.ledger.common import campaign_of, campaign_unit, record_audit, require_revision
from outreach.ledger.leases.clock_steps import note_new_hours
from outreach.ledger.schedules import note_new_holidays
from outreach.models.campaign import Campaign, CampaignUpdate, NewCallCampaign, NewSmsCampaign, schedule_problems
from outreach.models.fields import fields_of
from outreach.models.states import UNSTARTED_STATUSES, CampaignStatus
from outreach.models.work import IdempotencyKey
from outreach.rules.holidays import extend_calendar
from outreach.rules.segments import composed
from outreach.services.campaigns.loading import pool_fields
from outreach.services.campaigns.moves import MAX_LOOKED_AT, check_contacts
from outreach.services.context import ServiceContext, changed_fields, check_provider
from outreach.services.idempotency import Idempotency
from outreach.storage.unit_of_work import Transaction

_WHEN: Final = ("scheduled_start_at", "scheduled_expires_at", "business_hours", "holidays")
_HOURS: Final = frozenset({"business_hours", "holidays"})
_TEXT_FIELDS: Final = frozenset({"body", "flow_id", "replace_characters"})
"""The fields that decide how many segments a text takes."""

_SETTLED_BY_THE_START: Final = {
    "carrier": "its carrier",
    "from_number": "its sending number",
    "from_numbers": "its sender pool",
    "flow_id": "its flow",
    "agent_id": "its agent",
    "cli_group": "its caller IDs",
    "scheduled_start_at": "its start",
}
"""The fields that a campaign keeps once it has begun to send, with their names for people."""


class CampaignChanges:
    """Changes of campaigns."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def update(
        self,
        workspace_id: str,
        campaign_id: str,
        change: CampaignUpdate,
        *,
        revision: int | None = None,
        actor: str = "library",
    ) -> Campaign:
        """Change a campaign; the messages and calls that are not sent yet follow the change.

        A campaign that has not started becomes ready or draft by what it then has. One that is scheduled, active or
        paused stays so, and keeps all that a start needs; but one that a second person has approved and that has not
        begun becomes ready if it then says something else. Requests that are on their way are not changed.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            change: The change.
            revision: The revision that is to be changed; None for whichever it has.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign, flow or agent.
            InvalidRequest: The carrier is unknown, or a campaign under way would lack what it needs.
            Conflict: The campaign has ended, has begun to send and keeps this field, or has another revision.
            AwaitsApproval: A person changes what was approved of a campaign that is under way.
        """
        changes = changed_fields(change, CampaignUpdate)
        if change.carrier:
            check_provider("carrier", change.carrier, "carrier", self._context.adapters)
        now = self._context.now()
        if "body" in changes:
            await self._require_text(workspace_id, campaign_id, changes)

        def operation(tx: Transaction) -> Campaign:
            before = campaign_of(tx, workspace_id, campaign_id)
            require_revision(before, revision)
            _require_changeable(before, changes)
            require_unapproved(tx, before, changes, actor=actor)
            after = attrs.evolve(
                _changed(tx, before, changes), revision=before.revision + 1, updated_at=now, changed_by=actor
            )
            if before.status not in UNSTARTED_STATUSES:
                if after.holidays is not None:
                    after = attrs.evolve(after, holidays=extend_calendar(after.holidays, now.year))
                _require_startable(tx, before, after, changes, now)
                tx.work.schedule(campaign_unit(after), moves.due_time(after, now))
            if not changes.keys().isdisjoint(_HOURS):
                note_new_hours(tx, after)
            tx.campaigns.update(after)
            if "holidays" in changes:
                note_new_holidays(tx, after, now)
            detail = ", ".join(sorted(changes))
            record_audit(tx, workspace_id, "campaign.update", campaign_id, actor=actor, now=now, detail=detail)
            if before.status in UNSTARTED_STATUSES:
                moves.sync_setup_status(tx, after, now=now, actor=actor)
            elif says_otherwise(before, after):
                take_start_back(tx, after, now=now, actor=actor)
            if "stay_open" in changes:
                moves.complete_if_done(tx, campaign_of(tx, workspace_id, campaign_id), now=now)
            return campaign_of(tx, workspace_id, campaign_id)

        updated = await self._context.storage.write_in(workspace_id, operation)
        if updated.status not in UNSTARTED_STATUSES:
            self._context.wake(campaign_unit(updated))
        return updated

    async def _require_text(self, workspace_id: str, campaign_id: str, changes: Mapping[str, Any]) -> None:
        """Raise `InvalidRequest` if a campaign under way would have no text for anybody who is left."""

        def read(tx: Transaction) -> Campaign | None:
            before = campaign_of(tx, workspace_id, campaign_id)
            if before.status in UNSTARTED_STATUSES:
                return None
            _require_changeable(before, changes)
            return _changed(tx, before, changes)

        after = await self._context.storage.read(read)
        if after is None or not after.body:
            return
        found = await check_contacts(self._context, workspace_id, campaign_id, changed=after, until_one_fits=True)
        empty = found.failures_by_reason.get("empty_message", 0)
        # Those with a request on its way are open too, and have their text.
        if 0 < empty == found.checked < MAX_LOOKED_AT:
            problem = "is empty for every contact that is left: its placeholders have no values"
            raise InvalidRequest(details=[Problem(path="body", message=problem)])

    async def close(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        idempotency_key: IdempotencyKey[Campaign] = None,
        actor: str = "library",
    ) -> Campaign:
        """Let a campaign that stays open complete once nothing is open; one that completes by itself stays so.

        Until then it takes contacts as every campaign does.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            idempotency_key: A name for this request: for a day, the same key only returns the campaign.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign.
            Conflict: It was cancelled or has expired.
            InvalidRequest: The key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """

        def operation(tx: Transaction) -> Campaign:
            campaign, now = campaign_of(tx, workspace_id, campaign_id), self._context.now()
            if campaign.is_terminal and campaign.status is not CampaignStatus.COMPLETED:
                raise Conflict(f"A campaign that is {campaign.status} cannot be closed: it has ended already.")
            if campaign.stay_open:
                after = attrs.evolve(campaign, stay_open=False, revision=campaign.revision + 1)
                tx.campaigns.update(after)
                moves.complete_if_done(tx, after, now=now)
                record_audit(tx, workspace_id, "campaign.close", campaign_id, actor=actor, now=now)
            return campaign_of(tx, workspace_id, campaign_id)

        return await Idempotency(self._context).written(
            workspace_id,
            "campaigns.close",
            idempotency_key,
            operation,
            content=campaign_id,
            find=lambda tx, found: campaign_of(tx, workspace_id, found),
        )

    async def archive(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        idempotency_key: IdempotencyKey[Campaign] = None,
        actor: str = "library",
    ) -> Campaign:
        """Put a campaign away, so that lists hide it unless they are asked; an archived one stays.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            idempotency_key: A name for this request: for a day, the same key only returns the campaign.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign.
            Conflict: It is scheduled, active or paused.
            InvalidRequest: The key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        return await self._place("archive", workspace_id, campaign_id, idempotency_key, actor)

    async def unarchive(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        idempotency_key: IdempotencyKey[Campaign] = None,
        actor: str = "library",
    ) -> Campaign:
        """Bring an archived campaign back into the lists; one that is not archived stays; see `archive`.

        Raises:
            OutreachError: See `archive`.
        """
        return await self._place("unarchive", workspace_id, campaign_id, idempotency_key, actor)

    async def _place(
        self,
        action: Literal["archive", "unarchive"],
        workspace_id: str,
        campaign_id: str,
        idempotency_key: IdempotencyKey[Campaign],
        actor: str,
    ) -> Campaign:
        archived = action == "archive"

        def operation(tx: Transaction) -> Campaign:
            campaign = campaign_of(tx, workspace_id, campaign_id)
            if archived and campaign.status not in UNSTARTED_STATUSES and not campaign.is_terminal:
                raise Conflict(f"A campaign that is {campaign.status} cannot be archived: cancel it first.")
            if (campaign.archived_at is not None) is not archived:
                campaign = self._set_archived(tx, campaign, archived, actor)
            return campaign

        return await Idempotency(self._context).written(
            workspace_id,
            f"campaigns.{action}",
            idempotency_key,
            operation,
            content=campaign_id,
            find=lambda tx, found: campaign_of(tx, workspace_id, found),
        )

    def _set_archived(self, tx: Transaction, campaign: Campaign, archived: bool, actor: str) -> Campaign:
        now = self._context.now()
        tx.campaigns.update(
            attrs.evolve(campaign, archived_at=now if archived else None, revision=campaign.revision + 1)
        )
        action = "campaign.archive" if archived else "campaign.unarchive"
        record_audit(tx, campaign.workspace_id, action, campaign.id, actor=actor, now=now)
        return campaign_of(tx, campaign.workspace_id, campaign.id)


def _require_changeable(campaign: Campaign, changes: Mapping[str, Any]) -> None:
    """Raise `Conflict` if a campaign has ended, or has begun to send and keeps a field."""
    if campaign.is_terminal:
        raise Conflict(f"A campaign that is {campaign.status} cannot be changed any more; clone it instead.")
    if campaign.started_at is None:
        return
    kept = [words for name, words in _SETTLED_BY_THE_START.items() if name in changes]
    if "body" in changes and campaign.message_source == "flow":
        kept.append("its flow, which a text would replace")
    if kept:
        raise Conflict(
            f"The campaign has begun to send and keeps {', '.join(kept)}. "
            "Cancel it and follow up with another one instead."
        )


def _require_startable(
    tx: Transaction, before: Campaign, after: Campaign, changes: Mapping[str, Any], now: Any
) -> None:
    """Raise `InvalidRequest` if a campaign under way would lack what it needs, or say more than it did before."""
    problems = moves.start_obstacles(tx, after, now)
    if "body" not in changes and "flow_id" not in changes:
        # Its placeholders were accepted as it was started.
        problems = tuple(one for one in problems if one.path != "placeholders")
    known = {(one.path, one.message) for one in moves.start_obstacles(tx, before, now)}
    found = [one for one in problems if (one.path, one.message) not in known]
    if not changes.keys().isdisjoint(_TEXT_FIELDS) and moves.texts_of(tx, after).fits_no_contact():
        found.append(
            Problem(path="body", message="is over the segment cap (max_segments) for every contact, with the footer")
        )
    if found:
        raise InvalidRequest(details=found)


def _changed(tx: Transaction, before: Campaign, changes: Mapping[str, Any]) -> Campaign:
    workspace_id = before.workspace_id
    flow_id, agent_id = changes.get("flow_id"), changes.get("agent_id")
    if flow_id is not None:
        tx.flows.existing(workspace_id, flow_id)
    if agent_id is not None:
        tx.agents.existing(workspace_id, agent_id)
    given = dict(changes)
    if given.get("body") is not None:
        given["body"] = composed(given["body"])
        given["message_source"] = "custom"
    if flow_id is not None:
        given["message_source"] = "flow"
    applicable = fields_of(NewSmsCampaign if before.channel == "sms" else NewCallCampaign)
    wrong = sorted(given.keys() - applicable.keys())
    if wrong:
        raise InvalidRequest(
            details=[
                Problem(path=name, message=f"does not apply to a campaign of channel {before.channel}")
                for name in wrong
            ]
        )
    if "scheduled_start_at" in given:
        given["schedule_type"] = "immediate" if given["scheduled_start_at"] is None else "scheduled"
    if "cli_group" in given:
        numbers = tuple(given["cli_group"] or ()) or None
        given |= {"cli_group": numbers, "cli_mode": "group" if numbers else "default"}
    if "from_number" in given or "from_numbers" in given:
        first = given.get("from_number", before.from_number)
        given |= pool_fields(first, given.get("from_numbers", ()))
    after = attrs.evolve(before, **given)
    if not given.keys().isdisjoint(_WHEN):
        problems = schedule_problems(after)
        if problems:
            raise InvalidRequest(details=problems)
    if "batch_concurrency" in given and after.business_hours is not None:
        # The hours have the same number (docs/interface.md#business-hours).
        hours = attrs.evolve(after.business_hours, batch_concurrency=given["batch_concurrency"])
        after = attrs.evolve(after, business_hours=hours)
    return after
