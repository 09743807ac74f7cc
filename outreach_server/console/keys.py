"""The single keys of the console: where each of them leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from outreach_server.console.frame import KeyView, Link

GO: Final = MappingProxyType({"overview": "o", "campaigns": "c", "inbox": "i", "register": "r", "unknown": "u"})
"""The key that leads to a page of the menu, after `g`."""


def keys_of(menu: Sequence[Link], new_url: str, pages: Mapping[str, str], *, can_search: bool) -> Sequence[KeyView]:
    """Return the keys of a page.

    Args:
        menu: The links of its menu.
        new_url: Where a campaign is made; empty where the person may not.
        pages: The page that each address of the menu belongs to.
        can_search: Whether there is a search.
    """
    found = [KeyView(keys="/", text="Search")] if can_search else []
    found += [
        KeyView(keys=f"g {GO[page]}", text=link.name, url=link.url)
        for link in menu
        if (page := pages.get(link.url, "")) in GO
    ]
    if new_url:
        found.append(KeyView(keys="n", text="New campaign", url=new_url))
    return [
        *found,
        KeyView(keys="j", text="Next row"),
        KeyView(keys="k", text="Row before"),
        KeyView(keys="Enter", text="Open the row"),
        KeyView(keys="?", text="This list"),
    ]
