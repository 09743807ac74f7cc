"""A digest of streamed contacts, to compare them with those of an earlier request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

import orjson

from outreach.models.recipient import NewRecipient, PreparedRecipient
from outreach.services.contacts import RecipientSource, Supplied, iter_contacts
from outreach.services.idempotency import json_of


class HashedContacts:
    """Streams contacts from a source, which may be larger than memory, and computes their digest on the way."""

    def __init__(self, source: RecipientSource) -> None:
        self._source = source
        self._digest = sha256()

    async def each(self) -> AsyncIterator[Supplied]:
        """Iterate over the contacts."""
        async for item in iter_contacts(self._source):
            for recipient in [item] if isinstance(item, NewRecipient) else item:
                self._digest.update(_line(recipient))
            yield item

    async def read_all(self) -> str:
        """Read all remaining contacts, and return the digest."""
        async for _ in self.each():
            pass
        return self.digest

    @property
    def digest(self) -> str:
        """SHA-256 of the contacts read so far, in hexadecimal."""
        return self._digest.hexdigest()


def _line(recipient: NewRecipient | PreparedRecipient) -> bytes:
    # As supplied: the normalised number depends on the workspace's region, which may change.
    fields: list[Any] = [
        recipient.phone_number, recipient.first_name, recipient.last_name, recipient.email, recipient.company,
        _variables(recipient), recipient.external_id,
    ]  # fmt: skip
    try:
        return json_of(fields) + b"\n"
    except (TypeError, ValueError):
        # Such a contact cannot be stored either, and is refused then, with its path.
        return b"\n"


def _variables(recipient: NewRecipient | PreparedRecipient) -> object:
    given = recipient.custom_variables
    if isinstance(given, str):
        return orjson.loads(given)
    return dict(given) if given else None
