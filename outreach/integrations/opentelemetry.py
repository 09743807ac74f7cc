"""Spans of what the engine does, for OpenTelemetry; needs the extra `otel`. A public module.

The trace of a dispatch has the dispatch's id as its own: without the dashes it is the trace id. So whatever process
takes a report in adds to the same trace, and nothing is stored for that.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from datetime import datetime
from typing import Final
from uuid import UUID

import attrs

import outreach
from outreach.core.extras import needed_for
from outreach.errors import ConfigError
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import Report
from outreach.models.states import DispatchState
from outreach.models.work import WorkUnit
from outreach.protocols.instrumentation import Instrumentation

with needed_for("outreach.integrations.opentelemetry"):
    from opentelemetry import context, trace
    from opentelemetry.context import Context
    from opentelemetry.trace import (
        Link,
        NonRecordingSpan,
        Span,
        SpanContext,
        SpanKind,
        StatusCode,
        TraceFlags,
        Tracer,
        TracerProvider,
    )

__all__ = ["Tracing", "trace_id_of", "tracer"]

_MAX_REMEMBERED: Final = 10_000
"""Requests that are remembered, for the dispatches that they lead to."""

_TRACE_ID_BYTES: Final = 16
_RANDOM_BITS: Final = 56
_BAD: Final = frozenset({DispatchState.UNKNOWN, DispatchState.REFUSED, DispatchState.NOT_SENT})


@attrs.define
class _Open:
    """The spans of a dispatch that has no outcome yet."""

    intent: Span
    request: Span | None = None
    token: object = None


class Tracing(Instrumentation):
    """Makes a trace of each dispatch: its intent, the request to the provider, and each report on it.

    The intent links to the span in which the message, call or campaign was created or started, and a report to the span
    of the callback that brought it, where this process has seen them. Attributes hold ids, names and outcomes: no
    numbers, no texts.

    Args:
        provider: Makes the spans; by default the one that the host has set for the whole process.
        ratio: The share of dispatches that are traced, from 0 to 1; every process picks the same ones. Of these the
            provider's sampler picks as for a root span; one by trace ids must be parent-based, such as
            `parentbased_traceidratio`.

    Raises:
        ConfigError: The ratio is none.
    """

    def __init__(self, provider: TracerProvider | None = None, *, ratio: float = 1.0) -> None:
        given: object = ratio
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= ratio <= 1:
            raise ConfigError(f"ratio is {ratio!r}; it must be a number from 0 and up to 1.")
        self._provider = provider
        self._tracer = tracer("outreach", provider)
        self._ratio = ratio
        self._origins: OrderedDict[str, SpanContext] = OrderedDict()
        self._open: dict[str, _Open] = {}

    def unit_changed(self, unit: WorkUnit) -> None:
        """Remember the span in which this happened."""
        origin = trace.get_current_span().get_span_context()
        if origin.is_valid:
            self._origins[unit.id] = origin
            self._origins.move_to_end(unit.id)
            if len(self._origins) > _MAX_REMEMBERED:
                self._origins.popitem(last=False)

    def intent_committed(self, dispatch: Dispatch) -> None:
        """Begin the span of the intent."""
        owners = (dispatch.message_id, dispatch.call_id, dispatch.campaign_id)
        origins = [self._origins[owner] for owner in owners if owner is not None and owner in self._origins]
        span = self._tracer.start_span(
            _intent_name(dispatch),
            context=self._trace_of(dispatch),
            links=[Link(origin) for origin in origins],
            attributes=_attributes(dispatch),
            start_time=_nanoseconds(dispatch.created_at),
        )
        self._open[dispatch.id] = _Open(span)

    def request_started(self, dispatch: Dispatch, *, late_seconds: float) -> None:
        """Begin the span of the request, and make it the current one."""
        found = self._open[dispatch.id]
        found.request = self._tracer.start_span(
            f"{dispatch.provider} request",
            context=trace.set_span_in_context(found.intent),
            kind=SpanKind.CLIENT,
            attributes={**_attributes(dispatch), "outreach.late_seconds": late_seconds},
        )
        found.token = context.attach(trace.set_span_in_context(found.request))

    def request_ended(self, dispatch: Dispatch, outcome: DispatchOutcome, *, seconds: float | None) -> None:
        """End the spans of the dispatch."""
        found = self._open.pop(dispatch.id, None)
        if found is None:
            return
        for span in (found.request, found.intent):
            if span is None:
                continue
            span.set_attribute("outreach.outcome", str(outcome.state))
            if outcome.reason is not None:
                span.set_attribute("outreach.reason", outcome.reason)
            if outcome.state in _BAD:
                span.set_status(StatusCode.ERROR)
            if span is found.request:
                context.detach(found.token)  # type: ignore[arg-type]  # what `attach` returned
            span.end()

    def report_received(self, dispatch: Dispatch | None, report: Report, *, delay_seconds: float | None) -> None:
        """Make a span of the report, in the trace of its dispatch."""
        if dispatch is None:
            return
        callback = trace.get_current_span().get_span_context()
        span = self._tracer.start_span(
            f"{dispatch.provider} report",
            context=self._trace_of(dispatch),
            kind=SpanKind.CONSUMER,
            links=[Link(callback)] if callback.is_valid else [],
            attributes={**_attributes(dispatch), "outreach.status": str(report.status)},
        )
        if delay_seconds is not None:
            span.set_attribute("outreach.delay_seconds", delay_seconds)
        span.end()

    def _trace_of(self, dispatch: Dispatch) -> Context:
        """Return the context in which all spans of a dispatch begin, whatever the current one is."""
        number = trace_id_of(dispatch.id)
        root = SpanContext(
            trace_id=number,
            span_id=number % 2**64 or 1,
            is_remote=True,
            trace_flags=TraceFlags(TraceFlags.SAMPLED if self._is_sampled(dispatch) else TraceFlags.DEFAULT),
        )
        return trace.set_span_in_context(NonRecordingSpan(root), Context())

    def _is_sampled(self, dispatch: Dispatch) -> bool:
        # A digest, because ids need not be random.
        number = _digest(dispatch.id)
        if number % 2**_RANDOM_BITS >= self._ratio * 2**_RANDOM_BITS:
            return False
        # Only the SDK's providers have one. It is asked as for the root, because parent-based ones follow the flag.
        sampler = getattr(self._provider or trace.get_tracer_provider(), "sampler", None)
        if sampler is None:
            return True
        result = sampler.should_sample(
            Context(), number, _intent_name(dispatch), SpanKind.INTERNAL, _attributes(dispatch)
        )
        return bool(result.decision.is_sampled())


def tracer(name: str, provider: TracerProvider | None = None) -> Tracer:
    """Return a tracer of a provider, by default of the one that the host has set."""
    return trace.get_tracer(name, outreach.__version__, tracer_provider=provider)


def trace_id_of(dispatch_id: str) -> int:
    """Return the trace id of a dispatch: the number that its UUID is."""
    try:
        return UUID(dispatch_id).int
    except ValueError:
        return _digest(dispatch_id)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_TRACE_ID_BYTES).digest(), "big")


def _intent_name(dispatch: Dispatch) -> str:
    return f"{dispatch.channel} intent"


def _attributes(dispatch: Dispatch) -> dict[str, str | int]:
    ids = {
        "campaign_id": dispatch.campaign_id,
        "message_id": dispatch.message_id,
        "call_id": dispatch.call_id,
    }
    return {
        "outreach.dispatch_id": dispatch.id,
        "outreach.workspace_id": dispatch.workspace_id,
        "outreach.channel": dispatch.channel,
        "outreach.provider": dispatch.provider,
        "outreach.attempt": dispatch.attempt,
        **{f"outreach.{name}": value for name, value in ids.items() if value is not None},
    }


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000
