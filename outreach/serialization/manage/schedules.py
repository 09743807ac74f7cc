"""Schedules and their runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from outreach.models.fields import FieldRule, Refused
from outreach.models.schedule import MAX_EXCEPTIONS, NewSchedule, Occurrence, ScheduleUpdate, day
from outreach.serialization.documents import document_of
from outreach.serialization.field_rules import Array, make_request_converter, read_object, uuid
from outreach.serialization.manage.resources import ResourceBodies

INTERNAL_FIELDS: Final = ("known_contacts", "removed_at")
"""Fields of a schedule that no document shows."""


def json_day(value: Any) -> date:
    """Return a day of a schedule that is written as `YYYY-MM-DD`."""
    try:
        if type(value) is str and len(value) == len("YYYY-MM-DD"):
            return day(date.fromisoformat(value))
    except ValueError as error:
        if isinstance(error, Refused):
            raise
    raise Refused("must be a day such as 2026-12-01")


_RULES: Final[Mapping[str, FieldRule]] = {
    "template_id": uuid,
    "audience_id": uuid,
    "starts_on": json_day,
    "ends_on": json_day,
    "except_dates": Array(json_day, maximum=MAX_EXCEPTIONS),
}
_read_new: Final = make_request_converter(NewSchedule, _RULES, closed="a schedule")
_read_update: Final = make_request_converter(ScheduleUpdate, _RULES, closed="a schedule's update")


class _ScheduleBodies(ResourceBodies[NewSchedule, ScheduleUpdate]):
    """Reads and writes the bodies of schedules."""

    def write(self, item: object) -> dict[str, Any]:
        """Return a schedule as JSON."""
        return document_of(item, "workspace_id", *INTERNAL_FIELDS)


SCHEDULE_BODIES: Final[ResourceBodies[NewSchedule, ScheduleUpdate]] = _ScheduleBodies(
    lambda data: read_object(_read_new, data), lambda data: read_object(_read_update, data)
)


def write_occurrence(one: Occurrence) -> dict[str, Any]:
    """Return what became of a run."""
    return document_of(one, "workspace_id", "schedule_id")
