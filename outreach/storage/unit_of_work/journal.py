"""The cached rows of a unit of work, their pending writes, and the journal that undoes changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Any, Final

from outreach.storage.unit_of_work.backend import Change
from outreach.storage.unit_of_work.kinds import Key, Kind


class AlreadyExists(Exception):
    """A row with this identity, or a second open dispatch, already exists; nothing was written."""


class RollbackRequired(BaseException):
    """The transaction must be rolled back and its operations run again, each alone.

    The cause is the database's error about a row; there is none if a failed operation cannot be undone alone.
    """


_MISSING: Final = object()


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
    """

    __slots__ = ("kind", "known", "pending")

    def __init__(self, kind: Kind[Any]) -> None:
        self.kind = kind
        self.known: dict[Key, Any] = {}
        self.pending: dict[Key, Change] = {}

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
