"""Accounts at providers, and what these called back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from outreach.models.account import Account, AccountHold, CallbackRecord
from outreach.protocols.storage import AlreadyThere
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.owned import OwnedRows
from outreach.storage.memory.table import Order, Place, Table


class Accounts:
    """Accounts at carriers and voice providers."""

    def __init__(self, journal: Journal) -> None:
        self._rows = OwnedRows[Account](journal, "account")
        self._by_provider = self._rows.index(lambda row: ((row.workspace_id, row.provider), ()))

    def get(self, workspace_id: str, account_id: str) -> Account | None:
        """Return an account."""
        return self._rows.within(workspace_id, account_id)

    def find(self, account_id: str) -> Account | None:
        """Return an account of whatever workspace."""
        return self._rows.get(account_id)

    def at(self, workspace_id: str, provider: str) -> Account | None:
        """Return a workspace's account at a provider."""
        account_id = self._by_provider.first((workspace_id, provider))
        return None if account_id is None else self._rows.get(account_id)

    def insert(self, account: Account) -> None:
        """Write a new account."""
        if self.at(account.workspace_id, account.provider) is not None:
            raise AlreadyThere("The workspace has an account at this provider already.")
        self._rows.insert(account.id, account)

    def update(self, account: Account) -> None:
        """Write over an account."""
        self._rows.overwrite(account)

    def delete(self, workspace_id: str, account_id: str) -> bool:
        """Delete an account; return whether it was there."""
        if self.get(workspace_id, account_id) is None:
            return False
        self._rows.delete(account_id)
        return True

    def list(self, workspace_id: str) -> Sequence[Account]:
        """Return a workspace's accounts, oldest first."""
        return self._rows.rows(self._rows.by_workspace.keys(workspace_id))


class AccountHolds:
    """How long providers want to be left alone."""

    def __init__(self, journal: Journal) -> None:
        self._rows = Table[tuple[str, str], AccountHold](journal, "hold of an account")

    def get(self, workspace_id: str, provider: str) -> AccountHold | None:
        """Return what a provider asked for last."""
        return self._rows.get((workspace_id, provider))

    def put(self, hold: AccountHold) -> None:
        """Write it, over the one that is there."""
        self._rows.put((hold.workspace_id, hold.provider), hold)

    def delete(self, workspace_id: str, provider: str) -> None:
        """Forget it."""
        if (workspace_id, provider) in self._rows:
            self._rows.delete((workspace_id, provider))


class Callbacks:
    """What providers called back."""

    def __init__(self, journal: Journal) -> None:
        self._rows = Table[tuple[str, str], CallbackRecord](journal, "callback")
        self._by_workspace = self._rows.index(
            lambda row: (row.workspace_id, (row.received_at, row.account_id, row.event_id))
        )
        self._waiting = self._rows.index(lambda row: _waits_for(row, "provider_id"))
        self._waiting_for_telephony = self._rows.index(lambda row: _waits_for(row, "telephony_id"))
        self._by_time = self._rows.index(lambda row: (None, (row.received_at, row.account_id, row.event_id)))

    def get(self, workspace_id: str, account_id: str, event_id: str) -> CallbackRecord | None:
        """Return an event that has come before."""
        row = self._rows.get((account_id, event_id))
        return row if row is not None and row.workspace_id == workspace_id else None

    def insert(self, record: CallbackRecord) -> None:
        """Write an event."""
        self._rows.insert((record.account_id, record.event_id), _stored(record))

    def update(self, record: CallbackRecord) -> None:
        """Write over an event's result and report."""
        key = (record.account_id, record.event_id)
        known = self.get(record.workspace_id, *key)
        if known is None:
            raise self._rows.missing(key)
        self._rows.put(key, _stored(attrs.evolve(known, result=record.result, report=record.report)))

    def waiting(self, workspace_id: str, provider: str, provider_id: str, *, limit: int) -> Sequence[CallbackRecord]:
        """Return events whose report names this identifier, oldest first."""
        group = (workspace_id, provider, provider_id)
        keys = {*self._waiting.keys(group, limit=limit), *self._waiting_for_telephony.keys(group, limit=limit)}
        return sorted(self._rows.rows(list(keys)), key=_when_it_came)[:limit]

    def list(self, workspace_id: str, *, limit: int = 1000) -> Sequence[CallbackRecord]:
        """Return the newest events, newest first."""
        return self._rows.rows(self._by_workspace.keys(workspace_id))[::-1][:limit]

    def sweep(self, before: datetime, *, limit: int) -> int:
        """Delete up to `limit` events received before a moment; return how many."""
        old = [row for row in self._rows.rows(self._by_time.keys(None)) if row.received_at < before][:limit]
        for row in old:
            self._rows.delete((row.account_id, row.event_id))
        return len(old)


def _waits_for(row: CallbackRecord, name: str) -> Place | None:
    identifier = getattr(row.report, name, None)
    if row.report is None or identifier is None:
        return None
    return (row.workspace_id, row.report.provider, identifier), _when_it_came(row)


def _when_it_came(row: CallbackRecord) -> Order:
    return (row.received_at, row.event_id, row.account_id)


def _stored(record: CallbackRecord) -> CallbackRecord:
    """Return a record as it is read again: the provider's own event is in the body alone."""
    if record.report is None:
        return record
    return attrs.evolve(record, report=attrs.evolve(record.report, raw=None))
