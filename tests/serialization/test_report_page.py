from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from xml.etree import ElementTree

import attrs
import pytest

from outreach.http import write_campaign_report
from outreach.integrations.report_page import render_report_page
from outreach.integrations.report_page.charts import columns
from outreach.models.campaign_report import CallFigures, CampaignReport, MessageFigures, ResultCount, TimeBucket
from outreach.models.prices import Cost, ProviderCost
from outreach.models.states import CampaignStatus, RecipientStatus

START = datetime(2026, 11, 2, 14, tzinfo=UTC)
REPORT = CampaignReport(
    campaign_id="c",
    workspace_id="w",
    name='<script>alert(1)</script> & "more"',
    channel="sms",
    status=CampaignStatus.COMPLETED,
    created_at=START,
    started_at=START,
    completed_at=START + timedelta(hours=2),
    at=START + timedelta(days=1),
    contacts=12_345,
    contacted=12_000,
    successful=11_000,
    failed=1000,
    still_open=0,
    results=(
        ResultCount(status=RecipientStatus.COMPLETED, reason=None, meaning="sent", contacts=11_345),
        ResultCount(status=RecipientStatus.FAILED, reason="<b>own</b>", meaning=None, contacts=1000),
    ),
    messages=MessageFigures(requests=12_500, accepted=12_000, delivered=11_111, segments=20_202),
    calls=None,
    failures=(),
    replies=77,
    repliers=66,
    opt_outs=55,
    timezone="America/New_York",
    over_time=tuple(
        TimeBucket(
            since=START + timedelta(hours=hour),
            until=START + timedelta(hours=hour + 1),
            requests=hour,
            replies=hour,
            opt_outs=0,
        )
        for hour in range(5)
    ),
)


class Tags(HTMLParser):
    """Notes every tag with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one."""
        self.found.append((tag, dict(attrs)))


def test_the_page_has_no_script_and_asks_nobody() -> None:
    """It is one file that may be sent to anybody."""
    page = render_report_page(REPORT)
    tags = Tags()
    tags.feed(page)
    assert {"script", "link", "img", "iframe", "object"}.isdisjoint(tag for tag, _ in tags.found)
    assert not [name for _, given in tags.found for name in given if name.startswith("on") or name in {"src", "href"}]
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page
    assert "width=device-width" in page


def test_names_and_reasons_are_text() -> None:
    """A name of a spreadsheet is shown as it is."""
    page = render_report_page(REPORT)
    assert "<h1>&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;more&quot;</h1>" in page
    assert "&lt;b&gt;own&lt;/b&gt;" in page


def test_the_figures_stand_in_the_page_and_the_charts_are_svg() -> None:
    """Each bar has its value beside it, so that nobody needs its colour or length."""
    page = render_report_page(REPORT)
    for figure in ("12,345", "12,000", "11,111", "20,202", "77", "from 66 contacts", "55", "11,345"):
        assert figure in page
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) > 3
    for chart in charts:
        ElementTree.fromstring(chart)  # noqa: S314 - our own
    # In the zone of the campaign's hours.
    assert "02 Nov 09:00" in page
    assert "Opt-outs <small>" not in page


def test_a_report_of_calls_has_outcomes_and_minutes() -> None:
    """Calls have no segments, and messages no minutes."""
    calls = CallFigures(calls=10, answered=7, open=1, outcomes={"positive": 5, "voicemail": 4}, milliseconds=630_000)
    page = render_report_page(attrs.evolve(REPORT, channel="call", messages=None, calls=calls))
    for words in ("10.5", "Voicemail", "Positive", "of 10", "Not ended"):
        assert words in page
    assert "Segments" not in page


def test_a_campaign_without_anything_has_a_page() -> None:
    """A draft has no charts, and divides by nothing."""
    empty = attrs.evolve(
        REPORT, contacts=0, contacted=0, results=[], messages=MessageFigures(), over_time=[], started_at=None
    )
    page = render_report_page(empty)
    assert "Over time" not in page
    assert "nan" not in page


