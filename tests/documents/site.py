"""Check the site that `make docs` built: `python -m tests.documents.site build/site`.

Every link leads to a file of the site and to a place in it, and no page loads anything from elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = frozenset({("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "srcset")})


class _Page(HTMLParser):
    """What a page of HTML links to, loads and has places for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses and the places of a tag."""
        for name, value in attrs:
            if value and name in {"id", "name"}:
                self.places.add(value)
            if value and (tag, name) in _LOADED:
                self.loaded.append(value)
            elif value and name in {"href", "src"}:
                self.links.append(value)


def problems(site: Path) -> Iterator[str]:
    """Yield a sentence for each dead link and each address elsewhere that is loaded."""
    pages = {path.resolve(): _Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for address in [*page.loaded, *page.links]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loaded and parts.scheme != "data":
                    yield f"{path.name} loads {address}"
            elif not _exists(path, unquote(parts.path), unquote(parts.fragment), pages):
                yield f"{path.name} links to {address}, which is not there"


def _exists(page: Path, target: str, place: str, pages: Mapping[Path, _Page]) -> bool:
    path = (page.parent / target).resolve() if target else page
    return path.is_file() and (path not in pages or place in pages[path].places)


if __name__ == "__main__":
    found = sorted(set(problems(Path(sys.argv[1]))))
    sys.exit("\n".join(found) or None)
