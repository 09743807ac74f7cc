"""Shared parts of all models: fixed values of the interface, updates and pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import attrs

from outreach.errors import InvalidRequest

CarrierName: TypeAlias = str
"""The name of a carrier: one of `CARRIERS`, or of an adapter that the engine was given or that a package brings."""

CARRIERS: Final = ("twilio", "telnyx", "vonage")
"""The SMS carriers of the HTTP interface, which the engine brings (docs/interface.md#carriers)."""

Channel = Literal["sms", "call"]
ScheduleType = Literal["immediate", "scheduled"]
SmsMode = Literal["one_way", "conversational"]
SmsMessageSource = Literal["custom", "flow"]
CliMode = Literal["default", "group"]


class Unset(Enum):
    """The type of `UNSET`, which has no other value."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        """Return the name."""
        return "UNSET"

    def __bool__(self) -> bool:
        """Return False."""
        return False


UNSET: Final = Unset.UNSET
"""Leaves a field of an update as it is; None clears it, where it can be empty."""


def set_fields(change: object) -> dict[str, Any]:
    """Return the fields of an update that are not `UNSET`, by name."""
    kind: type[Any] = type(change)
    return {field.name: value for field in attrs.fields(kind) if (value := getattr(change, field.name)) is not UNSET}


def hidden_fields(model: type[Any]) -> tuple[str, ...]:
    """Return the fields that no document of a model shows: those of every model, and those that it names itself."""
    return ("removed_at", "digest", *getattr(model, "_hidden", ()))


T = TypeVar("T")

MAX_PAGE_ITEMS: Final = 1000
"""The largest `limit` of a list."""


@attrs.frozen(kw_only=True)
class Page(Generic[T]):
    """One page of a list; iterable over its items.

    Every list takes `after`, which is the `next` of the page before and None for the first page, and `limit`, the most
    items of the page, up to 1,000. Beside each `list*` stands an `iter_*` over all items of all pages.

    Attributes:
        items: The items of this page, in the list's order.
        next: What the list takes as `after` for the next page; None at the end.
        total: Matching items across all pages, for `campaigns.list`; other lists are not counted.
    """

    items: Sequence[T]
    next: str | None = None
    total: int | None = None

    def __iter__(self) -> Iterator[T]:
        """Iterate over the items of this page."""
        return iter(self.items)

    def __len__(self) -> int:
        """Return how many items this page has."""
        return len(self.items)


@attrs.frozen(kw_only=True)
class JsonPage:
    """One numbered page of a list, encoded as JSON (docs/interface.md#2.5).

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


def wrong_identifier(given: object) -> InvalidRequest:
    """Return the error about an object that was given as an identifier, such as a workspace instead of its id."""
    return InvalidRequest(f"An identifier must be a text, such as workspace.id, not {type(given).__name__}.")
