"""Campaigns: reading them, and moving them from state to state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, get_args

import attrs

from outreach.errors import Conflict, ErrorDetail, InvalidRequest, NotFound
from outreach.models.base import Channel, JsonPage, Page
from outreach.models.campaign import Campaign, CampaignUpdate, Counters
from outreach.models.dispatch import Dispatch
from outreach.models.recipient import Recipient, RecipientCount
from outreach.models.states import CampaignStatus
from outreach.models.status import StartCheck
from outreach.models.trail import ContactHistory
from outreach.operations.campaigns import transitions as moves
from outreach.operations.campaigns.histories import histories, histories_of_external_id
from outreach.operations.common import agent_of, campaign_of, campaign_unit, flow_of, record_audit, workspace_of
from outreach.operations.waves.provider_throttles import throttle_of_campaign
from outreach.providers.registry import Adapters
from outreach.services.blockers import CampaignBlockers
from outreach.services.caller_checks import find_caller_id_problems
from outreach.services.campaign_loading import CampaignCreation
from outreach.services.campaign_pages import CampaignPageCache, CampaignQuery, page_of
from outreach.services.campaign_validation import check_description, check_times
from outreach.services.contacts import MAX_EXTERNAL_ID
from outreach.services.context import ServiceContext
from outreach.services.failures import CampaignResults
from outreach.services.start_checks import check_contacts, find_unsendable_text
from outreach.services.validation import (
    check_choice,
    check_integer,
    check_limit,
    check_name,
    check_provider,
    require_text,
    validated_fields,
)
from outreach.vault import Vault
from outreach.working_set import Transaction
from outreach.working_set.tables.campaign_lists import StoredCampaign

MAX_PAGE_SIZE: Final = 100
_BATCH: Final = 500
_MAX_POSITION: Final = 2**63 - 1
_CHANNELS: Final = get_args(Channel)
_WHEN: Final = ("scheduled_start_at", "scheduled_expires_at", "business_hours", "holidays")
_SMS_FIELDS: Final = frozenset({"body", "message_source", "flow_id", "carrier", "from_number", "rate_per_minute"})
_CLEARABLE: Final = (
    *("description", "body", "carrier", "from_number", "flow_id", "agent_id"),
    *_WHEN,
)


class Campaigns(CampaignCreation, CampaignResults, CampaignBlockers):
    """The campaigns of workspaces."""

    def __init__(self, context: ServiceContext, vault: Vault) -> None:
        super().__init__(context)
        self._vault = vault
        self._pages = CampaignPageCache(context)

    async def get(self, workspace_id: str, campaign_id: str) -> Campaign:
        """Return a campaign.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await self._context.storage.read(lambda tx: campaign_of(tx, workspace_id, campaign_id))

    async def get_anywhere(self, campaign_id: str) -> Campaign:
        """Return a campaign of any workspace, for operator commands that name a campaign alone.

        Raises:
            NotFound: No campaign has this id.
        """
        campaign = await self._context.storage.read(lambda tx: tx.campaigns.find(campaign_id))
        if campaign is None:
            raise NotFound("campaign", campaign_id)
        return campaign

    async def start_problems(self, workspace_id: str, campaign_id: str) -> Sequence[ErrorDetail]:
        """Return all problems that prevent a start now, each with its field.

        `start` raises `CannotStart` with the same. Fields that a draft lacks have the names of `CampaignUpdate`.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        now = self._context.now()
        misfit = await self._misfit(workspace_id, campaign_id)
        caller_id_problems = await self._unlisted(workspace_id, campaign_id)
        return await self._context.storage.read(
            lambda tx: moves.start_obstacles(
                tx,
                campaign_of(tx, workspace_id, campaign_id),
                now,
                unsendable_text=misfit,
                caller_id_problems=caller_id_problems,
            )
        )

    async def throttled_until(self, workspace_id: str, campaign_id: str) -> datetime | None:
        """Return until when the provider's throttle stops an active campaign; None without one.

        The throttle holds for the whole workspace at that provider, single messages and calls included.

        Raises:
            NotFound: The workspace has no such campaign.
        """

        def operation(tx: Transaction) -> datetime | None:
            campaign = campaign_of(tx, workspace_id, campaign_id)
            if campaign.status is not CampaignStatus.ACTIVE:
                return None
            hold = throttle_of_campaign(tx, campaign, self._context.now())
            return hold.until if hold is not None else None

        return await self._context.storage.read(operation)

    async def list(
        self,
        workspace_id: str,
        *,
        channel: Channel | None = None,
        status: CampaignStatus | None = None,
        search: str | None = None,
        page: int = 1,
        page_size: int = 20,
    ) -> Page[Campaign]:
        """Return a page of campaigns, newest first.

        Args:
            workspace_id: The workspace.
            channel: Only campaigns of this channel; None for both.
            status: Only campaigns with this raw status.
            search: Part of the name, case-insensitive; None or empty for all.
            page: From 1; a page past the end is empty.
            page_size: At least 1; more than 100 is served as 100.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: An argument is invalid.
        """
        asked = _asked(workspace_id, channel, status, search, page, page_size)

        def operation(tx: Transaction) -> tuple[Sequence[StoredCampaign], int]:
            workspace_of(tx, workspace_id)
            return page_of(tx, asked)

        found, total = await self._context.storage.read(operation)
        return Page(items=[it.campaign() for it in found], page=page, page_size=asked.page_size, total=total)

    async def list_json(
        self,
        workspace_id: str,
        *,
        channel: Channel | None = None,
        status: CampaignStatus | None = None,
        search: str | None = None,
        page: int = 1,
        page_size: int = 20,
    ) -> JsonPage:
        """Return the page that `list` returns, as JSON with the interface's fields.

        A rendered page is reused until any process changes what it shows.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: An argument is invalid.
        """
        return await self._pages.get(_asked(workspace_id, channel, status, search, page, page_size))

    async def start(
        self, workspace_id: str, campaign_id: str, *, allow_unknown_placeholders: bool = False, actor: str = "library"
    ) -> Campaign:
        """Start a ready campaign: it becomes active, or scheduled when its start is still ahead.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            allow_unknown_placeholders: Start although the text has placeholders without a value or a fallback
                (`CampaignCreated.unknown_placeholders`).
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign.
            WorkspaceUnavailable: The workspace is suspended or closed.
            IllegalTransition: The campaign was started before, or has ended.
            CannotStart: The details name every reason, such as a text that is empty or too long for every contact.
        """
        misfit = await self._misfit(workspace_id, campaign_id)
        operation = partial(
            moves.start,
            allow_unknown_placeholders=allow_unknown_placeholders,
            unsendable_text=misfit,
            caller_id_problems=await self._unlisted(workspace_id, campaign_id),
        )
        return await self._move(operation, workspace_id, campaign_id, actor)

    async def check_start(self, workspace_id: str, campaign_id: str) -> StartCheck:
        """Return how many of a campaign's contacts would fail because their text is empty or too long.

        Too long is over `SmsSettings.max_segments`, footer included. At most 10,000 contacts are checked.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await check_contacts(self._context, workspace_id, campaign_id)

    async def pause(self, workspace_id: str, campaign_id: str, *, actor: str = "library") -> Campaign:
        """Pause a campaign; after this returns, no new message of it is sent."""
        return await self._move(moves.pause, workspace_id, campaign_id, actor)

    async def resume(self, workspace_id: str, campaign_id: str, *, actor: str = "library") -> Campaign:
        """Resume a paused campaign."""
        operation = partial(moves.resume, caller_id_problems=await self._unlisted(workspace_id, campaign_id))
        return await self._move(operation, workspace_id, campaign_id, actor)

    async def cancel(self, workspace_id: str, campaign_id: str, *, actor: str = "library") -> Campaign:
        """Cancel a campaign for good."""
        return await self._move(moves.cancel, workspace_id, campaign_id, actor)

    async def unschedule(self, workspace_id: str, campaign_id: str, *, actor: str = "library") -> Campaign:
        """Take a scheduled campaign back to ready."""
        return await self._move(moves.unschedule, workspace_id, campaign_id, actor)

    async def pause_all(self, workspace_id: str | None = None, *, actor: str = "library") -> Sequence[Campaign]:
        """Pause all active and scheduled campaigns of one workspace, or of all; return the paused ones.

        Raises:
            NotFound: The workspace does not exist.
        """
        clock = self._context.clock

        def operation(tx: Transaction) -> Sequence[Campaign]:
            if workspace_id is not None:
                workspace_of(tx, workspace_id)
            return moves.pause_all(tx, workspace_id, now=clock.now(), actor=actor)

        paused = await self._context.storage.write(operation)
        for campaign in paused:
            self._context.wake(campaign_unit(campaign))
        return paused

    async def update(
        self, workspace_id: str, campaign_id: str, change: CampaignUpdate, *, actor: str = "library"
    ) -> Campaign:
        """Change a campaign that has not started; its status becomes ready or draft by what it then has.

        Raises:
            NotFound: The workspace has no such campaign, flow or agent.
            InvalidRequest: A value is out of its bounds.
            Conflict: The campaign has started.
        """
        changes = validated_fields(change, CampaignUpdate, clearable=_CLEARABLE)
        _check_update(changes, self._context.adapters)
        now = self._context.now()

        def operation(tx: Transaction) -> Campaign:
            before = campaign_of(tx, workspace_id, campaign_id)
            if before.status not in {CampaignStatus.DRAFT, CampaignStatus.READY}:
                raise Conflict(f"A campaign that is {before.status} cannot be changed; only a draft or ready one can.")
            after = attrs.evolve(_changed(tx, before, changes), revision=before.revision + 1, updated_at=now)
            tx.campaigns.update(after)
            record_audit(
                tx, now=now, workspace_id=workspace_id, actor=actor, action="campaign.update", subject=campaign_id
            )
            moves.sync_setup_status(tx, after, now=now, actor=actor)
            return campaign_of(tx, workspace_id, campaign_id)

        return await self._context.storage.write(operation)

    async def iter_recipients(self, workspace_id: str, campaign_id: str) -> AsyncIterator[Recipient]:
        """Iterate over a campaign's recipients by position.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        await self.get(workspace_id, campaign_id)
        after = -1
        while True:
            start = after
            batch = await self._context.storage.read(
                lambda tx, start=start: tx.recipients.page(  # type: ignore[misc]
                    workspace_id, campaign_id, after=start, limit=_BATCH
                )
            )
            for recipient in batch:
                yield recipient
            if len(batch) < _BATCH:
                return
            after = batch[-1].position

    async def get_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Recipient:
        """Return one recipient of a campaign.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            position: Its place in the campaign's list, from 0, as in events.

        Raises:
            NotFound: The workspace has no such campaign, or the campaign no such recipient.
            InvalidRequest: The position is not an integer of at least 0.
        """
        check_integer("position", position, 0, _MAX_POSITION)

        def operation(tx: Transaction) -> Recipient:
            campaign_of(tx, workspace_id, campaign_id)
            found = tx.recipients.get(workspace_id, campaign_id, position)
            if found is None:
                raise NotFound("recipient", str(position))
            return found

        return await self._context.storage.read(operation)

    async def recipients(
        self, workspace_id: str, *, external_id: str, campaign_id: str | None = None, limit: int = 100
    ) -> Sequence[Recipient]:
        """Return the recipients that the application knows by an id, the newest campaign first.

        Args:
            workspace_id: The workspace.
            external_id: The id, as supplied with the contact.
            campaign_id: Of this campaign only; None for all of the workspace.
            limit: The most to return.

        Raises:
            NotFound: There is no such workspace or campaign.
            InvalidRequest: The id is no text of 1 to 255 characters, or the limit is not positive.
        """
        check_name("external_id", external_id, MAX_EXTERNAL_ID)
        check_limit(limit)

        def operation(tx: Transaction) -> Sequence[Recipient]:
            workspace_of(tx, workspace_id)
            if campaign_id is not None:
                campaign_of(tx, workspace_id, campaign_id)
            return tx.recipients.with_external_id(workspace_id, external_id, campaign_id=campaign_id, limit=limit)

        return await self._context.storage.read(operation)

    async def count_recipients(self, workspace_id: str, campaign_id: str) -> Sequence[RecipientCount]:
        """Return how many recipients are in each state for each reason.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await self._context.storage.read(
            lambda tx: tx.recipients.groups(workspace_id, campaign_of(tx, workspace_id, campaign_id).id)
        )

    async def recount(self, workspace_id: str, campaign_id: str) -> Counters:
        """Count all recipients again and return the counters; they equal the campaign's own.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await self._context.storage.read(
            lambda tx: tx.recipients.recount(workspace_id, campaign_of(tx, workspace_id, campaign_id).id)
        )

    async def dispatches(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[Dispatch]:
        """Return the dispatches of one recipient, oldest first.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await self._context.storage.read(
            lambda tx: tx.dispatches.of_recipient(workspace_id, campaign_of(tx, workspace_id, campaign_id).id, position)
        )

    async def contact_history(
        self, workspace_id: str, campaign_id: str, phone: str | None = None, *, external_id: str | None = None
    ) -> Sequence[ContactHistory]:
        """Return what happened to a contact in a campaign, step by step, with reasons and rules.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            phone: The number in any notation; a local one is read in the workspace's default region, an invalid one is
                searched as supplied.
            external_id: The application's own name of the contact, instead of its number.

        Returns:
            A history for each position of the number or id: it can occur twice. A number excluded at creation because
            it was unsubscribed has one history without a `position`.

        Raises:
            NotFound: The workspace has no such campaign, or the number is neither in it nor unsubscribed, or the id is
                not in it.
            InvalidRequest: Not exactly one of both is given, or it is not a string.
        """
        if (phone is None) == (external_id is None):
            raise InvalidRequest.at("phone", "name the contact by a phone number or an external_id, not by both")
        if external_id is not None:
            check_name("external_id", external_id, MAX_EXTERNAL_ID)
            return await self._context.storage.read(
                lambda tx: histories_of_external_id(tx, workspace_id, campaign_id, external_id)
            )
        phone = require_text("phone", phone)
        return await self._context.storage.read(lambda tx: histories(tx, workspace_id, campaign_id, phone))

    async def _misfit(self, workspace_id: str, campaign_id: str) -> ErrorDetail | None:
        """Return why the text can be sent to none of the contacts; None if it can, or if the setup is incomplete."""
        lacks = await self._context.storage.read(
            lambda tx: moves.missing_setup(tx, campaign_of(tx, workspace_id, campaign_id))
        )
        return None if lacks else _reason(await find_unsendable_text(self._context, workspace_id, campaign_id))

    async def _unlisted(self, workspace_id: str, campaign_id: str) -> Sequence[ErrorDetail]:
        return await find_caller_id_problems(self._context, self._vault, workspace_id, campaign_id)

    async def _move(
        self, operation: Callable[..., Campaign], workspace_id: str, campaign_id: str, actor: str
    ) -> Campaign:
        clock = self._context.clock
        campaign: Campaign = await self._context.storage.write(
            lambda tx: operation(tx, workspace_id, campaign_id, now=clock.now(), actor=actor)
        )
        self._context.wake(campaign_unit(campaign))
        return campaign


