"""Charts as SVG and HTML, readable without colours: each value stands beside its bar."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape
from typing import Final, Literal, NamedTuple

_WIDTH: Final = 720
_HEIGHT: Final = 120
_FEW: Final = 5
"""Labels under the columns."""

_MOST_LEVELS: Final = 4
_LEVEL_STEPS: Final = (1, 2, 5)


class Bar(NamedTuple):
    """One value with its words."""

    label: str
    value: int
    tone: Literal["good", "bad", "plain"] | str = "plain"


def bars(values: Sequence[Bar], *, total: int, unit: str) -> str:
    """Return horizontal bars on a scale up to the total, each with its label, value and share; they wrap on a phone."""
    if not values or not total:
        return ""
    rows = []
    for one in values:
        share = 100 * one.value / total
        rows.append(
            f"<li><span class='label'>{escape(one.label)}</span>"
            f"<span class='value'>{one.value:,} <small>{share:.1f}%</small></span>"
            f"<svg class='bar {escape(one.tone)}' viewBox='0 0 100 4' preserveAspectRatio='none' role='img' "
            f"aria-label='{one.value:,} {escape(unit)}'>"
            f"<rect class='track' width='100' height='4'/><rect width='{share:.2f}' height='4'/></svg></li>"
        )
    marks = "".join(f"<li>{share} %</li>" for share in (0, 25, 50, 75, 100))
    scale = f"<ol class='marks' aria-hidden='true'>{marks}</ol><p class='about'>of {total:,} {escape(unit)}</p>"
    return f"<ul class='bars'>{''.join(rows)}</ul>{scale}"


def columns(labels: Sequence[str], values: Sequence[int], *, unit: str, title: str) -> str:
    """Return columns over time on a scale of round numbers; each has its label and value as a tooltip."""
    highest = max(values) if values else 0
    if not highest:
        return ""
    levels = _levels(highest)
    step = _WIDTH / len(values)
    parts = [
        f"<line x1='0' y1='{_height(level, levels):.2f}' x2='{_WIDTH}' y2='{_height(level, levels):.2f}'/>"
        for level in levels
    ]
    for index, value in enumerate(values):
        x, y = step * index, _height(value, levels)
        parts.append(
            f"<g><title>{escape(labels[index])}: {value:,} {escape(unit)}</title>"
            f"<rect class='hit' x='{x:.2f}' y='0' width='{step:.2f}' height='{_HEIGHT}'/>"
            f"<rect x='{x + step * 0.08:.2f}' y='{y:.2f}' width='{step * 0.84:.2f}' height='{_HEIGHT - y:.2f}'/></g>"
        )
    shown = sorted({round(place * (len(values) - 1) / (_FEW - 1)) for place in range(_FEW)})
    marks = "".join(f"<li>{escape(labels[index])}</li>" for index in shown)
    scale = "".join(f"<li>{level:,}</li>" for level in reversed(levels))
    peak = f"{highest:,} {unit} at most"
    return (
        f"<figure><figcaption>{escape(title)} <small>{escape(peak)}</small></figcaption>"
        f"<div class='plot'><ol class='levels' aria-hidden='true'>{scale}</ol>"
        f"<svg class='columns' viewBox='0 0 {_WIDTH} {_HEIGHT}' preserveAspectRatio='none' role='img' "
        f"aria-label='{escape(title)}: {escape(peak)}'>{''.join(parts)}</svg>"
        f"<ol class='marks'>{marks}</ol></div></figure>"
    )


def _height(value: int, levels: Sequence[int]) -> float:
    return _HEIGHT * (1 - value / levels[-1])


def _levels(highest: int) -> Sequence[int]:
    """Return the round numbers of a scale, from 0 to the first one that is not below the highest value."""
    sizes = (step * 10**power for power in itertools.count() for step in _LEVEL_STEPS)
    size = next(size for size in sizes if -(-highest // size) <= _MOST_LEVELS)
    return range(0, -(-highest // size) * size + 1, size)
