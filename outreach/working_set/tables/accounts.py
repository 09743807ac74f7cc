"""Accounts at providers, how long these want to be left alone, and what they called back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime

import attrs

from outreach.clock import format_timestamp
from outreach.convert.columns import json_text
from outreach.models.account import Account, CallbackRecord, ProviderThrottle
from outreach.working_set.kinds import ACCOUNTS, CALLBACKS, PROVIDER_THROTTLES
from outreach.working_set.tables.base import Table, WorkspaceTable


class Accounts(WorkspaceTable[Account]):
    """Accounts at carriers and voice providers; (workspace, provider) is unique."""

    _kind, _query = ACCOUNTS, "accounts"

    def find(self, account_id: str) -> Account | None:
        """Return an account of whatever workspace (a callback's address and the operator's commands name it alone)."""
        return self._one(ACCOUNTS, "accounts.find", account_id=account_id)

    def of_provider(self, workspace_id: str, provider: str) -> Account | None:
        """Return a workspace's account at a provider."""
        return self._one(ACCOUNTS, "accounts.at", workspace_id=workspace_id, provider=provider)

    def update(self, account: Account) -> None:
        """Write over an account: a stop for what was to go out with its credentials."""
        self._rows.count_stop()
        super().update(account)

    def delete(self, workspace_id: str, account_id: str) -> bool:
        """Delete an account; return whether it was there."""
        self._rows.count_stop()
        return self._rows.delete(ACCOUNTS, (workspace_id, account_id))


class ProviderThrottles(Table):
    """How long providers want to be left alone; one row a workspace and provider at most, with an account or without.

    Sandboxes have no accounts, and a provider is named there all the same.
    """

    def get(self, workspace_id: str, provider: str) -> ProviderThrottle | None:
        """Return what a provider asked for last, over or not; None when it never did, or that was forgotten."""
        return self._rows.get(PROVIDER_THROTTLES, (workspace_id, provider))

    def prefetch(self, workspace_and_provider: Iterable[tuple[str, str]]) -> None:
        """Read many at once: each `get` of one of them asks nobody then."""
        self._rows.prefetch(PROVIDER_THROTTLES, workspace_and_provider)

    def unexpired(self, workspace_id: str | None, now: datetime, *, limit: int) -> Sequence[ProviderThrottle]:
        """Return what is asked for beyond a moment, of one workspace or of all, at most `limit`.

        What ends first comes first, by (until, workspace, provider).
        """
        return self._list(
            PROVIDER_THROTTLES,
            "accounts.unexpired_throttles",
            workspace_id=workspace_id,
            now=format_timestamp(now),
            limit=limit,
        )

    def put(self, hold: ProviderThrottle) -> None:
        """Write it, over the one that is there: a stop."""
        self._rows.count_stop()
        self._rows.put(PROVIDER_THROTTLES, PROVIDER_THROTTLES.key_of(hold), hold)

    def delete(self, workspace_id: str, provider: str) -> None:
        """Forget it; nothing happens when there is none."""
        self._rows.delete(PROVIDER_THROTTLES, (workspace_id, provider))


class Callbacks(Table):
    """What providers called back; (account, event) is unique."""

    def get(self, workspace_id: str, account_id: str, event_id: str) -> CallbackRecord | None:
        """Return an event of an account that has come before."""
        return self._rows.get(CALLBACKS, (workspace_id, account_id, event_id))

    def prefetch(self, keys: Iterable[tuple[str, str, str]]) -> None:
        """Read many at once, by workspace, account and event: each `get` of one of them asks nobody then."""
        self._rows.prefetch(CALLBACKS, keys)

    def insert(self, record: CallbackRecord) -> None:
        """Write an event; what the provider told word for word is in its body."""
        if record.report is not None and record.report.raw is not None:
            record = attrs.evolve(record, report=attrs.evolve(record.report, raw=None))
        self._forget_waiting()
        self._rows.insert(CALLBACKS, CALLBACKS.key_of(record), record)

    def update(self, record: CallbackRecord) -> None:
        """Write over an event's result and report; the rest stays as it is."""
        self._forget_waiting()
        self._rows.update(CALLBACKS, CALLBACKS.key_of(record), record)

    def _forget_waiting(self) -> None:
        self._rows.prefetched_keys.pop("callbacks.waiting", None)

    def prefetch_waiting(self, names: Iterable[tuple[str, str, str]]) -> None:
        """Look at once which of many identifiers events wait for, each with its workspace and its provider.

        Of one that none waits for `waiting` asks nobody then.
        """
        wanted = list(dict.fromkeys(names))
        rows = self._rows.query("callbacks.waited_for", CALLBACKS, wanted=json_text(wanted)) if wanted else ()
        there = {tuple(json.loads(row[0])) for row in rows}
        self._rows.prefetched_keys["callbacks.waiting"] = {name: [] for name in wanted if name not in there}

    def waiting(self, workspace_id: str, provider: str, provider_id: str, *, limit: int) -> Sequence[CallbackRecord]:
        """Return events whose report names this identifier of this provider, oldest first by (received_at, event).

        As `provider_id`, or as the `telephony_id` of a call.
        """
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

    def list(self, workspace_id: str, *, limit: int = 1000) -> Sequence[CallbackRecord]:
        """Return the newest events, newest first by (received_at, account, event), all descending."""
        return self._list(CALLBACKS, "callbacks.list", workspace_id=workspace_id, limit=limit)

    def sweep(self, before: datetime, *, limit: int) -> int:
        """Delete up to `limit` events received before a moment, of each workspace the oldest first; return how many."""
        return self._rows.execute_on(CALLBACKS, "callbacks.sweep", before=format_timestamp(before), limit=limit)
