"""Call records and single messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from outreach.models.call import Call
from outreach.models.message import InboundMessage, Keyword, Message, ReplyPurpose
from outreach.protocols.storage import AlreadyThere
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.owned import OwnedRows, by_age
from outreach.storage.memory.table import Place, Table


class Calls:
    """Call records."""

    def __init__(self, journal: Journal) -> None:
        self._rows = OwnedRows[Call](journal, "call")
        self._by_provider_id = self._rows.index(_by_provider_id)
        self._open = self._rows.index(_open)

    def get(self, workspace_id: str, call_id: str) -> Call | None:
        """Return a call."""
        return _copied(self._rows.within(workspace_id, call_id))

    def find(self, call_id: str) -> Call | None:
        """Return a call of whatever workspace."""
        return _copied(self._rows.get(call_id))

    def by_provider_id(self, workspace_id: str, provider_call_id: str) -> Call | None:
        """Return the newest call with this identifier of a provider."""
        call_id = self._by_provider_id.last((workspace_id, provider_call_id))
        return None if call_id is None else self.find(call_id)

    def insert(self, call: Call) -> None:
        """Write a new call."""
        self._rows.insert(call.id, _detached(call))

    def update(self, call: Call) -> None:
        """Write over a call."""
        self._rows.overwrite(_detached(call))

    def open_between(self, workspace_id: str, agent_id: str, to: str) -> Call | None:
        """Return the oldest open call of this agent to this number."""
        call_id = self._open.first((workspace_id, agent_id, to))
        return None if call_id is None else self.find(call_id)


def _by_provider_id(row: Call) -> Place | None:
    return None if row.provider_call_id is None else ((row.workspace_id, row.provider_call_id), by_age(row))


def _open(row: Call) -> Place | None:
    return ((row.workspace_id, row.agent_id, row.to), by_age(row)) if row.is_open else None


def _detached(call: Call) -> Call:
    """Return a call whose variables nobody else can change."""
    return attrs.evolve(call, variables=dict(call.variables))


def _copied(call: Call | None) -> Call | None:
    return None if call is None else _detached(call)


class Messages:
    """Single messages."""

    def __init__(self, journal: Journal) -> None:
        self._rows = OwnedRows[Message](journal, "message")
        self._replies = self._rows.index(_reply)

    def get(self, workspace_id: str, message_id: str) -> Message | None:
        """Return a message."""
        return self._rows.within(workspace_id, message_id)

    def insert(self, message: Message) -> None:
        """Write a new message."""
        self._rows.insert(message.id, message)

    def update(self, message: Message) -> None:
        """Write over a message."""
        self._rows.overwrite(message)

    def last_reply(self, workspace_id: str, phone: str, purpose: ReplyPurpose) -> datetime | None:
        """Return when the newest answer of this purpose was made for a number."""
        newest = self._replies.last((workspace_id, phone, purpose))
        message = None if newest is None else self._rows.get(newest)
        return None if message is None else message.created_at


def _reply(row: Message) -> Place | None:
    return None if row.purpose == "message" else ((row.workspace_id, row.to, row.purpose), by_age(row))


class Inbound:
    """Messages that people wrote back."""

    def __init__(self, journal: Journal) -> None:
        self._rows = Table[str, InboundMessage](journal, "inbound message")
        self._by_time = self._rows.index(lambda row: (row.workspace_id, (row.received_at, row.id)))
        self._by_sender = self._rows.index(lambda row: ((row.workspace_id, row.sender), (row.received_at, row.id)))
        self._by_provider_id = self._rows.index(_inbound_provider_id)
        self._by_keyword = self._rows.index(_inbound_keyword)
        self._unclear = self._rows.index(
            lambda row: (row.workspace_id, (row.received_at, row.id)) if row.unclear else None
        )

    def insert(self, message: InboundMessage) -> None:
        """Write a message."""
        place = _inbound_provider_id(message)
        if place is not None and place[0] in self._by_provider_id:
            raise AlreadyThere("The workspace has this message of its provider already.")
        self._rows.insert(message.id, message)

    def last_keyword(self, workspace_id: str, phone: str, keyword: Keyword) -> datetime | None:
        """Return when a number last wrote a keyword."""
        newest = self._by_keyword.last((workspace_id, phone, keyword))
        message = None if newest is None else self._rows.get(newest)
        return None if message is None else message.written_at

    def list(self, workspace_id: str, *, unclear: bool = False, limit: int = 1000) -> Sequence[InboundMessage]:
        """Return the newest messages, or those that are unclear, newest first."""
        index = self._unclear if unclear else self._by_time
        return self._rows.rows(index.keys(workspace_id))[::-1][:limit]

    def replied_since(self, workspace_id: str, phone: str, since: datetime) -> bool:
        """Return whether a number has written at or after a moment."""
        newest = self._by_sender.last((workspace_id, phone))
        message = None if newest is None else self._rows.get(newest)
        return message is not None and message.received_at >= since


def _inbound_provider_id(row: InboundMessage) -> Place | None:
    if row.provider is None or row.provider_id is None:
        return None
    return (row.workspace_id, row.provider, row.provider_id), ()


def _inbound_keyword(row: InboundMessage) -> Place | None:
    group = (row.workspace_id, row.sender, row.keyword)
    return None if row.keyword is None else (group, (row.written_at, row.id))
