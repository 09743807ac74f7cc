"""Call records and single messages."""

from __future__ import annotations

import attrs

from outreach.models.call import Call
from outreach.models.message import Message
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.owned import OwnedRows, by_age
from outreach.storage.memory.table import Place


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

    def get(self, workspace_id: str, message_id: str) -> Message | None:
        """Return a message."""
        return self._rows.within(workspace_id, message_id)

    def insert(self, message: Message) -> None:
        """Write a new message."""
        self._rows.insert(message.id, message)

    def update(self, message: Message) -> None:
        """Write over a message."""
        self._rows.overwrite(message)
