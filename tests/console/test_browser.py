"""Pages in a browser: nothing against the policy, live figures, forms, and every page without JavaScript."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest

from outreach_server.console import Role
from outreach_server.console.pages.set_up.every import NOUNS
from tests.console.chromium import OPERATOR, PERSON, Site, browser, named_site, site
from tests.console.story import ANN

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WITHIN = 60_000.0
"""Milliseconds that a page may take on a busy machine."""

SIZES = ((1280, "light"), (390, "dark"))

RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]

HURDLES = """() => {
    const wrong = [];
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) wrong.push(`scrolls sideways: ${root.scrollWidth}`);
    for (const one of document.querySelectorAll("a, button, summary, input, select")) {
        const box = one.getBoundingClientRect();
        const shown = box.width && getComputedStyle(one).visibility === "visible" && !one.closest(".hidden");
        if (shown && box.height < 18) wrong.push(`too low: ${one.outerHTML.slice(0, 80)}`);
    }
    return wrong;
}"""


def pages_of(served: Site) -> tuple[str, ...]:
    """Return the addresses of the pages, and of one that is not there."""
    campaign = served.campaign
    paths = (f"{campaign}/contacts", f"{campaign}/contacts/0", f"{campaign}/contacts?status=failed", f"{campaign}x")
    steps = [served.waiting.replace("/check", f"/{step}") for step in ("text", "when", "check")]
    more = (
        "inbox",
        "inbox?folder=held",
        "inbox?folder=all",
        f"inbox/{ANN[1:]}",
        f"contacts/{ANN[1:]}",
        "register",
        "register/import",
    )
    set_up = [one.name for one in NOUNS if one.place == "workspace" and not one.own_login]
    others = [f"{served.home}{path}" for path in (*more, "unknown", "unknown?decide=retry", "calls", *set_up)]
    frame = (f"{served.home}search?q=%2B13035550000", f"{served.home.partition('/w/')[0]}/account/look")
    of_it = (f"{campaign}/report", f"{campaign}/follow-up", f"{campaign}/edit", served.call)
    campaigns = (
        f"{served.home}campaigns",
        f"{served.home}campaigns/many",
        f"{served.home}campaigns/new",
        *steps,
        campaign,
    )
    return (served.home, *campaigns, *others, *frame, *of_it, *paths)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for the tests of this module."""
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def served(chromium: Browser) -> Iterator[Site]:
    """A console with a campaign that sends."""
    with site() as running:
        yield running


def opened(chromium: Browser, said: list[str], **options: Any) -> Page:
    """Return a page of a new session, and collect what it complains of."""
    page = chromium.new_context(**options).new_page()
    page.set_default_timeout(WITHIN)
    # Chromium also has advice about forms with several passwords, which credentials are to it.
    page.on("console", lambda line: None if line.text.startswith("[DOM]") else said.append(line.text))
    # The browser says so of a fade between two pages that a third one ends, on a busy machine.
    page.on("pageerror", lambda error: said.append(str(error)) if "Transition was skipped" not in str(error) else None)
    page.on(
        "request", lambda request: said.append(request.url) if not request.url.startswith("http://127.0.0.1") else None
    )
    return page


def test_a_campaign_is_watched_and_paused(chromium: Browser, served: Site) -> None:
    """Figures move by themselves, open details stay open, the focus stays, and the button works."""
    said: list[str] = []
    page = opened(chromium, said)
    page.goto(served.campaign)
    page.locator("#curve details summary").click()
    page.locator("#curve details summary").focus()
    before = page.locator("#as-of time").inner_text()
    page.wait_for_function("old => document.querySelector('#as-of time').innerText !== old", arg=before)
    page.wait_for_function("() => document.querySelector('#tiles').innerText.includes('%')")
    assert page.locator("#curve details").get_attribute("open") is not None
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.get_by_role("button", name="Pause").click()
    page.wait_for_url("**done=pause")
    assert "It is paused" in page.locator("main").inner_text()
    page.get_by_role("button", name="Resume").click()
    page.wait_for_url("**done=resume")
    assert said == []
    page.context.close()


@pytest.mark.soak("a browser clicks twice")
def test_a_double_click_sends_a_form_once(chromium: Browser) -> None:
    """A second answer would say that the key was made before, and hide it."""
    # With a login of the host, which has proven who the person is.
    with site(has_login=False) as served:
        page = opened(chromium, [])
        page.goto(f"{served.home}keys")
        page.locator("summary", has_text="Make a key").click()
        page.get_by_label("Name", exact=True).fill("Books")
        page.get_by_role("button", name="Make a key").dblclick()
        page.wait_for_selector("main .notice.good code")
        assert "Copy the key now" in page.locator("main").inner_text()
        assert page.locator("tbody tr").count() == 2
        page.context.close()


