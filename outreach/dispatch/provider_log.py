"""Logging provider failures: each account's first of each class, then a count, and the recovery."""

from __future__ import annotations

import logging
from typing import Any, Final, get_args

from outreach.core.log_throttle import LogThrottle, account
from outreach.models.call import CallOutcome
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import CallReport
from outreach.models.states import DispatchState
from outreach.protocols.voice import Analyser
from outreach.providers.http.call_plugin import call_plugin_function
from outreach.rules.dispatch_history import LOCAL_INTERRUPTIONS, PROVIDER_FAILURES

_OUTCOMES: Final = get_args(CallOutcome)

_FAILURE_TEXTS: Final = {
    "provider_auth": "rejects the account's credentials",
    "provider_funds": "rejects requests because the account has run out of funds",
    "provider_error": "responds with an error",
    "bad_sender": "rejects the sending number",
    "rejected": "rejects requests",
    "not_connected": "cannot be reached",
    "timeout": "does not respond in time",
    "dropped": "drops connections",
    "unreadable": "responds with something unreadable",
    "repeated_id": "responds with the identifier of another request",
    "temporary": "asks for a retry",
}


def log_provider_outcome(
    log_throttle: LogThrottle, dispatch: Dispatch, outcome: DispatchOutcome, problem: str | None = None
) -> None:
    """Log an outcome that concerns the provider or the account rather than the contact.

    `problem` is our own message, if any: the provider's may contain numbers.
    """
    whose = account(dispatch.workspace_id, dispatch.provider)
    fields: dict[str, Any] = {"workspace_id": dispatch.workspace_id, "provider": dispatch.provider}
    if outcome.state is DispatchState.ACCEPTED:
        log_throttle.recovered(
            whose,
            "%s accepts requests of workspace %s again.",
            dispatch.provider,
            dispatch.workspace_id,
            action="account_again",
            **fields,
        )
        return
    reason = _failure_class(outcome)
    if reason is None:
        return
    if problem is None:
        code = f" ({outcome.error_code})" if outcome.error_code else ""
        what = _FAILURE_TEXTS.get(reason, f"fails: {reason}")
        problem = f"{dispatch.provider} {what}{code}, for workspace {dispatch.workspace_id}."
    log_throttle.problem(
        whose,
        reason,
        "%s",
        problem,
        level=logging.WARNING,
        action="account_not_usable" if reason == "provider_auth" else "account_in_trouble",
        reason=reason,
        dispatch_id=dispatch.id,
        **fields,
    )


def log_throttled(log_throttle: LogThrottle, workspace_id: str, provider: str, seconds: float) -> None:
    """Log that a provider throttles a workspace."""
    log_throttle.problem(
        account(workspace_id, provider),
        "provider_throttle",
        "%s: workspace %s is rate-limited; sending paused for %g s.",
        provider,
        workspace_id,
        seconds,
        action="provider_throttle",
        workspace_id=workspace_id,
        provider=provider,
    )


def _failure_class(outcome: DispatchOutcome) -> str | None:
    """Return the class of a provider's failure; None for other outcomes."""
    reason = outcome.reason or str(outcome.state)
    match outcome.state:
        case DispatchState.REFUSED:
            return reason if reason in PROVIDER_FAILURES else None
        case DispatchState.UNKNOWN:
            return None if reason in LOCAL_INTERRUPTIONS else reason
        case DispatchState.NOT_SENT:
            # Other reasons are of our own making.
            return reason if reason == "not_connected" else None
        case _:
            return None


class SafeAnalyser:
    """An analyser whose errors are logged and count as "unknown", because the call has ended all the same.

    So does a value that is no outcome, such as a language model's word: readers of calls know the listed outcomes only.
    """

    def __init__(self, analyser: Analyser, log_throttle: LogThrottle) -> None:
        self._analyser = analyser
        self._log_throttle = log_throttle

    def outcome(self, report: CallReport) -> CallOutcome | None:
        """Return the outcome of an ended call; None if it is unknown."""
        try:
            outcome = call_plugin_function(self._analyser.outcome, report)
        except Exception as error:
            # Its type alone: the message may contain what was said in the call, or the number.
            self._log(report, type(error).__name__, "failed with %s")
            return None
        if outcome is None or outcome in _OUTCOMES:
            return outcome
        # The same of a verdict in words of its own.
        self._log(report, type(outcome).__name__, "returned a %s that is no outcome")
        return None

    def _log(self, report: CallReport, kind: str, what: str) -> None:
        self._log_throttle.problem(
            ("analyser",),
            kind,
            f"The call analyser {what}: the outcome of a call stays open.",
            kind,
            level=logging.ERROR,
            action="analyser_failed",
            error_type=kind,
            dispatch_id=report.dispatch_id,
            workspace_id=report.workspace_id,
            provider=report.provider,
        )
