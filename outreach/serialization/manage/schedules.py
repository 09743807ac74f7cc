"""Schedules and their runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from outreach.models.fields import FieldRule, Refused
from outreach.models.schedule import MAX_EXCEPTIONS, NewSchedule, Occurrence, ScheduleUpdate, day
from outreach.serialization.documents import document_of
from outreach.serialization.field_rules import Array, uuid
from outreach.serialization.manage.resources import resource_bodies


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
SCHEDULE_BODIES: Final = resource_bodies(NewSchedule, ScheduleUpdate, "a schedule", _RULES)


def write_occurrence(one: Occurrence) -> dict[str, Any]:
    """Return what became of a run."""
    return document_of(one, "workspace_id", "schedule_id")
