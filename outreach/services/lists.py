"""Pages of lists, and all their items.

Every list of a service takes `after`, the `next` of the page before, and `limit`. A `next` names the last item by its
place in the list's order, so that items that come or go between two pages make none appear twice or be left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol, TypeVar

from outreach.clock import format_timestamp, parse_timestamp
from outreach.errors import InvalidRequest
from outreach.models.base import MAX_PAGE_ITEMS, Page
from outreach.policy.texts import text_problem
from outreach.services.context import ServiceContext
from outreach.services.validation import check_integer
from outreach.working_set import Transaction

_AT_ONCE: Final = 500
"""Items that an iterator reads in one transaction."""

_MAX_NUMBER: Final = 2**63 - 1


class Created(Protocol):
    """Something that a list has in the order of its creation."""

    @property
    def created_at(self) -> datetime:
        """When it was created."""
        ...

    @property
    def id(self) -> str:
        """Its identifier."""
        ...


C = TypeVar("C", bound=Created)
T = TypeVar("T")


class ReadPage(Protocol[T]):
    """The list of a service, its other arguments given."""

    def __call__(self, *, after: str | None, limit: int) -> Awaitable[Page[T]]:
        """Return a page."""
        ...


async def iterate(read: ReadPage[T]) -> AsyncIterator[T]:
    """Iterate over all items of a list; each page is read when its first item is wanted."""
    after = None
    while True:
        page = await read(after=after, limit=_AT_ONCE)
        for item in page.items:
            yield item
        if page.next is None:
            return
        after = page.next


def check_page(after: object, limit: object) -> None:
    """Check the arguments of every list.

    Raises:
        InvalidRequest: One is invalid.
    """
    check_integer("limit", limit, 1, MAX_PAGE_ITEMS)
    if after is not None and (not isinstance(after, str) or text_problem(after) is not None):
        raise _not_a_place()


def make_page(found: Sequence[T], limit: int, place: Callable[[T], str], *, total: int | None = None) -> Page[T]:
    """Return a page of a list of which one item more than `limit` was looked up.

    Args:
        found: The items.
        limit: The most items of the page.
        place: Returns the place of an item, which the list takes as `after`.
        total: How many items all pages have, if they were counted.
    """
    items = found[:limit]
    return Page(items=items, next=place(items[-1]) if len(found) > limit else None, total=total)


async def read_few(
    context: ServiceContext, rows: Callable[[Transaction], Sequence[C]], after: str | None, limit: int
) -> Page[C]:
    """Return a page of a short list, which is read as a whole; see `page_of_few`."""
    check_page(after, limit)
    return page_of_few(await context.storage.read(rows), after, limit)


def page_of_few(found: Sequence[C], after: str | None, limit: int) -> Page[C]:
    """Return a page of a short list that was read as a whole, oldest first by (created_at, id).

    Raises:
        InvalidRequest: `after` is no place in the list.
    """
    begin = None if after is None else read_place(after)
    rest = found if begin is None else [one for one in found if (one.created_at, one.id) > begin]
    return make_page(rest[: limit + 1], limit, lambda one: place(one.created_at, one.id))


def place(moment: datetime, *names: str | int) -> str:
    """Return a place in a list that is ordered by a time and something else."""
    return "~".join((format_timestamp(moment), *map(str, names)))


def read_place(after: str) -> tuple[datetime, str]:
    """Return the time and the name of a place.

    Raises:
        InvalidRequest: It is none.
    """
    moment, _, name = after.partition("~")
    try:
        found = parse_timestamp(moment)
    except ValueError:
        raise _not_a_place() from None
    if found.tzinfo is not UTC or not name:
        raise _not_a_place()
    return found, name


def read_number(after: str) -> int:
    """Return the number that is a place in a list in the order of numbers.

    Raises:
        InvalidRequest: It is no number.
    """
    if not (after.isascii() and after.isdecimal() and len(after) < 20 and int(after) <= _MAX_NUMBER):
        raise _not_a_place()
    return int(after)


def _not_a_place() -> InvalidRequest:
    return InvalidRequest.at("after", "must be the `next` of a page of this list")
