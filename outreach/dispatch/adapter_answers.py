"""The answers of adapters, as far as they can be recorded, and the log of provider failures.

Each account's first failure of each class is logged, then a count, and the recovery.
"""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, get_args

import attrs

from outreach.core.log_throttle import LogThrottle, account
from outreach.models.call import MAX_TRANSCRIPT, CallOutcome, is_cost
from outreach.models.dispatch import FAILURE_CLASSES, Dispatch, DispatchOutcome
from outreach.models.message import Keyword
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.protocols.adapter import CallbackEvent, InboundMessageEvent
from outreach.protocols.voice import Analyser
from outreach.providers.http.request_gate import call_plugin_function
from outreach.rules.segments import storable
from outreach.rules.settlement import LOCAL_INTERRUPTIONS, PROVIDER_FAILURES

ADAPTER_STATES: Final = frozenset(
    {
        DispatchState.ACCEPTED,
        DispatchState.REFUSED,
        DispatchState.DEFERRED,
        DispatchState.NOT_SENT,
        DispatchState.UNKNOWN,
    }
)
"""The outcomes that an adapter may return (`protocols.carrier.Carrier`)."""

_OUTCOME_TEXTS: Final = ("provider_id", "reason", "error_code", "error_message")
_REPORT_TEXTS: Final = ("workspace_id", "provider", "dispatch_id", "provider_id", "from_number", "reason", "error_code")
_CALL_REPORT_TEXTS: Final = (
    *("workspace_id", "provider", "dispatch_id", "provider_id", "telephony_id"),
    *("answered_by", "summary", "error", "reason", "transcript", "cost_currency"),
)
_EVENT_TEXTS: Final = ("event_id", "to", "unreadable_kind")
_MESSAGE_TEXTS: Final = ("provider_id", "from_number", "to", "body")

_INDEXED: Final = frozenset({"event_id", "provider_id", "telephony_id", "from_number"})
_MAX_INDEXED: Final = 512
"""Characters. An index of PostgreSQL takes about 2,700 bytes of a row, and a character has up to 4.

No provider's identifier is as long. A longer one is shortened wherever it is stored, so that a report still finds its
dispatch; but its provider would not find it in a look-up.
"""

_OUTCOMES: Final = frozenset(get_args(CallOutcome))
_KEYWORDS: Final = frozenset(get_args(Keyword))


def recordable(answer: object) -> DispatchOutcome | None:
    """Return an adapter's answer with values that every storage takes; None if it is no outcome.

    A provider's words may end in half an emoji, and an adapter may return wrong types: the outcome of the request is
    known all the same, and must not be lost because its details cannot be stored.
    """
    if not isinstance(answer, DispatchOutcome) or answer.state not in ADAPTER_STATES:
        return None
    changes = _other_texts(answer, _OUTCOME_TEXTS)
    state: object = answer.state
    if not isinstance(state, DispatchState):
        # The rules test the state by identity: a string that equals it does not pass.
        changes["state"] = DispatchState(answer.state)
    changes |= _other_wait(answer)
    return attrs.evolve(answer, **changes) if changes else answer


def recordable_report(report: object) -> Report:
    """Return a report with values that every storage takes: one that cannot be stored would come again for ever.

    Raises:
        TypeError: It has no workspace, no status or no time; the message is ours, without anything of the report.
    """
    if not isinstance(report, MessageReport | CallReport):
        raise TypeError(f"a report is {_kind(report)}, not MessageReport or CallReport")
    if report.workspace_id is None:
        raise TypeError("a report has no workspace_id")
    is_message = isinstance(report, MessageReport)
    changes = _other_texts(report, _REPORT_TEXTS if is_message else _CALL_REPORT_TEXTS)
    statuses: type[MessageStatus | CallStatus] = MessageStatus if is_message else CallStatus
    if not isinstance(report.status, statuses):
        changes["status"] = _status(statuses, report.status)
    changes |= _other_time(report) | _other_wait(report)
    if isinstance(report, CallReport):
        changes |= _other_words(report)
    return attrs.evolve(report, **changes) if changes else report


def recordable_call_report(answer: object, workspace_id: str) -> CallReport:
    """Return the report of a provider that was asked for the status of a call of a workspace.

    Raises:
        TypeError: It is none, has no status or no time, or names another workspace.
    """
    report = recordable_report(answer)
    if not isinstance(report, CallReport):
        raise TypeError(f"the status of a call is {_kind(report)}, not CallReport")
    _require_workspace(report, workspace_id)
    return report


def recordable_event(event: object, workspace_id: str) -> CallbackEvent:
    """Return an event of a callback to an account of a workspace in the same way.

    Raises:
        TypeError: It has no identifier, or its content lacks something or names another workspace; the message is ours.
    """
    if not isinstance(event, CallbackEvent):
        raise TypeError(f"an event is {_kind(event)}, not CallbackEvent")
    if event.event_id in {None, ""}:
        raise TypeError("an event has no event_id")
    changes = _other_texts(event, _EVENT_TEXTS)
    content = _recordable_content(event.content, workspace_id)
    if content is not event.content:
        changes["content"] = content
    return attrs.evolve(event, **changes) if changes else event


