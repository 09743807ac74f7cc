"""The page at /docs: openapi.yaml in Swagger UI, with nothing fetched from elsewhere.

Swagger UI's files come from the package `offapi`, which is not imported: it would build its own pages in memory.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import attrs

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of the page: it loads from this server and sends requests to it alone."""

_PACKAGE: Final = "offapi"
_PAGES: Final = Path(__file__).parent / "pages"


@attrs.frozen(kw_only=True)
class PageFile:
    """A file of the page, served as /docs/NAME.

    Attributes:
        path: Its path.
        media_type: Its media type.
    """

    path: Path
    media_type: str


@functools.cache
def docs_page() -> str:
    """Return the page as HTML, cached.

    Raises:
        FileNotFoundError: The installation lacks the viewer.
    """
    page = (_PAGES / "docs.html").read_text("utf-8")
    # Changed files get another URL, so that browsers may cache them for ever.
    content = b"".join(file.path.read_bytes() for file in page_files().values())
    version = hashlib.sha256(content).hexdigest()[:12]
    return page.replace("{{version}}", version)


@functools.cache
def page_files() -> Mapping[str, PageFile]:
    """Return the files of the page, by name.

    Raises:
        FileNotFoundError: The installation lacks the viewer.
    """
    found = find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise FileNotFoundError(
            f"The package {_PACKAGE}, which has the viewer at /docs, is missing. Reinstall outreach."
        )
    viewer = Path(found.origin).parent
    return {
        "swagger-ui.css": PageFile(path=viewer / "swagger_style.css", media_type="text/css"),
        "swagger-ui.js": PageFile(path=viewer / "swagger_bundle.js", media_type="text/javascript"),
        "start.js": PageFile(path=_PAGES / "start.js", media_type="text/javascript"),
    }