def _asked(
    workspace_id: str,
    channel: Channel | None,
    status: CampaignStatus | None,
    search: object,
    page: object,
    page_size: object,
) -> CampaignQuery:
    if status is not None and type(status) is not CampaignStatus:
        check_choice("status", status, tuple(CampaignStatus))
        status = CampaignStatus(status)
    if channel is not None:
        check_choice("channel", channel, _CHANNELS)
    if type(page) is not int or page < 1:
        raise InvalidRequest.at("page", "must be an integer of at least 1")
    if type(page_size) is not int or page_size < 1:
        raise InvalidRequest.at("page_size", "must be an integer of at least 1")
    if search is not None and not isinstance(search, str):
        raise InvalidRequest.at("search", f"must be a text, not {type(search).__name__}")
    size = min(page_size, MAX_PAGE_SIZE)
    return CampaignQuery(workspace_id, channel, status, search or None, page, size)


def _reason(found: StartCheck | None) -> ErrorDetail | None:
    if found is None:
        return None
    if found.failures_by_reason.get("over_segment_cap"):
        message = "Its text, with the footer, is over the segment cap (max_segments) for every contact."
        return ErrorDetail("max_segments", message)
    return ErrorDetail("body", "Its text is empty for every contact: its placeholders have no values.")


def _changed(tx: Transaction, before: Campaign, changes: Mapping[str, Any]) -> Campaign:
    workspace_id = before.workspace_id
    flow_id, agent_id = changes.get("flow_id"), changes.get("agent_id")
    if flow_id is not None:
        flow_of(tx, workspace_id, flow_id)
    if agent_id is not None:
        agent_of(tx, workspace_id, agent_id)
    given = dict(changes)
    if given.get("body") is not None:
        given["message_source"] = "custom"
    if flow_id is not None:
        given["message_source"] = "flow"
    if "scheduled_start_at" in given:
        given["schedule_type"] = "immediate" if given["scheduled_start_at"] is None else "scheduled"
    if "from_number" in given:
        given["from_number"] = given["from_number"] or None
    foreign = {"agent_id"} if before.channel == "sms" else _SMS_FIELDS
    wrong = sorted(foreign & given.keys())
    if wrong:
        raise InvalidRequest(
            details=[ErrorDetail(name, f"does not apply to a campaign of channel {before.channel}") for name in wrong]
        )
    after = attrs.evolve(before, **given)
    if not given.keys().isdisjoint(_WHEN):
        check_times(after)
    return after


def _check_update(changes: Mapping[str, Any], adapters: Adapters) -> None:
    if "name" in changes:
        check_name("name", changes["name"], 100)
    if "description" in changes:
        check_description(changes["description"])
    if changes.get("body") is not None and changes.get("flow_id") is not None:
        raise InvalidRequest.at("flow_id", "excludes body: a campaign sends a text or runs a flow")
    if changes.get("body") is not None:
        check_name("body", changes["body"], 1600, minimum=0)
    if changes.get("from_number") is not None:
        check_name("from_number", changes["from_number"], 255, minimum=0)
    if changes.get("carrier") is not None:
        check_provider("carrier", changes["carrier"], "carrier", adapters)
    if "rate_per_minute" in changes:
        check_integer("rate_per_minute", changes["rate_per_minute"], 1, 600)