def _recordable_content(content: object, workspace_id: str) -> Report | InboundMessageEvent | None:
    if content is None:
        return None
    if isinstance(content, MessageReport | CallReport):
        report = recordable_report(content)
        _require_workspace(report, workspace_id)
        return report
    if isinstance(content, InboundMessageEvent):
        return _recordable_message(content)
    raise TypeError(f"the content of an event is {_kind(content)}, no report and no message")


def _require_workspace(report: Report, workspace_id: str) -> None:
    """Raise TypeError for a report of another workspace than the account's: an account's provider has no say there."""
    if report.workspace_id != workspace_id:
        raise TypeError("a report names another workspace")


def _recordable_message(message: InboundMessageEvent) -> InboundMessageEvent:
    for name in ("from_number", "to"):
        if getattr(message, name) is None:
            raise TypeError(f"a message has no {name}")
    changes = _other_texts(message, _MESSAGE_TEXTS)
    # It may have media alone, and an adapter may write that as None.
    changes |= {name: "" for name in ("provider_id", "body") if getattr(message, name) is None}
    changes |= _other_time(message)
    media: object = message.media
    left_out: object = message.media_left_out
    if not isinstance(media, list | tuple) or not all(isinstance(one, str) for one in media):
        kept = tuple(one for one in media if isinstance(one, str)) if isinstance(media, list | tuple) else ()
        given = len(media) if isinstance(media, list | tuple) else int(media is not None)
        changes |= {"media": kept, "media_left_out": given - len(kept)}
    elif not isinstance(left_out, int):
        changes["media_left_out"] = 0
    if message.keyword is not None and message.keyword not in _KEYWORDS:
        changes["keyword"] = None
    return attrs.evolve(message, **changes) if changes else message


def _other_texts(found: object, names: Sequence[str]) -> dict[str, Any]:
    """Return those of an object's texts that have to be others."""
    changes = {}
    for name in names:
        given = getattr(found, name)
        if given is None:
            continue
        text = storable(str(given))
        if name == "transcript":
            text = text[:MAX_TRANSCRIPT]
        if name in _INDEXED and len(text) > _MAX_INDEXED:
            text = _shortened(text)
        if text != given:
            changes[name] = text
    return changes


def _shortened(text: str) -> str:
    """Return the beginning of a text and a digest of the whole: always the same, and another one for another text."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{text[: _MAX_INDEXED - len(digest) - 1]}:{digest}"


def _other_time(found: Report | InboundMessageEvent) -> dict[str, Any]:
    """Return another time if it is not in UTC; one without a zone, or outside of the calendar, is taken for UTC."""
    at: object = found.at
    if not isinstance(at, datetime):
        raise TypeError(f"the time of {type(found).__name__} is {_kind(at)}, not datetime")
    if at.tzinfo is UTC:
        return {}
    if at.tzinfo is not None:
        # In UTC it may be before the year 1 or after the year 9999.
        with suppress(OverflowError):
            return {"at": at.astimezone(UTC)}
    return {"at": at.replace(tzinfo=UTC)}


def _other_wait(found: DispatchOutcome | Report) -> dict[str, Any]:
    """Return no wait in place of one that is no number, or too large for a `float`."""
    seconds: object = found.retry_after_seconds
    fits = seconds is None or (isinstance(seconds, int | float) and abs(seconds) <= sys.float_info.max)
    return {} if fits else {"retry_after_seconds": None}


def _other_words(report: CallReport) -> dict[str, Any]:
    """Return the words of a call's report that are none of ours, as what an unknown one means."""
    changes: dict[str, Any] = {}
    if report.outcome is not None and report.outcome not in _OUTCOMES:
        changes["outcome"] = None
    if report.reason is not None and report.reason not in FAILURE_CLASSES:
        # Not tried again: somebody may have answered.
        changes["reason"] = "provider_error"
    if report.message_left is not None and not isinstance(report.message_left, bool):
        changes["message_left"] = None
    cost: object = report.cost
    if cost is not None and not (isinstance(cost, Decimal) and report.cost_currency and is_cost(cost)):
        changes |= {"cost": None, "cost_currency": None}
    if not isinstance(report.do_not_call, bool):
        changes["do_not_call"] = bool(report.do_not_call)
    return changes


def _status(statuses: type[MessageStatus | CallStatus], given: Any) -> MessageStatus | CallStatus:
    """Return the status that a word of the same spelling stands for."""
    try:
        return statuses(given)
    except ValueError:
        raise TypeError(f"the status of a report is no {statuses.__name__}") from None


def _kind(found: object) -> str:
    return type(found).__name__


_CALL_OUTCOMES: Final = get_args(CallOutcome)

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
        if outcome is None or outcome in _CALL_OUTCOMES:
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
