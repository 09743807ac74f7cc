"""The unit of work: the identity map of one database connection, its pending writes, and the journal of changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Final, Protocol, TypeVar

import attrs

from outreach.core.copying import copy_with
from outreach.errors import InvalidRequest, StorageError
from outreach.models.base import wrong_identifier
from outreach.models.campaign import Counters
from outreach.models.work import WorkItem
from outreach.rules.segments import text_problem
from outreach.serialization.documents import Value, json_text
from outreach.storage.unit_of_work.kinds import (
    ALL_KINDS,
    ALL_WORKSPACES,
    CAMPAIGNS,
    NO_CAMPAIGN,
    STOPS,
    TRAIL,
    WORK,
    Backend,
    CampaignRef,
    Change,
    Key,
    Kind,
    Row,
    Write,
    everything_changed,
)


class AlreadyExists(Exception):
    """A row with this identity, or a second open dispatch, already exists; nothing was written."""


class RollbackRequired(BaseException):
    """The transaction must be rolled back and its operations run again, each alone.

    The cause is the database's error about a row; there is none if a failed operation cannot be undone alone.
    """


_MISSING: Final = object()


class TransactionControl(Protocol):
    """How the transactions of a connection begin and end."""

    def begin(self, workspace_ids: frozenset[str] | None = None) -> None:
        """Begin a transaction: for a writer with the lock for writing, for a reader with a snapshot.

        Args:
            workspace_ids: The only workspaces that it writes in, where these have locks of their own; None for all.
        """
        ...

    def commit(self) -> None:
        """Commit it durably."""
        ...

    def roll_back(self) -> None:
        """Roll it back, if one is open; raise nothing."""
        ...


class Journal:
    """The former contents of dictionaries and lists, so that changes can be undone."""

    def __init__(self) -> None:
        self._entries: list[tuple[Any, Any, Any]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def set(self, where: dict[Any, Any], key: Hashable, value: object) -> None:
        """Change an entry of a dictionary."""
        self._entries.append((where, key, where.get(key, _MISSING)))
        where[key] = value

    def drop(self, where: dict[Any, Any], key: Hashable) -> None:
        """Remove an entry of a dictionary, if it is there."""
        before = where.pop(key, _MISSING)
        if before is not _MISSING:
            self._entries.append((where, key, before))

    def append(self, where: list[Any], value: object) -> None:
        """Append to a list."""
        self._entries.append((where, None, len(where)))
        where.append(value)

    def undo(self, mark: int) -> None:
        """Undo every change since the journal had this length."""
        while len(self._entries) > mark:
            where, key, before = self._entries.pop()
            if isinstance(where, list):
                del where[before:]
            elif before is _MISSING:
                where.pop(key, None)
            else:
                where[key] = before

    def clear(self) -> None:
        """Forget the changes, which become final."""
        self._entries.clear()


class Rows:
    """The cached rows of one kind.

    Attributes:
        known: The rows by key; None for a key without a row.
        pending: The pending change of each key.
        by_workspace: The keys of `known` by their workspace; it may hold some that are no longer there.
        owner_of: Returns the workspace of a key.
    """

    __slots__ = ("by_workspace", "kind", "known", "owner_of", "pending")

    def __init__(self, kind: Kind[Any], owner_of: Callable[[Key], str]) -> None:
        self.kind = kind
        self.owner_of = owner_of
        self.known: dict[Key, Any] = {}
        self.pending: dict[Key, Change] = {}
        self.by_workspace: defaultdict[str, set[Key]] = defaultdict(set)

    def by_change(self) -> dict[Change, list[Key]]:
        """Return the keys of pending rows, by change."""
        keys: defaultdict[Change, list[Key]] = defaultdict(list)
        for key, change in self.pending.items():
            keys[change].append(key)
        return keys

    def trim(self, most: int) -> None:
        """Drop the oldest rows if there are more than `most`; nothing may be pending."""
        if len(self.known) > most:
            kept = list(self.known.items())[-(most // 2) :]
            self.known.clear()
            self.known.update(kept)
            for keys in self.by_workspace.values():
                keys.intersection_update(self.known)

    def forget(self) -> None:
        """Drop all rows, and what is pending."""
        # Each read comes here, and has used few kinds.
        if self.known or self.pending:
            self.known.clear()
            self.pending.clear()
            self.by_workspace.clear()


M = TypeVar("M")
T = TypeVar("T")

_UNKNOWN: Final = "?"
"""In the place of the workspace of a campaign that is not known."""

_LAST_CHANGE: Final = "last_change"

NUMBERED: Final = frozenset({WORK.table, _LAST_CHANGE, TRAIL.table})
"""The tables whose rows are numbered in the order of the commits."""

MAX_CACHED_ROWS: Final = 20_000
"""Cached rows of one kind that are kept between transactions; a row takes about a kilobyte."""

_NOTHING: Final = Counters()
_counts: Final = attrgetter(*(field.name for field in attrs.fields(Counters)))

_WRITE_ORDER: Final[tuple[Change, ...]] = ("delete", "insert", "update", "put")


class UnitOfWork:
    """The rows that a connection's operations have read and written.

    Rows are read once, and stay cached across transactions while no other process writes. Writes are kept until a query
    could see them, or until the end, and reach the database in sets. A failed operation is undone from a journal
    (`savepoint`, `rollback_to`) unless some of it was flushed: then the whole group is rolled back and the others run
    again.

    Args:
        backend: The database.
        read_only: Whether writing is refused.

    Attributes:
        prefetched_keys: The keys of the rows found by prefetched queries, by query and key, until the transaction ends
            or a write changes them.
        answers: The identifiers of providers (provider, identifier) that the writing transaction has looked for, with
            the workspaces that had each. Where transactions run side by side, one that others have stored meanwhile
            has to be found before the commit.
        written_in: The workspaces of the rows that the operation has written so far, `ALL_WORKSPACES` for rows of none.
    """

    def __init__(self, backend: Backend, *, read_only: bool = False) -> None:
        self.backend = backend
        self.journal = Journal()
        self.read_only = read_only
        self._refs: dict[str, CampaignRef | None] = {}
        self._rows = {kind.table: Rows(kind, self._owner_of(kind)) for kind in ALL_KINDS}
        self._by_number: dict[int, CampaignRef] = {}
        self.counted: dict[str, Counters] = {}
        self.appended: dict[str, list[tuple[str, Sequence[Value]]]] = {"trail": [], "audit": []}
        self.prefetched_keys: dict[str, dict[Key, list[Key]]] = {}
        self.answers: dict[tuple[str, str], set[str]] = {}
        self.written_in: set[str] = set()
        self._unnumbered: dict[Key | None, int] = {}
        self._scheduled = 0
        self._pending_tables: set[str] = set()
        self._mark = 0
        self._flushed = False

    # ------------------------------------------------------------------------------------- transactions

    def run_writing(
        self, control: TransactionControl, operation: Callable[[], T], *, workspace_ids: frozenset[str] | None = None
    ) -> T:
        """Run an operation over these rows in a transaction of its own; return its result.

        Args:
            control: How the transaction begins and ends.
            operation: The operation.
            workspace_ids: The workspaces that it writes in; None for all.
        """
        try:
            control.begin(workspace_ids)
            self.read_only = False
            self.begin()
            self.savepoint()
            result = operation()
            self.flush_at_commit()
            control.commit()
        except BaseException as error:
            self.forget()
            control.roll_back()
            if isinstance(error, RollbackRequired) and error.__cause__ is not None:
                raise error.__cause__ from None
            raise
        finally:
            # A leaked transaction must not write.
            self.read_only = True
        self.commit()
        return result

    def begin(self) -> None:
        """Begin a transaction; rows are dropped that another process may have written."""
        self.prefetched_keys.clear()
        self.answers.clear()
        changes = self.backend.changes()
        if changes is everything_changed:
            self.forget()
        elif changes is not None:
            self.forget_changed(changes)

    def commit(self) -> None:
        """Mark the flushed writes as committed."""
        self.journal.clear()
        for rows in self._rows.values():
            rows.trim(MAX_CACHED_ROWS)
        if len(self._refs) > MAX_CACHED_ROWS:
            self._refs.clear()
            self._by_number.clear()

    def forget(self) -> None:
        """Drop the cache: the transaction was rolled back, or another process has written."""
        self.journal.clear()
        for rows in self._rows.values():
            rows.forget()
        for entries in self.appended.values():
            entries.clear()
        for known in (
            self._refs,
            self._by_number,
            self.counted,
            self.prefetched_keys,
            self._unnumbered,
        ):
            known.clear()
        self._pending_tables.clear()

    def forget_changed(self, has_changed: Callable[[str], bool]) -> None:
        """Drop the rows of workspaces in which others have written; nothing of theirs may be pending."""
        changed = {_UNKNOWN, *filter(has_changed, self._filed_under())}
        for rows in self._rows.values():
            for workspace_id in changed.intersection(rows.by_workspace):
                for key in rows.by_workspace.pop(workspace_id):
                    rows.known.pop(key, None)
        # Also where no row of the workspace is cached.
        for campaign_id in [id_ for id_, ref in self._refs.items() if ref is None or has_changed(ref.workspace_id)]:
            self.evict_ref(campaign_id)

    def cached_workspaces(self) -> Set[str]:
        """Return the workspaces that have cached rows."""
        return self._filed_under() - {_UNKNOWN, ALL_WORKSPACES}

    def savepoint(self) -> int:
        """Begin an operation; return the argument of `rollback_to`."""
        self._mark = len(self.journal)
        self._flushed = False
        self.written_in.clear()
        return self._mark

    def rollback_to(self, savepoint: int) -> None:
        """Undo the changes since a savepoint, or raise `RollbackRequired` if some have reached the database."""
        if self._flushed:
            raise RollbackRequired
        self.journal.undo(savepoint)

    # --------------------------------------------------------------------------------------------- rows

    def get(self, kind: Kind[M], key: Key) -> M | None:
        """Return the row with a key."""
        known = self._rows[kind.table].known
        try:
            found = key in known
        except TypeError:
            # Not hashable: certainly no identifier.
            found = False
        if not found:
            self._load(kind, [key])
        row: M | None = known[key]
        return row

    def prefetch(self, kind: Kind[Any], keys: Iterable[Key]) -> None:
        """Cache the rows with these keys, in one go."""
        known, given = self._rows[kind.table].known, list(keys)
        try:
            wanted = [key for key in dict.fromkeys(given) if key not in known]
        except TypeError:
            # Not hashable: certainly no identifiers.
            for key in given:
                _check_key(key)
            raise
        if wanted:
            self._load(kind, wanted)

    def existing_keys(self, kind: Kind[Any], keys: Sequence[Key]) -> Sequence[Key]:
        """Return those keys that have a row."""
        self.prefetch(kind, keys)
        known = self._rows[kind.table].known
        return [key for key in keys if known[key] is not None]

    def insert(self, kind: Kind[M], key: Key, row: M) -> None:
        """Write a new row, or raise `AlreadyExists`."""
        self.require_writing()
        if self.get(kind, key) is not None:
            raise AlreadyExists(f"There is such a {kind.noun} already.")
        rows = self._rows[kind.table]
        change: Change = "put" if key in rows.pending else "insert"
        self._write(rows, key, row, change)

    def insert_now(self, kind: Kind[M], key: Key, row: M) -> None:
        """Write a row with further unique columns at once, or raise `AlreadyExists`."""
        self.require_writing()
        if self.get(kind, key) is not None or not self._insert_at_once(kind, [self._values(kind, key, row)]):
            raise AlreadyExists(f"There is such a {kind.noun} already.")
        rows = self._rows[kind.table]
        self._file_written(rows, key)
        self.journal.set(rows.known, key, row)

    def insert_many_now(self, kind: Kind[M], rows: Sequence[tuple[Key, M]]) -> int:
        """Write new rows at once; return how many were written, without saying which."""
        self.require_writing()
        written = self._insert_at_once(kind, [self._values(kind, key, row) for key, row in rows])
        known = self._rows[kind.table].known
        for key, row in rows:
            self._file_written(self._rows[kind.table], key)
            if written == len(rows):
                self.journal.set(known, key, row)
            else:
                known.pop(key, None)
        return written

    def update(self, kind: Kind[M], key: Key, row: M) -> None:
        """Replace a row, or raise `LookupError`."""
        self.require_writing()
        known = self.get(kind, key)
        if known is None:
            raise LookupError(f"There is no such {kind.noun}.")
        rows = self._rows[kind.table]
        self._write(rows, key, kind.with_fixed_values(known, row), rows.pending.get(key, "update"))

    def put(self, kind: Kind[M], key: Key, row: M) -> None:
        """Insert or replace a row."""
        self.require_writing()
        self._write(self._rows[kind.table], key, row, "put")

    def delete(self, kind: Kind[Any], key: Key) -> bool:
        """Delete a row; return whether it existed."""
        self.require_writing()
        if self.get(kind, key) is None:
            return False
        self._write(self._rows[kind.table], key, None, "delete")
        return True

    def cache_rows(self, kind: Kind[M], rows: Iterable[Row]) -> list[M]:
        """Cache the rows that a query has returned; return their models."""
        models = self.models(kind, rows)
        if models:
            cached = {kind.key_of(model): model for model in models}
            self._rows[kind.table].known.update(cached)
            self._file(self._rows[kind.table], cached)
        return models

    def models(self, kind: Kind[M], rows: Iterable[Row]) -> list[M]:
        """Return the models of rows that a query has returned."""
        rows = list(rows)
        self._learn_numbers(kind, rows)
        return [kind.model(row, self._reference(kind, row)) for row in rows]

    def cached_rows(self, kind: Kind[M]) -> list[M | None]:
        """Return the cached rows of a kind; None for each key without a row."""
        return list(self._rows[kind.table].known.values())

    def evict(self, kind: Kind[Any], keys: Iterable[Key]) -> None:
        """Remove rows that a statement has changed from the cache."""
        known = self._rows[kind.table].known
        if known:
            for key in keys:
                known.pop(key, None)

    # ------------------------------------------------------------------------------------------ queries

    def query(self, name: str, /, *reads: Kind[Any] | str, **values: Value) -> Sequence[Row]:
        """Run a query, after flushing the writes to `reads`: the kinds and appended tables that it reads."""
        if self._pending_tables:
            tables = {kind if isinstance(kind, str) else kind.table for kind in reads}
            if not self._pending_tables.isdisjoint(tables):
                self.flush(numbered=not NUMBERED.isdisjoint(tables))
        try:
            return self.backend.query(name, values)
        except Exception:
            _check_key(tuple(values.values()))
            _check_texts(values.values())
            raise

    def execute(self, name: str, /, **values: Value) -> int:
        """Run a writing statement at once; return how many rows it wrote."""
        self.require_writing()
        self.flush()
        written = self.backend.execute(name, values)
        if isinstance(owner := values.get("workspace_id"), str):
            self.written_in.add(owner)
        # A statement that fails writes nothing.
        self._flushed = self._flushed or written > 0
        return written

    def execute_on(self, kind: Kind[Any], name: str, /, **values: Value) -> int:
        """Run a statement that changes rows of a kind, and drop that kind's cache; return how many rows it wrote."""
        written = self.execute(name, **values)
        if written:
            self._rows[kind.table].forget()
        return written

    def run_many(self, name: str, rows: Sequence[Sequence[Value]]) -> int:
        """Run a statement for each of many rows of values; return how many rows it wrote."""
        self.require_writing()
        self.flush(numbered=False)
        self._flushed = True
        return self.backend.run_many(name, rows)

    def prefetch_lists(
        self,
        kind: Kind[M],
        name: str,
        keys: Mapping[Key, Sequence[Value]],
        keys_of: Callable[[M], Iterable[Key]],
        **values: Value,
    ) -> None:
        """Run a query for many keys in one go, unless it has been; `prefetched` returns the rows.

        Args:
            kind: The kind of the rows; those of one key come in their order.
            name: The query; its parameter `wanted` takes the keys as JSON.
            keys: Each key with its form in the database.
            keys_of: Returns the keys whose lists a row belongs to.
            values: The query's other parameters.
        """
        lists = self.prefetched_keys.setdefault(name, {})
        wanted = {key: called for key, called in keys.items() if key not in lists}
        if not wanted:
            return
        found: dict[Key, list[Key]] = {key: [] for key in wanted}
        for row in self.cache_rows(kind, self.query(name, kind, wanted=json_text(list(wanted.values())), **values)):
            for key in keys_of(row):
                if key in found:
                    found[key].append(kind.key_of(row))
        lists.update(found)

    def is_prefetched(self, name: str, key: Key) -> bool:
        """Return whether a query has been run for a key."""
        return key in self.prefetched_keys.get(name, ())

    def prefetched(self, kind: Kind[M], name: str, key: Key) -> list[M]:
        """Return the current rows that a prefetched query found for a key."""
        rows = (self.get(kind, found) for found in self.prefetched_keys[name][key])
        return [row for row in rows if row is not None]

    # ---------------------------------------------------------------------------------------- campaigns

    def ref(self, workspace_id: str, campaign_id: str) -> CampaignRef | None:
        """Return the reference of a campaign, even while it loads; None if the workspace has no such campaign."""
        if campaign_id not in self._refs:
            self.prefetch_refs([campaign_id])
        ref = self._refs.get(campaign_id)
        return ref if ref is not None and ref.workspace_id == workspace_id else None

    def prefetch_refs(self, campaign_ids: Iterable[str]) -> None:
        """Read the references of many campaigns, in one go."""
        wanted = [campaign_id for campaign_id in dict.fromkeys(campaign_ids) if campaign_id not in self._refs]
        if wanted:
            rows = self.backend.query("campaigns.refs", {"wanted": json_text(wanted)})
            self._know(*(CampaignRef(*row) for row in rows))
            if self.read_only:
                # Not cached in a writing transaction, which may create the campaign.
                for campaign_id in wanted:
                    self._refs.setdefault(campaign_id, None)

    def evict_ref(self, campaign_id: str) -> None:
        """Forget the reference of a campaign that was created or deleted."""
        ref = self._refs.pop(campaign_id, None)
        if ref is not None:
            self._by_number.pop(ref.number, None)

    def add_counters(self, key: Key, change: Counters) -> Counters:
        """Add to a campaign's counters and return them, or raise `LookupError`."""
        self.require_writing()
        campaign = self.get(CAMPAIGNS, key)
        if campaign is None or self.ref(campaign.workspace_id, campaign.id) is None:
            raise LookupError(f"There is no such {CAMPAIGNS.noun}.")
        counters = campaign.counters + change
        self.written_in.add(campaign.workspace_id)
        self.journal.set(self._rows[CAMPAIGNS.table].known, key, copy_with(campaign, counters=counters))
        self.journal.set(self.counted, campaign.id, self.counted.get(campaign.id, _NOTHING) + change)
        self._pending_tables.add(CAMPAIGNS.table)
        return counters

    # ------------------------------------------------------------------------------------ what is appended

    def append(self, table: str, statement: str, row: Sequence[Value]) -> None:
        """Append a row by a statement, which runs at the flush."""
        self.require_writing()
        self.journal.append(self.appended[table], (statement, row))
        self._pending_tables.add(table)

    def raise_change(self) -> None:
        """Raise the change number with the next flush of what is numbered."""
        self._draw_change_for(None)

    def schedule(self, work: WorkItem) -> None:
        """Write a unit's due time; its change number is drawn with the next flush of what is numbered.

        Not before, so that no later commit of another transaction has a lower number.
        """
        rows, key = self._rows[WORK.table], WORK.key_of(work)
        self._file_written(rows, key)
        self.journal.set(rows.known, key, work)
        self._draw_change_for(key)

    def present_change(self) -> int:
        """Return the latest change number."""
        [row] = self.query("work.last_change", _LAST_CHANGE)
        return int(row[0])

    def stop_count(self, workspace_id: str) -> int:
        """Return the stops of a workspace and for all."""
        keys = dict.fromkeys(((ALL_WORKSPACES,), (workspace_id,)))
        self.prefetch(STOPS, keys)
        return sum(self.get(STOPS, key) or 0 for key in keys)

    def count_stop(self, workspace_id: str) -> None:
        """Count a stop of a workspace, or for all."""
        self.put(STOPS, (workspace_id,), (self.get(STOPS, (workspace_id,)) or 0) + 1)

    # -------------------------------------------------------------------------------------------- flush

    def flush(self, *, numbered: bool = True) -> None:
        """Write what is pending, in sets.

        Args:
            numbered: Also what gets numbers in the order of the commits. Where transactions run side by side, others
                that need numbers wait for this one from then on.

        Raises:
            RollbackRequired: A row was refused, perhaps another operation's; the cause is the database's error.
        """
        if not self._pending_tables or not (numbered or self._pending_tables - NUMBERED):
            return
        if len(self.journal) > self._mark:
            self._flushed = True
        try:
            self._flush_rows()
            if numbered:
                self._flush_numbered(at_commit=False)
        except Exception as error:
            if self.backend.is_row_error(error):
                raise RollbackRequired from error
            raise

    def flush_at_commit(self) -> None:
        """Write everything pending; what is numbered is written together with the COMMIT, which must follow.

        Raises:
            RollbackRequired: A row was refused, perhaps another operation's; the cause is the database's error.
        """
        self.flush(numbered=False)
        self._flush_numbered(at_commit=True)

    def _flush_numbered(self, *, at_commit: bool) -> None:
        writes = list(self._numbered_writes())
        # A commit takes the place of what was kept for one that was never made.
        if writes or at_commit:
            self.backend.write_numbered(writes, at_commit=at_commit)
        self._pending_tables.clear()

    def _flush_rows(self) -> None:
        writes = list(self._pending_writes())
        for (kind, change, rows), written in zip(writes, self.backend.write_all(writes), strict=True):
            if kind is None or change == "delete" or written == len(rows):
                continue
            if change == "insert":
                raise AlreadyExists(f"There is such a {kind.noun} already.")
            raise LookupError(f"There is no such {kind.noun}.")
        for known in self._rows.values():
            known.pending.clear()
        self.appended["audit"].clear()
        self.counted.clear()
        self._pending_tables &= NUMBERED

    def _pending_writes(self) -> Iterator[Write]:
        for rows in self._rows.values():
            yield from self._pending_rows(rows)
            if rows.kind is CAMPAIGNS and self.counted:
                changes = [(*_counts(change), self._number(id_)) for id_, change in self.counted.items()]
                yield Write(None, "campaigns.add_counters", changes)
        yield from self._appended_writes("audit")

    def _numbered_writes(self) -> Iterator[Write]:
        """Yield what draws change numbers, in the order in which units were scheduled, and the trail; forget both."""
        if self._unnumbered:
            known, count = self._rows[WORK.table].known, len(self._unnumbered)
            units = [
                [*WORK.row(key, known[key])[:-1], count - place]
                for place, key in enumerate(sorted(self._unnumbered, key=self._unnumbered.__getitem__), 1)
                if key is not None and known[key] is not None
            ]
            self._unnumbered.clear()
            yield Write(None, "work.draw_changes", [[count]])
            if units:
                yield Write(None, "work.schedule", units)
        yield from self._appended_writes(TRAIL.table)
        self.appended[TRAIL.table].clear()

    def _appended_writes(self, table: str) -> Iterator[Write]:
        for statement, alike in groupby(self.appended[table], key=itemgetter(0)):
            yield Write(None, f"{table}.{statement}", [row for _, row in alike])

    def _draw_change_for(self, key: Key | None) -> None:
        self.require_writing()
        self._scheduled += 1
        self.journal.set(self._unnumbered, key, self._scheduled)
        self._pending_tables.update((WORK.table, _LAST_CHANGE))

    def _pending_rows(self, rows: Rows) -> Iterator[Write]:
        kind = rows.kind
        keys = rows.by_change() if rows.pending else {}
        for change in _WRITE_ORDER:
            if change not in keys:
                continue
            if change == "delete":
                yield Write(kind, change, [self._database_key(kind, key) for key in keys[change]])
            else:
                yield Write(kind, change, [self._values(kind, key, rows.known[key]) for key in keys[change]])

    # ------------------------------------------------------------------------------------------ details

    def require_written_within(self, workspace_ids: Set[str]) -> None:
        """Raise `StorageError` if the operation has written rows outside these workspaces."""
        outside = self.written_in - workspace_ids - {_UNKNOWN}
        if outside:
            names = ", ".join(sorted(one or "all workspaces" for one in outside))
            raise StorageError(f"An operation has written in workspaces that it had not named: {names}.")

    def require_writing(self) -> None:
        """Raise `StorageError` in a transaction that only reads."""
        if self.read_only:
            raise StorageError("This operation may only read: run it with Storage.write to change anything.")

    def number(self, workspace_id: str, campaign_id: str) -> int | None:
        """Return the number of a workspace's campaign, or None."""
        ref = self.ref(workspace_id, campaign_id)
        return None if ref is None else ref.number

    def _filed_under(self) -> Set[str]:
        return {one for rows in self._rows.values() for one in rows.by_workspace}

    def _owner_of(self, kind: Kind[Any]) -> Callable[[Key], str]:
        """Return a function that returns the workspace of a key of this kind."""
        if (place := kind.workspace_key) is not None:
            return itemgetter(place)
        if (of_campaign := kind.campaign_key) is None:
            return lambda _: ALL_WORKSPACES

        def of_reference(key: Key) -> str:
            ref = self._refs.get(key[of_campaign])
            return _UNKNOWN if ref is None else ref.workspace_id

        return of_reference

    def _file(self, rows: Rows, keys: Iterable[Key]) -> None:
        """File keys of rows under their workspaces."""
        by_workspace, owner_of = rows.by_workspace, rows.owner_of
        for key in keys:
            by_workspace[owner_of(key)].add(key)

    def _file_written(self, rows: Rows, key: Key) -> None:
        """File the key of a row that the operation writes, and note its workspace."""
        owner = rows.owner_of(key)
        rows.by_workspace[owner].add(key)
        self.written_in.add(owner)

    def _write(self, rows: Rows, key: Key, row: object, change: Change) -> None:
        self._file_written(rows, key)
        self.journal.set(rows.known, key, row)
        if rows.pending.get(key) == "insert" and change == "delete":
            # It was never flushed.
            self.journal.drop(rows.pending, key)
        else:
            kept = rows.pending.get(key) == "insert" and change != "delete"
            self.journal.set(rows.pending, key, "insert" if kept else change)
        self._pending_tables.add(rows.kind.table)

    def _insert_at_once(self, kind: Kind[Any], rows: Sequence[Sequence[Value]]) -> int:
        self.flush(numbered=False)
        before, self._flushed = self._flushed, True
        written = self.backend.write(kind, "insert", rows)
        self._flushed = before or written > 0
        return written

    def _load(self, kind: Kind[Any], keys: Collection[Key]) -> None:
        known = self._rows[kind.table].known
        loadable = {}
        for key in keys:
            _check_key(key)
            if kind.campaign_key is None or key[kind.campaign_key] is None or self._known_campaign(key, kind):
                loadable[tuple(self._database_key(kind, key))] = key
        if loadable:
            indexes = [kind.columns.index(name) for name in kind.key]
            rows = self._rows_with(kind, loadable)
            self._learn_numbers(kind, rows)
            for row in rows:
                known[loadable[tuple(row[index] for index in indexes)]] = kind.model(row, self._reference(kind, row))
        for key in keys:
            known.setdefault(key, None)
        self._file(self._rows[kind.table], keys)

    def _rows_with(self, kind: Kind[Any], keys: Collection[Sequence[Value]]) -> Sequence[Row]:
        try:
            return list(self.backend.load(kind, keys))
        except Exception:
            # Some databases cannot even be queried for such a text: no row has it.
            possible = [key for key in keys if not any(map(_text_problem, key))]
            if len(possible) == len(keys):
                raise
            return list(self.backend.load(kind, possible)) if possible else []

    def _known_campaign(self, key: Key, kind: Kind[Any]) -> bool:
        return self._refs.get(key[kind.campaign_key or 0]) is not None

    def _reference(self, kind: Kind[Any], row: Row) -> CampaignRef:
        return (
            NO_CAMPAIGN if kind.campaign is None or row[kind.campaign] is None else self._by_number[row[kind.campaign]]
        )

    def _learn_numbers(self, kind: Kind[Any], rows: Iterable[Row]) -> None:
        if kind.campaign is None:
            return
        numbers = {row[kind.campaign] for row in rows}
        wanted = [number for number in numbers if number is not None and number not in self._by_number]
        if wanted:
            found = self.backend.query("campaigns.refs_by_number", {"wanted": json_text(wanted)})
            self._know(*(CampaignRef(*row) for row in found))

    def _know(self, *refs: CampaignRef) -> None:
        for ref in refs:
            self._refs[ref.id] = self._by_number[ref.number] = ref

    def _number(self, campaign_id: str) -> int:
        ref = self._refs.get(campaign_id)
        if ref is None:
            raise LookupError("There is no such campaign.")
        return ref.number

    def _database_key(self, kind: Kind[Any], key: Key) -> Sequence[Value]:
        if kind.campaign_key is None:
            return key
        values = list(key)
        values[kind.campaign_key] = self._number(key[kind.campaign_key])
        return values

    def _values(self, kind: Kind[M], key: Key, row: M) -> Sequence[Value]:
        values = kind.row(key, row)
        if kind.campaign is not None:
            campaign_id = key[kind.campaign_key] if kind.campaign_key is not None else values[kind.campaign]
            values[kind.campaign] = None if campaign_id is None else self._number(str(campaign_id))
        return values


def _text_problem(value: object) -> str | None:
    return text_problem(value) if isinstance(value, str) else None


def _check_texts(values: Iterable[object]) -> None:
    """Check texts that a caller has given after a database has refused them.

    Raises:
        InvalidRequest: One cannot be stored, so that nothing can be found by it.
    """
    for value in values:
        problem = _text_problem(value)
        if problem is not None:
            raise InvalidRequest(f"A text that is looked for {problem}.")


def _check_key(key: Key) -> None:
    """Check what a caller gave as identifiers; no database takes anything else.

    Raises:
        InvalidRequest: It is another object, such as a workspace.
    """
    for part in key:
        if not isinstance(part, str | int | float | bytes | None):
            raise wrong_identifier(part)
