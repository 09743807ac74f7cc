"""The headers of every response."""

from __future__ import annotations

import re

import pytest

from outreach_server.console import throttle
from outreach_server.console.security.headers import HEADERS, POLICY
from tests.console.conftest import MOUNT, PAGES, House

pytestmark = pytest.mark.anyio


def test_the_policy_allows_nothing_inline_and_nothing_of_others() -> None:
    """The policy allows nothing but what the console itself serves."""
    assert POLICY == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


@pytest.mark.parametrize("person", [None, "viewer", "operator", "stranger"])
@pytest.mark.parametrize("path", PAGES)
async def test_every_page_has_every_header(house: House, path: str, person: str | None) -> None:
    """Error pages have them too, for every user."""
    campaign = await house.campaign()
    answer = await house.get(path.format(campaign=campaign.id), person=person)
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-request-id"]
    assert "set-cookie" not in answer.headers


async def test_files_have_the_headers_and_are_kept(house: House) -> None:
    """Their address has their hash, so that browsers keep them; another hash is not there."""
    page = await house.get("")
    files = re.findall(rf'(?:href|src)="({MOUNT}/static/[^"#]+)', page.text)
    assert {file.rpartition("/")[2] for file in files} == {
        "console.css",
        "console.js",
        "htmx.js",
        "icons.svg",
        "favicon.svg",
    }
    for file in set(files):
        answer = await house.client.get(file)
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        other = re.sub(r"/static/\w+/", "/static/0000/", file)
        assert (await house.client.get(other)).status_code == 404


async def test_addresses_stay_on_this_origin(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """No page names another origin."""
    monkeypatch.setattr(throttle, "REQUESTS_PER_SECOND", 1_000)
    campaign = await house.campaign()
    for path in PAGES:
        text = (await house.get(path.format(campaign=campaign.id), person="operator")).text
        assert not re.findall(r'(?:href|src|action|content)="(?:https?:)?//', text)


async def test_a_fault_shows_no_trace(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error is a page with the request's id, and its words are in the log alone."""

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret words")

    monkeypatch.setattr(type(house.engine.workspaces), "get", broken)
    answer = await house.get("", x_request_id="abc-1")
    assert answer.status_code == 500
    assert "secret words" not in answer.text
    assert "abc-1" in answer.text
    assert answer.headers["x-request-id"] == "abc-1"
    assert answer.headers["content-security-policy"] == POLICY
