"""Workspaces with their keys, requests, numbers, settings, provider accounts and unsubscribe register."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Generic, Literal, TypeVar

import attrs

from outreach.core.clock import format_timestamp
from outreach.models.account import ProviderThrottle, StoredAccount
from outreach.models.base import Channel
from outreach.models.reports import CallbackRecord
from outreach.models.resources import Number
from outreach.models.unsubscribe import HELD, KEYWORD, RegisterSalt, Unsubscribe, imports_alone
from outreach.models.work import IdempotencyRecord, RequestWindow
from outreach.models.workspace import ApiKey, Workspace
from outreach.rules.numbering import spellings
from outreach.rules.phones import is_pseudonym, register_hash, stored_forms
from outreach.serialization.documents import json_text
from outreach.storage.unit_of_work.kinds import (
    ACCOUNTS,
    CALLBACKS,
    CAMPAIGNS,
    DISPATCHES,
    IDEMPOTENCY_KEYS,
    KEYS,
    MESSAGES,
    NUMBERS,
    PROVIDER_THROTTLES,
    REGISTER_SALTS,
    REQUEST_WINDOWS,
    UNSUBSCRIBES,
    WORKSPACES,
    Kind,
)
from outreach.storage.unit_of_work.tables.base import LAST, KindTable, Table, WorkspaceTable, json_list, page_begin
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork

S = TypeVar("S")

_BY_PHONE: Final = "numbers.by_phone"


class Workspaces(Table):
    """Workspaces; the only table outside workspaces."""

    def get(self, workspace_id: str) -> Workspace | None:
        """Return a workspace."""
        return self._rows.get(WORKSPACES, (workspace_id,))

    def prefetch(self, workspace_ids: Iterable[str]) -> None:
        """Read many workspaces in one go, for `get`."""
        self._rows.prefetch(WORKSPACES, ((workspace_id,) for workspace_id in workspace_ids))

    def insert(self, workspace: Workspace) -> None:
        """Write a new workspace."""
        self._rows.insert_now(WORKSPACES, (workspace.id,), workspace)

    def update(self, workspace: Workspace) -> None:
        """Replace a workspace; any change counts as a stop."""
        self._rows.count_stop(workspace.id)
        self._rows.update(WORKSPACES, (workspace.id,), workspace)

    def list(self) -> Sequence[Workspace]:
        """Return all, oldest first by (created_at, id)."""
        return self._list(WORKSPACES, "workspaces.list")


class Keys(KindTable[ApiKey]):
    """API keys; the digest is unique."""

    def by_digest(self, digest: str) -> ApiKey | None:
        """Return the key with this digest, of any workspace, revoked or not."""
        return self._one(KEYS, "keys.by_digest", digest=digest)

    def get(self, key_id: str) -> ApiKey | None:
        """Return a key of any workspace, for operators' commands."""
        return self._one(KEYS, "keys.get", key_id=key_id)

    def list(self, workspace_id: str) -> Sequence[ApiKey]:
        """Return a workspace's keys, oldest first by (created_at, id)."""
        return self._list(KEYS, "keys.list", workspace_id=workspace_id)


class Requests(Table):
    """Request windows and idempotency keys."""

    def window(self, workspace_id: str) -> RequestWindow | None:
        """Return a workspace's window."""
        return self._rows.get(REQUEST_WINDOWS, (workspace_id,))

    def put_window(self, window: RequestWindow) -> None:
        """Write a workspace's window."""
        self._rows.put(REQUEST_WINDOWS, (window.workspace_id,), window)

    def stored(self, workspace_id: str, operation: str, key: str) -> IdempotencyRecord | None:
        """Return the record of an idempotency key."""
        return self._rows.get(IDEMPOTENCY_KEYS, (workspace_id, operation, key))

    def prefetch_stored(self, keys: Iterable[tuple[str, str, str]]) -> None:
        """Read the records of many keys (workspace, operation, key) in one go, for `stored`."""
        self._rows.prefetch(IDEMPOTENCY_KEYS, keys)

    def put_stored(self, request: IdempotencyRecord) -> None:
        """Write the record of an idempotency key."""
        self._rows.put(IDEMPOTENCY_KEYS, IDEMPOTENCY_KEYS.key_of(request), request)

    def delete_stored(self, workspace_id: str, operation: str, key: str) -> None:
        """Delete a key, if it exists."""
        self._rows.delete(IDEMPOTENCY_KEYS, (workspace_id, operation, key))

    def sweep(self, now: datetime, *, limit: int) -> int:
        """Delete up to `limit` keys that have expired (`expires_at` at or before now); return how many."""
        return self._rows.execute_on(IDEMPOTENCY_KEYS, "requests.sweep", now=format_timestamp(now), limit=limit)


