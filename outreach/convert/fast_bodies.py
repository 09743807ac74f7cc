"""Bodies of many contacts, read by the column where nothing about them is out of the ordinary.

`parse_json`, the readers of `convert.campaigns` and `prepare_recipient` are the definition: value by value, and each
that is wrong by its place. What is read here in a third of the time is the same; where that is not certain nothing is
said, and the body goes the long way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Final

import attrs
import orjson

from outreach.convert.field_rules import MAX_DEPTH
from outreach.convert.json_parsing import exceeds_value_limit
from outreach.models.recipient import PreparedRecipient
from outreach.policy.phones import normalise

_NULLABLE: Final = ("first_name", "last_name", "email", "company")
_TEXT: Final = {str}
_TEXT_OR_NULL: Final = {str, type(None)}
_OBJECT: Final = {dict}
_HIGHEST: Final = 2**63 - 1
_MINUS_ZERO: Final = re.compile(rb"-0(?<=[\s:,\[]-0)[\s,\]}]")
_NUL: Final = rb"\u0000"
_COLON: Final = rb"\u003"
_NO_VARIABLES: Final[dict[str, Any]] = {}


@attrs.frozen(kw_only=True)
class SimpleBody:
    """The body of a new campaign whose contacts are checked, and not made ready yet.

    Attributes:
        head: The body, with the first of its contacts alone.
        phone_numbers: The contacts' numbers.
        texts: Their other fields, by the column, in the order of a prepared contact.
        variables: Their variables.
    """

    head: dict[str, Any]
    phone_numbers: Sequence[str]
    texts: Sequence[Sequence[str | None]]
    variables: Sequence[dict[str, Any]]

    def chunks(self, default_region: str | None, *, size: int) -> Iterator[list[PreparedRecipient]]:
        """Make the contacts ready as `prepare_recipient` does, so many at a time."""
        for start in range(0, len(self.phone_numbers), size):
            part = slice(start, start + size)
            written = self.phone_numbers[part]
            columns: tuple[Sequence[str | None], ...] = (
                written,
                [normalise(phone_number, default_region) for phone_number in written],
                *(column[part] for column in self.texts),
                [orjson.dumps(each).decode() if each else None for each in self.variables[part]],
            )
            # `_make` without its look at each length.
            yield list(map(tuple.__new__, repeat(PreparedRecipient), zip(*columns, strict=True)))


def read_simple_body(body: bytes) -> SimpleBody | None:
    """Return a body and its contacts; None where it is to be read the long way, because it is wrong or unusual."""
    # The parser refuses half of a surrogate pair by itself, as text and as an escape.
    if _NUL in body or exceeds_value_limit(body) or _MINUS_ZERO.search(body):
        return None
    try:
        head = orjson.loads(body)
        if _names_a_key_twice(body, head):
            return None
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    people = head.pop("recipients", None) if type(head) is dict else None
    if type(people) is not list or set(map(type, people)) != _OBJECT or not _are_exact(head.values()):
        return None
    phone_numbers = [person.get("phone_number") for person in people]
    texts = [[person.get(name) for person in people] for name in _NULLABLE]
    variables = [person.get("custom_variables", _NO_VARIABLES) for person in people]
    if (
        set(map(type, phone_numbers)) != _TEXT
        or "" in phone_numbers
        or not set(map(type, chain.from_iterable(texts))) <= _TEXT_OR_NULL
        or set(map(type, variables)) != _OBJECT
        or not _are_exact(chain.from_iterable(map(dict.values, variables)))
    ):
        return None
    head["recipients"] = people[:1]
    return SimpleBody(head=head, phone_numbers=phone_numbers, texts=texts, variables=variables)


def _names_a_key_twice(body: bytes, found: Any) -> bool:
    """Return whether a body may name a key twice in an object, of which the parser keeps the last one without a word.

    Written again, such a body has a colon less: that of the key, and those of what it stood for.
    """
    return _COLON in body or body.count(b":") != orjson.dumps(found).count(b":")


def _are_exact(values: Iterable[Any]) -> bool:
    """Return whether values and all that they hold are as they were written, and nested no more deeply than may be.

    The parser rounds what is no integer of 64 bits.
    """
    level = list(values)
    for _ in range(MAX_DEPTH):
        kinds = set(map(type, level))
        if float in kinds or (int in kinds and max(value for value in level if type(value) is int) > _HIGHEST):
            return False
        if kinds.isdisjoint({dict, list}):
            return True
        objects = (value.values() for value in level if type(value) is dict)
        arrays = (value for value in level if type(value) is list)
        level = [*chain.from_iterable(objects), *chain.from_iterable(arrays)]
    return False
