"""Reading the bodies of callbacks: whatever comes, the worst is that the callback is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import orjson

from outreach.convert.field_rules import read_timestamp
from outreach.protocols.adapter import CallbackRefused

MESSAGE_BYTES: Final = 64 * 1024
"""The largest callback of a carrier: a message of ten segments in an encoding that takes twelve bytes a letter."""

MAX_ID_LENGTH: Final = 200
"""Characters of an identifier: no provider's is longer, and it is stored."""


def json_event(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a body holds; half of a surrogate pair becomes U+FFFD, so that all can be stored.

    Raises:
        CallbackRefused: It is none, in UTF-8.
    """
    try:
        # Refuses lone surrogates and deep nesting, and reads integers of any length without trouble.
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = _loads_whole(body)
    if not isinstance(value, dict):
        raise CallbackRefused("The body is no JSON object.")
    return value


def _loads_whole(body: bytes) -> object:
    """Read a body once more, with U+FFFD for each half of a surrogate pair: a text was cut in the midst of an emoji."""
    try:
        return orjson.loads(_ESCAPE.sub(lambda found: _REPLACED if found["half"] else found[0], body))
    except orjson.JSONDecodeError:
        raise CallbackRefused("The body is no JSON.") from None


_ESCAPE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)
"""An escape of JSON: a whole pair, half a pair, or another one, of which the backslash and one character are enough."""

_REPLACED: Final = b"\\ufffd"


def object_in(event: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the object at the end of a path of names; an empty one where there is none."""
    value: Any = event
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def first_in(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the first object of a list, or the object itself where the provider gives one; an empty one for none."""
    value = event.get(name)
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, dict) else {}


def text_in(event: Mapping[str, Any], name: str) -> str | None:
    """Return a text, without NUL characters, which cannot be stored everywhere; None where there is none."""
    value = event.get(name)
    if not isinstance(value, str):
        return None
    return value.replace("\0", "") or None


def address_in(event: Mapping[str, Any], name: str) -> str | None:
    """Return a number or a name, which is a text, or a JSON number of the same digits; None where there is none."""
    value = event.get(name)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_in(event, name)


def require_id(event: Mapping[str, Any], name: str) -> str:
    """Return an identifier that must be there.

    Raises:
        CallbackRefused: It is not, or is impossibly long.
    """
    value = text_in(event, name)
    if value is None or len(value) > MAX_ID_LENGTH:
        raise CallbackRefused(f"The callback has no {name}.")
    return value


def moment_in(event: Mapping[str, Any], name: str, *, otherwise: datetime) -> datetime:
    """Return the moment that a text names, in UTC; another one where it names none."""
    value = event.get(name)
    return (read_timestamp(value) if isinstance(value, str) else None) or otherwise
