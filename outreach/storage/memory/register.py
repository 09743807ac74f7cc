"""Settings of a workspace, and the unsubscribe register."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Literal

from outreach.models.carriers import Channel
from outreach.models.settings import CallSettings, ReplySettings, SmsSettings
from outreach.models.unsubscribe import HELD, Unsubscribe
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.table import Table


class Settings:
    """SMS settings."""

    def __init__(self, journal: Journal) -> None:
        self._rows = Table[str, SmsSettings](journal, "workspace with settings")

    def get(self, workspace_id: str) -> SmsSettings | None:
        """Return the settings; None before the first change."""
        return self._rows.get(workspace_id)

    def put(self, workspace_id: str, settings: SmsSettings) -> None:
        """Write the settings."""
        self._rows.put(workspace_id, settings)


class CallSettingsTable:
    """Settings of calling campaigns."""

    def __init__(self, journal: Journal) -> None:
        self._rows = Table[str, CallSettings](journal, "workspace with call settings")

    def get(self, workspace_id: str) -> CallSettings | None:
        """Return the settings; None before the first change."""
        return self._rows.get(workspace_id)

    def put(self, workspace_id: str, settings: CallSettings) -> None:
        """Write the settings."""
        self._rows.put(workspace_id, settings)


class ReplySettingsTable:
    """How keywords are answered."""

    def __init__(self, journal: Journal) -> None:
        self._rows = Table[str, ReplySettings](journal, "workspace with reply settings")

    def get(self, workspace_id: str) -> ReplySettings | None:
        """Return the settings; None before the first change."""
        return self._rows.get(workspace_id)

    def put(self, workspace_id: str, settings: ReplySettings) -> None:
        """Write the settings."""
        self._rows.put(workspace_id, settings)


class Register:
    """The unsubscribe register."""

    def __init__(self, journal: Journal) -> None:
        self._rows = Table[tuple[str, str], Unsubscribe](journal, "register entry")
        self._by_phone = self._rows.index(lambda row: (row.workspace_id, (row.phone,)))
        self._by_time = self._rows.index(lambda row: (row.workspace_id, (row.created_at, row.phone)))

    def get(self, workspace_id: str, phone: str) -> Unsubscribe | None:
        """Return the entry of a number."""
        return self._rows.get((workspace_id, phone))

    def put(self, entry: Unsubscribe) -> None:
        """Write an entry, in place of the one that this number has."""
        self._rows.put((entry.workspace_id, entry.phone), entry)

    def delete(self, workspace_id: str, phone: str) -> bool:
        """Remove a number; return whether it was there."""
        if (workspace_id, phone) not in self._rows:
            return False
        self._rows.delete((workspace_id, phone))
        return True

    def list(self, workspace_id: str, *, after: str = "", limit: int = 1000) -> Sequence[Unsubscribe]:
        """Return entries in the order of their numbers, those greater than `after`, at most `limit`."""
        return self._rows.rows(self._by_phone.keys(workspace_id, after=(after,), limit=limit))

    def stopped(self, workspace_id: str, channel: Channel, phones: Collection[str]) -> frozenset[str]:
        """Return those of the numbers that must not be reached by this channel."""
        entries = ((phone, self._rows.get((workspace_id, phone))) for phone in phones)
        return frozenset(phone for phone, entry in entries if entry is not None and entry.stops(channel))

    def standing(
        self, workspace_id: str, channel: Channel, phones: Collection[str]
    ) -> Mapping[str, Literal["stopped", "held"]]:
        """Return what stands against numbers: those that it stops, and those that are held back."""
        entries = (self._rows.get((workspace_id, phone)) for phone in phones)
        found = [entry for entry in entries if entry is not None and (entry.stops(channel) or entry.scope == HELD)]
        return {entry.phone: "held" if entry.scope == HELD else "stopped" for entry in found}

    def stopped_since(self, workspace_id: str, channel: Channel, since: datetime) -> Sequence[str]:
        """Return the numbers that came on at or after `since` and must not be reached by this channel."""
        # A tuple that ends early sorts before every longer one that begins the same.
        entries = self._rows.rows(self._by_time.keys(workspace_id, after=(since,)))
        return [entry.phone for entry in entries if entry.stops(channel)]
