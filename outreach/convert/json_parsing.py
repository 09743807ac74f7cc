"""JSON as it comes from outside: bytes in, plain Python out, with nothing lost and nothing guessed.

The parser of the standard library is used, because a faster one rounds numbers: `1.10` has to stay `1.10`
where a template shows it, and `10000000000000000000000` must not become `1e22`.
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from outreach.errors import InvalidRequest
from outreach.policy.texts import RawNumber

MAX_VALUES: Final = 5_000_000
"""Values in one document: they take far more memory than the text that they are written in."""

_MAX_DIGITS: Final = 19
"""An integer of more digits is outside 64 bit, and turning thousands of digits into a number takes long."""

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def parse_json(body: bytes) -> Any:
    """Return what a JSON document holds.

    Numbers that are no 64-bit integers come as `RawNumber`, which keeps the characters that were written.

    Raises:
        InvalidRequest: It is no JSON in UTF-8, holds NaN or an infinity, names a key of an object twice, or is
            nested too deeply.
    """
    if not body.strip():
        raise _refusal("The body is empty; it must be JSON.")
    if body.startswith(_BYTE_ORDER_MARK):
        raise _refusal("The body begins with a byte order mark; JSON is written without one.")
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
    """Return whether a document holds more values than are parsed."""
    return len(body) > MAX_VALUES and sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES


def shown(key: str) -> str:
    """Return a key that somebody sent, short and printable, for a message or a path."""
    cut = key if len(key) <= _MAX_KEY_LENGTH else key[:_MAX_KEY_LENGTH] + "..."
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in cut)


_MAX_KEY_LENGTH: Final = 60


def _integer(text: str) -> int | RawNumber:
    # `-0` is a number of its own, which Python's integers do not have.
    if len(text) > _MAX_DIGITS + 1 or text == "-0":
        return RawNumber(text)
    value = int(text)
    return value if _LOWEST <= value <= _HIGHEST else RawNumber(text)


def _constant(text: str) -> NoReturn:
    raise _refusal(f"The body holds {text}, which JSON does not have.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # Which of two values was meant, nobody can tell; another reader of the same body may take the other one.
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
