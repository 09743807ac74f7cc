"""What adapters answer, as far as it can be recorded."""

from __future__ import annotations

import math
from typing import Any, Final

import attrs

from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.policy.texts import storable

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

_TEXTS: Final = ("provider_id", "reason", "error_code", "error_message")


def recordable(answer: object) -> DispatchOutcome | None:
    """Return an adapter's answer with what every storage takes; None if it is no outcome.

    A provider's words may end in half an emoji, and an adapter may be careless with types: what became of the request
    is known all the same, and must not be lost because its details cannot be stored.
    """
    if not isinstance(answer, DispatchOutcome) or answer.state not in ADAPTER_STATES:
        return None
    changes: dict[str, Any] = {}
    for name in _TEXTS:
        given = getattr(answer, name)
        if given is not None and (text := storable(str(given))) != given:
            changes[name] = text
    seconds: object = answer.retry_after_seconds
    if seconds is not None and not (isinstance(seconds, int | float) and math.isfinite(seconds)):
        changes["retry_after_seconds"] = None
    return attrs.evolve(answer, **changes) if changes else answer
