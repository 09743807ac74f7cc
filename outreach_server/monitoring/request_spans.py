"""Spans of requests for OpenTelemetry; needs the extra `otel`."""

from __future__ import annotations

import logging
from typing import Any

from starlette.types import Scope

from outreach_server.listening.refusal_counter import RefusalCounter

_FAULT = 500

_log = logging.getLogger("outreach_server")


class RequestSpans:
    """Makes a span of each request, which continues the caller's trace where it names one.

    What the host has set up for that may raise errors: they are logged, and the request is answered all the same.

    Args:
        tracer: Makes the spans.
    """

    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer
        self._failures: dict[str, RefusalCounter] = {}

    def begin(self, scope: Scope) -> tuple[Any, Any] | None:
        """Begin a span, and make it the current one; return None if that failed."""
        try:
            return self._begin(scope)
        except Exception as error:  # the code of others, for which no client is turned away
            self._log_failure(error)
            return None

    def end(
        self, begun: tuple[Any, Any], scope: Scope, status: int, *, request_id: str, workspace_id: str | None
    ) -> None:
        """End a span, now that its operation and outcome are known."""
        try:
            self._end(begun, scope, status, request_id, workspace_id)
        except Exception as error:  # the same
            self._log_failure(error)

    def _log_failure(self, error: Exception) -> None:
        kind = type(error).__name__
        if kind not in self._failures:
            words = f"spans of requests fail with {kind}: look at the tracing that is set up in this process"
            self._failures[kind] = RefusalCounter(_log, "instrumentation_failed", words)
        self._failures[kind].add()

    def _begin(self, scope: Scope) -> tuple[Any, Any]:
        from opentelemetry import context, propagate, trace

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        span = self._tracer.start_span(scope["method"], context=propagate.extract(headers), kind=trace.SpanKind.SERVER)
        return span, context.attach(trace.set_span_in_context(span))

    def _end(
        self, begun: tuple[Any, Any], scope: Scope, status: int, request_id: str, workspace_id: str | None
    ) -> None:
        from opentelemetry import context
        from opentelemetry.trace import StatusCode

        span, token = begun
        # The endpoint's name, because a path may hold a phone number.
        endpoint = getattr(scope.get("endpoint"), "__name__", "none")
        span.update_name(f"{scope['method']} {endpoint}")
        span.set_attribute("http.request.method", scope["method"])
        span.set_attribute("http.response.status_code", status)
        span.set_attribute("outreach.request_id", request_id)
        if workspace_id is not None:
            span.set_attribute("outreach.workspace_id", workspace_id)
        if status >= _FAULT:
            span.set_status(StatusCode.ERROR)
        context.detach(token)
        span.end()


def warn_if_spans_are_lost() -> None:
    """Log that this process exports no spans: no SDK of OpenTelemetry has been set up in it."""
    from opentelemetry import trace

    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        _log.warning(
            "Spans are asked for, and no SDK of OpenTelemetry takes them: start it with opentelemetry-instrument, "
            "which needs the Python package rather than the executable, or leave --tracing out.",
            extra={"action": "spans_lost"},
        )


def request_spans() -> RequestSpans:
    """Return what makes spans with the tracer provider that the host has set.

    Raises:
        ConfigError: OpenTelemetry is not installed.
    """
    from outreach.integrations.opentelemetry import tracer

    return RequestSpans(tracer("outreach_server"))
