"""Counting what happens thousands of times a second, and its form for Prometheus.

`prometheus_client` takes a lock and searches its labels at each observation. These tallies are plain dictionaries,
which cost a tenth of that; only a scrape makes metrics of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, Protocol

from outreach.extras import needed_for
from outreach.metrics.families import Family

with needed_for("outreach.metrics"):
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.registry import Collector

__all__ = ["OTHER", "BoundedNames", "Collector", "Counts", "Histograms", "Labels", "Metric", "TallyCollector", "gauge"]

OTHER: Final = "other"
"""What stands for all names beyond the bound."""

Labels = tuple[str, ...]


class BoundedNames:
    """The values of a label: the first ones that come, and `other` for all that come later.

    Args:
        most: How many there may be.
        known: Values that are there from the beginning.
    """

    def __init__(self, most: int, known: Iterable[str] = ()) -> None:
        self._most = most
        self._names = {name: name for name in known}

    def __call__(self, name: str) -> str:
        """Return the name, or `other`."""
        found = self._names.get(name)
        if found is not None:
            return found
        if len(self._names) >= self._most:
            return OTHER
        self._names[name] = name
        return name


class Tally(Protocol):
    """What is counted under one name."""

    @property
    def family(self) -> Family:
        """Its name, kind and labels."""
        ...

    def metric(self) -> Metric:
        """Return it for Prometheus."""
        ...


class Counts:
    """A counter for each set of labels; one thread at a time adds to it, any may read.

    Args:
        family: Its name and labels.
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values: dict[Labels, float] = {}
        self._shown: tuple[dict[Labels, float], Metric] | None = None

    def add(self, *labels: str, amount: float = 1) -> None:
        """Count something."""
        values = self.values
        values[labels] = values.get(labels, 0) + amount

    def start(self, *labels: str) -> None:
        """Show a zero for these labels: Prometheus sees an increase only from a value that it has seen before."""
        self.values.setdefault(labels, 0)

    def metric(self) -> Metric:
        """Return it for Prometheus: the same object as the last time while nothing has been counted."""
        if self._shown is None or self._shown[0] != self.values:
            values = dict(self.values)
            made = CounterMetricFamily(self.family.name, self.family.help, labels=self.family.labels)
            for labels, value in values.items():
                made.add_metric(labels, value)
            self._shown = (values, made)
        return self._shown[1]


class Histograms:
    """A histogram for each set of labels; one thread at a time adds to it, any may read.

    Args:
        family: Its name, labels and buckets.
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        self._bounds = family.buckets
        self._values: dict[Labels, tuple[list[int], list[float]]] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Note a value."""
        found = self._values.get(labels)
        if found is None:
            found = self._values[labels] = ([0] * (len(self._bounds) + 1), [0.0])
        found[0][bisect_left(self._bounds, value)] += 1
        found[1][0] += value

    def metric(self) -> Metric:
        """Return it for Prometheus."""
        made = HistogramMetricFamily(self.family.name, self.family.help, labels=self.family.labels)
        bounds = [f"{bound:g}" for bound in self._bounds] + ["+Inf"]
        for labels, (counts, total) in list(self._values.items()):
            made.add_metric(
                labels, buckets=list(zip(bounds, accumulate(list(counts)), strict=True)), sum_value=total[0]
            )
        return made


def gauge(family: Family, values: Mapping[Labels, float]) -> Metric:
    """Return a gauge for Prometheus."""
    made = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    for labels, value in values.items():
        made.add_metric(labels, value)
    return made


class TallyCollector(Collector):
    """Shows tallies to a registry of Prometheus.

    Args:
        tallies: What it shows.
    """

    def __init__(self, tallies: Sequence[Tally]) -> None:
        self._tallies = tallies

    def collect(self) -> Iterator[Metric]:
        """Yield each of them."""
        for tally in self._tallies:
            yield tally.metric()
