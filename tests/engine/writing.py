"""People who write to us, for tests of keywords."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import Any, Final

import attrs

from outreach.ledger.common import workspace_of
from outreach.ledger.opt_out import inbound
from outreach.models.message import InboundMessage, Message
from outreach.models.unsubscribe import Unsubscribe
from outreach.protocols.adapter import InboundMessageEvent
from outreach.protocols.storage import Storage
from outreach.providers.registry import Adapters
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, new_id
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE

PERSON: Final = "+14155550123"
OURS: Final = "+14155550199"

_numbers = itertools.count(1)


def make_text(body: str, **changes: Any) -> InboundMessageEvent:
    """Return a message of one person, with an identifier of its own."""
    text = InboundMessageEvent(provider_id=f"SM{next(_numbers)}", from_number=PERSON, to=OURS, body=body, at=NOW)
    return attrs.evolve(text, **changes)


def take_in(
    tx: Transaction, text: InboundMessageEvent, *, now: datetime = NOW, workspace_id: str = THIS_WORKSPACE, **how: Any
) -> InboundMessage | None:
    """Receive a message of twilio, which answers nothing by itself."""
    how = {"provider": "twilio", "carrier_start_words": None, **how}
    how["answers_by"] = how["provider"] if Adapters().kind(how["provider"]) == "carrier" else None
    return inbound.receive(tx, workspace_of(tx, workspace_id), text, ids=new_id, now=now, **how)


async def write(storage: Storage, body: str, *, now: datetime = NOW, how: Any = None, **changes: Any) -> Any:
    """Have somebody write at a moment, and receive it then."""
    text = make_text(body, **{"at": now, **changes})
    return await storage.write(lambda tx: take_in(tx, text, now=now, **(how or {})))


async def entry(storage: Storage, phone: str = PERSON, workspace_id: str = THIS_WORKSPACE) -> Unsubscribe | None:
    """Return what the register has of a number."""
    return await storage.read(lambda tx: tx.register.get(workspace_id, phone))


def messages_of(tx: Transaction) -> list[Message]:
    """Return every single message, in the order in which they were queued."""
    units = [work.unit for work in tx.work.since(0) if work.unit.kind == "message"]
    found = [tx.messages.get(unit.workspace_id, unit.id) for unit in units]
    return sorted((message for message in found if message is not None), key=lambda message: message.id)


async def answers(storage: Storage) -> list[Message]:
    """Return what was answered."""
    return [message for message in await storage.read(messages_of) if message.purpose != "message"]
