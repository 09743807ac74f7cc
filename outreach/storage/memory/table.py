"""Rows under a key, and sorted indexes over them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from outreach.protocols.storage import AlreadyThere
from outreach.storage.memory.journal import Journal

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

Order = tuple[Any, ...]
Place = tuple[Hashable, Order]
"""The group that a row stands in, and where in that group: total within the group."""


class Index(Generic[K, R]):
    """Some of a table's rows, in groups, each in order.

    Args:
        place: Says where a row stands; None keeps it out of this index. A pure function of the row.
    """

    def __init__(self, place: Callable[[R], Place | None]) -> None:
        self._place = place
        self._groups: dict[Hashable, list[tuple[Order, K]]] = {}

    def __contains__(self, group: Hashable) -> bool:
        return group in self._groups

    def move(self, key: K, before: R | None, after: R | None) -> None:
        """Follow one row from what it was to what it is; None is no row."""
        old = None if before is None else self._place(before)
        new = None if after is None else self._place(after)
        if old == new:
            return
        if old is not None:
            group, order = old
            entries = self._groups[group]
            del entries[bisect_left(entries, order, key=_order_of)]
            if not entries:
                del self._groups[group]
        if new is not None:
            group, order = new
            insort(self._groups.setdefault(group, []), (order, key), key=_order_of)

    def keys(
        self, group: Hashable, *, after: Order | None = None, until: Order | None = None, limit: int | None = None
    ) -> Sequence[K]:
        """Return the keys of a group in order: those greater than `after`, up to `until`, at most `limit`."""
        entries = self._groups.get(group, [])
        start = 0 if after is None else bisect_right(entries, after, key=_order_of)
        end = len(entries) if until is None else bisect_right(entries, until, key=_order_of)
        if limit is not None:
            end = min(end, start + limit)
        return [key for _, key in entries[start:end]]

    def first(self, group: Hashable) -> K | None:
        """Return the first key of a group; None when it is empty."""
        entries = self._groups.get(group)
        return entries[0][1] if entries else None

    def last(self, group: Hashable) -> K | None:
        """Return the last key of a group; None when it is empty."""
        entries = self._groups.get(group)
        return entries[-1][1] if entries else None

    def content(self) -> dict[Hashable, list[tuple[Order, K]]]:
        """Return a copy of everything, to compare."""
        return {group: list(entries) for group, entries in self._groups.items()}


class Table(Generic[K, R]):
    """Rows under a key; every write goes through the journal, and to every index.

    Args:
        journal: The journal that all tables of a storage share.
        kind: What a row is called in messages.
    """

    def __init__(self, journal: Journal, kind: str) -> None:
        self._journal = journal
        self._kind = kind
        self._rows: dict[K, R] = {}
        self._indexes: list[Index[K, R]] = []

    def index(self, place: Callable[[R], Place | None]) -> Index[K, R]:
        """Add an index; only while the table is empty."""
        index = Index[K, R](place)
        self._indexes.append(index)
        return index

    def __contains__(self, key: K) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: K) -> R | None:
        """Return the row under a key; None when there is none."""
        return self._rows.get(key)

    def rows(self, keys: Sequence[K]) -> Sequence[R]:
        """Return the rows under these keys, in the order of the keys."""
        return [self._rows[key] for key in keys]

    def insert(self, key: K, row: R) -> None:
        """Write a new row.

        Raises:
            AlreadyThere: The key has a row.
        """
        if key in self._rows:
            raise AlreadyThere(f"There is a {self._kind} {key!r} already.")
        self.put(key, row)

    def replace(self, key: K, row: R) -> None:
        """Write over a row.

        Raises:
            LookupError: The key has none.
        """
        if key not in self._rows:
            raise self.missing(key)
        self.put(key, row)

    def put(self, key: K, row: R) -> None:
        """Write a row, over the one that the key has."""
        self._journal.record(self, key, self._rows.get(key))
        self.place(key, row)

    def delete(self, key: K) -> None:
        """Remove a row.

        Raises:
            LookupError: The key has none.
        """
        self._journal.record(self, key, self._rows[key])
        self.place(key, None)

    def place(self, key: K, row: R | None) -> None:
        """Make this the row under the key, or remove the key for None, without writing it in the journal."""
        before = self._rows.get(key)
        for index in self._indexes:
            index.move(key, before, row)
        if row is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = row

    def missing(self, key: K) -> LookupError:
        """Return the error for a row that is not there."""
        return LookupError(f"There is no {self._kind} {key!r}.")

    def content(self) -> tuple[dict[K, R], list[dict[Hashable, list[tuple[Order, K]]]]]:
        """Return a copy of the rows and of the indexes, to compare."""
        return dict(self._rows), [index.content() for index in self._indexes]


def _order_of(entry: tuple[Order, Any]) -> Order:
    return entry[0]
