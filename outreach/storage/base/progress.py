"""Reporting the progress of long work on a whole database."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

ProgressCallback = Callable[[str], None]
"""Receives a sentence for people; it must not raise, and may be called in another thread."""

PROGRESS_SECONDS: Final = 2.0
"""The time between two reports, and before the first."""

_OPERATIONS: Final = 100_000
"""SQLite virtual machine steps between two checks of the time: some milliseconds."""

_log = logging.getLogger("outreach")


def log(sentence: str) -> None:
    """Log a sentence."""
    _log.info("%s", sentence, extra={"action": "database_migrating"})


class Progress:
    """The progress of some work.

    Args:
        work: What it is, as the beginning of a sentence.
        report: Receives the reports; None for the log.
    """

    def __init__(self, work: str, report: ProgressCallback | None = None) -> None:
        self._work = work
        self._report = report or log
        self._begun = self._reported_at = time.monotonic()
        self._what = ""
        self._share: float | None = None
        self.has_reported = False

    def at(self, what: str, share: float | None = None) -> None:
        """Set the current step and, if known, the share that is done."""
        self._what, self._share = what, share
        self._look()

    @contextmanager
    def watching(self, raw: sqlite3.Connection, what: str) -> Iterator[None]:
        """Report a step over a connection within the block, also during one statement."""
        self.at(what)
        raw.set_progress_handler(self._look, _OPERATIONS)
        try:
            yield
        finally:
            raw.set_progress_handler(None, 0)

    @property
    def seconds(self) -> float:
        """How long the work has lasted."""
        return time.monotonic() - self._begun

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._reported_at < PROGRESS_SECONDS:
            return
        self._reported_at, self.has_reported = now, True
        share = "" if self._share is None else f", {self._share:.0%}"
        self._report(f"{self._work}: {self._what}{share} ({self.seconds:.0f} s so far).")

    def done(self, sentence: str) -> None:
        """Report the end, if anything was reported before."""
        if self.has_reported:
            self._report(f"{sentence} ({self.seconds:.0f} s).")
