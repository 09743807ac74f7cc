"""What the engine asks of an analyser of calls."""

from __future__ import annotations

from typing import Protocol

from outreach.models.call import CallOutcome
from outreach.models.reports import CallReport


class Analyser(Protocol):
    """Decides what came of a call that has ended."""

    def outcome(self, report: CallReport) -> CallOutcome | None:
        """Return the outcome of an ended call; None when nobody can tell. It must not block or wait.

        What it raises is told in the log by its type alone, and taken as None (`runners.verdicts`).
        """
        ...
