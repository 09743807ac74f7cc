"""The rows that a working set knows, what is to be written of them, and how all that is undone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Any, Final

from outreach.working_set.backend import Change
from outreach.working_set.kinds import Key, Kind


class AlreadyExists(Exception):
    """A row with this identity, or a second open dispatch, is already there; the insert changed nothing."""


class RollbackRequired(BaseException):
    """The transaction cannot be brought to a sound state any more: it is to be rolled back, and run again in parts.

    Its cause is the error that a row was refused with; it has none where a failed operation cannot be undone alone.
    """


_MISSING: Final = object()


class Journal:
    """What dictionaries and lists held before each change, so that a stretch of changes can be taken back."""

    def __init__(self) -> None:
        self._entries: list[tuple[Any, Any, Any]] = []

    def __len__(self) -> int:
        """Return how many changes are noted."""
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
        """Take back every change since the journal had this length."""
        while len(self._entries) > mark:
            where, key, before = self._entries.pop()
            if isinstance(where, list):
                del where[before:]
            elif before is _MISSING:
                where.pop(key, None)
            else:
                where[key] = before

    def clear(self) -> None:
        """Forget all changes: they are there to stay."""
        self._entries.clear()


class Rows:
    """The rows of one kind, as far as they are known.

    Attributes:
        known: By key; None for a key that has no row.
        pending: What is to be done with the row of a key; the row itself is in `known`.
    """

    __slots__ = ("kind", "known", "pending")

    def __init__(self, kind: Kind[Any]) -> None:
        self.kind = kind
        self.known: dict[Key, Any] = {}
        self.pending: dict[Key, Change] = {}

    def by_change(self) -> dict[Change, list[Key]]:
        """Return the keys of what is to be written, by what is to be done."""
        keys: defaultdict[Change, list[Key]] = defaultdict(list)
        for key, change in self.pending.items():
            keys[change].append(key)
        return keys

    def trim(self, most: int) -> None:
        """Forget those known for longest, when there are more than so many; nothing may be pending."""
        if len(self.known) > most:
            kept = list(self.known.items())[-(most // 2) :]
            self.known.clear()
            self.known.update(kept)
