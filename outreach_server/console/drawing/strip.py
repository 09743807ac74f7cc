"""A strip of hours: how many there are in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
from markupsafe import Markup, escape

from outreach_server.console.drawing.curves import WIDTHS

_HEIGHT: Final = 96
_FLOOR: Final = 72
_TOP: Final = 6
_GAP: Final = 2


@attrs.frozen(kw_only=True)
class Column:
    """One hour.

    Attributes:
        hour: Its number, as it is written below.
        words: The same in words.
        shut: Whether it is closed for all.
    """

    hour: str
    value: int
    words: str
    shut: bool


def strip(columns: Sequence[Column], *, whole: int, label: str) -> Markup:
    """Return the drawings of a strip, one for each width; the label says the same in a sentence."""
    return Markup("").join(_drawing(columns, whole, label, width, name) for width, _, name in WIDTHS)


def _drawing(columns: Sequence[Column], whole: int, label: str, width: int, name: str) -> Markup:
    step = width / max(1, len(columns))
    every = 1 if step > 24 else 3
    parts = [part for place, one in enumerate(columns) for part in _column(one, place, step, whole, every)]
    return Markup(  # noqa: S704 - every value is escaped or a number
        f'<svg class="curve {name}" viewBox="0 0 {width} {_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f'<line class="axis" x1="0" x2="{width}" y1="{_FLOOR}" y2="{_FLOOR}"/>{"".join(parts)}</svg>'
    )


def _column(one: Column, place: int, step: float, whole: int, every: int) -> Iterator[str]:
    left, wide = place * step, step - _GAP
    title = f"<title>{escape(one.words)}</title>"
    if one.shut:
        yield f'<rect class="shut" x="{left:.1f}" y="{_TOP}" width="{wide:.1f}" height="{_FLOOR - _TOP}">{title}</rect>'
    elif one.value:
        high = max(1.0, (_FLOOR - _TOP) * one.value / max(1, whole))
        size = f'x="{left:.1f}" y="{_FLOOR - high:.1f}" width="{wide:.1f}" height="{high:.1f}"'
        yield f'<rect class="reach" {size}>{title}</rect>'
    if place % every == 0:
        yield f'<text x="{left + wide / 2:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(one.hour)}</text>'
