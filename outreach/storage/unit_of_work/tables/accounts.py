"""Accounts at providers, their throttles and their callbacks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import attrs

from outreach.core.clock import format_timestamp
from outreach.models.account import CallbackRecord, ProviderThrottle, StoredAccount
from outreach.serialization.columns import json_text
from outreach.storage.unit_of_work.kinds import (
    ACCOUNTS,
    CALLBACKS,
    CAMPAIGNS,
    DISPATCHES,
    MESSAGES,
    PROVIDER_THROTTLES,
    WORKSPACES,
)
from outreach.storage.unit_of_work.tables.base import LAST, Table, WorkspaceTable
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork


class Accounts(WorkspaceTable[StoredAccount]):
    """Accounts at carriers and voice providers; (workspace, provider) is unique."""

    def __init__(self, rows: UnitOfWork) -> None:
        super().__init__(rows, ACCOUNTS)

    def find(self, account_id: str) -> StoredAccount | None:
        """Return an account of any workspace, for callbacks and operators' commands."""
        return self._one(ACCOUNTS, "accounts.find", account_id=account_id)

    def any_workspace(self, workspace_id: str | None, *, limit: int) -> Sequence[StoredAccount]:
        """Return the accounts of one workspace or of all, oldest first by (created_at, id)."""
        return self._list(ACCOUNTS, "accounts.anywhere", workspace_id=workspace_id, limit=limit)

    def prefetch(self, keys: Iterable[tuple[str, str]]) -> None:
        """Read many accounts (workspace, account) in one go, for `get`."""
        self._rows.prefetch(ACCOUNTS, keys)

    def page(self, *, after: str, limit: int) -> Sequence[StoredAccount]:
        """Return the accounts of all workspaces after an id, by id."""
        return self._list(ACCOUNTS, "accounts.page", after=after, limit=limit)

    def of_provider(self, workspace_id: str, provider: str) -> StoredAccount | None:
        """Return a workspace's account at a provider."""
        return self._one(ACCOUNTS, "accounts.at", workspace_id=workspace_id, provider=provider)

    def update(self, account: StoredAccount) -> None:
        """Replace an account; this counts as a stop for requests with its old credentials."""
        self._rows.count_stop(account.workspace_id)
        super().update(account)

    def reseal(self, account: StoredAccount) -> None:
        """Replace an account whose credentials are the same under another key; requests with them go on."""
        super().update(account)

    def note_report(self, account: StoredAccount) -> None:
        """Replace an account whose provider has reported; requests go on."""
        super().update(account)

    def count_without_receipt(
        self, wanted: Iterable[tuple[str, str, datetime, datetime]], *, campaigns: int, limit: int
    ) -> Mapping[tuple[str, str], int]:
        """Return how many messages were accepted and have no receipt, by workspace and provider.

        Args:
            wanted: Each workspace and provider, with the moments after which and up to which messages count; those of
                sandboxes and of inactive workspaces are left out of the result.
            campaigns: How many running campaigns of each are looked at, and how many of those that have ended since.
            limit: How many messages of each of these, and how many single ones, are counted at the most.
        """
        asked = [
            (owner, name, format_timestamp(after), format_timestamp(until)) for owner, name, after, until in wanted
        ]
        if not asked:
            return {}
        rows = self._rows.query(
            "accounts.without_receipt",
            *(WORKSPACES, CAMPAIGNS, MESSAGES, DISPATCHES),
            wanted=json_text(asked),
            campaigns=campaigns,
            limit=limit,
        )
        return {(owner, name): count for owner, name, count in rows}

    def delete(self, workspace_id: str, account_id: str) -> bool:
        """Delete an account; return whether it existed."""
        self._rows.count_stop(workspace_id)
        return self._rows.delete(ACCOUNTS, (workspace_id, account_id))


