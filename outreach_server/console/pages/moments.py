"""Days and times in the fields of forms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from outreach_server.console.clocks import tzinfo_of

NO_ZONE: Final = "This zone is not known. Write it as Europe/Berlin or America/New_York."
_NO_MOMENT: Final = "Give a day and a time."


def typed(at: datetime | None, zone: str) -> str:
    """Return a moment as the field has it, by the clocks of a zone; empty for None."""
    return "" if at is None else f"{at.astimezone(tzinfo_of(zone)):%Y-%m-%dT%H:%M}"


def moment_in(form: Mapping[str, str], name: str, zone: str, problems: dict[str, str]) -> datetime | None:
    """Return the moment in a field; what is wrong with it is added to `problems`."""
    try:
        found = datetime.fromisoformat(form.get(name, "").strip())
    except ValueError:
        problems[name] = _NO_MOMENT
        return None
    found = found if found.tzinfo is not None else found.replace(tzinfo=tzinfo_of(zone))
    try:
        return found.astimezone(UTC).astimezone(found.tzinfo)
    except OverflowError:
        problems[name] = _NO_MOMENT
        return None


def is_zone_known(zone: str) -> bool:
    """Return whether this machine knows a zone."""
    return zone == "UTC" or tzinfo_of(zone) is not UTC
