"""Single messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from outreach.errors import Conflict, InvalidRequest, NotFound
from outreach.models.carriers import CarrierName
from outreach.models.message import InboundMessage, Message, NewMessage
from outreach.models.states import MessageStatus, WorkspaceMode
from outreach.models.work import Unit
from outreach.models.workspace import Workspace
from outreach.operations import singles
from outreach.operations.accounts import require_account
from outreach.operations.common import require_available, workspace_of
from outreach.operations.requests import Answer
from outreach.policy.phones import is_dialable, normalise
from outreach.policy.segments import count_segments
from outreach.protocols.storage import Transaction
from outreach.services.checks import check_phone, text_problem
from outreach.services.context import ServiceContext
from outreach.services.requests import Claim

MAX_BODY = 1600


class Messages:
    """Single messages of workspaces: POST /sms. They carry no footer (interface, section 4.4)."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def send(
        self,
        workspace_id: str,
        new: NewMessage,
        *,
        claim: Claim | None = None,
        render: Callable[[Message], Answer] | None = None,
        actor: str = "library",
    ) -> Message:
        """Queue a message.

        Args:
            workspace_id: Whose message it is.
            new: What is asked for.
            claim: The idempotency key that the request holds, with `render`.
            render: Makes the answer that is stored under the key.
            actor: Who does it.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The number or the text is not valid.
            RecipientUnsubscribed: The number is on the register for SMS.
            Conflict: No sending number or carrier can be told, or a live workspace has no account at it.
        """
        _check_body(new.body)
        context = self._context
        message_id = context.ids()

        def operation(tx: Transaction) -> Message:
            now = context.now()
            workspace = workspace_of(tx, workspace_id)
            require_available(workspace)
            to = normalise(new.to, workspace.default_region)
            if to is None and is_dialable(new.to):
                # Numbering plans may lag behind: what has the form of E.164 is the carrier's to refuse.
                to = "+" + new.to.removeprefix("+")
            if to is None:
                raise InvalidRequest.at("to", "is no possible phone number; write it like +14155550102")
            sender, carrier = _route(tx, workspace, new)
            require_account(tx, workspace, carrier)
            message = Message(
                id=message_id,
                workspace_id=workspace_id,
                to=to,
                body=new.body,
                segments=count_segments(new.body).segments,
                status=MessageStatus.QUEUED,
                created_at=now,
                sender=sender,
                carrier=carrier,
            )
            singles.create_message(tx, message, now=now)
            if claim is not None and render is not None:
                claim.finish(tx, render(message), context)
            return message

        message = await context.storage.write(operation)
        context.wake(Unit("message", workspace_id, message.id))
        return message

    async def receive(self, workspace_id: str, *, sender: str, to: str, body: str) -> InboundMessage:
        """Take in a message that somebody wrote back; it stops flows at their `stop_if_replied` step.

        Args:
            workspace_id: Whose number was written to.
            sender: Who wrote; normalised to E.164.
            to: Our number.
            body: What was written; empty for a message of media alone.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The sender is no possible number, or the text cannot be stored everywhere.
        """
        problem = text_problem(body)
        if problem is not None:
            raise InvalidRequest.at("body", problem)
        identifier, now = self._context.ids(), self._context.now()

        def operation(tx: Transaction) -> InboundMessage:
            phone = check_phone("sender", sender, workspace_of(tx, workspace_id).default_region)
            message = InboundMessage(
                id=identifier, workspace_id=workspace_id, sender=phone or "", to=to, body=body, received_at=now
            )
            tx.inbound.insert(message)
            return message

        return await self._context.storage.write(operation)

    async def list_inbound(self, workspace_id: str, *, limit: int = 1000) -> Sequence[InboundMessage]:
        """Return the newest messages that people wrote back, newest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return await self._context.storage.read(
            lambda tx: tx.inbound.list(workspace_of(tx, workspace_id).id, limit=limit)
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
        raise Conflict("The workspace has no number to send from. Add one, or name from_number and carrier.")
    if sender is None:
        raise Conflict(f"The workspace has no number of {carrier} to send from. Add one, or name from_number.")
    return sender, carrier
