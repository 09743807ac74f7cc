"""Every page is valid, labelled, and without code or style in it."""

from __future__ import annotations

import hashlib
from importlib import resources

import pytest

from tests.console.conftest import PAGES, House
from tests.console.page import parse

pytestmark = pytest.mark.anyio

STATIC = resources.files("outreach_server.console") / "static"


@pytest.mark.parametrize("path", PAGES)
async def test_each_page_is_well_formed(house: House, path: str) -> None:
    """No inline code, no attribute of htmx that runs some, labels, captions and ids as they must be."""
    campaign = await house.campaign()
    page = parse((await house.get(path.format(campaign=campaign.id), person="operator")).text)
    assert page.problems == []


async def test_each_state_of_a_campaign_is_well_formed(house: House) -> None:
    """So is the page of a campaign in each of its states."""
    campaign = await house.campaign()
    for action in ("start", "pause", "resume", "cancel", "archive", "unarchive"):
        await getattr(house.engine.campaigns, action)(house.workspace, campaign.id)
        page = await house.page(f"campaigns/{campaign.id}")
        assert page.problems == []


def test_the_reader_of_these_tests_finds_what_is_wrong() -> None:
    """A reader that finds nothing would pass everything."""
    wrong = parse(
        "<html><h1>A</h1><h1>B</h1><p style='x' onclick='y' id=a><b id=a hx-on:click=z></p></b><input><table></table>"
        "<script>1</script><style></style><a href='javascript:1'></a><form method=post></form><svg></svg>"
        "<p aria-labelledby=none></p>"
    )
    expected = (
        *("2 h1", "<p> has style", "<p> has onclick", "id a is there 2 times", "<b> has hx-on:click", "</p> ends <b>"),
        *("a table without a caption", "<script> inline", "<style> inline", "a form without a token"),
        *("an svg without a label", "aria-labelledby names none, which is not there", "<html> does not end"),
    )
    assert set(expected) <= set(wrong.problems)
    assert any(one.startswith("<input> without a label") for one in wrong.problems)
    assert any(one.startswith("<a> runs code") for one in wrong.problems)


def test_the_files_of_others_are_those_that_were_looked_at() -> None:
    """Their sums are those of VENDORED.txt, which names their versions and licences."""
    text = (STATIC / "VENDORED.txt").read_text("utf-8")
    rows = [line.split("\t") for line in text.partition("\n\n")[0].splitlines()[1:]]
    assert [row[0] for row in rows] == ["htmx.js", "icons.svg"]
    for file, package, version, licence, digest in rows:
        assert hashlib.sha256((STATIC / file).read_bytes()).hexdigest() == digest
        assert f"{package} {version}\n" in text
        assert licence in {"0BSD", "ISC"}


def test_our_own_files_are_small() -> None:
    """A first visit loads little."""
    assert len((STATIC / "console.css").read_bytes()) <= 24_000
    assert len((STATIC / "console.js").read_bytes()) <= 6_000