class ProviderThrottles(Table):
    """Provider throttles, at most one for each workspace and provider, also without an account (sandboxes)."""

    def get(self, workspace_id: str, provider: str) -> ProviderThrottle | None:
        """Return the latest throttle, expired or not, or None."""
        return self._rows.get(PROVIDER_THROTTLES, (workspace_id, provider))

    def prefetch(self, workspace_and_provider: Iterable[tuple[str, str]]) -> None:
        """Read many throttles in one go, for `get`."""
        self._rows.prefetch(PROVIDER_THROTTLES, workspace_and_provider)

    def unexpired(self, workspace_id: str | None, now: datetime, *, limit: int) -> Sequence[ProviderThrottle]:
        """Return throttles that end after now, of one workspace or all, by (until, workspace, provider)."""
        return self._list(
            PROVIDER_THROTTLES,
            "accounts.unexpired_throttles",
            workspace_id=workspace_id,
            now=format_timestamp(now),
            limit=limit,
        )

    def list(self) -> Sequence[ProviderThrottle]:
        """Return those of all workspaces, over or not, by (workspace, provider)."""
        return self._list(PROVIDER_THROTTLES, "accounts.holds")

    def put(self, throttle: ProviderThrottle) -> None:
        """Insert or replace a throttle; this counts as a stop."""
        self._rows.count_stop(throttle.workspace_id)
        self._rows.put(PROVIDER_THROTTLES, PROVIDER_THROTTLES.key_of(throttle), throttle)

    def delete(self, workspace_id: str, provider: str) -> None:
        """Delete a throttle, if there is one."""
        self._rows.delete(PROVIDER_THROTTLES, (workspace_id, provider))


class Callbacks(Table):
    """Callback events; (account, event) is unique."""

    def get(self, workspace_id: str, account_id: str, event_id: str) -> CallbackRecord | None:
        """Return a stored event of an account."""
        return self._rows.get(CALLBACKS, (workspace_id, account_id, event_id))

    def prefetch(self, keys: Iterable[tuple[str, str, str]]) -> None:
        """Read many events (workspace, account, event) in one go, for `get`."""
        self._rows.prefetch(CALLBACKS, keys)

    def insert(self, record: CallbackRecord) -> None:
        """Write an event; its report is stored without `raw`, which the body holds."""
        if record.report is not None and record.report.raw is not None:
            record = attrs.evolve(record, report=attrs.evolve(record.report, raw=None))
        self._forget_waiting()
        self._rows.insert(CALLBACKS, CALLBACKS.key_of(record), record)

    def update(self, record: CallbackRecord) -> None:
        """Replace an event's result and report."""
        self._forget_waiting()
        self._rows.update(CALLBACKS, CALLBACKS.key_of(record), record)

    def delete(self, workspace_id: str, account_id: str, event_id: str) -> bool:
        """Delete an event; return whether it existed."""
        return self._rows.delete(CALLBACKS, (workspace_id, account_id, event_id))

    def _forget_waiting(self) -> None:
        self._rows.prefetched_keys.pop("callbacks.waiting", None)

    def prefetch_waiting(self, names: Iterable[tuple[str, str, str]]) -> None:
        """Check in one go which identifiers (workspace, provider, identifier) early events wait for, for `waiting`."""
        wanted = list(dict.fromkeys(names))
        rows = self._rows.query("callbacks.waited_for", CALLBACKS, wanted=json_text(wanted)) if wanted else ()
        waited_for = {tuple(json.loads(row[0])) for row in rows}
        self._rows.prefetched_keys["callbacks.waiting"] = {name: [] for name in wanted if name not in waited_for}

    def waiting(self, workspace_id: str, provider: str, provider_id: str, *, limit: int) -> Sequence[CallbackRecord]:
        """Return events whose report has this `provider_id` or `telephony_id`, oldest first by (received_at, event)."""
        if (workspace_id, provider, provider_id) in self._rows.prefetched_keys.get("callbacks.waiting", ()):
            return []
        return self._list(
            CALLBACKS,
            "callbacks.waiting",
            workspace_id=workspace_id,
            provider=provider,
            provider_id=provider_id,
            limit=limit,
        )

    def list(
        self, workspace_id: str, *, after: tuple[datetime, str, str] | None = None, limit: int = 1000
    ) -> Sequence[CallbackRecord]:
        """Return the newest events, by (received_at, account, event), all descending, from `after` on."""
        after_at, after_account, after_event = (
            (LAST, "", "") if after is None else (format_timestamp(after[0]), *after[1:])
        )
        return self._list(
            CALLBACKS,
            "callbacks.list",
            workspace_id=workspace_id,
            after_at=after_at,
            after_account=after_account,
            after_event=after_event,
            limit=limit,
        )

    def sweep(self, before: datetime, *, limit: int) -> int:
        """Delete up to `limit` events received before a moment, the oldest of each workspace first; return how many."""
        return self._rows.execute_on(CALLBACKS, "callbacks.sweep", before=format_timestamp(before), limit=limit)
