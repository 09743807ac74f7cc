"""The parser of JSON bodies: nothing is lost and nothing is guessed; and a fast one for bodies with many contacts.

It uses the standard library, because faster parsers round numbers: a template must show `1.10` as `1.10`, not `1.1`,
and `10000000000000000000000` not as `1e22`. `parse_json`, the readers of `serialization.campaigns` and
`prepare_recipient` are the definition; the fast one reads by column, gives the same result in a third of the time, or
None for a body with anything unusual.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Final, NoReturn

import attrs
import orjson

from outreach.errors import InvalidRequest
from outreach.models.campaign import NewRecipient, PreparedRecipient, own_zone
from outreach.models.fields import bounds_of, refusals
from outreach.models.metadata import MAX_DEPTH
from outreach.rules.phones import normalise
from outreach.rules.segments import RawNumber, composed_json, composed_or_none

MAX_VALUES: Final = 5_000_000
"""Values in one document, which take far more memory than their text."""

_MAX_DIGITS: Final = 19
"""Longer integers are outside 64 bits, and slow to convert."""

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def parse_json(body: bytes) -> Any:
    """Return the value of a JSON document.

    Numbers that are not 64-bit integers become `RawNumber`, which keeps the characters as written.

    Raises:
        InvalidRequest: It is not JSON in UTF-8, contains NaN or an infinity, repeats a key of an object, or is nested
            too deeply.
    """
    if not body.strip():
        raise _refusal("The body is empty; it must be JSON.")
    if body.startswith(_BYTE_ORDER_MARK):
        raise _refusal("The body begins with a byte order mark, which JSON does not allow.")
    if exceeds_value_limit(body):
        raise _refusal(f"The body holds more than {MAX_VALUES} values.")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _refusal(f"The body is not valid UTF-8, at byte {error.start}.") from None
    try:
        return json.loads(
            text,
            parse_int=_integer,
            parse_float=RawNumber,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:]
        raise _refusal(
            f"The body is not valid JSON: {problem}, at line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise _refusal("The body is nested too deeply.") from None


def exceeds_value_limit(body: bytes) -> bool:
    """Return whether a document has more values than are parsed."""
    return len(body) > MAX_VALUES and sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES


def shown(key: str) -> str:
    """Return a client's key, short and printable, for a message or a path."""
    cut = key if len(key) <= _MAX_KEY_LENGTH else key[:_MAX_KEY_LENGTH] + "..."
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in cut)


_MAX_KEY_LENGTH: Final = 60


def _integer(text: str) -> int | RawNumber:
    # Python's integers have no `-0`.
    if len(text) > _MAX_DIGITS + 1 or text == "-0":
        return RawNumber(text)
    value = int(text)
    return value if _LOWEST <= value <= _HIGHEST else RawNumber(text)


