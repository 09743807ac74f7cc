"""Readers of callback bodies; any bad body is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from outreach.protocols.adapter import CallbackRefused
from outreach.serialization.field_rules import read_timestamp

MESSAGE_BYTES: Final = 64 * 1024
"""The largest callback of a carrier: ten segments in an encoding with twelve bytes per letter."""

MAX_ID_LENGTH: Final = 200
"""The longest stored id; no provider's is longer."""


def json_event(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; lone surrogates become U+FFFD, so that all can be stored.

    Raises:
        CallbackRefused: It is not a JSON object in UTF-8.
    """
    try:
        # Refuses lone surrogates and deep nesting, and reads integers of any length.
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = _loads_whole(body)
    if not isinstance(value, dict):
        raise CallbackRefused("The body is not a JSON object.")
    return value


def _loads_whole(body: bytes) -> object:
    """Parse a body again, with U+FFFD for each lone surrogate, of an emoji that was cut."""
    try:
        return orjson.loads(_ESCAPE.sub(lambda found: _REPLACED if found["half"] else found[0], body))
    except orjson.JSONDecodeError:
        raise CallbackRefused("The body is not JSON.") from None


_ESCAPE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)
"""A JSON escape: a surrogate pair, a lone surrogate, or the first two characters of another one."""

_REPLACED: Final = b"\\ufffd"


def objects_in(event: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a list; none if it is not a list."""
    value = event.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def first_in(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the first object of a list, or the object itself if it is not a list; empty if there is none."""
    value = event.get(name)
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, dict) else {}


def text_in(event: Mapping[str, Any], name: str) -> str | None:
    """Return a string without NUL characters, which not every database stores; None if it is absent."""
    value = event.get(name)
    if not isinstance(value, str):
        return None
    return value.replace("\0", "") or None


def address_in(event: Mapping[str, Any], name: str) -> str | None:
    """Return a number or a name: a string, or a JSON number of the same digits; None if it is absent."""
    value = event.get(name)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_in(event, name)


MAX_MEDIA: Final = 20
"""The most links to media that are kept of one message; carriers allow ten."""

_LINK: Final = re.compile(r"https?://[^\s/?#][^\s]{0,1991}", re.IGNORECASE)


def media_links(found: Iterable[object]) -> tuple[tuple[str, ...], int]:
    """Return the links to media among some values, and how many values are left out, so that the message still counts.

    A link is a URL of http or https, of at most 2,000 characters.
    """
    values = list(found)
    kept = tuple(one for one in values if isinstance(one, str) and one.isprintable() and _LINK.fullmatch(one))
    return kept[:MAX_MEDIA], len(values) - len(kept[:MAX_MEDIA])


def require_id(event: Mapping[str, Any], name: str) -> str:
    """Return a required id.

    Raises:
        CallbackRefused: It is missing or too long.
    """
    value = text_in(event, name)
    if value is None or len(value) > MAX_ID_LENGTH:
        raise CallbackRefused(f"The callback has no {name}.")
    return value


def moment_in(event: Mapping[str, Any], name: str, *, otherwise: datetime) -> datetime:
    """Return a time in UTC; `otherwise` if it is absent or invalid."""
    value = event.get(name)
    return (read_timestamp(value) if isinstance(value, str) else None) or otherwise
