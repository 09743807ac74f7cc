"""Time zones by name, the same on every machine."""

from __future__ import annotations

import functools
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

_NOT_ZONES: Final = frozenset({"localtime", "Factory", "posixrules"})
"""Files that some systems keep among the zones, and that name no place."""


@functools.cache
def zone_names() -> frozenset[str]:
    """Return the names of all zones, as spelled in the time zone database."""
    return frozenset(available_timezones()) - _NOT_ZONES


def is_zone(name: str) -> bool:
    """Return whether a zone exists.

    The name is looked up in a list and never reaches the file system, so that `../x` and, where file names
    ignore case, `europe/berlin` are no zones anywhere.
    """
    return name in zone_names()


@functools.lru_cache(maxsize=1024)
def zone_of(name: str) -> ZoneInfo:
    """Return a zone whose name has been checked by `is_zone`.

    Raises:
        zoneinfo.ZoneInfoNotFoundError: The time zone database of this machine has no such zone.
    """
    return ZoneInfo(name)