def test_a_page_tells_the_cost_and_what_it_leaves_out() -> None:
    """With the decimals of its currency; without prices it says that there are none."""
    assert "the workspace has no prices" in render_report_page(REPORT)
    cost = Cost(amount=Decimal("1234.5678"), currency="EUR", lines=(), unpriced=5)
    page = render_report_page(attrs.evolve(REPORT, cost=cost))
    assert ">1,234.57</strong> <span>EUR, without 5 segments that have no price</span>" in page
    whole = attrs.evolve(cost, unpriced=0)
    assert "<span>EUR</span>" in render_report_page(attrs.evolve(REPORT, cost=whole))


def test_a_page_tells_what_the_providers_charge_for_calls() -> None:
    """Beside the cost by the workspace's prices, for each currency."""
    costs = (ProviderCost(currency="USD", amount=Decimal("0.705"), calls=1200),)
    page = render_report_page(attrs.evolve(REPORT, messages=None, calls=CallFigures(calls=1500, provider_costs=costs)))
    assert ">0.71</strong> <span>USD by the providers, for 1,200 calls</span>" in page
    without = render_report_page(attrs.evolve(REPORT, messages=None, calls=CallFigures(calls=1500)))
    assert "by the providers" not in without


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        ("0.3320", "EUR", "0.33"),
        ("1234567.505", "USD", "1,234,567.51"),
        ("3", "GBP", "3.00"),
        ("1234.5", "JPY", "1,235"),
        ("0.1234", "KWD", "0.123"),
        ("0", "EUR", "0.00"),
        ("0.0049", "EUR", "less than 0.01"),
        ("0.005", "EUR", "0.01"),
        ("0.4", "JPY", "less than 1"),
    ],
)
def test_money_has_the_decimals_of_its_currency(amount: str, currency: str, text: str) -> None:
    """What is not nothing is not shown as nothing; programs get every place."""
    cost = Cost(amount=Decimal(amount), currency=currency, lines=(), unpriced=0)
    assert cost.amount_text == text
    written = write_campaign_report(attrs.evolve(REPORT, cost=cost))
    assert written["cost"]["amount"] == amount


def test_bars_have_a_scale_up_to_all() -> None:
    """A bar is as long as its share, and the marks say where which share is."""
    page = render_report_page(REPORT)
    share = 100 * 11_345 / 12_345
    assert f"<rect width='{share:.2f}' height='4'/>" in page
    assert f"11,345 <small>{share:.1f}%</small>" in page
    marks = "".join(f"<li>{mark} %</li>" for mark in (0, 25, 50, 75, 100))
    assert f"<ol class='marks' aria-hidden='true'>{marks}</ol><p class='about'>of 12,345 contacts</p>" in page


@pytest.mark.parametrize(
    ("highest", "levels"),
    [
        (1, [0, 1]),
        (4, [0, 1, 2, 3, 4]),
        (5, [0, 2, 4, 6]),
        (36_000, [0, 10_000, 20_000, 30_000, 40_000]),
        (999, [0, 500, 1000]),
        (1_000_000, [0, 500_000, 1_000_000]),
    ],
)
def test_columns_have_a_scale_of_round_numbers(highest: int, levels: list[int]) -> None:
    """From nothing to the first one that no column is above; there is a line at each."""
    chart = columns(["a", "b"], [highest, 0], unit="messages", title="Requests")
    found = re.search(r"<ol class='levels' aria-hidden='true'>(.*?)</ol>", chart)
    assert found is not None
    assert re.findall(r"<li>([\d,]+)</li>", found[1]) == [f"{level:,}" for level in reversed(levels)]
    assert chart.count("<line ") == len(levels)
    [height] = [float(one) for one in re.findall(r"height='([\d.]+)'/></g>", chart) if float(one) > 0]
    assert height == pytest.approx(120 * highest / levels[-1], abs=0.01)


def test_a_card_knows_the_length_of_its_figure() -> None:
    """The style makes long figures smaller, so that none runs over its card."""
    page = render_report_page(REPORT)
    assert "<strong style='--length:6'>12,345</strong>" in page
    assert "calc(145cqi / var(--length))" in page
    assert "container-type: inline-size" in page
