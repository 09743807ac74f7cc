"""Curves out of values."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import attrs
import pytest

from outreach_server.console.clocks import Clocks, DateStyle
from outreach_server.console.drawing.charts import Piece, progress
from outreach_server.console.drawing.curves import Band, Curve, Point, drawn, drawn_small

START = datetime(2026, 11, 2, 8, tzinfo=UTC)


def at(hours: float) -> datetime:
    """Return a moment so many hours after the start."""
    return START + timedelta(hours=hours)


CURVE = Curve(
    real=[Point(at(0), 0), Point(at(2), 300)],
    plan=[Point(at(0), 0), Point(at(4), 1200)],
    ahead=[Point(at(2), 300), Point(at(6), 1200)],
    bands=[Band(begins_at=at(3), ends_at=at(5), words="closed: <business hours>")],
    now=at(2),
    clocks=Clocks("America/New_York"),
    label='300 of 1,200 "messages"',
)


def test_a_curve_is_drawn_for_each_width() -> None:
    """With letters that can be read, a label in words, and times by the clocks of its zone."""
    text = str(drawn(CURVE))
    assert re.findall(r'viewBox="0 0 (\d+) ', text) == ["880", "360"]
    assert text.count('aria-label="300 of 1,200 &#34;messages&#34;"') == 2
    assert "<business" not in text
    assert "style" not in text
    assert ">05:00<" in text
    assert ">now<" in text


@pytest.mark.parametrize(
    ("style", "days", "said"),
    [
        (DateStyle.DAY_FIRST, 0.25, "05:00"),
        (DateStyle.US, 0.25, "5:00 AM"),
        (DateStyle.ISO, 0.25, "05:00"),
        (DateStyle.DAY_FIRST, 2, "Tue 00:00"),
        (DateStyle.US, 2, "Tue 12:00 AM"),
        (DateStyle.ISO, 2, "Tue 00:00"),
        (DateStyle.DAY_FIRST, 20, "3 Nov"),
        (DateStyle.US, 20, "Nov 3"),
        (DateStyle.ISO, 20, "11-03"),
    ],
)
def test_the_axis_is_in_the_style_of_the_clocks(style: DateStyle, days: float, said: str) -> None:
    """A day of it has its weekday, and what would stand over the edge or over its neighbour is left out."""
    curve = attrs.evolve(
        CURVE,
        real=[],
        plan=[],
        bands=[],
        ahead=[Point(at(0), 0), Point(at(24 * days), 9)],
        clocks=attrs.evolve(CURVE.clocks, dates=style),
    )
    text = str(drawn(curve))
    assert f">{said}<" in text
    for width, drawing in zip((880, 360), text.split("</svg>"), strict=False):
        ends = 0.0
        for x, label in re.findall(r'<text x="([\d.]+)" y="\d+" text-anchor="middle">([^<]*)<', drawing):
            half = len(label) * 6.6 / 2
            assert ends <= float(x) - half
            ends = float(x) + half
        assert ends <= width


def test_the_curve_is_where_its_values_are() -> None:
    """Later is right, more is up, and a band is as wide as its time."""
    large = str(drawn(CURVE)).partition("</svg>")[0]
    [real] = re.findall(r'<polyline class="real" points="([^"]+)"', large)
    (x0, y0), (x1, y1) = (map(float, pair.split(",")) for pair in real.split())
    [ahead] = re.findall(r'<polyline class="ahead" points="([^"]+)"', large)
    (x2, y2), (x3, y3) = (map(float, pair.split(",")) for pair in ahead.split())
    assert x0 < x1 == x2 < x3
    assert y0 > y1 == y2 > y3
    width = float(re.findall(r'<rect class="shut" [^>]*width="([\d.]+)"', large)[0])
    assert abs(width / (x3 - x0) - 2 / 6) < 0.01


def test_a_small_curve_has_no_words_but_its_label() -> None:
    """And no forecast of the start, which would need a key."""
    text = str(drawn_small(CURVE, 0))
    assert re.findall(r'class="curve (\w+)" viewBox="0 0 (\d+) ', text) == [("large", "880"), ("small", "360")]
    assert re.findall(r'<polyline class="(\w+)"', text) == ["ahead", "real"] * 2
    assert "<text" not in text
    assert "<title>closed: &lt;business hours&gt;</title>" in text
    [(end, high)] = re.findall(r'class="real" points="\S+ ([\d.]+),([\d.]+)"', text.partition("</svg>")[0])
    assert f'<circle class="end" cx="{end}" cy="{high}"' in text
    [lower] = re.findall(r'cy="([\d.]+)"', str(drawn_small(CURVE, 12_000)).partition("</svg>")[0])
    assert float(lower) > float(high)
    assert str(drawn_small(attrs.evolve(CURVE, real=[], ahead=[]), 1)) == ""


def test_nothing_is_drawn_of_no_time() -> None:
    """A campaign that has not begun has no curve."""
    empty = Curve(real=[Point(at(0), 0)], plan=[], ahead=[], bands=[], now=at(0), clocks=Clocks("UTC"), label="")
    assert str(drawn(empty)) == ""


def test_a_bar_has_its_pieces_and_its_words() -> None:
    """Also without anything to show."""
    pieces = [Piece(value=1, tone="good", words="done"), Piece(value=1, tone="bad", words="failed")]
    text = str(progress(pieces, total=4, label="1 <of> 4"))
    assert re.findall(r'class="(\w+)" x="([\d.]+)" width="([\d.]+)"', text) == [
        ("good", "0.00", "25.00"),
        ("bad", "25.00", "25.00"),
    ]
    assert 'aria-label="1 &lt;of&gt; 4"' in text
    assert "<rect" in str(progress([], total=0, label="nothing"))
