"""Models to rows of a table and back.

A column has its field's name (but for `to` and `sender`, which no query could use unquoted). Moments are
texts of one width, booleans 0 and 1, enumerations their values, everything compound compact JSON text.
Rows were written by this package, so they are read without being checked again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Final, TypeVar, cast, get_origin

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from outreach.clock import from_text, to_text
from outreach.convert.reports import report_from_text, report_text
from outreach.models.account import CallbackRecord
from outreach.models.business_hours import BusinessHours, Window
from outreach.models.call import Call
from outreach.models.campaign import AgentSnapshot, Campaign, Counters
from outreach.models.dispatch import Dispatch
from outreach.models.holidays import HolidayCalendar
from outreach.models.message import InboundMessage, Message
from outreach.models.states import (
    CallStatus,
    CampaignStatus,
    DispatchState,
    MessageStatus,
    RecipientStatus,
    WorkspaceMode,
    WorkspaceStatus,
)
from outreach.models.trail import Rule, What

T = TypeVar("T")

Value = str | int | bytes | None
"""What one column of a row holds."""

COUNTERS: Final = tuple(field.name for field in attrs.fields(Counters))
"""The counters; the column of one is `recipients_` and its name."""

_ENUMERATIONS: Final = (
    CallStatus,
    CampaignStatus,
    DispatchState,
    MessageStatus,
    RecipientStatus,
    Rule,
    What,
    WorkspaceMode,
    WorkspaceStatus,
)

_RENAMED: Final = {"to": "to_number", "sender": "from_number"}


def to_row(model: Any) -> dict[str, Value]:
    """Return the columns of a model, by name."""
    return cast("dict[str, Value]", _rows.unstructure(model))


def from_row(cls: type[T], row: Mapping[str, Any]) -> T:
    """Return the model that a row holds; columns that are no fields of it are left out."""
    return _rows.structure(row, cls)


def json_text(value: object) -> str:
    """Return a value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def counters_row(counters: Counters) -> dict[str, int]:
    """Return the columns of a campaign's counters."""
    return {f"recipients_{name}": getattr(counters, name) for name in COUNTERS}


def counters_from_row(row: Mapping[str, Any]) -> Counters:
    """Return the counters that a campaign's row, or a recount, holds."""
    return Counters(**{name: row[f"recipients_{name}"] for name in COUNTERS})


def campaign_row(campaign: Campaign) -> dict[str, Value]:
    """Return the columns of a campaign, its counters among them; its agent's snapshot is not stored with it."""
    return {**to_row(campaign), **counters_row(campaign.counters)}


def campaign_from_row(row: Mapping[str, Any]) -> Campaign:
    """Return the campaign of a row that was joined with its agent."""
    agent = None
    if row["agent_name"] is not None:
        agent = AgentSnapshot(
            id=row["agent_id"],
            name=row["agent_name"],
            provider=row["agent_provider"],
            is_active=bool(row["agent_is_active"]),
        )
    return from_row(Campaign, {**row, "counters": counters_from_row(row), "agent": agent})


def _as_minutes(time: str) -> int:
    return int(time[:2]) * 60 + int(time[3:])


def _as_time(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def _hours_to_json(hours: BusinessHours) -> str:
    """Return the interface's stored form, with the days that the schedule has."""
    return json_text(
        {
            "enabled": hours.enabled,
            "timezone": hours.timezone,
            "schedule": {
                day: [{"start": _as_time(w.start_minute), "end": _as_time(w.end_minute)} for w in windows]
                for day, windows in hours.schedule.items()
            },
            "batchConcurrency": hours.batch_concurrency,
        }
    )


def _hours_from_json(text: str) -> BusinessHours:
    value = json.loads(text)
    return BusinessHours(
        enabled=value["enabled"],
        timezone=value["timezone"],
        schedule={
            day: tuple(Window(start_minute=_as_minutes(w["start"]), end_minute=_as_minutes(w["end"])) for w in windows)
            for day, windows in value["schedule"].items()
        },
        batch_concurrency=value["batchConcurrency"],
    )


def _is_compound(kind: Any) -> bool:
    """Whether a field of this type is held as JSON text."""
    return kind is HolidayCalendar or get_origin(kind) in {tuple, Mapping}


def _make_json() -> cattrs.Converter:
    """Return the converter for what is inside a column of JSON."""
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_unstructure_hook(date, date.isoformat)
    converter.register_structure_hook(date, lambda text, _: date.fromisoformat(text))
    return converter


_inside: Final = _make_json()


def _compound_to_text(kind: Any) -> Callable[[Any], str]:
    return lambda value: json_text(_inside.unstructure(value, unstructure_as=kind))


def _compound_from_text(kind: Any) -> Callable[[Any, Any], Any]:
    if get_origin(kind) is Mapping:
        # An absent column is an empty mapping: a million contacts without variables store nothing for them.
        return lambda text, _: {} if text is None else json.loads(text)
    return lambda text, _: _inside.structure(json.loads(text), kind)


def _make_rows() -> cattrs.Converter:
    """Return the converter for whole rows."""
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_unstructure_hook(datetime, to_text)
    converter.register_structure_hook(datetime, lambda text, _: from_text(text))
    converter.register_unstructure_hook(bool, int)
    converter.register_structure_hook(bool, lambda number, _: bool(number))
    converter.register_unstructure_hook(BusinessHours, _hours_to_json)
    converter.register_structure_hook(BusinessHours, lambda text, _: _hours_from_json(text))
    converter.register_unstructure_hook_factory(_is_compound, _compound_to_text)
    converter.register_structure_hook_factory(_is_compound, _compound_from_text)
    for enumeration in _ENUMERATIONS:
        # The database driver would look for an adapter of each member, being more than a plain text.
        converter.register_unstructure_hook(enumeration, str)
    for given in (Counters, AgentSnapshot):
        # These come from columns of their own, or of another table, and are put in ready-made.
        converter.register_structure_hook(given, lambda value, _: value)
    for model in (Call, Message, InboundMessage, Dispatch):
        names = {
            field.name: override(rename=_RENAMED[field.name]) for field in attrs.fields(model) if field.name in _RENAMED
        }
        _register(converter, model, names)
    report = override(
        unstruct_hook=lambda value: None if value is None else report_text(value),
        struct_hook=lambda text, _: None if text is None else report_from_text(text),
    )
    _register(converter, CallbackRecord, {"report": report})
    _register(converter, Campaign, {"counters": override(omit=True), "agent": override(omit=True)}, reading={})
    return converter


def _register(
    converter: cattrs.Converter, model: type[Any], writing: dict[str, Any], *, reading: dict[str, Any] | None = None
) -> None:
    reading = writing if reading is None else reading
    # mypy takes the overrides for the named parameters of these two functions.
    converter.register_unstructure_hook_func(
        lambda cls: cls is model, make_dict_unstructure_fn(model, converter, **writing)
    )
    converter.register_structure_hook_func(
        lambda cls: cls is model,
        make_dict_structure_fn(model, converter, _cattrs_detailed_validation=False, **reading),
    )


_rows: Final = _make_rows()
