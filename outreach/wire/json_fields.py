"""Reading JSON that others wrote: nothing in it is sure to be there, or to be what it was said to be."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

MAX_TEXT_LENGTH: Final = 4_000
"""How much of a provider's text is kept, in code points: a summary is a few sentences."""

MAX_NAME_LENGTH: Final = 200
"""How long an identifier or a status of a provider may be."""

MILLISECOND_THRESHOLD: Final = 100_000_000_000.0
"""A number of seconds that lies in the year 5138; as milliseconds it lies in 1973: what is larger is milliseconds."""


def value_at(value: object, *path: str) -> object:
    """Return what stands at a path of keys; None where anything on the way is missing or is no object."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def object_at(value: object, *path: str) -> Mapping[str, Any]:
    """Return the object at a path of keys; an empty one where there is none."""
    found = value_at(value, *path)
    return found if isinstance(found, Mapping) else {}


def name_at(value: object, *path: str) -> str | None:
    """Return an identifier or a status at a path of keys; None for anything that can be none."""
    found = value_at(value, *path)
    if not isinstance(found, str) or not found or len(found) > MAX_NAME_LENGTH or not found.isprintable():
        return None
    return found


def text_at(value: object, *path: str, longest: int = MAX_TEXT_LENGTH) -> str | None:
    """Return a text for people at a path of keys, cut, without what cannot be stored; None where there is none."""
    found = value_at(value, *path)
    if not isinstance(found, str):
        return None
    kept = found[:longest].replace("\x00", "").encode("utf-8", "ignore").decode().strip()
    return kept or None


def moment_at(value: object, *path: str) -> datetime | None:
    """Return the moment at a path of keys; None where there is none.

    Reads Unix time in seconds or milliseconds, as a number or its digits, and ISO 8601, which is UTC without a zone.
    """
    found = value_at(value, *path)
    if isinstance(found, bool):
        return None
    try:
        if isinstance(found, str) and not _is_number(found):
            moment = datetime.fromisoformat(found)
            return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        if not isinstance(found, int | float | str):
            return None
        seconds = float(found)
        moment = datetime.fromtimestamp(seconds / 1000 if abs(seconds) > MILLISECOND_THRESHOLD else seconds, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    # Years that no call is of: what is written there is no time, whatever it is.
    return moment if _FIRST_YEAR <= moment.year <= _LAST_YEAR else None


_FIRST_YEAR: Final = 2000
_LAST_YEAR: Final = 2200


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
