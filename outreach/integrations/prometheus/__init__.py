"""Metrics of an engine for Prometheus; needs the extra `metrics`. A public module.

registry.register(metrics := EngineMetrics())
async with Outreach.open(url, dispatch=True, instrumentation=[metrics]) as engine, metrics.watching(engine):
    ...
"""

from __future__ import annotations

from outreach.integrations.prometheus.engine_metrics import EngineMetrics
from outreach.integrations.prometheus.families import Family
from outreach.integrations.prometheus.tallies import BoundedNames, Counts, Histograms, TallyCollector, TallyMetric

__all__ = ["BoundedNames", "Counts", "EngineMetrics", "Family", "Histograms", "TallyCollector", "TallyMetric"]
