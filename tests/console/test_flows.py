"""Flows of a day in a browser, with their clicks counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console.chromium import Site, browser, site
from tests.console.test_browser import HURDLES, axe_core, look_over, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

MOST_CLICKS = 5
"""To send a text to a spreadsheet from the overview: new, next, next, next, send; choosing a file is none."""

WAYS = (
    (1280, "light", "mouse", True),
    (390, "dark", "touch", True),
    (1280, "dark", "keyboard", True),
    (390, "light", "mouse", False),
)
"""Width, theme, what presses the buttons, and whether scripts run."""

TEXT = "Hi {{first_name}}, your visit in {{city}} is on Monday."


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


def _press(page: Page, found: Locator, by: str) -> None:
    """Press a button or link by mouse, touch or keyboard."""
    if by == "touch":
        found.tap()
    elif by == "keyboard":
        found.focus()
        page.keyboard.press("Enter")
    else:
        found.click()


@pytest.mark.soak("a browser goes through a flow")
@pytest.mark.parametrize(("width", "theme", "by", "script"), WAYS)
def test_a_text_is_sent_to_a_spreadsheet(
    chromium: Browser, served: Site, tmp_path: Path, width: int, theme: str, by: str, script: bool
) -> None:
    """In five clicks, with nothing against the policy and no sideways scrolling on the way."""
    said: list[str] = []
    options = {"viewport": {"width": width, "height": 800}, "color_scheme": theme, "java_script_enabled": script}
    page = opened(chromium, said, has_touch=by == "touch", **options)
    # Other people than in the other flows: who is in another campaign is shown, and has to be decided.
    area = {"mouse": "720", "touch": "480", "keyboard": "719"}[by] if script else "970"
    rows = "".join(f"+1{area}555{number:04},Ann {number},Denver\n" for number in range(3))
    file = tmp_path / "visits.csv"
    file.write_text(f"phone,first_name,city\n{rows}")
    clicks = 0

    def go(role: Callable[[], Locator]) -> None:
        nonlocal clicks
        if script:
            assert page.evaluate(HURDLES) == [], page.url
        _press(page, role(), by)
        page.wait_for_load_state()
        clicks += 1

    def next_button() -> Locator:
        return page.get_by_role("button", name="Next")

    page.goto(served.home)
    go(lambda: page.get_by_role("link", name="New campaign").first)
    agent = page.get_by_label("Agent", exact=True)
    for choice, is_asked in (("Has an agent call", True), ("Sends a text", False)):
        page.get_by_label(choice).check()
        assert agent.is_visible() is is_asked
    page.get_by_label("Contacts", exact=True).set_input_files(file)
    go(next_button)
    page.wait_for_url("**/new/text?*")
    page.get_by_role("textbox", name="Text", exact=True).fill(TEXT)
    go(next_button)
    page.wait_for_url("**/new/when?*")
    go(next_button)
    page.wait_for_url("**/new/check?*")
    button = page.get_by_role("button", name=re.compile("Send 3 messages, done "))
    assert "Hi Ann 0, your visit in Denver is on Monday." in page.locator("main").inner_text()
    go(lambda: button)
    page.wait_for_url("**done=start")
    assert clicks <= MOST_CLICKS
    assert "It has started." in page.locator("main").inner_text()
    assert said == []
    page.context.close()


@pytest.mark.nightly("a browser goes through more flows")
@pytest.mark.parametrize(("width", "theme", "by", "script"), WAYS)
def test_a_text_is_sent_to_oneself(
    chromium: Browser, served: Site, width: int, theme: str, by: str, script: bool
) -> None:
    """In one click, from the step with the text."""
    said: list[str] = []
    options = {"viewport": {"width": width, "height": 800}, "color_scheme": theme, "java_script_enabled": script}
    page = opened(chromium, said, has_touch=by == "touch", **options)
    page.goto(served.waiting.replace("/check", "/text"))
    page.get_by_label("Your number").fill("+14155550199")
    _press(page, page.get_by_role("button", name="Send it to me"), by)
    page.wait_for_selector("text=It is on its way to")
    assert said == []
    page.context.close()


@pytest.mark.nightly("a browser goes through more flows")
@pytest.mark.parametrize(("width", "theme", "by", "script"), WAYS)
def test_a_start_is_approved_and_a_change_takes_it_away(
    chromium: Browser, served: Site, width: int, theme: str, by: str, script: bool
) -> None:
    """In one click each; the person who changed it last has no button, and sees what it waits for."""
    said: list[str] = []
    options = {"viewport": {"width": width, "height": 800}, "color_scheme": theme, "java_script_enabled": script}
    page = opened(chromium, said, has_touch=by == "touch", **options)
    served.change()
    page.goto(served.waiting)
    assert "It waits for approval by another manager or owner." in page.locator("main").inner_text()
    _press(page, page.get_by_role("button", name=re.compile("^Approve: Send 300 messages, done ")), by)
    page.wait_for_selector("text=Approved by ann")
    assert page.get_by_role("button", name=re.compile("^Send 300 messages, done ")).count() == 1
    page.goto(served.waiting.replace("/check", "/when"))
    _press(page, page.get_by_role("button", name="Next"), by)
    page.wait_for_url("**/new/check?*")
    assert "Give the address of this page to one of them" in page.locator("main").inner_text()
    assert page.locator("main button").count() == 0
    assert said == []
    page.context.close()


class Way:
    """A person who goes one way through the pages, with their clicks counted.

    Attributes:
        number: The place of the way in `WAYS`: other ways contact other people.
    """

    def __init__(self, chromium: Browser, number: int) -> None:
        width, theme, self.by, self.script = WAYS[number]
        self.number, self.clicks = number, 0
        self.said: list[str] = []
        options = {"viewport": {"width": width, "height": 800}, "color_scheme": theme}
        self.page = opened(
            chromium, self.said, has_touch=self.by == "touch", java_script_enabled=self.script, **options
        )

    def click(self, found: Locator) -> None:
        """Press something, and wait for the page that follows."""
        with self.page.expect_navigation():
            self.press(found)

    def press(self, found: Locator) -> None:
        """Press something that leads to no other page."""
        if self.script:
            assert self.page.evaluate(HURDLES) == [], self.page.url
        _press(self.page, found, self.by)
        self.clicks += 1

    def leave(self) -> None:
        """Close the page, which has complained of nothing."""
        assert self.said == []
        self.page.context.close()


@pytest.fixture(params=range(len(WAYS)), ids=lambda number: "-".join(str(part) for part in WAYS[number]))
def way(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Way]:
    """A person, for each way."""
    made = Way(chromium, request.param)
    yield made
    made.leave()


@pytest.mark.nightly("a browser goes through more flows")
def test_replies_are_answered_one_after_another(served: Site, way: Way) -> None:
    """Each takes one click, or Ctrl and Enter: sending an answer opens the next reply that nobody has answered."""
    area = 200 + way.number
    writers = [f"+1{area}555012{number}" for number in range(3)]
    for phone in writers:
        served.write(phone, f"This is {phone}")
    page = way.page
    page.goto(f"{served.home}inbox/{writers[-1][1:]}")
    for phone in reversed(writers):
        assert f"This is {phone}" in page.locator("main").inner_text()
        page.get_by_label("Answer").fill("Thank you")
        if way.by == "keyboard":
            page.keyboard.press("Control+Enter")
            page.wait_for_url(re.compile("done=answer"))
        else:
            way.click(page.get_by_role("button", name="Send, and open the next"))
        page.wait_for_url(lambda url, phone=phone: phone[1:] not in url)  # type: ignore[misc]
        assert "The answer is on its way." in page.locator("main").inner_text()
    assert way.clicks == (0 if way.by == "keyboard" else 3)


@pytest.mark.nightly("a browser goes through more flows")
def test_a_doubtful_message_is_decided(served: Site, way: Way) -> None:
    """In two clicks from the overview, or one and a key."""
    area = 210 + way.number
    phone = f"+1{area}5550130"
    served.write(phone, "please don't stop by")
    way.page.wait_for_timeout(6_000)  # what needs a person is read every five seconds
    way.page.goto(served.home)
    way.click(way.page.locator("#needs li", has_text=phone).get_by_role("link"))
    found = way.page.locator("section", has_text=phone)
    if way.by == "keyboard" and found.locator("kbd").count():
        # The keys are those of the first message, and decide nothing in the first second of a page.
        way.page.wait_for_timeout(1_000)
        with way.page.expect_navigation():
            way.page.keyboard.press("2")
    else:
        way.click(found.get_by_role("button", name="It is not"))
    assert "campaigns continue with this number" in way.page.locator("main").inner_text()
    assert way.clicks <= 2


@pytest.mark.nightly("a browser goes through more flows")
def test_who_was_not_reached_is_written_to_again(served: Site, way: Way) -> None:
    """In three clicks from the overview, with the results chosen."""
    name = f"Winter {way.number}"
    served.end(name, [f"+1{240 + way.number}5550160"])
    way.page.goto(served.home)
    way.click(way.page.get_by_role("link", name=name, exact=True).first)
    way.click(way.page.get_by_role("link", name="Follow up"))
    way.click(way.page.get_by_role("button", name="Create the follow-up"))
    way.page.wait_for_url("**/new/text?*")
    assert way.clicks == 3


def searched(way: Way, text: str) -> None:
    """Search something from the page where a person is, in one click or with Enter."""
    if way.by == "keyboard":
        way.page.keyboard.press("/")
        way.page.keyboard.type(text)
        way.clicks += 1
        with way.page.expect_navigation():
            way.page.keyboard.press("Enter")
        return
    box = way.page.get_by_role("search", name="Everything")
    box.get_by_role("searchbox").fill(text)
    way.click(box.get_by_role("button"))


@pytest.mark.nightly("a browser goes through more flows")
def test_somebody_who_phones_is_opted_out(served: Site, way: Way) -> None:
    """In two clicks: the number is searched as people say it."""
    area = 220 + way.number
    way.page.goto(served.home)
    searched(way, f"+1 ({area}) 555-0140")
    way.click(way.page.get_by_role("button", name="Opt out"))
    assert "no campaign contacts it any more" in way.page.locator("main").inner_text()
    assert f"+1{area}5550140" in way.page.locator("h1").inner_text()
    assert way.clicks == 2


@pytest.mark.nightly("a browser goes through more flows")
def test_what_became_of_a_contact_is_found_by_its_number(served: Site, way: Way) -> None:
    """In two clicks: the search, and the row of the campaign."""
    way.page.goto(served.home)
    searched(way, "+13035550001")
    way.click(way.page.get_by_role("link", name="Autumn", exact=True).first)
    text = way.page.locator("main").inner_text()
    assert "+13035550001" in text
    assert "he campaign was cancelled before its turn" in text
    assert way.clicks == 2


@pytest.mark.nightly("a browser goes through more flows")
def test_the_same_list_gets_another_text(served: Site, way: Way) -> None:
    """In four clicks from the overview: clone, next, check, send."""
    page, name = way.page, f"Summer {way.number}"
    served.end(name, [f"+1{230 + way.number}555015{number}" for number in range(3)])
    page.goto(served.home)
    way.click(page.get_by_role("button", name=f"Clone {name}", exact=True))
    page.wait_for_url("**/new/text?*")
    page.get_by_role("textbox", name="Text", exact=True).fill("Hi {{first_name}}, we are open again.")
    for step in ("when", "check"):
        way.click(page.get_by_role("button", name="Next"))
        page.wait_for_url(f"**/new/{step}?*")
    way.click(page.get_by_role("button", name=re.compile("^Send 3 messages, done ")))
    page.wait_for_url("**done=start")
    assert "It has started." in page.locator("main").inner_text()
    assert way.clicks == 4


@pytest.mark.nightly("a browser goes through more flows")
def test_the_overview_says_what_runs_and_until_when(served: Site, way: Way) -> None:
    """Without a click: what each campaign does, and when it is done by the forecast."""
    page = way.page
    done = page.locator("#running li", has_text="Recall").filter(has_text="by the forecast")
    for _ in range(20):
        page.goto(served.home)
        if done.count():
            break
        page.wait_for_timeout(1_000)  # the forecast of a start is worked out soon after it
    [line] = page.locator("#running li", has_text="Recall").all_inner_texts()
    assert re.search(r"Sends, limited by its rate: \d+ contacts due\. Done .+ by the forecast\.", line), line
    assert way.clicks == 0


@pytest.mark.nightly("a browser goes through more flows")
def test_why_nothing_goes_out_is_said(served: Site, way: Way) -> None:
    """Without a click: the overview says under the campaign's name what it waits for, and until when."""
    page = way.page
    page.goto(served.home)
    entry = page.locator("#running li", has=page.get_by_role("link", name="Closed", exact=True))
    line = entry.get_by_text("Waits for")
    assert line.is_visible()
    said = line.inner_text()
    assert re.match(r"Waits for 09:00 .+ UTC \(its business hours\): 2 contacts\.", said), said
    assert way.clicks == 0


