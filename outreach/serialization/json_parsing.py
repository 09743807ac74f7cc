"""The parser of JSON bodies: nothing is lost and nothing is guessed.

It uses the standard library, because faster parsers round numbers: a template must show `1.10` as `1.10`, not `1.1`,
and `10000000000000000000000` not as `1e22`.
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from outreach.errors import InvalidRequest
from outreach.rules.texts import RawNumber

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
