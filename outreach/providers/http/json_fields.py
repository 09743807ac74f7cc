"""Readers of others' JSON, which may lack anything or have another type."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

MAX_TEXT_LENGTH: Final = 4_000
"""The longest stored text of a provider, in code points: a summary is a few sentences."""

MAX_NAME_LENGTH: Final = 200
"""The longest id or status of a provider."""

MILLISECOND_THRESHOLD: Final = 100_000_000_000.0
"""Larger numbers are milliseconds: as seconds this is the year 5138, as milliseconds 1973."""


def value_at(value: object, *path: str) -> object:
    """Return the value at a path of keys; None if the path does not exist."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def object_at(value: object, *path: str) -> Mapping[str, Any]:
    """Return the object at a path of keys; empty if there is none."""
    found = value_at(value, *path)
    return found if isinstance(found, Mapping) else {}


def name_at(value: object, *path: str) -> str | None:
    """Return an id or a status at a path of keys; None if there is no valid one."""
    found = value_at(value, *path)
    if not isinstance(found, str) or not found or len(found) > MAX_NAME_LENGTH or not found.isprintable():
        return None
    return found


def text_at(value: object, *path: str, longest: int = MAX_TEXT_LENGTH) -> str | None:
    """Return a text at a path of keys, cut and storable; None if there is none."""
    found = value_at(value, *path)
    if not isinstance(found, str):
        return None
    kept = found[:longest].replace("\x00", "").encode("utf-8", "ignore").decode().strip()
    return kept or None


def moment_at(value: object, *path: str) -> datetime | None:
    """Return the time at a path of keys; None if there is none, or if it is not the time of a call.

    Reads Unix time in seconds or milliseconds, as a number or its digits, and ISO 8601, which is UTC without a zone.
    """
    found = value_at(value, *path)
    if isinstance(found, bool):
        return None
    try:
        if isinstance(found, str) and not _is_number(found):
            moment = datetime.fromisoformat(found)
            moment = moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        elif isinstance(found, int | float | str):
            seconds = float(found)
            moment = datetime.fromtimestamp(seconds / 1000 if abs(seconds) > MILLISECOND_THRESHOLD else seconds, tz=UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return moment if _FIRST_YEAR <= moment.year <= _LAST_YEAR else None


_FIRST_YEAR: Final = 2000
_LAST_YEAR: Final = 2200


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
