"""What /docs shows the contract by is what Swagger UI publishes."""

from __future__ import annotations

import json

import pytest

from outreach_server.endpoints.documents import page_files
from tests.contract_tools.tools import Tools


@pytest.mark.parametrize(
    ("name", "published"), [("swagger-ui.css", "swagger-ui.css"), ("swagger-ui.js", "swagger-ui-bundle.js")]
)
def test_the_viewer_is_as_it_was_published(tools: Tools, name: str, published: str) -> None:
    """The package that ships it has changed nothing: `swagger-ui-dist` of the version in package.json is the same."""
    shipped = page_files()[name].path
    original = tools.node_modules / "swagger-ui-dist"
    version = json.loads((original / "package.json").read_text("utf-8"))["version"]
    if f"swagger-ui-dist@{version}/" not in (shipped.parent / "url.json").read_text("utf-8"):
        pytest.skip(f"a newer version is shipped than {version}: move the one in package.json")
    assert shipped.read_bytes() == (original / published).read_bytes()
