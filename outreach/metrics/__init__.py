"""Metrics of an engine for Prometheus; needs the extra `metrics`. A public module.

registry.register(metrics := EngineMetrics())
async with Outreach.open(url, dispatch=True, instrumentation=[metrics]) as engine, metrics.watching(engine):
    ...
"""

from __future__ import annotations

from outreach.metrics.engine_metrics import EngineMetrics
from outreach.metrics.families import Family
from outreach.metrics.tallies import BoundedNames, Counts, Histograms, TallyCollector, TallyMetric

__all__ = ["BoundedNames", "Counts", "EngineMetrics", "Family", "Histograms", "TallyCollector", "TallyMetric"]
