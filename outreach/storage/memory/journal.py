"""The undo journal: what a transaction has written, so that a failed one leaves no trace."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from outreach.errors import StorageError


class Undoable(Protocol):
    """Something whose rows can be put back."""

    def place(self, key: Any, row: Any) -> None:
        """Make this the row under the key, or remove the key for None, without writing it in the journal."""
        ...


class Journal:
    """One for all tables of a storage: every row's value before each write, in the order of the writes.

    Indexes are functions of the rows, so that undoing the rows undoes the indexes too. Outside
    `recording` there is nowhere to write to: a write is refused before it has changed anything.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[Undoable, Hashable, object]] | None = None

    def record(self, table: Undoable, key: Hashable, before: object) -> None:
        """Note a row's value before it is written over.

        Raises:
            StorageError: The operation may only read, or its transaction has ended.
        """
        if self._entries is None:
            raise StorageError("This operation may only read: run it with Storage.write to change anything.")
        self._entries.append((table, key, before))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Let the block write; undo all of it, last write first, when it raises."""
        entries: list[tuple[Undoable, Hashable, object]] = []
        self._entries = entries
        try:
            yield
        except BaseException:
            for table, key, before in reversed(entries):
                table.place(key, before)
            raise
        finally:
            self._entries = None
