"""One page of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import attrs

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Page(Generic[T]):
    """One page of a list (interface, section 2.5).

    Attributes:
        items: The items of this page, in the list's order.
        page: 1-based index of this page.
        page_size: Items a page.
        total: Matching items across all pages.
    """

    items: Sequence[T]
    page: int
    page_size: int
    total: int


@attrs.frozen(kw_only=True)
class JsonPage:
    """One page of a list as JSON, as the interface answers it.

    Attributes:
        items: The array of its items, encoded.
        page: 1-based index of this page.
        page_size: Items a page.
        total: Matching items across all pages.
    """

    items: bytes
    page: int
    page_size: int
    total: int
