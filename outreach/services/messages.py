"""Single messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from outreach.errors import Conflict, InvalidRequest, NotFound
from outreach.models.base import CARRIERS, CarrierName
from outreach.models.failures import ProviderFailure
from outreach.models.http import IdempotentRequest, StoredAnswer
from outreach.models.message import InboundMessage, Message, NewMessage
from outreach.models.states import MessageStatus, WorkspaceMode
from outreach.models.work import WorkUnit
from outreach.models.workspace import Workspace
from outreach.operations.campaigns.setup import require_account
from outreach.operations.common import require_available, workspace_of
from outreach.operations.register import inbound
from outreach.operations.waves import singles
from outreach.policy.phones import canonical_phone, normalise, parse_inbound_sender
from outreach.policy.segments import count_segments
from outreach.policy.texts import text_problem
from outreach.protocols.adapter import InboundMessageEvent
from outreach.providers.registry import carrier_start_words
from outreach.services.context import ServiceContext
from outreach.services.failures import message_failure
from outreach.services.idempotency import Idempotency, IdempotencyGuard
from outreach.services.validation import (
    check_choice,
    check_kind,
    check_limit,
    require_text,
)
from outreach.working_set import Transaction

MAX_BODY = 1600


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
        idempotency_key: str | None = None,
    ) -> Message:
        """Queue a message.

        Args:
            workspace_id: Whose message it is.
            new: What is asked for.
            idempotency_key: Names this one message, such as `order-42`: within a day the same key queues no other one,
                and returns it.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The number or the text is not valid, or the key was used with other content.
            RequestInProgress: The first call with this key still runs.
            RecipientUnsubscribed: The number is on the register for SMS.
            Conflict: No sending number or carrier can be told, or a live workspace has no account at it.
        """
        return await self._keys.model(
            workspace_id,
            "messages.send",
            idempotency_key,
            content=new,
            make=lambda once: self._send(workspace_id, new, once),
            find=lambda tx, message_id: tx.messages.get(workspace_id, message_id),
            kind="message",
        )

    async def send_response(
        self,
        workspace_id: str,
        new: NewMessage,
        *,
        request: IdempotentRequest | None,
        render: Callable[[Message], StoredAnswer],
    ) -> StoredAnswer:
        """Queue a message for an HTTP server, and return what it answers; a key replays the first answer.

        Raises:
            OutreachError: See `send`.
        """
        return await self._keys.answer(
            workspace_id, request, render=render, make=lambda once: self._send(workspace_id, new, once)
        )

    async def _send(self, workspace_id: str, new: NewMessage, once: IdempotencyGuard[Message]) -> Message:
        check_kind("new", new, NewMessage)
        _check_body(new.body)
        require_text("to", new.to)
        if new.from_number is not None:
            require_text("from_number", new.from_number)
        if new.carrier is not None:
            check_choice("carrier", new.carrier, CARRIERS)
        context = self._context
        message_id = context.ids()

        def operation(tx: Transaction) -> Message:
            now = context.now()
            workspace = workspace_of(tx, workspace_id)
            require_available(workspace)
            to = canonical_phone(new.to, workspace.default_region)
            if to is None:
                raise InvalidRequest.at("to", "is no possible phone number; write it like +14155550102")
            from_number, carrier = _route(tx, workspace, new)
            require_account(tx, workspace, carrier)
            message = Message(
                id=message_id,
                workspace_id=workspace_id,
                to=to,
                body=new.body,
                segments=count_segments(new.body).segments,
                status=MessageStatus.QUEUED,
                created_at=now,
                from_number=from_number,
                carrier=carrier,
            )
            singles.create_message(tx, message, now=now)
            once.finish(tx, message)
            return message

        message = await context.storage.write(operation)
        context.wake(WorkUnit("message", workspace_id, message.id))
        return message

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
        """Take in a message that somebody wrote back, once; return None for one that is there already.

        It stops flows at their `stop_if_replied` step. STOP, START and HELP are obeyed at once, and answered from the
        number that was written to; what this means is in `operations.register.inbound.receive`.

        Args:
            workspace_id: Whose number was written to.
            from_number: Who wrote; normalised to E.164. A channel may stand before it: `whatsapp:+14155550102`.
            to: Our number.
            body: What was written; empty for a message of media alone.
            provider: The carrier that brought it, and that answers go by; None leaves that to the number.
            provider_id: The carrier's identifier of the message: it is taken in once.
            written_at: When it was written, by the carrier's clock; None for now.
            replies_to_keywords: Whether the carrier answers keywords by itself: then nothing is answered here, but a
                STOP that is none of the carriers' words, such as `please stop`; and a START that is none of this
                carrier's lifts nothing.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The sender is no possible number, the text cannot be stored everywhere, the carrier is
                none, or the time has no zone.
        """
        problem = text_problem(body)
        if problem is not None:
            raise InvalidRequest.at("body", problem)
        if provider is not None:
            check_choice("provider", provider, CARRIERS)
        require_text("from_number", from_number)
        require_text("to", to)
        if provider_id is not None and provider is None:
            raise InvalidRequest.at("provider_id", "needs the provider that it is an identifier of")
        given: object = written_at
        if given is not None and not (isinstance(given, datetime) and given.tzinfo is not None):
            raise InvalidRequest.at("written_at", "must be a datetime with a time zone")
        context = self._context

        def operation(tx: Transaction) -> InboundMessage | None:
            # The time of the commit: a campaign that began to load while this waited drops who opted out meanwhile.
            now = context.now()
            workspace = workspace_of(tx, workspace_id)
            if parse_inbound_sender(from_number, workspace.default_region).phone is None:
                raise InvalidRequest.at("from_number", "is no possible phone number; write it like +14155550102")
            text = InboundMessageEvent(
                provider_id=provider_id or "",
                from_number=from_number,
                to=to,
                body=body,
                at=written_at or now,
            )
            return inbound.receive(
                tx,
                workspace,
                text,
                provider=provider,
                carrier_start_words=carrier_start_words(provider, to) if replies_to_keywords else None,
                ids=context.ids,
                now=now,
            )

        return await context.storage.write(operation)

    async def list_inbound(
        self, workspace_id: str, *, unclear: bool = False, limit: int = 1000
    ) -> Sequence[InboundMessage]:
        """Return the newest messages that people wrote back, newest first.

        Args:
            workspace_id: Whose messages.
            unclear: Only those that a person has to read (`InboundMessage.unclear`).
            limit: How many at the most.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The limit is none.
        """
        check_limit(limit)
        return await self._context.storage.read(
            lambda tx: tx.inbound.list(workspace_of(tx, workspace_id).id, unclear=unclear, limit=limit)
        )

    async def get(self, workspace_id: str, message_id: str) -> Message:
        """Return a message.

        Raises:
            NotFound: The workspace has no such message.
        """
        message = await self._context.storage.read(lambda tx: tx.messages.get(workspace_id, message_id))
        if message is None:
            raise NotFound("message", message_id)
        return message

    async def failure(self, message: Message) -> ProviderFailure | None:
        """Return what went wrong with a message, as its provider said it; None where nothing did."""
        return await message_failure(self._context, message)


def _check_body(body: str) -> None:
    problem = text_problem(body)
    if problem is None and not body.strip():
        problem = "must not be blank"
    if problem is None and len(body) > MAX_BODY:
        problem = f"must have at most {MAX_BODY} characters, not {len(body)}"
    if problem is not None:
        raise InvalidRequest.at("body", problem)


def _route(tx: Transaction, workspace: Workspace, new: NewMessage) -> tuple[str | None, CarrierName]:
    """Choose sending number and carrier: those named, else the workspace's numbers tell.

    A sandbox may send without either: everything goes to the simulator there, under the name `twilio`.
    """
    numbers = [number for number in tx.numbers.list(workspace.id) if number.carrier is not None]
    sender = new.from_number or None
    if sender is not None:
        sender = normalise(sender, workspace.default_region) or sender
        known = tx.numbers.by_phone(workspace.id, sender)
        carrier = new.carrier or (known.carrier if known else None)
    else:
        chosen = next((n for n in numbers if new.carrier in {None, n.carrier}), None)
        sender = chosen.phone if chosen else None
        carrier = new.carrier or (chosen.carrier if chosen else None)
    if workspace.mode is WorkspaceMode.SANDBOX:
        return sender, carrier or "twilio"
    if carrier is None:
        raise Conflict(
            "Nothing tells which carrier is to send it: add a number with its carrier, or name from_number and carrier."
        )
    if sender is None:
        raise Conflict(f"The workspace has no number of {carrier} to send from. Add one, or name from_number.")
    return sender, carrier
