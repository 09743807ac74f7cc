"""Charts as SVG and HTML, readable without colours: each value stands beside its bar."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final, Literal, NamedTuple

_WIDTH: Final = 720
_HEIGHT: Final = 160
_TOP: Final = 18
_BOTTOM: Final = 20
_LEFT: Final = 2
_FEW: Final = 5
"""Labels under the columns."""


class Bar(NamedTuple):
    """One value with its words."""

    label: str
    value: int
    tone: Literal["good", "bad", "plain"] | str = "plain"


def bars(values: Sequence[Bar], *, total: int, unit: str) -> str:
    """Return horizontal bars, each with its label, value and share of the total, as a table that wraps on a phone."""
    if not values:
        return ""
    longest = max(one.value for one in values)
    rows = []
    for one in values:
        width = 100 * one.value / longest if longest else 0
        share = f"{one.value / total:.1%}" if total else ""
        rows.append(
            f"<li><span class='label'>{escape(one.label)}</span>"
            f"<span class='value'>{one.value:,} <small>{share}</small></span>"
            f"<svg class='bar {escape(one.tone)}' viewBox='0 0 100 4' preserveAspectRatio='none' role='img' "
            f"aria-label='{one.value:,} {escape(unit)}'>"
            f"<rect class='track' width='100' height='4'/><rect width='{width:.2f}' height='4'/></svg></li>"
        )
    return f"<ul class='bars'>{''.join(rows)}</ul>"


def columns(labels: Sequence[str], values: Sequence[int], *, unit: str, title: str) -> str:
    """Return columns over time; each has its label and value as a tooltip."""
    highest = max(values) if values else 0
    if not highest:
        return ""
    step = (_WIDTH - 2 * _LEFT) / len(values)
    room = _HEIGHT - _TOP - _BOTTOM
    parts = []
    for index, value in enumerate(values):
        height = room * value / highest
        x, y = _LEFT + step * index, _TOP + room - height
        parts.append(
            f"<g><title>{escape(labels[index])}: {value:,} {escape(unit)}</title>"
            f"<rect class='hit' x='{x:.2f}' y='{_TOP}' width='{step:.2f}' height='{room}'/>"
            f"<rect x='{x + step * 0.08:.2f}' y='{y:.2f}' width='{step * 0.84:.2f}' height='{height:.2f}'/></g>"
        )
    shown = sorted({round(place * (len(values) - 1) / (_FEW - 1)) for place in range(_FEW)})
    marks = "".join(f"<li>{escape(labels[index])}</li>" for index in shown)
    peak = f"{highest:,} {unit} at most"
    return (
        f"<figure><figcaption>{escape(title)} <small>{escape(peak)}</small></figcaption>"
        f"<svg class='columns' viewBox='0 {_TOP - 2} {_WIDTH} {room + 4}' preserveAspectRatio='none' role='img' "
        f"aria-label='{escape(title)}: {escape(peak)}'>{''.join(parts)}"
        f"<line x1='0' y1='{_TOP + room}' x2='{_WIDTH}' y2='{_TOP + room}'/></svg>"
        f"<ol class='marks'>{marks}</ol></figure>"
    )
