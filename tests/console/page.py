"""A page as a browser reads it, with what is wrong in its markup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser

import attrs

ALLOWED_HX = frozenset(
    {
        *("hx-get", "hx-post", "hx-target", "hx-swap", "hx-select", "hx-trigger", "hx-push-url", "hx-indicator"),
        *("hx-disable", "hx-status:422", "hx-sse:connect", "hx-sse:close"),
    }
)
"""Attributes of htmx that run no code."""

_VOID = frozenset({"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"})
_LABELLED = frozenset({"input", "select", "textarea"})


@attrs.define
class Element:
    """An element with its attributes and text."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    children: list[Element] = attrs.field(factory=list)
    texts: list[str] = attrs.field(factory=list)

    def __iter__(self) -> Iterator[Element]:
        """Iterate over this element and everything in it."""
        yield self
        for one in self.children:
            yield from one

    @property
    def text(self) -> str:
        """The text in it."""
        return " ".join(" ".join(part for one in self for part in one.texts).split())

    def all(self, tag: str, **wanted: str) -> list[Element]:
        """Return the elements of a tag with these attributes."""
        return [one for one in self if one.tag == tag and wanted.items() <= one.attributes.items()]


@attrs.define
class Page:
    """A page."""

    root: Element
    problems: list[str]

    def all(self, tag: str, **wanted: str) -> list[Element]:
        """Return the elements of a tag with these attributes."""
        return self.root.all(tag, **wanted)

    def by_id(self, name: str) -> Element:
        """Return the element with an id."""
        [found] = [one for one in self.root if one.attributes.get("id") == name]
        return found

    @property
    def buttons(self) -> set[str]:
        """The actions that its forms offer."""
        return {one.attributes["value"] for one in self.all("button", name="action")}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("#", {})
        self.open = self.root
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.problems += [f"<{tag}> has {name} twice" for name, n in Counter(one[0] for one in attrs).items() if n > 1]
        element = Element(tag, {name: value or "" for name, value in attrs}, self.open)
        self.open.children.append(element)
        if tag not in _VOID:
            self.open = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != self.open.tag:
            self.problems.append(f"</{tag}> ends <{self.open.tag}>")
        if self.open.parent is not None:
            self.open = self.open.parent

    def handle_data(self, data: str) -> None:
        self.open.texts.append(data)


def parse(text: str) -> Page:
    """Return a page with the problems of its markup."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    page = Page(reader.root, reader.problems)
    if reader.open is not reader.root:
        page.problems.append(f"<{reader.open.tag}> does not end")
    page.problems += _problems(page)
    return page


def _problems(page: Page) -> Iterator[str]:
    ids = Counter(one.attributes["id"] for one in page.root if "id" in one.attributes)
    yield from (f"id {name} is there {count} times" for name, count in ids.items() if count > 1)
    labels = {one.attributes.get("for") for one in page.all("label")}
    for one in page.root:
        for name, value in one.attributes.items():
            if name.startswith(("on", "style")) or (name.startswith("hx-") and name not in ALLOWED_HX):
                yield f"<{one.tag}> has {name}"
            runs = name != "value" and value.lower().startswith(("javascript:", "js:"))
            if runs or (name == "hx-trigger" and "[" in value):
                yield f"<{one.tag}> runs code: {name}={value}"
            if name in {"aria-labelledby", "aria-describedby", "for"}:
                yield from (f"{name} names {part}, which is not there" for part in value.split() if part not in ids)
        if one.tag == "style" or (one.tag == "script" and ("src" not in one.attributes or one.text)):
            yield f"<{one.tag}> inline"
        if one.tag in _LABELLED and one.attributes.get("type") != "hidden" and one.attributes.get("id") not in labels:
            yield f"<{one.tag}> without a label: {one.attributes}"
        if one.tag == "table" and not one.all("caption"):
            yield "a table without a caption"
        if one.tag == "th" and "scope" not in one.attributes:
            yield "a th without a scope"
        if one.tag in {"a", "button", "summary"} and not one.text:
            yield f"<{one.tag}> without text: {one.attributes}"
        if one.tag == "svg" and "aria-hidden" not in one.attributes and not one.attributes.get("aria-label"):
            yield "an svg without a label"
        if one.tag == "form" and one.attributes.get("method") == "post" and not one.all("input", name="token"):
            yield "a form without a token"
    if len(page.all("h1")) != 1:
        yield f"{len(page.all('h1'))} h1"
