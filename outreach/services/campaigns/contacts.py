"""Contacts as they are supplied: read, also beside other work, compared by a digest, and prepared for storage."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from hashlib import sha256
from typing import Any, Final

import orjson

from outreach.errors import InvalidRequest, Problem
from outreach.ledger.campaigns.adding import MAX_NAMES
from outreach.models.campaign import NewRecipient, PreparedRecipient
from outreach.models.fields import bounds_of, check_value, fields_of
from outreach.rules.contact_places import us_place_of
from outreach.rules.phones import normalise
from outreach.rules.segments import composed_json, composed_or_none, text_problem
from outreach.services.idempotency import json_of

_RULES: Final = {name: field.rule for name, field in fields_of(NewRecipient).items()}
_TEXTS: Final = tuple(name for name in _RULES if name != "custom_variables")
_FIELDS: Final = (*_TEXTS, "custom_variables")
_SHORTEST_ID, _LONGEST_ID = bounds_of(NewRecipient, "external_id")


def prepare_recipient(
    recipient: NewRecipient, default_region: str | None, *, path: str = "recipients[]"
) -> PreparedRecipient:
    """Return a contact ready to be written.

    Raises:
        InvalidRequest: A text is empty, too long or cannot be stored; the path says where.
    """
    # Hundreds of thousands of contacts: a rule is called where it refuses, or where there is no shorter check.
    if recipient.phone_number == "":
        check_value(f"{path}.phone_number", recipient.phone_number, _RULES["phone_number"])
    for name in _TEXTS:
        value = getattr(recipient, name)
        problem = None if value is None and name != "phone_number" else text_problem(value)
        if problem is not None:
            raise InvalidRequest.at(f"{path}.{name}", problem)
    external_id = recipient.external_id
    if external_id is not None and not _SHORTEST_ID <= len(external_id) <= _LONGEST_ID:
        check_value(f"{path}.external_id", external_id, _RULES["external_id"])
    if recipient.time_zone is not None:
        check_value(f"{path}.time_zone", recipient.time_zone, _RULES["time_zone"])
    phone = normalise(recipient.phone_number, default_region)
    return PreparedRecipient(
        recipient.phone_number,
        phone,
        composed_or_none(recipient.first_name),
        composed_or_none(recipient.last_name),
        composed_or_none(recipient.email),
        composed_or_none(recipient.company),
        _variables(recipient, path),
        external_id,
        recipient.time_zone,
        us_place_of(phone, recipient.zip_code, recipient.state),
    )


def _variables(recipient: NewRecipient, path: str) -> str | None:
    if not recipient.custom_variables:
        return None
    try:
        text = orjson.dumps(dict(recipient.custom_variables)).decode()
    except (TypeError, ValueError) as error:
        raise InvalidRequest.at(f"{path}.custom_variables", f"cannot be stored as JSON: {error}") from None
    # orjson refuses lone surrogates itself, and writes NUL as an escape.
    if "\\u0000" in text and "\x00" in _all_text(recipient.custom_variables):
        raise InvalidRequest.at(f"{path}.custom_variables", "must not contain NUL (U+0000)")
    return composed_json(text)


def _all_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "".join(_all_text(key) + _all_text(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return "".join(_all_text(item) for item in value)
    return ""


Contact = NewRecipient | Mapping[str, Any]
"""A contact as `create` takes it: a model, or a mapping with the same fields, such as a row of `csv.DictReader`."""

RecipientSource = (
    AsyncIterable[Contact | PreparedRecipient | Sequence[PreparedRecipient]]
    | Iterable[Contact | PreparedRecipient | Sequence[PreparedRecipient]]
)
"""Contacts as `create` takes them: one by one, or in prepared chunks."""

Supplied = NewRecipient | Sequence[PreparedRecipient]
"""An item of a source: a contact, or a prepared chunk."""


async def chunks(
    source: RecipientSource, *, default_region: Callable[[], Awaitable[str | None]], size: int
) -> AsyncGenerator[Sequence[PreparedRecipient], None]:
    """Cut contacts into prepared chunks of `size`; the last one may be shorter.

    Args:
        source: The contacts.
        default_region: Returns the region of local numbers; called for the first unprepared contact.
        size: Contacts in a chunk.

    Raises:
        InvalidRequest: An item is not a contact, or breaks a rule; the path says which and where.
    """
    batch: list[PreparedRecipient] = []
    index = 0
    regions: list[str | None] = []
    async for item in iter_contacts(source):
        if isinstance(item, NewRecipient):
            regions = regions or [await default_region()]
            batch.append(prepare_recipient(item, regions[0], path=f"recipients[{index}]"))
            index += 1
        else:
            batch.extend(item)
            index += len(item)
        while len(batch) >= size:
            yield batch[:size]
            batch = batch[size:]
    if batch:
        yield batch


async def iter_contacts(source: RecipientSource) -> AsyncIterator[Supplied]:
    """Iterate over contacts as supplied, one by one or in prepared chunks.

    Raises:
        InvalidRequest: The source is not iterable, or an item is not a contact.
    """
    index = 0
    async for item in _each(source):
        supplied = _supplied(item, index)
        index += 1 if isinstance(supplied, NewRecipient) else len(supplied)
        yield supplied


async def _each(source: object) -> AsyncIterator[object]:
    if isinstance(source, AsyncIterable):
        async for item in source:
            yield item
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes | Mapping | PreparedRecipient):
        for item in source:
            yield item
    else:
        raise InvalidRequest.at(
            "recipients", f"must be an iterable of contacts, such as a list, not {type(source).__name__}"
        )


def _supplied(item: object, index: int) -> Supplied:
    if isinstance(item, NewRecipient):
        return item
    if isinstance(item, PreparedRecipient):
        return (item,)
    if isinstance(item, Mapping):
        return _from_mapping(item, index)
    if isinstance(item, list | tuple) and all(isinstance(one, PreparedRecipient) for one in item):
        return item
    raise InvalidRequest.at(
        f"recipients[{index}]",
        f"must be an outreach.NewRecipient, or a mapping with its fields, not {type(item).__name__}",
    )


def _from_mapping(given: Mapping[Any, Any], index: int) -> NewRecipient:
    """Return the contact that a mapping describes, by the rules of docs/interface.md#2.3."""
    details = [
        Problem(
            path=f"recipients[{index}].{name}",
            message=f"is not a field of a contact ({', '.join(_FIELDS)}); put other values into custom_variables, by "
            "name",
        )
        for name in given
        if name not in _FIELDS
    ]
    if "phone_number" not in given:
        details.append(Problem(path=f"recipients[{index}].phone_number", message="is required"))
    variables = given.get("custom_variables")
    if variables is not None and not isinstance(variables, Mapping):
        path = f"recipients[{index}].custom_variables"
        details.append(
            Problem(path=path, message=f"must be a mapping of values by name, not {type(variables).__name__}")
        )
    if details:
        raise InvalidRequest(details=details)
    return NewRecipient(**{**given, "custom_variables": variables or {}})


