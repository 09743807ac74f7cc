"""Single messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from copy import deepcopy
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from outreach.core.clock import in_utc
from outreach.errors import Conflict, InvalidRequest
from outreach.ledger.campaigns.transitions import require_account
from outreach.ledger.campaigns.trial_texts import require_open, text_for_contact
from outreach.ledger.common import campaign_of, record_audit, require_available, workspace_of
from outreach.ledger.opt_out import inbound
from outreach.ledger.sending import singles
from outreach.models.base import CarrierName, Page
from outreach.models.fields import Text, check_field, check_value
from outreach.models.message import InboundMessage, Message, NewMessage, NewTestMessage
from outreach.models.metadata import metadata_pair
from outreach.models.reports import ProviderFailure
from outreach.models.states import MessageStatus, WorkspaceMode
from outreach.models.work import IdempotencyKey, WorkUnit
from outreach.models.workspace import Workspace
from outreach.protocols.adapter import InboundMessageEvent
from outreach.rules.numbering import person_key
from outreach.rules.phones import canonical_phone, normalise_single, parse_inbound_sender
from outreach.rules.segments import composed, count_segments
from outreach.services.context import ServiceContext, check_kind, check_provider, require_phone, require_text
from outreach.services.idempotency import Idempotency, IdempotencyGuard, finished
from outreach.services.lists import PageRequest, iterate, moment_cursor
from outreach.services.messaging.failures import message_failure
from outreach.storage.unit_of_work import Transaction

UNANSWERED_FOR: Final = timedelta(days=30)
"""How long a reply is listed as unanswered."""


class Messages:
    """Single messages of workspaces: POST /sms. They carry no footer (docs/interface.md#4.4)."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Idempotency(context)

    async def send(
        self,
        workspace_id: str,
        new: NewMessage,
        *,
        idempotency_key: IdempotencyKey[Message] = None,
        actor: str = "library",
    ) -> Message:
        """Queue a message.

        Args:
            workspace_id: The workspace.
            new: The message.
            idempotency_key: A name for this message, such as `order-42`: for a day, the same key returns this message
                instead of queueing another.
            actor: Who sends it; a person of the console is recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The number or the text is invalid, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
            RecipientUnsubscribed: The number is unsubscribed from SMS.
            Conflict: The sending number or carrier is unclear, or a live workspace has no account at the carrier.
        """
        return await self._keys.model(
            workspace_id,
            "messages.send",
            idempotency_key,
            content=new,
            make=lambda once: self._send(workspace_id, new, actor, once),
            find=lambda tx, message_id: tx.messages.existing(workspace_id, message_id),
        )

    async def _send(self, workspace_id: str, new: NewMessage, actor: str, once: IdempotencyGuard[Message]) -> Message:
        check_kind("new", new, NewMessage)
        body = composed(new.body)
        if new.carrier is not None:
            check_provider("carrier", new.carrier, "carrier", self._context.adapters)
        message_id = self._context.ids()

        def create(tx: Transaction, workspace: Workspace, now: datetime) -> Message:
            to = require_phone("to", canonical_phone(new.to, workspace.default_region))
            from_number, carrier = _route(tx, workspace, new.from_number, new.carrier, to=to)
            require_account(tx, workspace, carrier, self._context.adapters)
            message = Message(
                id=message_id,
                workspace_id=workspace_id,
                to=to,
                body=body,
                segments=count_segments(body).segments,
                status=MessageStatus.QUEUED,
                created_at=now,
                from_number=from_number,
                carrier=carrier,
                external_id=new.external_id,
                metadata=deepcopy(new.metadata),
            )
            singles.create_message(tx, message, now=now)
            singles.note_person(tx, message, "message.send", now=now, actor=actor)
            return message

        return await self._queue(workspace_id, create, once)

    async def _queue(
        self,
        workspace_id: str,
        create: Callable[[Transaction, Workspace, datetime], Message],
        once: IdempotencyGuard[Message],
    ) -> Message:
        """Create a message in an available workspace, and wake what sends it."""
        context = self._context

        def operation(tx: Transaction) -> Message:
            workspace = workspace_of(tx, workspace_id)
            require_available(workspace)
            return finished(tx, create(tx, workspace, context.now()), once)

        message = await context.storage.write_in(workspace_id, operation)
        context.wake(WorkUnit("message", workspace_id, message.id))
        return message

    async def send_test(
        self,
        workspace_id: str,
        campaign_id: str,
        new: NewTestMessage,
        *,
        idempotency_key: IdempotencyKey[Message] = None,
        actor: str = "library",
    ) -> Message:
        """Send what a contact of a campaign would get to a number of one's own.

        It is a single message with the purpose `test`, from the campaign's number: it counts in no campaign, in no
        frequency cap and in no report. The campaign may be in any state.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            new: Whose text to send, and where.
            idempotency_key: A name for this message, such as `order-42`: for a day, the same key returns this message
                instead of queueing another.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign, or the campaign no such contact.
            InvalidRequest: The number is invalid, the campaign has no such message, its text is empty or over the
                segment cap for this contact, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
            RecipientUnsubscribed: `to` is unsubscribed from SMS.
            Conflict: It is a calling campaign, it is outside the hours, the sending number or carrier is unclear, or a
                live workspace has no account at the carrier.
        """
        return await self._keys.model(
            workspace_id,
            "messages.send_test",
            idempotency_key,
            content=[campaign_id, new],
            make=lambda once: self._send_test(workspace_id, campaign_id, new, actor, once),
            find=lambda tx, message_id: tx.messages.existing(workspace_id, message_id),
        )

    async def _send_test(
        self, workspace_id: str, campaign_id: str, new: NewTestMessage, actor: str, once: IdempotencyGuard[Message]
    ) -> Message:
        check_kind("new", new, NewTestMessage)
        message_id = self._context.ids()

        def create(tx: Transaction, workspace: Workspace, now: datetime) -> Message:
            campaign = campaign_of(tx, workspace_id, campaign_id)
            to = require_phone("to", canonical_phone(new.to, workspace.default_region))
            if not new.at_any_hour:
                require_open(workspace, campaign, to, now)
            text = text_for_contact(tx, workspace, campaign, new.contact, new.message)
            from_number, carrier = _route(tx, workspace, campaign.from_number, campaign.carrier)
            require_account(tx, workspace, carrier, self._context.adapters)
            message = Message(
                id=message_id,
                workspace_id=workspace_id,
                to=to,
                body=text.body,
                segments=text.segments,
                status=MessageStatus.QUEUED,
                purpose="test",
                created_at=now,
                from_number=from_number,
                carrier=carrier,
            )
            record_audit(tx, workspace_id, "campaign.test", campaign_id, actor=actor, now=now)
            singles.create_message(tx, message, now=now)
            return message

        return await self._queue(workspace_id, create, once)

    async def receive(
        self,
        workspace_id: str,
        *,
        from_number: str,
        to: str,
        body: str,
        provider: CarrierName | None = None,
        provider_id: str | None = None,
        written_at: datetime | None = None,
        replies_to_keywords: bool = False,
    ) -> InboundMessage | None:
        """Record an inbound message once; return None for one that is known.

        It ends flows at their `stop_if_replied` step. STOP, START and HELP take effect at once and are answered from
        the number that was written to; the rules are in `ledger.opt_out.inbound.receive`.

        Args:
            workspace_id: The workspace that owns the number.
            from_number: The sender; normalised to E.164. A channel may precede it: `whatsapp:+14155550102`.
            to: Our number.
            body: The text; empty for a message with media alone.
            provider: The carrier that delivered it, and sends the answer; None to take the number's.
            provider_id: The carrier's id of the message, which makes it unique.
            written_at: When it was written, by the carrier's clock; None for now.
            replies_to_keywords: Whether the carrier answers keywords itself. Then the engine answers only a STOP that
                the carrier does not know, such as `please stop`, and ignores a START that the carrier does not know.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The sender or the carrier is invalid, the text cannot be stored, or the time has no zone.
        """
        check_value("body", body, Text())
        if provider is not None:
            check_provider("provider", provider, "carrier", self._context.adapters)
        require_text("from_number", from_number)
        require_text("to", to)
        if provider_id is not None and provider is None:
            raise InvalidRequest.at("provider_id", "needs the provider that issued it")
        given: object = written_at
        if given is not None and not (isinstance(given, datetime) and given.tzinfo is not None):
            raise InvalidRequest.at("written_at", "must be a datetime with a time zone")
        context = self._context

        def operation(tx: Transaction) -> InboundMessage | None:
            # The time of the commit, so that a campaign that is loading meanwhile excludes an opt-out.
            now = context.now()
            workspace = workspace_of(tx, workspace_id)
            require_phone("from_number", parse_inbound_sender(from_number, workspace.default_region).phone)
            text = InboundMessageEvent(
                provider_id=provider_id or "",
                from_number=from_number,
                to=to,
                body=body,
                at=in_utc(written_at or now),
            )
            return inbound.receive(
                tx,
                workspace,
                text,
                provider=provider,
                answers_by=provider,
                carrier_start_words=context.adapters.carrier_start_words(provider, to) if replies_to_keywords else None,
                ids=context.ids,
                now=now,
            )

        return await context.storage.write_in(workspace_id, operation)

    async def list(
        self,
        workspace_id: str,
        *,
        external_id: str | None = None,
        metadata: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[Message]:
        """Return a page of single messages, newest first; those of campaigns are `campaigns.list_dispatches`.

        Args:
            workspace_id: The workspace.
            external_id: Only those that the application knows by this id; None for all.
            metadata: Only those with this pair in their metadata, such as `team=7`; None for all.
            after: The `next` of the page before; None for the first page.
            limit: The most items, up to 1,000.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: An argument is invalid.
        """
        check_field(NewMessage, "external_id", external_id)
        if metadata is not None:
            check_value("metadata", metadata, metadata_pair)
        page_request = PageRequest("messages", workspace_id, after=after, limit=limit)
        found = await self._context.storage.read(
            lambda tx: tx.messages.list(
                workspace_of(tx, workspace_id).id,
                external_id=external_id,
                metadata=metadata,
                after=page_request.cursor,
                limit=limit + 1,
            )
        )
        return page_request.page(found, lambda one: one.id)

    def iter_all(
        self, workspace_id: str, *, external_id: str | None = None, metadata: str | None = None
    ) -> AsyncIterator[Message]:
        """Iterate over single messages, newest first; see `list`."""
        return iterate(partial(self.list, workspace_id, external_id=external_id, metadata=metadata))

    async def list_inbound(
        self,
        workspace_id: str,
        *,
        unclear: bool = False,
        unanswered: bool = False,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[InboundMessage]:
        """Return a page of inbound messages, newest first.

        Args:
            workspace_id: The workspace.
            unclear: Only those that a person has to read (`InboundMessage.unclear`).
            unanswered: Only those of the last 30 days that are no keyword and whose sender got no single message since.
            after: The `next` of the page before; None for the first page.
            limit: The most items, up to 1,000.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("inbound messages", workspace_id, after=after, limit=limit)
        # Not by the message there, which the retention may have deleted since.
        begin, since = page_request.moment(), self._context.now() - UNANSWERED_FOR

        def operation(tx: Transaction) -> Sequence[InboundMessage]:
            place = workspace_of(tx, workspace_id).id
            if unanswered:
                return tx.inbound.list_unanswered(place, since=since, unclear=unclear, after=begin, limit=limit + 1)
            return tx.inbound.list(place, unclear=unclear, after=begin, limit=limit + 1)

        found = await self._context.storage.read(operation)
        return page_request.page(found, lambda one: moment_cursor(one.received_at, one.id))

    def iter_inbound(
        self, workspace_id: str, *, unclear: bool = False, unanswered: bool = False
    ) -> AsyncIterator[InboundMessage]:
        """Iterate over inbound messages, newest first; see `list_inbound`."""
        return iterate(partial(self.list_inbound, workspace_id, unclear=unclear, unanswered=unanswered))

    async def get_inbound(self, workspace_id: str, message_id: str) -> InboundMessage:
        """Return an inbound message.

        Raises:
            NotFound: The workspace has no such message.
        """
        return await self._context.storage.read(lambda tx: tx.inbound.existing(workspace_id, message_id))

    async def get(self, workspace_id: str, message_id: str) -> Message:
        """Return a message.

        Raises:
            NotFound: The workspace has no such message.
        """
        return await self._context.storage.read(lambda tx: tx.messages.existing(workspace_id, message_id))

    async def failure(self, message: Message) -> ProviderFailure | None:
        """Return the provider's account of what went wrong with a message; None if nothing did."""
        return await message_failure(self._context, message)


def _route(
    tx: Transaction,
    workspace: Workspace,
    from_number: str | None,
    carrier: CarrierName | None,
    *,
    to: str | None = None,
) -> tuple[str | None, CarrierName]:
    """Return the sending number and carrier: as requested, else from the workspace's numbers.

    Of these the one that the contact wrote to last, so that an answer comes from where the question went; else the
    first one.

    A sandbox needs neither: the simulator sends there, under the name `twilio`.
    """
    numbers = [number for number in tx.numbers.list(workspace.id) if number.carrier is not None]
    sender = from_number if from_number and from_number.strip() else None
    if sender is not None:
        sender = normalise_single(sender, workspace.default_region) or sender
        known = tx.numbers.of_line(workspace.id, sender)
        carrier = carrier or (known.carrier if known else None)
    else:
        fit = [number for number in numbers if carrier in {None, number.carrier}]
        written_to = tx.inbound.from_person(workspace.id, to, limit=1) if to is not None and len(fit) > 1 else ()
        known_to = {person_key(normalise_single(one.to, workspace.default_region) or one.to) for one in written_to}
        chosen = next((number for number in fit if person_key(number.phone) in known_to), next(iter(fit), None))
        sender = chosen.phone if chosen else None
        carrier = carrier or (chosen.carrier if chosen else None)
    if workspace.mode is WorkspaceMode.SANDBOX:
        return sender, carrier or "twilio"
    if carrier is None:
        raise Conflict("The carrier is unclear: add a number with its carrier, or name from_number and carrier.")
    if sender is None:
        raise Conflict(f"The workspace has no number at {carrier} to send from. Add one, or name from_number.")
    return sender, carrier
