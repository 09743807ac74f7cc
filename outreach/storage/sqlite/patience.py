"""Waiting for another process's lock, for a while, and not at all when the storage is being closed."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

BUSY_SECONDS: Final = 5.0
"""How long a transaction waits for another process's lock: somebody waits for its answer."""

BULK_SECONDS: Final = 30.0
"""How long large work waits for it: of a long load all would be lost."""

LAST_SECONDS: Final = 0.5
"""How much longer once the storage is being closed."""


class Patience:
    """How long a connection waits for locks; each try waits for as long as its `busy_timeout` says.

    In real seconds, whatever the engine's clock says: it is another process that is waited for.
    """

    def __init__(self) -> None:
        self._ends = float("inf")

    def end(self) -> None:
        """Have whoever waits now or later give up soon; to be called in any thread."""
        self._ends = time.monotonic() + LAST_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether the storage is being closed."""
        return self._ends != float("inf")

    def keep_trying(self, step: Callable[[], T]) -> T:
        """Return what a step returns, which has no effect where it fails for a lock; try it again until then.

        Raises:
            sqlite3.Error: What the step raises: for another process's lock once the patience is over.
        """
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return step()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > min(until, self._ends):
                    raise


def is_busy(error: Exception) -> bool:
    """Return whether an error is another process's lock."""
    # The low byte is the kind, the rest says more of it.
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
