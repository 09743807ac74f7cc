"""What Prometheus reads: samples of a registry, and the rules of `promtool check metrics`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import attrs
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from outreach.integrations.prometheus import EngineMetrics


@attrs.frozen
class Sample:
    """One value of one scrape."""

    name: str
    labels: Mapping[str, str]
    value: float


def families(text: str) -> list[Metric]:
    """Return the metrics of an exposition."""
    return list(text_string_to_metric_families(text))


def samples(text: str) -> list[Sample]:
    """Return all samples of an exposition."""
    return [Sample(one.name, one.labels, one.value) for family in families(text) for one in family.samples]


def exposed(metrics: EngineMetrics) -> str:
    """Return what Prometheus would read of an engine's metrics."""
    registry = CollectorRegistry()
    registry.register(metrics)
    return generate_latest(registry).decode()


def value(text: str, name: str, **labels: str) -> float:
    """Return the value of one sample, or the sum of those that have these labels."""
    found = [one.value for one in samples(text) if one.name == name and labels.items() <= one.labels.items()]
    assert found, f"no {name}{labels or ''} in:\n{text}"
    return sum(found)


_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_ABBREVIATED: Final = frozenset({"s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"})
_NOT_BASE: Final = frozenset(
    {"milliseconds", "microseconds", "nanoseconds", "minutes", "hours", "days", "weeks", "percent", "bits"}
    | {f"{prefix}{unit}" for prefix in ("kilo", "mega", "giga", "kibi", "mebi") for unit in ("bytes", "meters")}
)
_TYPES: Final = frozenset({"counter", "gauge", "histogram", "summary"})


def problems(name: str, kind: str, help_text: str, labels: tuple[str, ...]) -> Iterator[str]:
    """Yield what `promtool check metrics` would say of a metric.

    Args:
        name: Its whole name, `_total` included.
        kind: Its type.
        help_text: Its help.
        labels: The names of its labels.
    """
    words = name.split("_")
    if not help_text:
        yield "no help text"
    if not _NAME.fullmatch(name):
        yield "metric names should be written in 'snake_case' not 'camelCase', without ':'"
    if kind == "counter" and not name.endswith("_total"):
        yield 'counter metrics should have "_total" suffix'
    if kind != "counter" and name.endswith("_total"):
        yield 'non-counter metrics should not have "_total" suffix'
    if name.endswith(("_bucket", "_count", "_sum")):
        yield "reserved for histograms and summaries"
    if set(words) & _TYPES:
        yield "metric name should not include its type"
    if set(words) & _ABBREVIATED:
        yield "metric names should not contain abbreviated units"
    if set(words) & _NOT_BASE:
        yield "use base unit instead"
    for label in labels:
        if label in {"le", "quantile"}:
            yield f"{label} is reserved"
        if not _NAME.fullmatch(label):
            yield f"label names should be written in 'snake_case': {label}"
