"""Pages of lists, and all their items.

Every list of a service takes `after`, the `next` of the page before, and `limit`. A `next` is an encoded
cursor. The cursor is the position of the last item in the list's order, so that items that are added or removed
between two pages make no other item appear twice or be left out.

A `next` is valid for its own list only. Its first bytes are a hash of the cursor, the list and the workspace; the rest
is the cursor, masked with a key derived from the same. So the `next` of another list is refused, and a cursor with a
phone number is not readable in a log of addresses. The mask does not protect data: each query has its workspace.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final, Protocol, TypeVar

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.errors import InvalidRequest
from outreach.models.base import MAX_PAGE_ITEMS, Page
from outreach.models.fields import Integer, check_value

_AT_ONCE: Final = 500
"""Items that an iterator reads in one transaction."""

_CHECK_BYTES: Final = 8


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


class PageRequest:
    """A request for a page of a list.

    Args:
        listed: The name of the list, and what it is a list of: its workspace, and its campaign or the like.
        after: The cursor that the caller gave.
        limit: The most items that the caller wants.

    Raises:
        InvalidRequest: `limit` is out of bounds, or `after` is no cursor of this list.
    """

    def __init__(self, *listed: str | int | None, after: object, limit: int) -> None:
        check_value("limit", limit, Integer(1, MAX_PAGE_ITEMS))
        self._key = hashlib.sha256(repr(listed).encode("utf-8", "backslashreplace")).digest()
        self.limit = limit
        self.cursor = None if after is None else self._read(after)
        """The cursor after which the page begins; None for the first page."""

    def moment(self) -> tuple[datetime, str] | None:
        """Return the cursor as a time and the name behind it."""
        if self.cursor is None:
            return None
        moment, _, name = self.cursor.partition("~")
        return parse_timestamp(moment), name

    def number(self) -> int | None:
        """Return the cursor as a number."""
        return None if self.cursor is None else int(self.cursor)

    def page(self, found: Sequence[T], cursor: Callable[[T], str], *, total: int | None = None) -> Page[T]:
        """Return a page, given up to one item more than `limit`.

        Args:
            found: The items.
            cursor: Returns the cursor of an item.
            total: How many items all pages have, if they were counted.
        """
        items = found[: self.limit]
        return Page(items=items, next=self._encode(cursor(items[-1])) if len(found) > self.limit else None, total=total)

    def page_of_few(self, found: Sequence[C]) -> Page[C]:
        """Return a page of a short list that was read as a whole, oldest first by (created_at, id)."""
        begin = self.moment()
        rest = found if begin is None else [one for one in found if (one.created_at, one.id) > begin]
        return self.page(rest[: self.limit + 1], lambda one: moment_cursor(one.created_at, one.id))

    def _encode(self, cursor: str) -> str:
        data = cursor.encode()
        check = self._check(data)
        return urlsafe_b64encode(check + self._mask(check, data)).decode().rstrip("=")

    def _read(self, after: object) -> str:
        try:
            if not isinstance(after, str):
                raise TypeError(after)
            raw = b64decode(after.encode("ascii") + b"=" * (-len(after) % 4), altchars=b"-_", validate=True)
        except (TypeError, ValueError):
            raise _not_a_cursor() from None
        check, masked = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
        data = self._mask(check, masked)
        if self._check(data) != check:
            raise _not_a_cursor()
        return data.decode()

    def _check(self, data: bytes) -> bytes:
        return hashlib.sha256(self._key + data).digest()[:_CHECK_BYTES]

    def _mask(self, check: bytes, data: bytes) -> bytes:
        """Mask a cursor, or unmask it."""
        stream = hashlib.shake_256(self._key + check).digest(len(data))
        return bytes(one ^ other for one, other in zip(data, stream, strict=True))


def moment_cursor(moment: datetime, *names: str | int) -> str:
    """Return the cursor of an item in a list that is ordered by a time and something else."""
    return "~".join((format_timestamp(moment), *map(str, names)))


def _not_a_cursor() -> InvalidRequest:
    return InvalidRequest.at("after", "must be the `next` of a page of this list, as it was returned")
