"""What the log tells of how providers answer: each account's first trouble of each class, a count, and its end."""

from __future__ import annotations

import logging
from typing import Any, Final

from outreach.log_throttle import LogThrottle, account
from outreach.models.call import CallOutcome
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import CallReport
from outreach.models.states import DispatchState
from outreach.policy.dispatch_history import LOCAL_INTERRUPTIONS, PROVIDER_FAILURES
from outreach.protocols.voice import Analyser

_WORDS: Final = {
    "provider_auth": "refuses the account's credentials",
    "provider_funds": "refuses requests, because the account has run out of funds",
    "provider_error": "answers with an error",
    "bad_sender": "refuses the sending number",
    "rejected": "refuses requests",
    "not_connected": "cannot be reached",
    "timeout": "does not answer in time",
    "dropped": "drops connections",
    "unreadable": "answers with something that cannot be read",
    "temporary": "asks to be tried again",
}


def log_provider_outcome(
    log_throttle: LogThrottle, dispatch: Dispatch, outcome: DispatchOutcome, words: str | None = None
) -> None:
    """Tell of an outcome that says something of the provider or the account, and not of the contact.

    Args:
        log_throttle: Where it is told.
        dispatch: What was asked.
        outcome: What came of it.
        words: What is wrong, in our own words; the provider's may hold numbers.
    """
    whose = account(dispatch.workspace_id, dispatch.provider)
    fields: dict[str, Any] = {"workspace_id": dispatch.workspace_id, "provider": dispatch.provider}
    if outcome.state is DispatchState.ACCEPTED:
        log_throttle.recovered(
            whose,
            "%s takes requests of workspace %s again.",
            dispatch.provider,
            dispatch.workspace_id,
            action="account_again",
            **fields,
        )
        return
    reason = _trouble(outcome)
    if reason is None:
        return
    if words is None:
        code = f" ({outcome.error_code})" if outcome.error_code else ""
        what = _WORDS.get(reason, f"is in trouble: {reason}")
        words = f"{dispatch.provider} {what}{code}, for workspace {dispatch.workspace_id}."
    log_throttle.problem(
        whose,
        reason,
        "%s",
        words,
        level=logging.WARNING,
        action="account_not_usable" if reason == "provider_auth" else "account_in_trouble",
        reason=reason,
        dispatch_id=dispatch.id,
        **fields,
    )


def _trouble(outcome: DispatchOutcome) -> str | None:
    """Return the class of trouble that an outcome is; None for one that says nothing of the provider."""
    reason = outcome.reason or str(outcome.state)
    match outcome.state:
        case DispatchState.REFUSED:
            return reason if reason in PROVIDER_FAILURES else None
        case DispatchState.UNKNOWN:
            return None if reason in LOCAL_INTERRUPTIONS else reason
        case DispatchState.NOT_SENT:
            # Those of our own making (too late, a contact whose text cannot be sent) have other reasons.
            return reason if reason == "not_connected" else None
        case _:
            return None


class SafeAnalyser:
    """An analyser whose errors are told in the log, and taken as "nobody can tell": the call has ended all the same.

    Args:
        analyser: The one that is asked.
        log_throttle: Where its errors are told.
    """

    def __init__(self, analyser: Analyser, log_throttle: LogThrottle) -> None:
        self._analyser = analyser
        self._log_throttle = log_throttle

    def outcome(self, report: CallReport) -> CallOutcome | None:
        """Return the outcome of an ended call; None when nobody can tell."""
        try:
            return self._analyser.outcome(report)
        except Exception as error:
            # Its type alone, and no traceback: what it says may hold what was said in the call, or the number.
            kind = type(error).__name__
            self._log_throttle.problem(
                ("analyser",),
                kind,
                "The analyser of calls failed with %s: the outcome of a call stays open.",
                kind,
                level=logging.ERROR,
                action="analyser_failed",
                error_type=kind,
            )
            return None
