"""What stands around every page: search, single keys, theme, the parts that a host shows, and its own frame."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from outreach import ConfigError, NewRecipient, NewSmsCampaign, Outreach
from outreach.models import NewWebhook
from outreach_server.console import ConsoleUser, Role, create_console
from outreach_server.console.absent import ABSENT
from outreach_server.console.clocks import DateStyle
from outreach_server.console.look import COOKIE, Look, look_of
from outreach_server.console.security.headers import HEADERS, POLICY
from tests.console.conftest import MOUNT, ORIGIN, PAGES, SENDER, House
from tests.console.furniture import recurring
from tests.console.page import Page, parse

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def another(house: House, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Another console over the same engine, for an owner."""

    async def identify(request: Request) -> ConsoleUser | None:
        return ConsoleUser(id="ann", name="Ann", workspaces={house.workspace: Role.OWNER})

    console = create_console(engine=house.engine, identify=identify, **options)
    app = Starlette(routes=[Mount(MOUNT, console)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
        yield client


def keys_of(page: Page) -> Mapping[str, str]:
    """Return where the keys of a page lead, by the keys; the search box has no address."""
    return {
        one.attributes["data-key"]: one.attributes.get("href", "") for one in page.root if "data-key" in one.attributes
    }


# ------------------------------------------------------------------------------------------------ search


async def test_a_number_is_found_in_each_notation_with_its_campaigns(house: House) -> None:
    """Two clicks from anywhere lead to the decision trail of a contact."""
    campaign = await house.campaign("Spring visits")
    for text in ("%2B13035550001", "%2B1+303+555+0001", "13035550001"):
        page = await house.page(f"search?q={text}")
        [link] = [one for one in page.all("a") if one.text == "Spring visits"]
        assert link.attributes["href"] == house.url(f"campaigns/{campaign.id}/contacts/1")
    page = await house.page("search?q=%2B13035559999")
    assert "Nothing is known" in page.all("main")[0].text
    assert page.all("title")[0].text == "Search · Acme Clinic · Acme campaigns"


async def test_campaigns_are_found_by_name_and_contacts_by_the_hosts_own_id(house: House) -> None:
    """Digits may be a part of a name, and an id is not a number."""
    named = await house.campaign("Visits 2026-11")
    new = NewSmsCampaign(name="Other", body="Hi", carrier="twilio", from_number=SENDER)
    people = [NewRecipient(phone_number="+13035550100", external_id="A-17")]
    made = (await house.engine.campaigns.create_sms(house.workspace, new, people)).campaign
    for text in ("visits", "2026-11"):
        page = await house.page(f"search?q={text}")
        assert [one.attributes["href"] for one in page.all("a") if one.text == "Visits 2026-11"] == [
            house.url(f"campaigns/{named.id}")
        ]
    [link] = [one for one in (await house.page("search?q=A-17")).all("a") if one.text == "+13035550100"]
    assert link.attributes["href"] == house.url(f"campaigns/{made.id}/contacts/0")


async def test_schedules_and_webhooks_are_found_by_name(house: House) -> None:
    """In any case of letters; webhooks by URL and description, for those who see them."""
    campaign = await house.campaign()
    schedule = await house.engine.schedules.create(house.workspace, recurring(campaign.id, "Monday Recalls"))
    new = NewWebhook(url="https://app.example/hook", description="Orders of the shop")
    hook = (await house.engine.webhooks.create(house.workspace, new)).webhook
    for text, expected in (
        ("recalls", {house.url(f"schedules/{schedule.id}"): "Monday Recalls"}),
        ("SHOP", {house.url(f"webhooks/{hook.id}"): "https://app.example/hook"}),
        ("app.example", {house.url(f"webhooks/{hook.id}"): "https://app.example/hook"}),
    ):
        for person in ("owner", "viewer"):
            page = await house.page(f"search?q={text}", person=person)
            links = {one.attributes["href"]: one.text for row in page.all("th") for one in row.all("a")}
            assert links == ({} if person == "viewer" and "webhooks" in str(expected) else expected)
            assert ("Nothing is known" in page.all("main")[0].text) is not bool(links)


async def test_a_search_finds_nothing_of_another_workspace(house: House) -> None:
    """Neither numbers nor names."""
    theirs = await house.campaign("Theirs", workspace=house.foreign)
    await house.engine.schedules.create(house.foreign, recurring(theirs.id, "Theirs each week"))
    await house.engine.webhooks.create(house.foreign, NewWebhook(url="https://theirs.example/"))
    for text in ("Theirs", "%2B13035550001"):
        assert "Nothing is known" in (await house.page(f"search?q={text}")).all("main")[0].text


async def test_every_page_of_a_workspace_has_the_search(house: House) -> None:
    """And what was searched stands in it; a page without a workspace has none."""
    page = await house.page("search?q=Ann%20%3Cb%3E")
    assert page.by_id("search").attributes["value"] == "Ann <b>"
    assert (await house.page("campaigns?q=Ann")).by_id("search").attributes["value"] == ""
    assert (await house.page("/account/look")).all("input", id="search") == []


# -------------------------------------------------------------------------------------- keys and theme


async def test_keys_lead_where_the_person_may_go(house: House) -> None:
    """Each page has the list of them."""
    keys = keys_of(await house.page("campaigns"))
    assert keys["g o"] == house.url("")
    assert keys["g c"] == house.url("campaigns")
    assert keys["n"] == house.url("campaigns/new")
    assert "/" in keys
    assert "n" not in keys_of(await house.page("campaigns", person="viewer"))


async def test_keys_and_theme_are_chosen_in_the_browser(house: House) -> None:
    """The first paint is right: the choice comes with each request, and nothing else decides it."""
    page = await house.page("")
    assert "data-theme" not in page.all("html")[0].attributes
    answer = await house.post("/account/look", {"action": "look", "theme": "dark"})
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert f"Path={MOUNT}/;" in cookie
    assert "HttpOnly" in cookie
    page = await house.page("")
    assert page.all("html")[0].attributes["data-theme"] == "dark"
    assert keys_of(page) == {}
    assert page.all("dialog") == []
    kept = await house.page("/account/look")
    assert "checked" in kept.by_id("theme-dark").attributes
    assert "checked" not in kept.by_id("single-keys").attributes
    await house.post("/account/look", {"action": "look", "theme": "", "keys": "yes"})
    page = await house.page("")
    assert "data-theme" not in page.all("html")[0].attributes
    assert keys_of(page)


async def test_the_style_of_dates_is_chosen_in_the_browser(house: House) -> None:
    """By examples; pages then have it, and the fields of forms stay as browsers want them."""
    at = datetime(2031, 6, 2, 16, tzinfo=UTC)
    campaign = await house.campaign(starts_at=at)
    pages = (f"campaigns/{campaign.id}", f"campaigns/new/when?campaign={campaign.id}")
    for style, said in (("us", "Jun 2, 2031, 4:00 PM"), ("iso", "2031-06-02 16:00"), ("", "2 Jun 2031 16:00")):
        answer = await house.post("/account/look", {"action": "look", "theme": "", "dates": style})
        assert answer.status_code == 303
        shown, form = [await house.page(path) for path in pages]
        assert said in shown.root.text
        assert form.by_id("start_at").attributes["value"] == "2031-06-02T16:00"
        [chosen] = [
            one for one in (await house.page("/account/look")).all("input", name="dates") if "checked" in one.attributes
        ]
        assert chosen.attributes["value"] == style
    [_, dates] = (await house.page("/account/look")).all("fieldset")
    assert dates.all("legend")[0].text == "Dates and times"
    examples = (
        r"\d+ \w{3} \d{4} \d\d:\d\d",
        r"\w{3} \d+, \d{4}, \d+:\d\d [AP]M",
        r"\d{4}-\d\d-\d\d \d\d:\d\d",
    )
    for label, example in zip(dates.all("label"), examples, strict=True):
        assert re.fullmatch(example, label.text)


@pytest.mark.parametrize(
    ("value", "look"),
    [
        ("dark.", Look(theme="dark")),
        ("light.no-keys", Look(theme="light", keys=False)),
        ("light.no-keys.", Look(theme="light", keys=False)),
        (".no-keys.us", Look(keys=False, dates=DateStyle.US)),
        ("dark..iso", Look(theme="dark", dates=DateStyle.ISO)),
        ("..US", Look()),
        ("..us.more", Look(dates=DateStyle.US)),
        ("light.no-keys.x", Look(theme="light", keys=False)),
        ("", Look()),
    ],
)
def test_a_cookie_is_read_as_far_as_it_says_something(value: str, look: Look) -> None:
    """Also one of an earlier version, which had no style of dates."""
    assert look_of(Request({"type": "http", "headers": [(b"cookie", f"{COOKIE}={value}".encode())]})) == look


@pytest.mark.parametrize("value", ['"><script>', "blue.", "dark;", "..", "", "light.no-keys.x"])
async def test_a_strange_cookie_is_no_choice(house: House, value: str) -> None:
    """It comes from the browser, and may hold anything."""
    page = parse((await house.get("", cookie=f"{COOKIE}={value}")).text)
    assert page.all("html")[0].attributes.get("data-theme", "light") in {"light", "dark"}
    assert page.problems == []


@pytest.mark.parametrize(
    "form",
    [{"action": "look", "theme": "blue"}, {"action": "look", "dates": "uk"}, {"theme": "dark"}, {"action": "start"}],
)
async def test_another_choice_is_refused(house: House, form: dict[str, str]) -> None:
    """Nothing is kept of it."""
    answer = await house.post("/account/look", form)
    assert answer.status_code == 400
    assert "set-cookie" not in answer.headers


# ------------------------------------------------------------------------------------ what a host chooses


@pytest.mark.parametrize("pages", [{"overview"}, {"campaigns"}, {"search"}, {"overview", "campaigns"}])
async def test_no_link_leads_to_a_part_that_is_not_there(house: House, pages: set[str]) -> None:
    """Its pages are not found, and the others are well formed without the links, buttons and forms to it."""
    campaign = await house.campaign()
    await house.engine.campaigns.start(house.workspace, campaign.id)
    async with another(house, pages=pages) as client:
        for path in PAGES:
            part = re.split(r"[/?]", path)[0] or "overview"
            answer = await client.get(house.url(path.format(campaign=campaign.id)))
            if path in {"nothing"} or (not path.startswith("/") and part not in pages):
                assert answer.status_code == 404, path
            else:
                assert answer.status_code in {200, 303}, path
            assert ABSENT not in answer.text
            page = parse(answer.text)
            assert answer.is_redirect or page.problems == []
            for one in page.root:
                for name in ("href", "action"):
                    found = re.match(rf"{MOUNT}/w/[^/]+/([^/?]*)", one.attributes.get(name, ""))
                    assert found is None or (found[1] or "overview") in {*pages, "live"}, (path, one.attributes)


async def test_the_first_page_is_one_that_is_there(house: House) -> None:
    """Of people with one workspace, and of the links that lead home."""
    async with another(house, pages={"campaigns"}) as client:
        assert (await client.get(f"{MOUNT}/")).headers["location"] == house.url("campaigns")
        page = parse((await client.get(house.url("campaigns"))).text)
        assert [one.attributes["href"] for one in page.all("a", **{"class": "name"})] == [house.url("campaigns")]


async def test_a_host_puts_its_frame_around(house: House, tmp_path: Path) -> None:
    """A template of its own, or ours with other blocks; it is escaped as ours are."""
    own = tmp_path / "own.html"
    own.write_text("<!doctype html><title>{{ frame.title }}</title><h6>Acme</h6>{% block content %}{% endblock %}")
    async with another(house, base_template=own) as client:
        text = (await client.get(house.url("campaigns"))).text
        assert "<h6>Acme</h6>" in text
        assert 'class="top"' not in text
        assert "<h1>Campaigns</h1>" in text
    changed = tmp_path / "changed.html"
    changed.write_text('{% extends "console.html" %}{% block top %}<header>{{ "<Acme>" }}</header>{% endblock %}')
    async with another(house, base_template=changed) as client:
        text = (await client.get(house.url("campaigns"))).text
        assert "<header>&lt;Acme&gt;</header>" in text
        assert 'class="top"' not in text
        assert 'class="side"' in text


async def test_some_sites_may_show_it_in_a_frame(house: House) -> None:
    """The policy names them, and the rest of it stays."""
    async with another(house, frame_ancestors=["'self'", "https://app.acme.example"]) as client:
        headers = (await client.get(house.url(""))).headers
        assert headers["content-security-policy"] == POLICY.replace(
            "frame-ancestors 'none'", "frame-ancestors 'self' https://app.acme.example"
        )
        assert "x-frame-options" not in headers
        assert {name: headers[name] for name in HEADERS if name[0] in "RP"} == {
            name: value for name, value in HEADERS.items() if name[0] in "RP"
        }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pages": {"campaign"}}, "campaigns, contacts"),
        ({"pages": "campaigns"}, "must be a set"),
        ({"pages": set()}, "must be a set"),
        ({"frame_ancestors": "'self'"}, "must be a list"),
        ({"frame_ancestors": ["*"]}, "must be a list"),
        ({"frame_ancestors": ["https://a.example; script-src *"]}, "must be a list"),
        ({"frame_ancestors": ["https://a.example/path"]}, "must be a list"),
        ({"frame_ancestors": ["https://a.example:x"]}, "must be a list"),
        ({"frame_ancestors": [None]}, "must be a list"),
        ({"base_template": "nowhere.html"}, "cannot be read"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], words: str) -> None:
    """At once, and not at the first request."""

    async def nobody(request: Request) -> ConsoleUser | None:
        return None

    with pytest.raises(ConfigError, match=words):
        create_console(engine=Outreach.open("memory://"), identify=nobody, **options)


@pytest.mark.parametrize(("text", "words"), [("{% block %}", "no Jinja template"), ("<p>Acme</p>", "no place")])
def test_a_frame_without_a_place_for_the_page_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """It would show nothing."""

    async def nobody(request: Request) -> ConsoleUser | None:
        return None

    file = tmp_path / "base.html"
    file.write_text(text)
    with pytest.raises(ConfigError, match=words):
        create_console(engine=Outreach.open("memory://"), identify=nobody, base_template=file)
