"""Accounts at providers, and what these called back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from outreach.clock import to_text
from outreach.convert.rows import to_row
from outreach.models.account import Account, AccountHold, CallbackRecord
from outreach.storage.sqlite.sql import load
from outreach.storage.sqlite.tables.base import Table


class Accounts(Table):
    """Accounts at carriers and voice providers."""

    queries = load("accounts")
    what = "account"

    def get(self, workspace_id: str, account_id: str) -> Account | None:
        """Return an account."""
        return self._one(Account, "get", workspace_id=workspace_id, account_id=account_id)

    def find(self, account_id: str) -> Account | None:
        """Return an account of whatever workspace."""
        return self._one(Account, "find", account_id=account_id)

    def at(self, workspace_id: str, provider: str) -> Account | None:
        """Return a workspace's account at a provider."""
        return self._one(Account, "at", workspace_id=workspace_id, provider=provider)

    def insert(self, account: Account) -> None:
        """Write a new account."""
        self._change("insert", to_row(account))

    def update(self, account: Account) -> None:
        """Write over an account."""
        self._change_one("update", to_row(account))

    def delete(self, workspace_id: str, account_id: str) -> bool:
        """Delete an account; return whether it was there."""
        return self._change("delete", {"workspace_id": workspace_id, "account_id": account_id}) == 1

    def list(self, workspace_id: str) -> Sequence[Account]:
        """Return a workspace's accounts, oldest first."""
        return self._all(Account, "list", workspace_id=workspace_id)


class AccountHolds(Table):
    """How long providers want to be left alone."""

    queries = load("account_holds")
    what = "hold of an account"

    def get(self, workspace_id: str, provider: str) -> AccountHold | None:
        """Return what a provider asked for last."""
        return self._one(AccountHold, "get", workspace_id=workspace_id, provider=provider)

    def put(self, hold: AccountHold) -> None:
        """Write it, over the one that is there."""
        self._change("put", to_row(hold))

    def delete(self, workspace_id: str, provider: str) -> None:
        """Forget it."""
        self._change("delete", {"workspace_id": workspace_id, "provider": provider})


class Callbacks(Table):
    """What providers called back."""

    queries = load("callbacks")
    what = "callback"

    def get(self, workspace_id: str, account_id: str, event_id: str) -> CallbackRecord | None:
        """Return an event that has come before."""
        return self._one(CallbackRecord, "get", workspace_id=workspace_id, account_id=account_id, event_id=event_id)

    def insert(self, record: CallbackRecord) -> None:
        """Write an event."""
        self._change("insert", to_row(record))

    def update(self, record: CallbackRecord) -> None:
        """Write over an event's result and report."""
        self._change_one("update", to_row(record))

    def waiting(self, workspace_id: str, provider: str, provider_id: str, *, limit: int) -> Sequence[CallbackRecord]:
        """Return events whose report names this identifier, oldest first."""
        return self._all(
            CallbackRecord,
            "waiting",
            workspace_id=workspace_id,
            provider=provider,
            provider_id=provider_id,
            limit=limit,
        )

    def list(self, workspace_id: str, *, limit: int = 1000) -> Sequence[CallbackRecord]:
        """Return the newest events, newest first."""
        return self._all(CallbackRecord, "list", workspace_id=workspace_id, limit=limit)

    def sweep(self, before: datetime, *, limit: int) -> int:
        """Delete up to `limit` events received before a moment; return how many."""
        return self._change("sweep", {"before": to_text(before), "limit": limit})
