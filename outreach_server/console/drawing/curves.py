"""The curve of a campaign: the requests so far, and the forecast of the rest."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

import attrs
from markupsafe import Markup, escape

from outreach_server.console.clocks import DAY_NAMES, Clocks

WIDTHS: Final = ((880, 250, "large"), (360, 230, "small"))
"""A curve is drawn for each width, and the style shows one: letters of a drawing that is scaled down cannot be read."""

_LEFT: Final = 8
_TOP: Final = 22
_BOTTOM: Final = 30
_SMALL_HEIGHT: Final = 56
_SMALL_MARGIN: Final = 6
_MOST_LEVELS: Final = 4
_LETTER: Final = 6.6
"""The width of a letter, roughly."""

_MINUTES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080, 20_160, 43_200, 86_400)
"""The steps of the time axis."""


@attrs.frozen
class Point:
    """How many there were at a moment."""

    at: datetime
    value: int


@attrs.frozen(kw_only=True)
class Band:
    """A stretch of time in which something held the campaign back.

    Attributes:
        words: The cause; it is written where it fits.
    """

    begins_at: datetime
    ends_at: datetime
    words: str
    tone: Literal["shut", "late"] = "shut"


@attrs.frozen(kw_only=True)
class Curve:
    """The data of a drawing.

    Attributes:
        real: The requests, by time.
        plan: The forecast of the start, by time.
        ahead: The forecast of now, by time.
        bands: The times in which it is held back.
        now: The present.
        clocks: Those of the axis.
        label: The curve in a sentence.
    """

    real: Sequence[Point]
    plan: Sequence[Point]
    ahead: Sequence[Point]
    bands: Sequence[Band]
    now: datetime
    clocks: Clocks
    label: str


def drawn(curve: Curve) -> Markup:
    """Return the drawings of a curve, one for each width; empty if there is no time to draw."""
    moments = [one.at for one in (*curve.real, *curve.plan, *curve.ahead)]
    if len(moments) < 2 or min(moments) >= max(moments):
        return Markup("")
    return Markup("").join(_drawing(curve, *size) for size in WIDTHS)


def drawn_small(curve: Curve, most: int) -> Markup:
    """Return small drawings without words: the requests so far, the forecast of now, and the times without requests.

    Args:
        curve: The curve.
        most: The value that their height stands for, if the curve has no higher one.
    """
    moments = [one.at for one in (*curve.real, *curve.ahead)]
    if len(moments) < 2 or min(moments) >= max(moments):
        return Markup("")
    return Markup("").join(_small_drawing(curve, most, width, name) for width, _, name in WIDTHS)


def _small_drawing(curve: Curve, most: int, width: int, name: str) -> Markup:
    points = (*curve.real, *curve.ahead)
    scale = _Scale(
        begins=min(one.at for one in points),
        ends=max(one.at for one in points),
        top=max(1, most, *(one.value for one in points)),
        width=width,
        height=_SMALL_HEIGHT,
        above=_SMALL_MARGIN,
        below=_SMALL_MARGIN,
    )
    parts = [
        *_bands(curve.bands, scale, has_words=False),
        *_levels_drawn([0], scale),
        *_area(curve.real, scale),
        *_line("ahead", curve.ahead, scale),
        *_line("real", curve.real, scale),
        *_end(curve, scale),
    ]
    return _svg(curve, parts, scale, name)


def _drawing(curve: Curve, width: int, height: int, name: str) -> Markup:
    points = (*curve.real, *curve.plan, *curve.ahead)
    begins, ends = min(one.at for one in points), max(one.at for one in points)
    levels = _levels(max(1, *(one.value for one in points)))
    scale = _Scale(begins=begins, ends=ends, top=levels[-1], width=width, height=height)
    parts = [
        *_bands(curve.bands, scale),
        *_levels_drawn(levels, scale),
        *_area(curve.real, scale),
        *_line("plan", curve.plan, scale),
        *_line("ahead", curve.ahead, scale),
        *_line("real", curve.real, scale),
        *_now(curve, scale),
        *_ticks(curve.clocks, scale),
    ]
    return _svg(curve, parts, scale, name)


def _svg(curve: Curve, parts: Sequence[str], scale: _Scale, name: str) -> Markup:
    size = f"0 0 {scale.width} {scale.height}"
    return Markup(  # noqa: S704 - every value is escaped or a number
        f'<svg class="curve {name}" viewBox="{size}" role="img" aria-label="{escape(curve.label)}">'
        f"{''.join(parts)}</svg>"
    )


@attrs.frozen(kw_only=True)
class _Scale:
    begins: datetime
    ends: datetime
    top: int
    width: int
    height: int
    above: int = _TOP
    below: int = _BOTTOM

    def x(self, at: datetime) -> float:
        share = (at - self.begins) / (self.ends - self.begins)
        return _LEFT + min(1.0, max(0.0, share)) * (self.width - 2 * _LEFT)

    def y(self, value: int) -> float:
        return self.floor - value / self.top * (self.floor - self.above)

    @property
    def floor(self) -> float:
        return self.height - self.below


def _bands(bands: Sequence[Band], scale: _Scale, *, has_words: bool = True) -> Iterator[str]:
    for one in bands:
        left, right = scale.x(one.begins_at), scale.x(one.ends_at)
        if right - left < 1:
            continue
        size = f'x="{left:.1f}" y="{scale.above}" width="{right - left:.1f}" height="{scale.floor - scale.above:.1f}"'
        yield f'<rect class="{escape(one.tone)}" {size}><title>{escape(one.words)}</title></rect>'
        if has_words and len(one.words) * _LETTER < right - left:
            middle = (left + right) / 2
            yield f'<text x="{middle:.1f}" y="{_TOP + 16}" text-anchor="middle">{escape(one.words)}</text>'


def _levels_drawn(levels: Sequence[int], scale: _Scale) -> Iterator[str]:
    for level in levels:
        y, name = scale.y(level), "grid" if level else "axis"
        yield f'<line class="{name}" x1="{_LEFT}" x2="{scale.width - _LEFT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        if level:
            yield f'<text class="level" x="{_LEFT}" y="{y - 4:.1f}">{level:,}</text>'


def _line(name: str, points: Sequence[Point], scale: _Scale) -> Iterator[str]:
    if len(points) > 1:
        yield f'<polyline class="{name}" points="{_places(points, scale)}"/>'


def _area(points: Sequence[Point], scale: _Scale) -> Iterator[str]:
    if len(points) > 1:
        first, last = scale.x(points[0].at), scale.x(points[-1].at)
        around = f"{first:.1f},{scale.floor:.1f} {_places(points, scale)} {last:.1f},{scale.floor:.1f}"
        yield f'<polygon class="area" points="{around}"/>'


def _places(points: Sequence[Point], scale: _Scale) -> str:
    return " ".join(f"{scale.x(one.at):.1f},{scale.y(one.value):.1f}" for one in points)


def _now(curve: Curve, scale: _Scale) -> Iterator[str]:
    if not curve.ahead or not scale.begins <= curve.now <= scale.ends:
        return
    x = scale.x(curve.now)
    yield f'<line class="nowline" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 6}" y2="{scale.floor:.1f}"/>'
    anchor, aside = ("end", -4) if x > scale.width - 60 else ("start", 4)
    yield f'<text x="{x + aside:.1f}" y="{_TOP - 8}" text-anchor="{anchor}">now</text>'
    yield from _end(curve, scale)


def _end(curve: Curve, scale: _Scale) -> Iterator[str]:
    if curve.real:
        last = curve.real[-1]
        yield f'<circle class="end" cx="{scale.x(last.at):.1f}" cy="{scale.y(last.value):.1f}" r="4"/>'


def _ticks(clocks: Clocks, scale: _Scale) -> Iterator[str]:
    minutes = (scale.ends - scale.begins) / timedelta(minutes=1)
    most = scale.width // 84
    step = next((one for one in _MINUTES if minutes / one <= most), _MINUTES[-1])
    first = clocks.local(scale.begins)
    at = first.replace(hour=0, minute=0, second=0, microsecond=0)
    if step < 1440:
        since = (first - at) / timedelta(minutes=1)
        at += timedelta(minutes=step * -(-since // step))
    elif at < first:
        at += timedelta(days=1)
    day = None
    for _ in range(most + 1):
        if at > scale.ends:
            return
        x = scale.x(at)
        if step >= 1440:
            text = clocks.dates.day(at, short=True, year=False)
        else:
            weekday = f"{DAY_NAMES[at.weekday()][:3]} " if at.date() != day and minutes > 1440 else ""
            text = f"{weekday}{clocks.dates.clock(at)}"
        half = len(text) * _LETTER / 2
        if half < x < scale.width - half:
            day = at.date()
            yield f'<text x="{x:.1f}" y="{scale.height - 10}" text-anchor="middle">{escape(text)}</text>'
        at += timedelta(minutes=step)


def _levels(highest: int) -> Sequence[int]:
    """Return the round numbers of a scale, from 0 to the first one that is not below the highest value."""
    sizes = (step * 10**power for power in itertools.count() for step in (1, 2, 5))
    size = next(size for size in sizes if -(-highest // size) <= _MOST_LEVELS)
    return range(0, -(-highest // size) * size + 1, size)
