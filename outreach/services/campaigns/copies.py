"""New campaigns from earlier ones: the same again, and to those who were not reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Protocol

import attrs

from outreach.errors import Conflict, InvalidRequest
from outreach.ledger.common import campaign_of
from outreach.models.audience import LeaveOut
from outreach.models.campaign import (
    Campaign,
    CampaignCreated,
    FollowUpCreated,
    NewCallCampaign,
    NewFollowUp,
    NewRecipient,
    NewSmsCampaign,
    PreparedRecipient,
    Recipient,
)
from outreach.models.fields import check_field
from outreach.models.states import OPEN_RECIPIENT_STATUSES, DispatchState, MessageStatus, RecipientStatus
from outreach.models.work import IdempotencyKey
from outreach.rules.explanations import ended_reasons
from outreach.rules.phones import is_pseudonym
from outreach.rules.us_places import as_address
from outreach.services.campaigns.contacts import prepare_recipient
from outreach.services.campaigns.loading import CampaignCreation, stored_campaign
from outreach.services.context import ServiceContext, check_kind
from outreach.services.idempotency import Idempotency, IdempotencyGuard
from outreach.storage.unit_of_work import Transaction

_BATCH: Final = 500
_MAX_NAME: Final = 100
_SPOKEN_TO: Final = frozenset({"positive", "negative"})
_NOT_COPIED: Final = frozenset({"schedule_type", "scheduled_start_at", "scheduled_expires_at", "external_id"})
_KEPT: Final = tuple(name for name in attrs.fields_dict(NewRecipient) if name in attrs.fields_dict(Recipient))
"""The fields of a supplied contact that a stored one has as they are."""

_ENDED: Final = tuple(status.value for status in RecipientStatus if status not in OPEN_RECIPIENT_STATUSES)


class CampaignCopies:
    """Campaigns made from earlier ones."""

    def __init__(self, context: ServiceContext, creation: CampaignCreation) -> None:
        self._context = context
        self._creation = creation
        self._keys = Idempotency(context)

    @property
    def is_closing(self) -> bool:
        """Whether the engine is being closed."""
        return self._creation.is_closing

    async def clone(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        name: str | None = None,
        leave_out: LeaveOut | None = None,
        idempotency_key: IdempotencyKey[CampaignCreated] = None,
        actor: str = "library",
    ) -> CampaignCreated:
        """Create a campaign like an earlier one, with all its contacts, without starting it.

        Its start and expiry are not copied. Contacts unsubscribed since are left out, as in every new campaign.

        Args:
            workspace_id: The workspace.
            campaign_id: The earlier campaign, in any state.
            name: 1 to 100 characters; None for the earlier name with "(copy)".
            leave_out: Whom to leave out, as in `create_sms`.
            idempotency_key: A name for this copy, such as `order-42`: for a day, the same key returns this campaign
                instead of a new one.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign, or its agent or trunk is gone.
            Conflict: Its contacts were erased.
            InvalidRequest: The name is invalid, its flow is gone, every contact is opted out or left out, or the key
                was used with other content.
            RequestInProgress: The first call with this key is still running.
        """

        async def recall(stored: bytes) -> CampaignCreated:
            return (await self._creation.recall(workspace_id, stored))[0]

        return await self._keys.once(
            workspace_id,
            "campaigns.clone",
            idempotency_key,
            content=[campaign_id, name] if leave_out is None else [campaign_id, name, leave_out],
            make=partial(self._clone, workspace_id, campaign_id, name, leave_out, actor),
            remember=stored_campaign,
            recall=recall,
        )

    async def follow_up(
        self,
        workspace_id: str,
        campaign_id: str,
        new: NewFollowUp,
        *,
        idempotency_key: IdempotencyKey[FollowUpCreated] = None,
        actor: str = "library",
    ) -> FollowUpCreated:
        """Create a campaign of those contacts of an earlier one who had given results, without starting it.

        It leaves out contacts that opted out, replied or were reached, and those that `new.leave_out` names. A contact
        was reached if a message to it did not fail, or if it spoke in a call. Numbers on the unsubscribe register are
        never loaded, whatever is included.

        Args:
            workspace_id: The workspace.
            campaign_id: The earlier campaign; it may be running.
            new: Which contacts to take, and the new campaign's name and text.
            idempotency_key: A name for this follow-up, such as `order-42`: for a day, the same key returns this
                campaign instead of a new one.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign, or its agent or trunk is gone.
            Conflict: Its contacts were erased, or nobody with these results is left.
            InvalidRequest: A result or name is unknown, the flow is gone, a calling campaign got a text, `leave_out`
                leaves everybody out, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        check_kind("new", new, NewFollowUp)
        # Neither their order nor a repetition makes it another follow-up.
        wanted, included = sorted(_known_results(new.results)), sorted(set(new.include))
        content: list[object] = [campaign_id, wanted, included, new.name, new.body]
        if new.leave_out is not None:
            content.append(new.leave_out)

        def remember(made: FollowUpCreated) -> bytes:
            return stored_campaign(made.created, selected=made.selected, left_out=dict(made.left_out))

        async def recall(stored: bytes) -> FollowUpCreated:
            created, more = await self._creation.recall(workspace_id, stored)
            return FollowUpCreated(created=created, selected=more["selected"], left_out=more["left_out"])

        return await self._keys.once(
            workspace_id,
            "campaigns.follow_up",
            idempotency_key,
            content=content,
            make=partial(self._follow_up, workspace_id, campaign_id, new, actor),
            remember=remember,
            recall=recall,
        )

    async def make_run(
        self,
        workspace_id: str,
        template_id: str,
        audience_id: str,
        *,
        name: str,
        starts_at: datetime | None,
        chosen: ContactChoice,
        actor: str,
        once: IdempotencyGuard[CampaignCreated],
    ) -> CampaignCreated:
        """Create a campaign like one of the workspace, with the contacts of that one or another one.

        Args:
            workspace_id: The workspace.
            template_id: The campaign that it is like.
            audience_id: The campaign whose contacts it gets.
            name: Its name.
            starts_at: When it is to start; None for at once.
            chosen: Chooses the contacts.
            actor: Recorded in the audit trail.
            once: What is written with it.

        Raises:
            OutreachError: See `clone`.
        """
        template = await self._source(workspace_id, template_id)
        source = template if audience_id == template_id else await self._source(workspace_id, audience_id)
        given: dict[str, Any] = {"stay_open": False}
        if starts_at is not None:
            given |= {"schedule_type": "scheduled", "scheduled_start_at": starts_at}
        contacts = self._contacts(source, chosen, keeps_caller=source is template)
        return await self._copy(template, name, None, None, contacts, actor, once, given)

    async def _clone(
        self,
        workspace_id: str,
        campaign_id: str,
        name: str | None,
        leave_out: LeaveOut | None,
        actor: str,
        once: IdempotencyGuard[CampaignCreated],
    ) -> CampaignCreated:
        campaign = await self._source(workspace_id, campaign_id)
        named = _named(name, campaign, "(copy)")
        return await self._copy(campaign, named, None, leave_out, self._contacts(campaign), actor, once)

    async def _follow_up(
        self,
        workspace_id: str,
        campaign_id: str,
        new: NewFollowUp,
        actor: str,
        once: IdempotencyGuard[FollowUpCreated],
    ) -> FollowUpCreated:
        check_kind("new", new, NewFollowUp)
        wanted, included = _known_results(new.results), frozenset(new.include)
        campaign = await self._source(workspace_id, campaign_id)
        if new.body is not None and campaign.channel != "sms":
            raise InvalidRequest.at("body", "does not apply to a campaign of channel call")
        left_out: Counter[str] = Counter()
        selection = _Selection(wanted, included, left_out)
        taken = Counter[str]()
        contacts = self._contacts(campaign, selection, taken)

        def whole(created: CampaignCreated) -> FollowUpCreated:
            selected = taken["contacts"] + left_out.total()
            return FollowUpCreated(created=created, selected=selected, left_out=dict(left_out))

        guard = _FollowUpGuard(once, whole)
        name = _named(new.name, campaign, "(follow-up)")
        try:
            created = await self._copy(campaign, name, new.body, new.leave_out, contacts, actor, guard)
        except InvalidRequest as error:
            # A text that is too long, say, is not for lack of contacts.
            if taken["contacts"] or any(detail.path != "recipients" for detail in error.details):
                raise
            raise Conflict(_no_contacts_message(wanted, left_out)) from None
        return whole(created)

    async def _source(self, workspace_id: str, campaign_id: str) -> Campaign:
        campaign = await self._context.storage.read(lambda tx: campaign_of(tx, workspace_id, campaign_id))
        if campaign.erased_at is not None:
            raise Conflict("The contacts of this campaign were erased: there is nobody to contact again.")
        return campaign

    async def _copy(
        self,
        campaign: Campaign,
        name: str,
        body: str | None,
        leave_out: LeaveOut | None,
        contacts: AsyncIterator[NewRecipient | PreparedRecipient],
        actor: str,
        once: IdempotencyGuard[CampaignCreated],
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> CampaignCreated:
        workspace_id = campaign.workspace_id
        audience = self._creation.audience(workspace_id, leave_out, campaign.id)
        if campaign.channel == "call":
            calls = NewCallCampaign(**_fields(campaign, NewCallCampaign) | {"name": name, **more})
            return await self._creation.create(workspace_id, calls, audience, actor, contacts, once)
        given = _fields(campaign, NewSmsCampaign) | {"name": name, **more}
        if body is not None:
            given |= {"body": body, "message_source": "custom"}
        if given["message_source"] == "custom":
            # A flow that does not drive it may be gone.
            given |= {"body": given["body"] or "", "flow_id": None}
        return await self._creation.create(workspace_id, NewSmsCampaign(**given), audience, actor, contacts, once)

    async def _contacts(
        self,
        campaign: Campaign,
        selection: ContactChoice | None = None,
        taken: Counter[str] | None = None,
        *,
        keeps_caller: bool = True,
    ) -> AsyncIterator[NewRecipient | PreparedRecipient]:
        """Iterate over a campaign's contacts, or over those of a selection.

        With `keeps_caller` a contact goes on hearing from the number that it knows.
        """
        after = -1
        while True:

            def operation(tx: Transaction, after: int = after) -> tuple[Sequence[Recipient], int | None]:
                rows = tx.recipients.page(campaign.workspace_id, campaign.id, after=after, limit=_BATCH)
                chosen = rows if selection is None else selection.of(tx, campaign, rows)
                return chosen, rows[-1].position if len(rows) == _BATCH else None

            found, last = await self._context.storage.read_ledger(campaign.workspace_id, campaign.id, operation)
            for recipient in found:
                if is_pseudonym(recipient.phone):
                    # The person was erased: only the figures count this contact.
                    continue
                if taken is not None:
                    taken["contacts"] += 1
                yield _contact(recipient, keeps_caller=keeps_caller and campaign.channel == "sms")
            if last is None:
                return
            after = last


class ContactChoice(Protocol):
    """Chooses contacts of a campaign."""

    def of(self, tx: Transaction, campaign: Campaign, rows: Sequence[Recipient]) -> Sequence[Recipient]:
        """Return those of some contacts that are taken; called once for each batch."""
        ...


class _Selection:
    """Decides which contacts are followed up.

    Args:
        wanted: The results.
        include: Whom not to leave out.
        left_out: Counts the contacts that are left out.
    """

    def __init__(self, wanted: frozenset[str], include: frozenset[str], left_out: Counter[str]) -> None:
        self._wanted = wanted
        self._include = include
        self._left_out = left_out

    def of(self, tx: Transaction, campaign: Campaign, rows: Sequence[Recipient]) -> Sequence[Recipient]:
        """Return those of a campaign's contacts who are followed up."""
        ended = [
            row for row in rows if not row.is_open and not self._wanted.isdisjoint({row.status.value, row.reason or ""})
        ]
        # A duplicate has no result before the one whose turn counts.
        found = [row for row in ended if row.reason != "duplicate" or not _is_open_elsewhere(tx, campaign, row)]
        phones = {row.phone for row in found if row.phone is not None}
        workspace_id = campaign.workspace_id
        since = campaign.started_at or campaign.created_at
        causes: dict[str, Collection[str]] = {
            "opted_out": tx.register.stopped(workspace_id, campaign.channel, phones),
            "replied": tx.inbound.senders_among(workspace_id, phones, since=since),
            "reached": _reached(tx, campaign, found),
        }
        chosen = []
        for row in found:
            cause = next(
                (
                    cause
                    for cause, numbers in causes.items()
                    if cause not in self._include
                    and (row.phone in numbers or (cause == "opted_out" and row.reason == "opted_out"))
                ),
                None,
            )
            if cause is None:
                chosen.append(row)
            else:
                self._left_out[cause] += 1
        return chosen


class _FollowUpGuard(IdempotencyGuard[CampaignCreated]):
    """The guard of something whose campaign is a part of it."""

    def __init__(
        self, once: IdempotencyGuard[FollowUpCreated], whole: Callable[[CampaignCreated], FollowUpCreated]
    ) -> None:
        self._once = once
        self._whole = whole

    def keep(self, tx: Transaction) -> None:
        self._once.keep(tx)

    def finish(self, tx: Transaction, made: CampaignCreated, *, settled: bool = True) -> None:
        self._once.finish(tx, self._whole(made), settled=settled)


def _reached(tx: Transaction, campaign: Campaign, rows: Sequence[Recipient]) -> frozenset[str]:
    """Return the numbers that this campaign has reached, at whatever position."""
    workspace_id, campaign_id = campaign.workspace_id, campaign.id
    places = {row.position: row.phone for row in rows if row.phone is not None}
    for row in rows:
        if row.reason == "duplicate" and row.phone is not None:
            others = tx.recipients.by_phone(workspace_id, campaign_id, row.phone)
            places |= {other.position: row.phone for other in others}
    tx.dispatches.prefetch_of_recipients((workspace_id, campaign_id, position) for position in places)
    return frozenset(phone for position, phone in places.items() if _was_reached(tx, campaign, position))


def _is_open_elsewhere(tx: Transaction, campaign: Campaign, row: Recipient) -> bool:
    """Return whether a contact's number is open at another position of its campaign."""
    if row.phone is None:
        return False
    return any(other.is_open for other in tx.recipients.by_phone(campaign.workspace_id, campaign.id, row.phone))


def _was_reached(tx: Transaction, campaign: Campaign, position: int) -> bool:
    for dispatch in tx.dispatches.of_recipient(campaign.workspace_id, campaign.id, position):
        if dispatch.state is not DispatchState.ACCEPTED:
            continue
        if dispatch.call_id is not None:
            call = tx.calls.get(campaign.workspace_id, dispatch.call_id)
            if call is not None and call.outcome in _SPOKEN_TO:
                return True
        elif dispatch.report not in {MessageStatus.FAILED, MessageStatus.CANCELED}:
            return True
    return False


def _contact(recipient: Recipient, *, keeps_caller: bool) -> NewRecipient | PreparedRecipient:
    given: dict[str, Any] = {name: getattr(recipient, name) for name in _KEPT}
    if recipient.us_place is not None:
        given |= as_address(recipient.us_place)
    # What was read in the workspace's region then is the same number now.
    contact = NewRecipient(**given | {"phone_number": recipient.phone or recipient.phone_number})
    if not keeps_caller or recipient.caller_id is None:
        return contact
    return prepare_recipient(contact, None)._replace(caller_id=recipient.caller_id)


def _fields(campaign: Campaign, kind: type) -> dict[str, Any]:
    """Return the fields of a new campaign like this one."""
    return {field.name: getattr(campaign, field.name) for field in attrs.fields(kind) if field.name not in _NOT_COPIED}


def _named(name: str | None, campaign: Campaign, addition: str) -> str:
    if name is not None:
        checked: str = check_field(NewFollowUp, "name", name)
        return checked
    return f"{campaign.name[: _MAX_NAME - len(addition) - 1]} {addition}"


def _known_results(results: Sequence[str]) -> frozenset[str]:
    known = {*_ENDED, *ended_reasons()}
    for index, one in enumerate(results):
        if one not in known:
            raise InvalidRequest.at(
                f"results[{index}]",
                f"{one[:40]!r} is no result; use a state ({', '.join(_ENDED)}) or a reason such as no_answer",
            )
    return frozenset(results)


def _no_contacts_message(wanted: frozenset[str], left_out: Counter[str]) -> str:
    if not left_out:
        return f"Nobody has the result {' or '.join(sorted(wanted))}."
    parts = ", ".join(f"{count} {cause.replace('_', ' ')}" for cause, count in left_out.items())
    return f"Everybody with these results is left out: {parts}. Include them to contact them all the same."