class VariableNameCollector:
    """Collects the names of variables, chunk by chunk, in under a microsecond a contact."""

    def __init__(self) -> None:
        self._names: set[str] | None = set()

    def see(self, chunk: Iterable[PreparedRecipient]) -> None:
        """Add the names of some contacts."""
        if self._names is None:
            return
        # Contacts often have identical variables.
        texts = {contact.custom_variables for contact in chunk if contact.custom_variables is not None}
        self._names.update(*orjson.loads(f"[{','.join(texts)}]"))
        if len(self._names) > MAX_NAMES:
            self._names = None

    def names(self) -> tuple[str, ...] | None:
        """Return the names, sorted and stripped; None if there are too many."""
        return None if self._names is None else tuple(sorted({name.strip() for name in self._names}))


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
        _given_variables(recipient), recipient.external_id,
    ]  # fmt: skip
    # Contacts without these have the digest that earlier versions computed.
    if isinstance(recipient, PreparedRecipient):
        fields += [recipient.time_zone, recipient.us_place] if recipient.time_zone or recipient.us_place else []
    elif recipient.time_zone or recipient.zip_code or recipient.state:
        fields += [recipient.time_zone, recipient.zip_code, recipient.state]
    try:
        return json_of(fields) + b"\n"
    except (TypeError, ValueError):
        # Such a contact cannot be stored either, and is refused then, with its path.
        return b"\n"


def _given_variables(recipient: NewRecipient | PreparedRecipient) -> object:
    given = recipient.custom_variables
    if isinstance(given, str):
        return orjson.loads(given)
    return dict(given) if given else None
