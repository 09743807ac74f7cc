"""Making contacts ready to be written: checked, numbers normalised, variables as JSON text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import Final

import orjson

from outreach.errors import InvalidRequest
from outreach.models.recipient import NewRecipient, PreparedRecipient
from outreach.policy.phones import normalise
from outreach.policy.texts import text_problem

_TEXTS: Final = ("phone_number", "first_name", "last_name", "email", "company")


def prepare(recipient: NewRecipient, default_region: str | None, *, path: str = "recipients[]") -> PreparedRecipient:
    """Return a contact ready to be written.

    Raises:
        InvalidRequest: A text is empty where it must not be, or cannot be stored everywhere; the path says where.
    """
    if not recipient.phone_number:
        raise InvalidRequest.at(f"{path}.phone_number", "must have at least 1 character")
    for name in _TEXTS:
        value = getattr(recipient, name)
        problem = None if value is None else text_problem(value)
        if problem is not None:
            raise InvalidRequest.at(f"{path}.{name}", problem)
    return PreparedRecipient(
        recipient.phone_number,
        normalise(recipient.phone_number, default_region),
        recipient.first_name,
        recipient.last_name,
        recipient.email,
        recipient.company,
        _variables(recipient, path),
    )


def _variables(recipient: NewRecipient, path: str) -> str | None:
    if not recipient.custom_variables:
        return None
    try:
        text = orjson.dumps(dict(recipient.custom_variables)).decode()
    except (TypeError, ValueError) as error:
        raise InvalidRequest.at(f"{path}.custom_variables", f"cannot be stored as JSON: {error}") from None
    # orjson refuses lone surrogates by itself, and writes NUL as an escape.
    if "\\u0000" in text and "\x00" in _all_text(recipient.custom_variables):
        raise InvalidRequest.at(f"{path}.custom_variables", "must not contain NUL (U+0000)")
    return text


def _all_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "".join(_all_text(key) + _all_text(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return "".join(_all_text(item) for item in value)
    return ""


RecipientSource = (
    AsyncIterable[Sequence[PreparedRecipient]]
    | AsyncIterable[NewRecipient]
    | AsyncIterable[NewRecipient | Sequence[PreparedRecipient]]
    | Iterable[NewRecipient]
)
"""Contacts as `create` takes them: one by one, or in chunks that were prepared elsewhere."""


async def chunks(
    source: RecipientSource, *, default_region: str | None, size: int
) -> AsyncGenerator[Sequence[PreparedRecipient], None]:
    """Cut contacts into chunks of `size`, the last one of what is left, preparing those that are not prepared."""
    batch: list[PreparedRecipient] = []
    index = 0
    async for item in each_contact(source):
        if isinstance(item, NewRecipient):
            batch.append(prepare(item, default_region, path=f"recipients[{index}]"))
            index += 1
        else:
            batch.extend(item)
            index += len(item)
        while len(batch) >= size:
            yield batch[:size]
            batch = batch[size:]
    if batch:
        yield batch


async def each_contact(source: RecipientSource) -> AsyncIterator[NewRecipient | Sequence[PreparedRecipient]]:
    """Go through contacts as they are supplied, one by one or in chunks that were prepared elsewhere."""
    if isinstance(source, AsyncIterable):
        async for item in source:
            yield item
    else:
        for recipient in source:
            yield recipient
