"""Single keys and the theme in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.console.chromium import Site, browser, site
from tests.console.test_browser import HURDLES, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.soak("a browser opens many pages")


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


def test_keys_lead_everywhere_and_do_nothing_while_somebody_types(chromium: Browser, served: Site) -> None:
    """Two keys and a row lead from a number to the decisions about its contact."""
    said: list[str] = []
    page = opened(chromium, said)
    page.goto(served.home)
    page.keyboard.press("/")
    page.keyboard.type("+13035550000")
    assert page.locator("#search").input_value() == "+13035550000"
    page.keyboard.type("gc?")
    assert page.locator("#keys").is_hidden()
    page.locator("#search").fill("+13035550000")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=*")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.innerText") == "Autumn"
    page.keyboard.press("Enter")
    page.wait_for_url("**/contacts/0")
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_url("**/campaigns")
    for key, path in (("i", "inbox"), ("u", "unknown"), ("r", "register"), ("o", "")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"{served.home}{path}")
    page.goto(f"{served.home}search?q=%2B14155550102")
    page.get_by_role("link", name="Everything with this number").click()
    page.wait_for_url(f"{served.home}contacts/14155550102")
    page.keyboard.press("Control+n")
    page.keyboard.press("n")
    page.wait_for_url("**/campaigns/new")
    page.keyboard.press("?")
    assert "Next row" in page.locator("#keys").inner_text()
    page.keyboard.press("n")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#keys").is_hidden()
    assert said == []
    page.context.close()


def test_a_key_decides_about_one_person(chromium: Browser, served: Site) -> None:
    """Not about the next one too: neither while it is held down, nor in the first second of a page."""
    for last in range(3):
        served.write(f"+1415555014{last}", "please don't stop by")
    page, sent = opened(chromium, []), []
    page.on("request", lambda one: sent.append(one.url) if one.method == "POST" else None)
    page.clock.set_fixed_time(10_000)
    page.goto(f"{served.home}inbox?folder=held")
    held = page.get_by_role("button", name="It is not").count()
    page.keyboard.press("2")
    page.clock.set_fixed_time(11_000)
    page.keyboard.down("2")
    page.wait_for_url("**done=not-opted-out")
    page.keyboard.down("2")
    page.clock.set_fixed_time(12_000)
    page.keyboard.down("2")
    page.keyboard.up("2")
    page.goto(f"{served.home}inbox?folder=held")
    assert (page.get_by_role("button", name="It is not").count(), len(sent)) == (held - 1, 1)
    page.context.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_theme_and_the_switch_of_the_keys_are_kept(chromium: Browser, served: Site, width: int) -> None:
    """The theme is that of the choice from the first paint on, whatever the device has."""
    page = opened(chromium, [], color_scheme="light", viewport={"width": width, "height": 800})
    page.goto(served.home)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.goto(dict(served.pages)["look"])
    page.get_by_label("Dark").check()
    page.get_by_label("Single keys").uncheck()
    page.get_by_role("button", name="Save").click()
    page.wait_for_load_state()
    assert page.evaluate(HURDLES) == []
    page.goto(served.home)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.keyboard.press("n")
    page.keyboard.press("?")
    assert page.url == served.home
    assert page.locator("#keys").count() == 0
    page.context.close()
