"""What people write to our numbers, taken in."""

from __future__ import annotations

from datetime import datetime

from outreach.ids import IdSource
from outreach.models.message import InboundMessage
from outreach.models.workspace import Workspace
from outreach.protocols.adapter import InboundText
from outreach.protocols.storage import Transaction


def receive(
    tx: Transaction,
    workspace: Workspace,
    text: InboundText,
    *,
    provider: str,  # noqa: ARG001
    answers_keywords: bool,  # noqa: ARG001
    ids: IdSource,
    now: datetime,
) -> InboundMessage | None:
    """Take in a message; return it, or None when it has come before."""
    message = InboundMessage(
        id=ids(), workspace_id=workspace.id, sender=text.sender, to=text.to, body=text.body, received_at=now
    )
    tx.inbound.insert(message)
    return message