def _constant(text: str) -> NoReturn:
    raise _refusal(f"The body holds {text}, which JSON does not have.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # Ambiguous: another reader of the same body may take the other value.
        raise _refusal(f'The body names the key "{shown(_first_repeated(pairs))}" twice in one object.')
    return found


def _first_repeated(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    raise ValueError("No key is there twice.")


def _refusal(message: str) -> InvalidRequest:
    return InvalidRequest.at("", message)


_NULLABLE: Final = ("first_name", "last_name", "email", "company")
_TEXT: Final = {str}
_TEXT_OR_NULL: Final = {str, type(None)}
_OBJECT: Final = {dict}
_HIGHEST_EXACT: Final = 2**63 - 1
_MINUS_ZERO: Final = re.compile(rb"-0(?<=[\s:,\[]-0)[\s,\]}]")
_NUL: Final = rb"\u0000"
_ESCAPE: Final = rb"\u"
_COLON: Final = rb"\u003"
_SHORTEST_ID, _LONGEST_ID = bounds_of(NewRecipient, "external_id")
_NO_VARIABLES: Final[dict[str, Any]] = {}


@attrs.frozen(kw_only=True)
class SimpleBody:
    """The body of a new campaign with checked, unprepared contacts.

    Attributes:
        head: The body with its first contact alone.
        phone_numbers: The contacts' numbers.
        texts: Their other fields, by column, in the order of a prepared contact.
        variables: Their variables.
        external_ids: Their names in the application.
        time_zones: Their own time zones.
        is_composed: Whether all texts are certainly in NFC.
    """

    head: dict[str, Any]
    phone_numbers: Sequence[str]
    texts: Sequence[Sequence[str | None]]
    variables: Sequence[dict[str, Any]]
    external_ids: Sequence[str | None]
    time_zones: Sequence[str | None]
    is_composed: bool

    def chunks(self, default_region: str | None, *, size: int) -> Iterator[list[PreparedRecipient]]:
        """Prepare the contacts like `prepare_recipient`, in chunks of `size`."""
        for start in range(0, len(self.phone_numbers), size):
            part = slice(start, start + size)
            written = self.phone_numbers[part]
            texts = [column[part] for column in self.texts]
            variables = [orjson.dumps(each).decode() if each else None for each in self.variables[part]]
            if not self.is_composed:
                texts = [[composed_or_none(text) for text in column] for column in texts]
                variables = [None if text is None else composed_json(text) for text in variables]
            columns: tuple[Iterable[str | None], ...] = (
                written,
                [normalise(phone_number, default_region) for phone_number in written],
                *texts,
                variables,
                self.external_ids[part],
                self.time_zones[part],
                # None of them has a place of its own, or a number of a sender pool.
                *(repeat(None, len(written)) for _ in range(2)),
            )
            # Like `_make`, without its check of each length.
            yield list(map(tuple.__new__, repeat(PreparedRecipient), zip(*columns, strict=True)))


def read_simple_body(body: bytes) -> SimpleBody | None:
    """Return a body with its contacts; None if it is invalid or unusual."""
    # The parser refuses lone surrogates itself, as text and as an escape.
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
    external_ids = [person.get("external_id") for person in people]
    time_zones = [person.get("time_zone") for person in people]
    if (
        set(map(type, phone_numbers)) != _TEXT
        or "" in phone_numbers
        or not set(map(type, chain.from_iterable(texts))) <= _TEXT_OR_NULL
        or set(map(type, variables)) != _OBJECT
        or not set(map(type, external_ids)) <= _TEXT_OR_NULL
        or not all(one is None or _SHORTEST_ID <= len(one) <= _LONGEST_ID for one in external_ids)
        or not set(map(type, time_zones)) <= _TEXT_OR_NULL
        or any(one is not None and refusals("", one, own_zone) for one in {*time_zones})
        or not _are_exact(chain.from_iterable(map(dict.values, variables)))
    ):
        return None
    head["recipients"] = people[:1]
    return SimpleBody(
        head=head,
        phone_numbers=phone_numbers,
        texts=texts,
        variables=variables,
        external_ids=external_ids,
        time_zones=time_zones,
        is_composed=_is_composed(body),
    )


def _is_composed(body: bytes) -> bool:
    """Return whether all texts of a body are certainly in NFC: a part of a text in NFC is in NFC too.

    An escape may stand for any character.
    """
    # One byte is found faster than two.
    return (b"\\" not in body or _ESCAPE not in body) and (
        body.isascii() or unicodedata.is_normalized("NFC", body.decode())
    )


def _names_a_key_twice(body: bytes, found: Any) -> bool:
    """Return whether an object in a body may have a key twice; the parser silently keeps the last.

    Encoded again, such a body has fewer colons.
    """
    return _COLON in body or body.count(b":") != orjson.dumps(found).count(b":")


def _are_exact(values: Iterable[Any]) -> bool:
    """Return whether all values are as written (the parser rounds integers over 64 bits) and not nested too deeply."""
    level = list(values)
    for _ in range(MAX_DEPTH):
        kinds = set(map(type, level))
        if float in kinds or (int in kinds and max(value for value in level if type(value) is int) > _HIGHEST_EXACT):
            return False
        if kinds.isdisjoint({dict, list}):
            return True
        objects = (value.values() for value in level if type(value) is dict)
        arrays = (value for value in level if type(value) is list)
        level = [*chain.from_iterable(objects), *chain.from_iterable(arrays)]
    return False