@pytest.mark.nightly("a browser goes through more flows")
def test_a_campaign_is_stopped(served: Site, way: Way) -> None:
    """With one click on the overview; it can be resumed at once."""
    way.page.goto(served.home)
    way.click(way.page.get_by_role("button", name="Pause Closed"))
    assert "It is paused" in way.page.locator("main").inner_text()
    assert way.clicks == 1
    way.click(way.page.get_by_role("button", name="Resume"))
    way.page.wait_for_timeout(6_000)  # what runs is read every five seconds


@pytest.mark.nightly("a browser goes through more flows")
def test_the_report_is_taken_along(served: Site, way: Way) -> None:
    """In two clicks from the overview: report, and the file."""
    name = f"Easter {way.number}"
    served.end(name, [f"+1{250 + way.number}5550170"])
    way.page.goto(served.home)
    way.click(way.page.get_by_role("link", name=f"Report of {name}").first)
    with way.page.expect_download() as found:
        way.press(way.page.get_by_role("link", name="XLSX"))
    assert found.value.suggested_filename.endswith(".xlsx")
    assert way.clicks == 2


@pytest.mark.nightly("hundreds of rules are tried on every step")
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_the_steps_break_no_rule_of_accessibility(
    chromium: Browser, served: Site, tmp_path: Path, width: int, theme: str
) -> None:
    """With a list in which something has to be decided, and with mistakes in the fields."""
    axe = axe_core()
    page = opened(chromium, [], viewport={"width": width, "height": 800}, color_scheme=theme)
    file = tmp_path / "visits.csv"
    file.write_text(f"phone,first_name\n+1815555{width:04},Ann\n12,Ben\n")

    def check() -> None:
        page.wait_for_load_state()
        look_over(page, axe)

    def go_on() -> None:
        page.get_by_role("button", name="Next").click()

    page.goto(f"{served.home}campaigns/new")
    page.locator("#file").set_input_files(file)
    go_on()
    page.wait_for_url("**/new/audience?*")
    page.locator("summary", has_text="Read it in another way").click()
    check()
    go_on()
    page.wait_for_url("**/new/text?*")
    page.locator("#body").fill("Hi {{first_name}} – see you “there”")
    page.get_by_role("button", name="Save and show").click()
    check()
    page.locator("#to").fill("12")
    page.get_by_role("button", name="Send it to me").click()
    page.wait_for_selector("#to-problem")
    check()
    go_on()
    page.wait_for_url("**/new/when?*")
    page.locator("#rate").fill("many")
    go_on()
    page.wait_for_selector("#rate-problem")
    check()
    page.locator("#rate").fill("60")
    go_on()
    page.wait_for_url("**/new/check?*")
    check()
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate(HURDLES) == []
    page.context.close()
