"""The instrumentation of a server's or worker's engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from outreach.protocols import Instrumentation
from outreach_server.monitoring.log_context import LogContext

if TYPE_CHECKING:
    from outreach_server.monitoring.server_metrics import ServerMetrics


def instrumentation_of(
    given: Sequence[Instrumentation], metrics: ServerMetrics | None, *, traced: bool
) -> Sequence[Instrumentation]:
    """Return the instrumentation of an engine: the log, and what is configured."""
    ours: list[Instrumentation] = [LogContext()]
    if metrics is not None:
        ours.append(metrics.engine)
    if traced:
        from outreach.integrations.opentelemetry import Tracing

        ours.append(Tracing())
    return [*ours, *given]
