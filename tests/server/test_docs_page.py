"""The page at /docs: Swagger UI over openapi.yaml, from this server alone."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from urllib.parse import urljoin

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from outreach_server import create_app, running
from outreach_server.contract import contract_bytes
from outreach_server.endpoints import documents
from tests.contract.document import read_yaml
from tests.server.conftest import Service
from tests.server.test_errors import check_envelope


class Page(HTMLParser):
    """Collects what a page loads and what is written into it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.inline: list[str] = []
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag loads."""
        found = dict(attrs)
        self._inside = tag
        self.loaded += [found[name] or "" for name in ("src", "data", "action") if name in found]
        self.loaded += [found.get("href") or ""] if tag == "link" else []
        self.inline += [name for name in found if name == "style" or name.startswith("on")]

    def handle_data(self, data: str) -> None:
        """Note a script or a style that stands in the page."""
        if self._inside in {"script", "style"} and data.strip():
            self.inline.append(data)


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    async with running(app.routes[0].app):  # type: ignore[attr-defined]
        yield


def test_everything_that_the_page_loads_is_served_here_wherever_it_is_mounted() -> None:
    """Its files are found from under a mount, keep for long under an address of their own, and are what they say."""
    host = Starlette(routes=[Mount("/outreach", create_app("memory://", dispatch=False))], lifespan=_lifespan)
    with TestClient(host) as client:
        answer = client.get("/outreach/docs")
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        page = Page(answer.text)
        files = [urljoin("/outreach/docs", link) for link in page.loaded if not link.startswith("data:")]
        assert [re.sub(r"\?[0-9a-f]{12}$", "?", link) for link in files] == [
            "/outreach/docs/swagger-ui.css?", "/outreach/docs/swagger-ui.js?", "/outreach/docs/start.js?",
        ]  # fmt: skip
        loaded = {link: client.get(link) for link in files}
        for link, file in loaded.items():
            assert file.status_code == 200
            assert file.headers["Content-Type"].partition(";")[0] == (
                "text/css" if ".css" in link else "text/javascript"
            )
            assert "max-age" in file.headers["Cache-Control"]
            assert file.headers["X-Content-Type-Options"] == "nosniff"
        style, viewer, start = (file.text for file in loaded.values())
        assert ".swagger-ui" in style
        assert "SwaggerUIBundle" in viewer
        assert 'SwaggerUIBundle({\n  url: "openapi.yaml"' in start
        assert client.get(urljoin("/outreach/docs", "openapi.yaml")).status_code == 200


def test_the_page_may_load_nothing_from_anywhere_else(memory_service: Service) -> None:
    """The policy allows this server only, and the page has neither script nor style within it, which it forbids."""
    answer = memory_service.client.get("/docs")
    rules = dict(rule.split(" ", 1) for rule in answer.headers["Content-Security-Policy"].split("; "))
    assert rules.pop("img-src") == "'self' data:"
    assert set(rules.values()) == {"'none'", "'self'"}
    assert rules["default-src"] == "'none'"
    assert Page(answer.text).inline == []
    assert f"<title>{read_yaml(contract_bytes().decode())['info']['title']}</title>" in answer.text
    assert "{{" not in answer.text


def test_only_files_of_the_page_are_served(memory_service: Service) -> None:
    """No other file of the viewer's package, and none of the server's own."""
    for name in ("redoc.js", "docs.html", "..%2fdocs.py", "swagger-ui.css/x", ""):
        check_envelope(memory_service.client.get(f"/docs/{name}"), 404, "not_found")


@pytest.mark.parametrize("asked", ["bytes=999999999-", "bytes=x", "bytes=0-1"])
def test_a_file_comes_whole_whatever_part_is_asked_for(asked: str) -> None:
    """An error of a range would be the only one without an envelope."""
    answer = TestClient(create_app("memory://")).get("/docs/start.js", headers={"Range": asked})
    assert answer.status_code == 200
    assert answer.content == documents.page_files()["start.js"].path.read_bytes()
    assert answer.headers["Accept-Ranges"] == "none"


def test_a_missing_viewer_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the package is told to be fixed."""
    monkeypatch.setattr(documents, "find_spec", lambda name: None)
    documents.page_files.cache_clear()
    try:
        with pytest.raises(FileNotFoundError, match=r"offapi.*Reinstall outreach"):
            documents.page_files()
    finally:
        documents.page_files.cache_clear()
