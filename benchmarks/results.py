"""What a benchmark has found: comparisons of two sides, and single figures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

Sample = Mapping[str, float]
"""What one run of one side has measured, by name."""


@attrs.frozen
class Wanted:
    """What is asked of a figure."""

    kind: Literal["at least", "at most"]
    value: float

    def kept(self, value: float) -> bool:
        """Return whether a figure is what was asked for."""
        return value >= self.value if self.kind == "at least" else value <= self.value

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.kind} {self.value:g}"


def at_least(value: float) -> Wanted:
    """Ask for so much or more."""
    return Wanted("at least", value)


def at_most(value: float) -> Wanted:
    """Ask for so much or less."""
    return Wanted("at most", value)


@attrs.frozen(kw_only=True)
class Comparison:
    """Two sides that were measured in the same run, one after the other in each round.

    Attributes:
        row: The part of the benchmark.
        case: Under which circumstances.
        unit: What was measured, of both sides.
        against: The other side.
        ours: The figures of our side, by round.
        other: Those of the other side.
        wanted: What is asked of the ratio.
    """

    row: str
    case: str
    unit: str
    against: str
    ours: Sequence[float]
    other: Sequence[float]
    wanted: Wanted | None = None

    @property
    def ratios(self) -> Sequence[float]:
        """Ours in units of the other, by round."""
        return [ours / other for ours, other in zip(self.ours, self.other, strict=True)]

    def as_json(self) -> dict[str, Any]:
        """Return everything that is known of it."""
        return {
            "row": self.row,
            "case": self.case,
            "unit": self.unit,
            "against": self.against,
            "ours": spread(self.ours),
            "other": spread(self.other),
            "ratio": spread(self.ratios),
            **_judged(self.wanted, statistics.median(self.ratios)),
        }


@attrs.frozen(kw_only=True)
class Figure:
    """A figure of our side alone.

    Attributes:
        row: The part of the benchmark.
        case: Under which circumstances.
        what: What it is, with its unit.
        values: By round.
        wanted: What is asked of its median.
    """

    row: str
    case: str
    what: str
    values: Sequence[float]
    wanted: Wanted | None = None

    def as_json(self) -> dict[str, Any]:
        """Return everything that is known of it."""
        median = statistics.median(self.values)
        return {
            "row": self.row,
            "case": self.case,
            "what": self.what,
            "value": spread(self.values),
            **_judged(self.wanted, median),
        }


@attrs.define(kw_only=True)
class Results:
    """What was found.

    Attributes:
        comparisons: Ours against another side.
        figures: Ours alone.
        notes: What has to be known beside the figures.
    """

    comparisons: list[Comparison] = attrs.field(factory=list)
    figures: list[Figure] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)

    def add(self, more: Results) -> None:
        """Take in what another part has found."""
        self.comparisons.extend(more.comparisons)
        self.figures.extend(more.figures)
        self.notes.extend(note for note in more.notes if note not in self.notes)

    def compare(
        self,
        samples: Mapping[str, Sequence[Sample]],
        against: str,
        *,
        row: str,
        case: str,
        unit: str,
        wanted: Wanted | None = None,
        ours: str = "outreach",
    ) -> None:
        """Add a comparison, where the other side was there.

        Args:
            samples: What `rounds.alternate` returned.
            against: The other side.
            row: The part of the benchmark.
            case: Under which circumstances.
            unit: The name of the figure in the samples.
            wanted: What is asked of the ratio.
            ours: The name of our side.
        """
        if against not in samples:
            return
        self.comparisons.append(
            Comparison(
                row=row,
                case=case,
                unit=unit,
                against=against,
                ours=[sample[unit] for sample in samples[ours]],
                other=[sample[unit] for sample in samples[against]],
                wanted=wanted,
            )
        )

    def figure(
        self,
        samples: Sequence[Sample],
        what: str,
        *,
        row: str,
        case: str,
        wanted: Wanted | None = None,
    ) -> None:
        """Add a figure of ours, by its name in the samples."""
        values = [sample[what] for sample in samples]
        self.figures.append(Figure(row=row, case=case, what=what, values=values, wanted=wanted))


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Return median, lowest, highest and all values."""
    return {
        "median": statistics.median(values),
        "low": min(values),
        "high": max(values),
        "values": list(values),
    }


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lie."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def _judged(wanted: Wanted | None, value: float) -> dict[str, Any]:
    return {} if wanted is None else {"wanted": str(wanted), "kept": wanted.kept(value)}
