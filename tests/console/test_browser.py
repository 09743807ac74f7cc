"""Pages in a browser: nothing against the policy, live figures, forms, and every page without JavaScript."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outreach_server.console import Role
from tests.console.chromium import NOBODY, OPERATOR, PERSON, Site, browser, named_site, site

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
        const least = innerWidth <= 800 && one.tagName === "SUMMARY" ? 44 : 18;
        if (shown && box.height < least) wrong.push(`too low: ${one.outerHTML.slice(0, 80)}`);
    }
    return wrong;
}"""


FOLDED = "opens => { for (const one of document.querySelectorAll('main details')) one.open = opens; }"
"""Folds every part of a page that folds, or opens it."""

SENT_AGAIN = """form => {
    const send = () => form.dispatchEvent(new SubmitEvent("submit", {bubbles: true, cancelable: true}));
    const first = send(), now = Date.now;
    Date.now = () => now() + 60_000;
    const late = send();
    dispatchEvent(new PageTransitionEvent("pageshow", {persisted: true}));
    return [first, late, send()];
}"""
"""Sends a form, again a minute later, and again when the browser has brought its page back: which are not blocked?"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for the tests of this module."""
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def served(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A console with a campaign that sends, and a file as its database, beside which a backup is kept."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "outreach.db.before-migration-20261101T020000Z").write_bytes(b"x" * 2_000_000)
    with site(database=f"sqlite:///{folder}/outreach.db") as running:
        yield running


def opened(chromium: Browser, said: list[str], **options: Any) -> Page:
    """Return a page of a new session, and collect what it complains of."""
    page = chromium.new_context(**options).new_page()
    page.set_default_timeout(WITHIN)
    # Chromium also has advice about forms with several passwords, which credentials are to it.
    page.on("console", lambda line: None if line.text.startswith("[DOM]") else said.append(line.text))
    # The browser says so of a fade between two pages that a third one ends, or that comes late, on a busy machine.
    faded = ("Transition was skipped", "Transition was aborted")
    page.on("pageerror", lambda error: None if any(one in str(error) for one in faded) else said.append(str(error)))
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
    # Somebody else pauses it: the button that would be refused now goes, and what is open stays.
    page.locator("summary", has_text="Cancel").click()
    page.get_by_label("Type the name").fill("half a na")
    other = page.context.new_page()
    other.goto(served.campaign)
    other.get_by_role("button", name="Pause").click()
    other.wait_for_url("**done=pause")
    page.wait_for_selector("#changed", state="visible")
    assert not page.get_by_role("button", name="Pause").is_visible()
    assert page.get_by_label("Type the name").input_value() == "half a na"
    other.get_by_role("button", name="Resume").click()
    page.wait_for_selector("#changed", state="hidden")
    assert page.get_by_role("button", name="Pause").is_visible()
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


def test_a_form_is_blocked_until_its_page_goes(chromium: Browser, served: Site) -> None:
    """However late the answer is; a page that the browser brings back may send it again, and a dialog closes again."""
    page = opened(chromium, [])
    page.goto(f"{served.home}keys")
    for method, taken in (("post", [True, False, True]), ("dialog", [True, True, True])):
        assert page.locator(f"form[method={method}]").first.evaluate(SENT_AGAIN) == taken
    page.context.close()


def test_an_upload_that_was_stopped_is_sent_again(chromium: Browser, served: Site) -> None:
    """The page says so, once, and its form is not blocked."""
    page = opened(chromium, [])
    page.goto(f"{served.home}campaigns/new")
    page.locator("#file").set_input_files({"name": "a.csv", "mimeType": "text/csv", "buffer": b"phone\n+13035550100\n"})
    # The server hangs.
    page.route("**/campaigns/new", lambda _: None)
    stop = page.context.new_cdp_session(page)
    for _ in range(2):
        with page.expect_request("**/campaigns/new"):
            page.get_by_role("button", name="Next").click(no_wait_after=True)
        stop.send("Page.stopLoading")
        page.get_by_role("alert").wait_for()
    assert "stopped before the server answered" in page.get_by_role("alert").inner_text()
    page.context.close()


def test_placeholders_are_buttons_that_write_them(chromium: Browser, served: Site) -> None:
    """They write at the end of the text at first, then at its cursor; without JavaScript they are words to copy."""
    [path] = [path for name, path in served.pages if name == "new-text"]
    said: list[str] = []
    page = opened(chromium, said)
    page.goto(path)
    text, button = page.get_by_label("Text", exact=True), page.get_by_role("button", name="{{last_name}}")
    text.evaluate("one => { one.value = 'Hi '; one.setSelectionRange(3, 3); }")
    button.click()
    assert text.input_value() == "Hi {{last_name}}"
    text.evaluate("one => one.setSelectionRange(0, 2)")
    button.click()
    page.keyboard.type("!")
    assert text.input_value() == "{{last_name}}! {{last_name}}"
    assert said == []
    page.reload()
    before = text.input_value()
    button.click()
    assert text.input_value() == before + "{{last_name}}"
    page.context.close()
    plain = opened(chromium, [], java_script_enabled=False)
    plain.goto(path)
    assert "{{last_name}}" in plain.locator("#body-hint code").all_inner_texts()
    assert plain.locator("#body-hint button").count() == 0
    plain.context.close()


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_pages_of_the_set_up_fold_on_a_phone(chromium: Browser, served: Site, width: int) -> None:
    """One line names the page there, and a key opens the others, without JavaScript; else all are shown."""
    page = opened(chromium, [], viewport={"width": width, "height": 800}, java_script_enabled=False)
    page.goto(f"{served.home}webhooks")
    places = page.get_by_role("navigation", name="Set-up")
    others = places.get_by_role("link", name="Flows")
    line = places.locator("summary")
    if width > 800:
        assert line.is_hidden()
    else:
        box = places.bounding_box()
        assert box is not None
        assert box["height"] <= 60
        assert "Webhooks" in line.inner_text()
        assert others.is_hidden()
        line.focus()
        page.keyboard.press("Enter")
    others.wait_for()
    assert places.locator("[aria-current=page]").inner_text() == "Webhooks"
    page.context.close()


def axe_core() -> str:
    """Return the source of axe-core."""
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")


def looked_at(page: Page, said: list[str], path: str, axe: str = "") -> int:
    """Open a page, find nothing wrong with it, and return its status."""
    answer = page.goto(path)
    assert answer is not None
    look_over(page, axe)
    # The browser itself complains of an answer that is an error.
    complaints = [one for one in said if not (answer.status >= 400 and one.startswith("Failed to load resource"))]
    assert complaints == [], path
    said.clear()
    return answer.status


def look_over(page: Page, axe: str) -> None:
    """Find nothing that hinders anybody on the page that is shown.

    Every part that folds is opened, so that the forms in it are looked at too. Besides its own width, a phone is
    looked at as the narrowest one, any other window as the narrowest that has the menu at its side.
    """
    size = page.viewport_size
    assert size is not None
    for each in (size["width"], 320 if size["width"] < 400 else 820):
        page.set_viewport_size({**size, "width": each})
        for opens in (False, True):
            page.evaluate(FOLDED, opens)
            assert page.evaluate(HURDLES) == [], (page.url, each, opens)
    page.set_viewport_size(size)
    if axe:
        # Not as an element: the policy refuses it.
        page.evaluate(axe)
        found = page.evaluate(f"axe.run({{runOnly: {json.dumps(RULES)}}})")
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == [], page.url


@pytest.mark.turn(2, "a browser opens every page in each width and theme")
@pytest.mark.parametrize(("width", "theme"), SIZES)
def test_pages_break_no_rule_of_the_policy_and_scroll_one_way(
    chromium: Browser, served: Site, width: int, theme: str
) -> None:
    """No complaint of the browser, no request elsewhere, no sideways scrolling, also at 320 px."""
    said: list[str] = []
    size: Any = {"width": width, "height": 800}
    page = opened(chromium, said, viewport=size, color_scheme=theme, extra_http_headers={PERSON: OPERATOR})
    assert [path for _, path in served.pages if looked_at(page, said, path) != 200] == []
    page.context.close()


@pytest.mark.turn(2, "a browser opens every page in two widths")
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
@pytest.mark.parametrize("role", [NOBODY, *Role, OPERATOR])
def test_pages_break_no_rule_of_accessibility(
    chromium: Browser, served: Site, width: int, theme: str, role: str
) -> None:
    """WCAG 2.2 A and AA, and best practice, as axe-core tries them: every page in every role, also of refusals.

    Nothing is against the policy, nothing is asked of others, and the browser complains of nothing.
    """
    axe = axe_core()
    said: list[str] = []
    size: Any = {"width": width, "height": 800}
    page = opened(chromium, said, viewport=size, color_scheme=theme, extra_http_headers={PERSON: role})
    paths = served.public if role == NOBODY else [*(path for _, path in served.pages), f"{served.campaign}x"]
    refused = 0
    for path in paths:
        # Refusals are one page.
        refused += looked_at(page, said, path, axe if refused < 2 else "") == 403
    assert bool(refused) is (role not in {NOBODY, OPERATOR})
    page.context.close()


@pytest.mark.nightly("hundreds of rules are tried on every answer")
@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")])
def test_what_forms_answer_breaks_no_rule_of_accessibility(
    chromium: Browser, served: Site, tmp_path: Path, width: int, theme: str
) -> None:
    """An import with its result, a file with a used key, the dates of a schedule, a webhook that cannot be."""
    axe = axe_core()
    size: Any = {"width": width, "height": 800}
    page = opened(chromium, [], viewport=size, color_scheme=theme)

    def send(button: str) -> None:
        with page.expect_navigation():
            page.get_by_role("button", name=button).click()

    file = tmp_path / "stopped.csv"
    file.write_text("phone\n+18145550120\n+18145550121\n12\n")
    page.goto(f"{served.home}register/import")
    page.locator("#file").set_input_files(file)
    key = page.locator("form:has(#file) [name=key]").input_value()
    send("Next")
    send("Add 2 numbers to the register")
    assert "put on the register" in page.locator("#done").inner_text()
    look_over(page, axe)
    send("Take this import back")
    page.goto(f"{served.home}register/import")
    page.evaluate("key => { document.querySelector('form:has(#file) [name=key]').value = key; }", key)
    page.locator("#file").set_input_files({"name": "more.csv", "mimeType": "text/csv", "buffer": b"phone\n12\n"})
    page.get_by_role("button", name="Next").click()
    page.wait_for_selector("#file-problem")
    look_over(page, axe)
    schedule = next(path for _, path in served.pages if "?like=" in path)
    page.goto(schedule)
    for name, value in {"name": "Each day", "starts_on": "2127-01-04", "at": "09:00", "zone": "UTC"}.items():
        page.locator(f"#create-{name}").fill(value)
    page.get_by_role("button", name="Show the next dates").click()
    page.get_by_text("5 January 2127").wait_for()
    look_over(page, axe)
    page.goto(f"{served.home}webhooks")
    page.locator("summary", has_text="Add a webhook").click()
    page.locator("#create-url").fill("http://10.0.0.1/")
    page.get_by_role("button", name="Add a webhook").click()
    page.wait_for_selector("#problems")
    look_over(page, axe)
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
