"""Contacts that go by once, and whether they are the same as others that did."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

import orjson

from outreach.models.recipient import NewRecipient, PreparedRecipient
from outreach.services.contacts import RecipientSource, Supplied, iter_contacts
from outreach.services.idempotency import json_of


class HashedContacts:
    """Contacts as they are supplied, from whatever source, and a digest of those that have gone by.

    A source can be gone through once and may be longer than memory, so that they are compared as they go by.
    """

    def __init__(self, source: RecipientSource) -> None:
        self._source = source
        self._digest = sha256()

    async def each(self) -> AsyncIterator[Supplied]:
        """Go through them."""
        async for item in iter_contacts(self._source):
            for recipient in [item] if isinstance(item, NewRecipient) else item:
                self._digest.update(_line(recipient))
            yield item

    async def read_all(self) -> str:
        """Go through all that are left, and return the digest."""
        async for _ in self.each():
            pass
        return self.digest

    @property
    def digest(self) -> str:
        """SHA-256 of those that have gone by, in hexadecimal."""
        return self._digest.hexdigest()


def _line(recipient: NewRecipient | PreparedRecipient) -> bytes:
    # As supplied: the number that it is read as depends on the workspace's region, which may change.
    fields: list[Any] = [
        recipient.phone_number, recipient.first_name, recipient.last_name, recipient.email, recipient.company,
        _variables(recipient),
    ]  # fmt: skip
    try:
        return json_of(fields) + b"\n"
    except (TypeError, ValueError):
        # It cannot be written either, and is refused as that is tried, with the place where it stands.
        return b"\n"


def _variables(recipient: NewRecipient | PreparedRecipient) -> object:
    given = recipient.custom_variables
    if isinstance(given, str):
        return orjson.loads(given)
    return dict(given) if given else None