class Numbers(WorkspaceTable[Number]):
    """Phone numbers that a workspace sends or calls from; (workspace, phone) is unique."""

    def by_phone(self, workspace_id: str, phone: str) -> Number | None:
        """Return a number by its phone number."""
        self.prefetch_by_phone([(workspace_id, phone)])
        found = self._rows.prefetched(NUMBERS, _BY_PHONE, (workspace_id, phone))
        return found[0] if found else None

    def of_line(self, workspace_id: str, phone: str) -> Number | None:
        """Return the number of a telephone line in any spelling; this spelling counts before the others."""
        forms = spellings(phone)
        self.prefetch_by_phone((workspace_id, form) for form in forms)
        return next((number for form in forms if (number := self.by_phone(workspace_id, form)) is not None), None)

    def prefetch_by_phone(self, workspace_and_phone: Iterable[tuple[str, str]]) -> None:
        """Read many numbers in one go, for `by_phone` and `of_line`."""
        wanted = {key: key for key in workspace_and_phone}
        self._rows.prefetch_lists(NUMBERS, _BY_PHONE, wanted, lambda number: [(number.workspace_id, number.phone)])

    def insert(self, row: Number) -> None:
        """Write a new number."""
        self._rows.prefetched_keys.pop(_BY_PHONE, None)
        super().insert(row)

    def delete(self, workspace_id: str, number_id: str) -> None:
        """Delete a number, or raise `LookupError`."""
        if not self._rows.delete(NUMBERS, (workspace_id, number_id)):
            raise LookupError("There is no such number.")


class WorkspaceSettings(Table, Generic[S]):
    """Settings of one kind, at most one row a workspace."""

    def __init__(self, rows: UnitOfWork, kind: Kind[S]) -> None:
        super().__init__(rows)
        self._kind = kind

    def get(self, workspace_id: str) -> S | None:
        """Return the settings; None before the first change."""
        return self._rows.get(self._kind, (workspace_id,))

    def prefetch(self, workspace_ids: Iterable[str]) -> None:
        """Read those of many workspaces in one go, for `get`."""
        self._rows.prefetch(self._kind, ((workspace_id,) for workspace_id in workspace_ids))

    def put(self, workspace_id: str, settings: S) -> None:
        """Write the settings."""
        self._rows.put(self._kind, (workspace_id,), settings)

    def delete(self, workspace_id: str) -> bool:
        """Remove the settings; return whether there were any."""
        return self._rows.delete(self._kind, (workspace_id,))


