"""Names and texts of others are shown, never run, and break nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from starlette.requests import Request

from outreach import FlowStep, Outreach
from outreach_server.console import ConsoleUser, throttle
from outreach_server.console.app import build
from outreach_server.console.clocks import Clocks
from outreach_server.console.drawing.charts import Piece, progress
from outreach_server.console.drawing.curves import Band, Curve, Point, drawn
from outreach_server.console.drawing.flows import drawn as drawn_flow
from outreach_server.console.drawing.qr import qr_code
from outreach_server.console.drawing.strip import Column, strip
from outreach_server.console.words import visible
from tests.console.conftest import ORIGIN, House
from tests.console.furniture import addresses, furnished
from tests.console.page import parse
from tests.own_adapter import OwnAdapter

pytestmark = pytest.mark.anyio

NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "\u202eevil\u202c \u2066x\u2069",
    '=HYPERLINK("http://evil.example")',
    "👩‍👩‍👧‍👦 مرحبا",
    "x" * 100,
    "tab\there\x7f",
    "</title></noscript><svg/onload=alert(1)>",
)


@pytest.mark.parametrize("name", NAMES)
async def test_hostile_names_are_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On every page, as the name of everything that is set up, of a person and of a contact, and in each text."""
    monkeypatch.setenv("OUTREACH_SECRET_KEY", "A" * 43 + "=")
    async with Outreach.open("memory://", adapters=[OwnAdapter()]) as engine:
        things = await furnished(engine, name)

        async def identify(request: Request) -> ConsoleUser | None:
            return ConsoleUser(id=things["users"], name=name, operator=True)

        console = build(get_engine=lambda: engine, identify=identify, actor_kind="user", has_login=True)
        console.state.console.throttle.admits = lambda subject: True
        place = f"/w/{things['workspace']}"
        more = [f"{place}/search?{urlencode({'q': name})}"]
        async with httpx.AsyncClient(transport=httpx.ASGITransport(console), base_url=ORIGIN) as client:
            for path in (*(path for _, path in addresses(console, things)), *more):
                answer = await client.get(path)
                assert answer.status_code == 200, path
                check_that_names_are_text(answer.text, path)


def check_that_names_are_text(text: str, path: str) -> None:
    """Check that a page runs nothing but its own files, and shows characters that turn text as symbols."""
    page = parse(text)
    assert page.problems == [], path
    assert not page.all("img"), path
    assert {one.attributes["src"].rpartition("/")[2] for one in page.all("script")} == {"htmx.js", "console.js"}
    # A field in which a text is changed has it as it is: it would be saved with symbols otherwise.
    shown = [part for one in page.root if one.tag not in {"input", "textarea"} for part in one.texts]
    assert "\u202e" not in "".join(shown), path
    assert "49{% raw" not in text, path
    assert len(text) < 150_000, path


async def test_what_is_typed_into_a_url_is_text(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters stand in the URL, and anybody can write one."""
    monkeypatch.setattr(throttle, "REQUESTS_PER_SECOND", 1_000)
    campaign = await house.campaign()
    for name in NAMES:
        for path in ("campaigns", f"campaigns/{campaign.id}/contacts"):
            answer = await house.client.get(
                house.url(path), params={"q": name, "reason": name, "done": name}, headers={"x-test-person": "owner"}
            )
            assert answer.status_code in {200, 400}
            assert parse(answer.text).problems == []


@pytest.mark.parametrize(
    "query", ["status=none", "channel=fax", "after=%00", "after=x", "q=%00", "q=%ff", "status=%F0", "archived=maybe"]
)
async def test_a_wrong_filter_is_no_fault(house: House, query: str) -> None:
    """It is answered with a page."""
    for path in ("campaigns", f"campaigns/{(await house.campaign()).id}/contacts"):
        answer = await house.get(f"{path}?{query}")
        assert answer.status_code in {200, 400, 404}
        assert parse(answer.text).problems == []


def test_characters_that_turn_or_break_a_line_are_shown_as_symbols() -> None:
    """So that no text pretends to be another one; joined emoji and other letters stay."""
    for code in (0, 0x1B, 0x7F, 0x85, 0x9B, 0x061C, 0x200F, 0x2028, 0x2029, 0x202E, 0x2066, 0xFEFF):
        assert chr(code) not in visible(f"a{chr(code)}b"), hex(code)
    assert visible("👩\u200d👧 مرحبا é\u200cx\n\t") == "👩\u200d👧 مرحبا é\u200cx\n\t"


def test_drawings_escape_what_they_are_given() -> None:
    """Whatever it is: none of them may rely on where a value comes from."""
    evil = '"><script>x</script>'
    now = datetime(2026, 3, 2, 12, tzinfo=UTC)
    points = [Point(now, 0), Point(now + timedelta(hours=5), 9)]
    tone: Any = evil
    bands = [Band(begins_at=now, ends_at=now + timedelta(hours=4), words=evil, tone=tone)]
    hours = [Column(hour="8", value=1, words=evil, shut=False), Column(hour="9", value=0, words=evil, shut=True)]
    curve = Curve(real=points, plan=points, ahead=points, bands=bands, now=now, clocks=Clocks("UTC"), label=evil)
    drawings = [
        progress([Piece(value=1, tone=evil, words="x")], total=2, label=evil),
        drawn(curve),
        qr_code("x", label=evil),
        strip(hours, whole=1, label=evil),
        drawn_flow([FlowStep(kind="send", body=evil)], [1]),
    ]
    for drawing in drawings:
        assert "&gt;&lt;script&gt;" in drawing
        assert "<script>" not in drawing