@pytest.mark.soak("a browser opens every page in each width and theme")
@pytest.mark.parametrize(("width", "theme"), SIZES)
def test_pages_break_no_rule_of_the_policy_and_scroll_one_way(
    chromium: Browser, served: Site, width: int, theme: str
) -> None:
    """No complaint of the browser, no request elsewhere, no sideways scrolling."""
    said: list[str] = []
    page = opened(chromium, said, viewport={"width": width, "height": 800}, color_scheme=theme)
    for path in pages_of(served)[:-1]:
        # The browser itself complains of an answer that says 404.
        page.goto(path)
        assert page.evaluate(HURDLES) == [], path
    page.set_viewport_size({"width": 320, "height": 800})
    page.goto(served.campaign)
    assert page.evaluate(HURDLES) == []
    assert said == []
    page.context.close()


@pytest.mark.soak("a browser opens every page in two widths")
@pytest.mark.parametrize("width", [320, 1280])
def test_names_without_a_space_break_no_layout(chromium: Browser, width: int) -> None:
    """The longest that there are, of wide letters."""
    with named_site("W" * 100) as paths:
        page = opened(chromium, [], viewport={"width": width, "height": 800})
        for path in paths:
            page.goto(path)
            assert page.evaluate(HURDLES) == [], path
        page.context.close()


@pytest.mark.nightly("hundreds of rules are tried on every page")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("role", [*Role, OPERATOR])
def test_pages_break_no_rule_of_accessibility(
    chromium: Browser, served: Site, width: int, theme: str, role: str
) -> None:
    """WCAG 2.2 A and AA, and best practice, as axe-core tries them: every page in every role, also of refusals."""
    # Not as an element: the policy refuses it.
    axe = (resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
    size: Any = {"width": width, "height": 800}
    page = opened(chromium, [], viewport=size, color_scheme=theme, extra_http_headers={PERSON: role})
    more = () if role != OPERATOR else pages_of(served)
    refused = []
    for path in (*served.pages.values(), *more):
        answer = page.goto(path)
        assert answer is not None
        if answer.status == 403:
            refused.append(path)
            if len(refused) > 1:
                continue  # they are one page
        page.evaluate(axe)
        found = page.evaluate(f"axe.run({{runOnly: {json.dumps(RULES)}}})")
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == [], path
        assert page.evaluate(HURDLES) == [], path
    assert bool(refused) is (role != OPERATOR)
    page.context.close()


@pytest.mark.soak("a browser goes through a flow")
def test_everything_works_without_javascript(chromium: Browser, served: Site) -> None:
    """From the overview to the campaign, pause and resume, a contact, and a name that is typed."""
    page = opened(chromium, [], java_script_enabled=False)
    page.goto(served.home)
    page.get_by_role("link", name="Reminders").first.click()
    page.get_by_role("button", name="Pause").click()
    assert "It is paused" in page.locator("main").inner_text()
    page.get_by_role("button", name="Resume").click()
    page.locator("summary", has_text="Cancel").click()
    left, menu = (page.locator(one).bounding_box() for one in ("main .ask form", ".side"))
    assert left is not None
    assert menu is not None
    assert left["x"] >= menu["x"] + menu["width"]
    page.get_by_label("Type the name of the campaign").fill("Another")
    page.get_by_role("button", name="Cancel this campaign for good").click()
    assert page.get_by_label("Type the name of the campaign").input_value() == "Another"
    page.get_by_role("link", name="Contacts", exact=True).click()
    page.locator("tbody a").first.click()
    assert "May be contacted" in page.locator("main").inner_text()
    page.context.close()


@pytest.mark.soak("a browser opens many pages")
def test_a_fifth_page_stops_the_oldest(chromium: Browser, served: Site) -> None:
    """So that a browser has connections left: a tenth page loads too, and the first says that it stands still."""
    context = chromium.new_context()
    pages = [context.new_page() for _ in range(6)]
    for page in pages:
        page.set_default_timeout(WITHIN)
        page.goto(served.campaign)
        page.wait_for_selector("#live.htmx-request, #live[data-htmx-powered]", state="attached")
        page.wait_for_timeout(500)
    assert "Too many live pages" in pages[0].locator("#superseded").inner_text()
    assert pages[0].locator("#live.frozen").count() == 1
    assert pages[-1].locator("#superseded").is_hidden()
    context.close()