class Accounts(WorkspaceTable[StoredAccount]):
    """Accounts at carriers and voice providers; (workspace, provider) is unique."""

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
        ranges = [
            (owner, name, format_timestamp(after), format_timestamp(until)) for owner, name, after, until in wanted
        ]
        if not ranges:
            return {}
        rows = self._rows.query(
            "accounts.without_receipt",
            *(WORKSPACES, CAMPAIGNS, MESSAGES, DISPATCHES),
            wanted=json_text(ranges),
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
        return self._list(
            CALLBACKS,
            "callbacks.list",
            workspace_id=workspace_id,
            **page_begin(after, after_at=LAST, after_account="", after_event=""),
            limit=limit,
        )

    def sweep(self, before: datetime, *, limit: int) -> int:
        """Delete up to `limit` events received before a moment, the oldest of each workspace first; return how many."""
        return self._rows.execute_on(CALLBACKS, "callbacks.sweep", before=format_timestamp(before), limit=limit)


class Register(Table):
    """The unsubscribe register; (workspace, phone) is unique.

    A number of an erased person is stored as a hash. It is found by the number all the same, as if it stood there. So
    is an entry under another form of the same person's number (`phones.stored_forms`); several are one.
    """

    def get(self, workspace_id: str, phone: str) -> Unsubscribe | None:
        """Return the entry of the person at a number, under this number."""
        found: Unsubscribe | None = None
        for name in self._names(workspace_id, phone):
            entry = self._rows.get(UNSUBSCRIBES, (workspace_id, name))
            if entry is not None:
                entry = entry if name == phone else attrs.evolve(entry, phone=phone)
                found = entry if found is None else found.merged(entry)
        return found

    def hashed_name(self, workspace_id: str, phone: str, *, salt: str) -> str | None:
        """Return the hash by which `hash_number` stores the entry of the person at a number; None without an entry."""
        if self.get(workspace_id, phone) is None:
            return None
        stored = self._rows.get(REGISTER_SALTS, (workspace_id,))
        return register_hash(salt if stored is None else stored.salt, phone)

    def prefetch(self, workspace_and_phone: Iterable[tuple[str, str]]) -> None:
        """Read the entries of many numbers in one go, for `get`."""
        self._rows.prefetch(
            UNSUBSCRIBES,
            [
                (workspace_id, name)
                for workspace_id, phone in workspace_and_phone
                for name in self._names(workspace_id, phone)
            ],
        )

    def put(self, entry: Unsubscribe) -> None:
        """Insert or replace the entry of a number and of its other spellings; this counts as a stop."""
        self._rows.count_stop(entry.workspace_id)
        # An entry under a former reading stays: its number may be somebody else's.
        for name in self._with_hashes(entry.workspace_id, spellings(entry.phone)):
            if name != entry.phone:
                self._rows.delete(UNSUBSCRIBES, (entry.workspace_id, name))
        self._rows.put(UNSUBSCRIBES, UNSUBSCRIBES.key_of(entry), entry)

    def delete(self, workspace_id: str, phone: str) -> bool:
        """Remove all entries of the person at a number; return whether there were any."""
        found = [self._rows.delete(UNSUBSCRIBES, (workspace_id, name)) for name in self._names(workspace_id, phone)]
        return any(found)

    def hash_number(self, entry: Unsubscribe, *, salt: str, merged: bool = False) -> str:
        """Store an entry by the hash of its number, without its evidence; return the hash.

        Args:
            entry: The entry. It belongs to the same campaign afterwards.
            salt: For the workspace's first hash; ignored later.
            merged: Whether it replaces all entries of the person, as `get` merges them.
        """
        stored = self._rows.get(REGISTER_SALTS, (entry.workspace_id,))
        if stored is None:
            stored = RegisterSalt(salt=salt)
            self._rows.put(REGISTER_SALTS, (entry.workspace_id,), stored)
        name = register_hash(stored.salt, entry.phone)
        replaced = [*(self._names(entry.workspace_id, entry.phone) if merged else [entry.phone]), name]
        self._rows.count_stop(entry.workspace_id)
        # Without the evidence, only the source shows that START does not lift what an import says.
        kept = (imports_alone(entry) if entry.source == KEYWORD else None) or entry
        hashed = attrs.evolve(kept, phone=name, evidence=None)
        self._rows.put(UNSUBSCRIBES, UNSUBSCRIBES.key_of(hashed), hashed)
        self._rows.execute_on(
            UNSUBSCRIBES,
            "register.keep_campaign",
            workspace_id=entry.workspace_id,
            phone=name,
            replaced=json_list(replaced),
        )
        for former in replaced:
            if former != name:
                self._rows.delete(UNSUBSCRIBES, (entry.workspace_id, former))
        return name

    def numbers_before(
        self, workspace_id: str, before: datetime, *, waiting_since: datetime, limit: int
    ) -> Sequence[Unsubscribe]:
        """Return entries with a number created before a moment, oldest first, without those under review.

        Those that came since `waiting_since`, and that a campaign counts that is not erased, are left out.
        """
        return self._list(
            UNSUBSCRIBES,
            "erasure.old_register",
            workspace_id=workspace_id,
            before=format_timestamp(before),
            waiting_since=format_timestamp(waiting_since),
            limit=limit,
        )

    def _hashed(self, workspace_id: str, phone: str) -> str | None:
        """Return the hash of a number; None if the workspace's register has no hashes."""
        salt = self._rows.get(REGISTER_SALTS, (workspace_id,))
        return None if salt is None or is_pseudonym(phone) else register_hash(salt.salt, phone)

    def _names(self, workspace_id: str, phone: str) -> Sequence[str]:
        """Return the names under which the register may have the person at a number, this number first."""
        return self._with_hashes(workspace_id, self._forms(workspace_id, phone))

    def _with_hashes(self, workspace_id: str, forms: Sequence[str]) -> Sequence[str]:
        if self._rows.get(REGISTER_SALTS, (workspace_id,)) is None:
            return forms
        hashes = (self._hashed(workspace_id, form) for form in forms)
        return [*forms, *(name for name in hashes if name is not None)]

    def list(self, workspace_id: str, *, after: str = "", limit: int = 1000) -> Sequence[Unsubscribe]:
        """Return entries by number from `after` on, at most `limit`."""
        return self._list(UNSUBSCRIBES, "register.list", workspace_id=workspace_id, after=after, limit=limit)

    def held(
        self, workspace_id: str | None, *, after: tuple[datetime, str, str] | None = None, limit: int
    ) -> Sequence[Unsubscribe]:
        """Return numbers under review, of one workspace or all, by (created_at, workspace, number), descending.

        They begin behind `after`, which is such a triple.
        """
        return self._list(
            UNSUBSCRIBES,
            "register.held",
            workspace_id=workspace_id,
            **page_begin(after, after_at=LAST, after_workspace="", after_phone=""),
            limit=limit,
        )

    def stopped(self, workspace_id: str, channel: Channel, phones: Collection[str]) -> frozenset[str]:
        """Return those of the numbers (at most 5,000) that must not be contacted on this channel."""
        if len(phones) == 1:
            # One number is looked up repeatedly, so its entry or absence is cached.
            [phone] = phones
            entry = self.get(workspace_id, phone)
            return frozenset(phones) if entry is not None and entry.stops(channel) else frozenset()
        found = self.read_restrictions(workspace_id, channel, phones)
        return frozenset(phone for phone, restriction in found.items() if restriction == "stopped")

    def read_restrictions(
        self, workspace_id: str, channel: Channel, phones: Collection[str]
    ) -> Mapping[str, Literal["stopped", "held"]]:
        """Return what `restrictions` returns by one query, without caching: for numbers that are looked up once."""
        if not phones:
            return {}
        region, salt = self._region(workspace_id), self._rows.get(REGISTER_SALTS, (workspace_id,))
        numbers: dict[str, list[str]] = {}
        for phone in phones:
            for form in stored_forms(phone, region):
                numbers.setdefault(form, []).append(phone)
        if salt is not None:
            numbers |= {register_hash(salt.salt, form): known for form, known in numbers.items()}
        rows = self._rows.query("register.scopes", UNSUBSCRIBES, workspace_id=workspace_id, phones=json_list(numbers))
        found: dict[str, Literal["stopped", "held"]] = {}
        for name, scope in rows:
            if scope == HELD:
                # An opt-out under another form of the number outranks it.
                found.update({phone: "held" for phone in numbers[name] if phone not in found})
            elif scope in {"all", channel}:
                found.update(dict.fromkeys(numbers[name], "stopped"))
        return found

    def restrictions(
        self, workspace_id: str, channel: Channel, phones: Collection[str]
    ) -> Mapping[str, Literal["stopped", "held"]]:
        """Return the restrictions of numbers (at most 5,000): stopped, or held for review; their entries are cached."""
        self.prefetch((workspace_id, phone) for phone in phones)
        entries = (self.get(workspace_id, phone) for phone in phones)
        found = [entry for entry in entries if entry is not None and (entry.stops(channel) or entry.scope == HELD)]
        return {entry.phone: "held" if entry.scope == HELD else "stopped" for entry in found}
