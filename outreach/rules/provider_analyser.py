"""The outcome of a call as its provider sees it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from outreach.models.states import CallStatus

if TYPE_CHECKING:
    from outreach.models.call import CallOutcome
    from outreach.models.reports import CallReport

_OUTCOMES_BY_STATUS: Final[Mapping[CallStatus, CallOutcome]] = MappingProxyType(
    {
        CallStatus.BUSY: "busy",
        CallStatus.NO_ANSWER: "no_answer",
        CallStatus.FAILED: "failed",
    }
)


class ProviderAnalyser:
    """Takes the provider's outcome, else the one that the end of the call implies."""

    def outcome(self, report: CallReport) -> CallOutcome | None:
        """Return the outcome of an ended call; None if unknown."""
        if report.outcome is not None:
            return report.outcome
        if report.answered_by == "machine":
            return "voicemail"
        return _OUTCOMES_BY_STATUS.get(report.status)
