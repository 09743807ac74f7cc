"""What adapters answer, as far as it can be recorded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import attrs

from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.policy.texts import storable
from outreach.protocols.adapter import CallbackEvent

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
_REPORT_TEXTS: Final = ("dispatch_id", "provider_id", "reason", "error_code")
_CALL_REPORT_TEXTS: Final = (
    *("dispatch_id", "provider_id", "telephony_id"),
    *("answered_by", "summary", "error", "reason"),
)


def recordable(answer: object) -> DispatchOutcome | None:
    """Return an adapter's answer with what every storage takes; None if it is no outcome.

    A provider's words may end in half an emoji, and an adapter may be careless with types: what became of the request
    is known all the same, and must not be lost because its details cannot be stored.
    """
    if not isinstance(answer, DispatchOutcome) or answer.state not in ADAPTER_STATES:
        return None
    changes = _other_texts(answer, _OUTCOME_TEXTS)
    state: object = answer.state
    if not isinstance(state, DispatchState):
        # The rules ask which state it is, and a word is none, although it equals one.
        changes["state"] = DispatchState(answer.state)
    seconds: object = answer.retry_after_seconds
    if seconds is not None and not (isinstance(seconds, int | float) and math.isfinite(seconds)):
        changes["retry_after_seconds"] = None
    return attrs.evolve(answer, **changes) if changes else answer


def recordable_report(report: Report) -> Report:
    """Return a report with texts that every storage takes: one that cannot be stored would come again for ever.

    A word in the place of a status becomes that.
    """
    texts, kind = (
        (_REPORT_TEXTS, MessageStatus) if isinstance(report, MessageReport) else (_CALL_REPORT_TEXTS, CallStatus)
    )
    changes = _other_texts(report, texts)
    status: object = report.status
    if not isinstance(status, kind):
        changes["status"] = kind(report.status)
    return attrs.evolve(report, **changes) if changes else report


def recordable_event(event: CallbackEvent) -> CallbackEvent:
    """Return an event of a callback in the same way; messages are read with care where they are stored."""
    changes = _other_texts(event, ("event_id",))
    if isinstance(event.content, MessageReport | CallReport):
        report = recordable_report(event.content)
        if report is not event.content:
            changes["content"] = report
    return attrs.evolve(event, **changes) if changes else event


def _other_texts(found: object, names: Sequence[str]) -> dict[str, Any]:
    """Return those of an object's texts that have to be others."""
    changes = {}
    for name in names:
        given = getattr(found, name)
        if given is not None and (text := storable(str(given))) != given:
            changes[name] = text
    return changes
