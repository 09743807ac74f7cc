"""Counting what happens thousands of times a second, and its form for Prometheus.

`prometheus_client` takes a lock and searches its labels at each observation. These tallies are plain dictionaries,
which cost a tenth of that; only a scrape makes metrics of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final, Protocol

from outreach.core.extras import needed_for
from outreach.integrations.prometheus.families import Family

with needed_for("outreach.integrations.prometheus"):
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.registry import Collector
    from prometheus_client.samples import Sample

__all__ = [
    "OTHER",
    "BoundedNames",
    "Collector",
    "Counts",
    "Histograms",
    "Labels",
    "Metric",
    "TallyCollector",
    "TallyMetric",
    "gauge",
]

OTHER: Final = "other"
"""The value of a label for all names beyond the bound."""

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
    """A count under one name."""

    @property
    def family(self) -> Family:
        """Its name, kind and labels."""
        ...

    def metric(self) -> Metric:
        """Return it for Prometheus."""
        ...


class TallyMetric(Metric):
    """The counts of a tally at one moment, for Prometheus.

    Its samples are made when they are read: ten thousands of them take a tenth of a second. A reader that knows
    how the lines begin needs the numbers alone.

    Args:
        tally: Where it was counted.
        labels: The sets of labels in the order in which they came; later moments only add to them.
        numbers: The values of the samples in their order: `samples_each` for each set of labels.
    """

    def __init__(self, tally: Tally, labels: Sequence[Labels], numbers: Sequence[float]) -> None:
        family = tally.family
        super().__init__(family.name.removesuffix("_total"), family.help, family.kind)
        self.tally, self.labels, self.numbers = tally, labels, numbers
        self.samples_each = _samples_each(family)
        del self.__dict__["samples"]

    @cached_property
    def samples(self) -> list[Sample]:  # type: ignore[override]
        """All samples."""
        return self.part(0, len(self.labels)).samples

    def part(self, first: int, end: int) -> Metric:
        """Return an ordinary metric with the samples of some of the sets of labels."""
        family, each = self.tally.family, self.samples_each
        if family.kind == "histogram":
            histogram = HistogramMetricFamily(family.name, family.help, labels=family.labels)
            bounds = [f"{bound:g}" for bound in family.buckets] + ["+Inf"]
            for at in range(first, end):
                *counts, _, total = self.numbers[at * each : (at + 1) * each]
                histogram.add_metric(self.labels[at], list(zip(bounds, counts, strict=True)), total)
            return histogram
        counter = CounterMetricFamily(family.name, family.help, labels=family.labels)
        for labels, number in zip(self.labels[first:end], self.numbers[first:end], strict=True):
            counter.add_metric(labels, number)
        return counter


def _samples_each(family: Family) -> int:
    """Return how many samples a set of labels has: those of a histogram are its buckets, `+Inf`, count and sum."""
    return len(family.buckets) + 3 if family.kind == "histogram" else 1


class Counts:
    """A counter for each set of labels; one thread at a time adds to it, any may read.

    Args:
        family: Its name and labels.
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values: dict[Labels, float] = {}
        self._shown: TallyMetric | None = None

    def add(self, *labels: str, amount: float = 1) -> None:
        """Count something."""
        values = self.values
        values[labels] = values.get(labels, 0) + amount

    def start(self, *labels: str) -> None:
        """Show a zero for these labels: Prometheus sees an increase only from a value that it has seen before."""
        self.values.setdefault(labels, 0)

    def metric(self) -> TallyMetric:
        """Return it for Prometheus: the same object as the last time while nothing has been counted."""
        self._shown = _shown_again(self._shown, self, self.values, list(self.values.values()))
        return self._shown


class Histograms:
    """A histogram for each set of labels; one thread at a time adds to it, any may read.

    Args:
        family: Its name, labels and buckets.
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        self._bounds = family.buckets
        # The sum of the values, then how many each bucket has got.
        self._values: dict[Labels, list[float]] = {}
        self._shown: TallyMetric | None = None

    def observe(self, value: float, *labels: str) -> None:
        """Note a value."""
        row = self._values.get(labels)
        if row is None:
            row = self._values[labels] = [0.0] + [0] * (len(self._bounds) + 1)
        row[0] += value
        row[1 + bisect_left(self._bounds, value)] += 1

    def metric(self) -> TallyMetric:
        """Return it for Prometheus: the same object as the last time while nothing has been noted."""
        numbers: list[float] = []
        for row in list(self._values.values()):
            total, *counts = row
            numbers += accumulate(counts)
            numbers += (numbers[-1], total)
        self._shown = _shown_again(self._shown, self, self._values, numbers)
        return self._shown


def _shown_again(
    shown: TallyMetric | None, tally: Tally, values: Mapping[Labels, object], numbers: list[float]
) -> TallyMetric:
    """Return what was shown last if its numbers are still these, else what is to be shown now."""
    if shown is not None and shown.numbers == numbers:
        return shown
    # Another thread may have added to them since the numbers were read.
    return TallyMetric(tally, list(values)[: len(numbers) // _samples_each(tally.family)], numbers)


def gauge(family: Family, values: Mapping[Labels, float]) -> Metric:
    """Return a gauge for Prometheus."""
    made = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    for labels, value in values.items():
        made.add_metric(labels, value)
    return made


class TallyCollector(Collector):
    """Shows tallies to a registry of Prometheus.

    Args:
        tallies: The tallies that it shows.
    """

    def __init__(self, tallies: Sequence[Tally]) -> None:
        self._tallies = tallies

    def collect(self) -> Iterator[Metric]:
        """Yield each of them."""
        for tally in self._tallies:
            yield tally.metric()
