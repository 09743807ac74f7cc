"""Consoles with a part of the pages: links to the others are text, and their buttons and forms are gone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from starlette.routing import Route

from outreach import ConfigError

ABSENT: Final = "absent:"
"""The address of a page that this console does not have."""

OVERVIEW: Final = "overview"
"""The part that is the first page of a workspace."""

_WORKSPACE: Final = "/w/{workspace}/"
_ALWAYS: Final = frozenset({"live"})
_ATTRIBUTES: Final = rf'[^<>]*\s(?:href|action)="{ABSENT}"[^<>]*'
_FORM: Final = re.compile(rf"<form\b{_ATTRIBUTES}>.*?</form>", re.DOTALL)
_BUTTON: Final = re.compile(rf'<a\b(?=[^<>]*\sclass="button){_ATTRIBUTES}>.*?</a>', re.DOTALL)
_LINK: Final = re.compile(rf"<a\b{_ATTRIBUTES}>(.*?)</a>", re.DOTALL)


def part_of(route: Route) -> str:
    """Return the part of the console that a page belongs to; empty for those that every console has."""
    if not route.path.startswith(_WORKSPACE):
        return ""
    part = route.path.removeprefix(_WORKSPACE).partition("/")[0] or OVERVIEW
    return "" if part in _ALWAYS else part


def chosen(routes: Iterable[Route], pages: Collection[str] | None) -> list[Route]:
    """Return the pages of some parts; all if no parts are named.

    Raises:
        ConfigError: There is no such part, or none is named; the message has all of them.
    """
    all_routes = list(routes)
    if pages is None:
        return all_routes
    parts = {part for one in all_routes if (part := part_of(one))}
    given: object = pages
    if isinstance(given, str) or not pages or not parts.issuperset(pages):
        raise ConfigError(f"pages is {pages!r}; it must be a set of {', '.join(sorted(parts))}.")
    return [one for one in all_routes if part_of(one) in {"", *pages}]


def without_absent(text: str) -> str:
    """Return HTML of the console's templates without what leads to absent pages."""
    if ABSENT not in text:
        return text
    # Templates escape < and > in attributes and texts, and nest neither links nor forms.
    return _LINK.sub(r"\1", _BUTTON.sub("", _FORM.sub("", text)))
