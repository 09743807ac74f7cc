"""Asking an analyser of calls, which may be the application's own code and fail."""

from __future__ import annotations

import logging

from outreach.models.call import CallOutcome
from outreach.models.reports import CallReport
from outreach.notices import Notices
from outreach.protocols.analyser import Analyser


class ToldAnalyser:
    """An analyser whose errors are told in the log, and taken as "nobody can tell": the call has ended all the same.

    Args:
        analyser: The one that is asked.
        notices: Where its errors are told.
    """

    def __init__(self, analyser: Analyser, notices: Notices) -> None:
        self._analyser = analyser
        self._notices = notices

    def outcome(self, report: CallReport) -> CallOutcome | None:
        """Return the outcome of an ended call; None when nobody can tell."""
        try:
            return self._analyser.outcome(report)
        except Exception as error:
            # Its type alone, and no traceback: what it says may hold what was said in the call, or the number.
            kind = type(error).__name__
            self._notices.trouble(
                ("analyser",),
                kind,
                "The analyser of calls failed with %s: the outcome of a call stays open.",
                kind,
                level=logging.ERROR,
                action="analyser_failed",
                error_type=kind,
            )
            return None
