"""Empty pages: what they are for, what to do, and the page of the docs that says more."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import httpx
import pytest
from starlette.requests import Request

from outreach import ConfigError, Outreach
from outreach_server.console import ConsoleUser, create_console
from outreach_server.console.app import build
from outreach_server.console.documentation import DOCS, docs_link
from outreach_server.console.pages.set_up.every import NOUNS
from tests.console.conftest import ORIGIN, PEOPLE, House
from tests.console.page import parse
from tests.documents.test_references import places
from tests.edited_copy import ROOT

pytestmark = pytest.mark.anyio

EMPTY: Final = (
    *(
        "",
        "campaigns",
        "inbox",
        "inbox?folder=held",
        "inbox?folder=all",
        "calls",
        "register",
        "register?q=%2B14155550199",
    ),
    *("unknown", "search", "search?q=nothing", "contacts/14155550199", "inbox/14155550199"),
    *("agents", "trunks", "flows", "accounts", "keys", "audit?action=nothing"),
    *("campaigns/{campaign}/contacts?q=nothing", "campaigns/{campaign}/report", "campaigns/{campaign}/follow-up"),
)
"""Pages of a new workspace with nothing on them, and of a campaign that has not started."""


@pytest.mark.parametrize("page", DOCS)
def test_each_page_of_the_docs_is_there(page: str) -> None:
    """With the place on it."""
    file, _, place = DOCS[page].partition("#")
    assert Path(ROOT / "docs" / file).is_file()
    assert not place or place in places(f"docs/{file}")


def test_the_docs_are_named_for_pages_that_there_are() -> None:
    """And for each list of the set-up."""

    async def nobody(request: Request) -> ConsoleUser | None:
        return None

    app = build(get_engine=lambda: Outreach.open("memory://"), identify=nobody, actor_kind="user", has_login=True)
    assert set(DOCS) <= app.state.console.pages.keys()
    assert {noun.name for noun in NOUNS if noun.shape != "single"} <= set(DOCS)


@pytest.mark.parametrize("path", EMPTY)
async def test_an_empty_page_names_its_page_of_the_docs(house: House, path: str) -> None:
    """Where nobody has said where the docs are served, by its file."""
    page = await house.page(path.format(campaign=(await house.campaign()).id) if "{campaign}" in path else path)
    assert page.problems == []
    named = [one.text for one in page.all("code") if one.text.startswith("docs/")]
    assert named
    assert set(named) <= {docs_link(one, "").path for one in DOCS}


async def test_an_empty_page_links_to_the_docs_that_are_served(house: House) -> None:
    """At the address that was configured; one that is no web address is refused."""
    identify = house.app.state.console.identify
    app = create_console(engine=house.engine, identify=identify, docs_url="https://docs.example/x/")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
        answer = await client.get(f"/w/{house.workspace}/keys", headers={PEOPLE: "owner"})
    page = parse(answer.text)
    [link] = [one for one in page.all("a") if one.attributes["href"].startswith("https:")]
    assert link.attributes["href"] == "https://docs.example/x/docs/managing.html#scopes-of-a-key"
    assert page.problems == []
    for wrong in ("javascript:alert(1)", "docs", "https://docs.example/?a"):
        with pytest.raises(ConfigError, match="docs_url is"):
            create_console(engine=house.engine, identify=identify, docs_url=wrong)
