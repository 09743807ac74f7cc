"""Telling how far work on a whole database is, where it takes long."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

ProgressCallback = Callable[[str], None]
"""Is handed a sentence for people; it must not raise, and may be called in another thread."""

PROGRESS_SECONDS: Final = 2.0
"""What is done before that is not told, and after it no oftener."""

_OPERATIONS: Final = 100_000
"""Steps of SQLite's own machine between two looks at the clock: some milliseconds."""

_log = logging.getLogger("outreach")


def log(sentence: str) -> None:
    """Tell a sentence as a line of the log."""
    _log.info("%s", sentence, extra={"action": "database_migrating"})


class Progress:
    """How far a piece of work is.

    Args:
        work: What it is, at the beginning of a sentence.
        tell: Where it is told; None for the log.
    """

    def __init__(self, work: str, tell: ProgressCallback | None = None) -> None:
        self._work = work
        self._tell = tell or log
        self._begun = self._told = time.monotonic()
        self._what = ""
        self._share: float | None = None
        self.was_told = False

    def at(self, what: str, share: float | None = None) -> None:
        """Note what is being done, and how much of it is done where that is known."""
        self._what, self._share = what, share
        self._look()

    @contextmanager
    def watching(self, raw: sqlite3.Connection, what: str) -> Iterator[None]:
        """Tell of what is done over a connection within the block, also while one statement lasts."""
        self.at(what)
        raw.set_progress_handler(self._look, _OPERATIONS)
        try:
            yield
        finally:
            raw.set_progress_handler(None, 0)

    @property
    def seconds(self) -> float:
        """How long it has lasted."""
        return time.monotonic() - self._begun

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._told < PROGRESS_SECONDS:
            return
        self._told, self.was_told = now, True
        share = "" if self._share is None else f", {self._share:.0%}"
        self._tell(f"{self._work}: {self._what}{share} ({self.seconds:.0f} s so far).")

    def done(self, sentence: str) -> None:
        """Tell of the end, where anything was told before."""
        if self.was_told:
            self._tell(f"{sentence} ({self.seconds:.0f} s).")
