"""Conversion between models and rows, by the models' own fields: a stored field is named once, in its model.

A column has its field's name (except `to` and `sender`, which queries could not use unquoted). Times are texts of one
width, booleans 0 and 1, enumerations their values, compound values compact JSON. Rows are trusted: this package wrote
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from operator import attrgetter
from types import UnionType
from typing import Any, Final, Generic, Literal, TypeVar, Union, get_args, get_origin

import attrs
import cattrs
import orjson
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from outreach.clock import format_timestamp, parse_timestamp
from outreach.copying import maker_of
from outreach.models.hours import BusinessHours, HolidayCalendar, TimeWindow
from outreach.models.reports import CallReport, MessageReport, Report

M = TypeVar("M")

Value = str | int | bytes | None
"""The value of one column."""

RENAMED: Final = {"to": "to_number"}
"""Columns whose names differ from their fields'."""

_PLAIN: Final = (str, int, bytes)


class Columns(Generic[M]):
    """The columns of a model.

    Args:
        model: The model.
        without: Fields that have no column.

    Attributes:
        names: The columns, in the order of the model's fields.
    """

    def __init__(self, model: type[M], *, without: Sequence[str] = ()) -> None:
        attrs.resolve_types(model)  # type: ignore[type-var]
        fields = [field for field in attrs.fields(model) if field.name not in without]  # type: ignore[arg-type]
        self._model = model
        self._fields = tuple(field.name for field in fields)
        self._make = maker_of(model, self._fields)
        self.names = tuple(RENAMED.get(name, name) for name in self._fields)
        getter = attrgetter(*self._fields)
        self._values: Callable[[M], Sequence[Any]] = getter if len(fields) > 1 else lambda model: (getter(model),)
        codecs = [(index, codec) for index, field in enumerate(fields) if (codec := _codec(field.type)) is not None]
        self._writers = [(index, writer) for index, (writer, _) in codecs]
        self._readers = [(index, reader) for index, (_, reader) in codecs]
        self._mappings = [index for index, field in enumerate(fields) if _is_mapping(field.type)]

    def row(self, model: M) -> list[Value]:
        """Return a model's columns."""
        values = list(self._values(model))
        for index, write in self._writers:
            if values[index] is not None:
                values[index] = write(values[index])
        return values

    def model(self, row: Sequence[Any], **more: Any) -> M:
        """Return the model of a row; `more` are the fields that have no column."""
        values = list(row)
        for index, read in self._readers:
            if values[index] is not None:
                values[index] = read(values[index])
        for index in self._mappings:
            # An empty mapping has no value: a million contacts without variables store nothing for them.
            if values[index] is None:
                values[index] = {}
        if self._make is not None:
            made: M = self._make(values)
            return made
        return self._model(**dict(zip(self._fields, values, strict=True)), **more)


_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_text(value: object) -> str:
    """Return a value as compact JSON."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # Such as an integer of more than 64 bits.
        return _encode(value)


_Codec = tuple[Callable[[Any], Value], Callable[[Any], Any]]


def _codec(kind: Any) -> _Codec | None:
    """Return the writer and reader of a type's non-None values; None for a type that is stored as it is."""
    kind = _required(kind)
    if kind in _PLAIN or get_origin(kind) is Literal:
        return None
    if kind is datetime:
        return format_timestamp, parse_timestamp
    if kind is bool:
        return int, bool
    if isinstance(kind, type) and issubclass(kind, Enum):
        # The database driver has no adapter for enum members.
        return str, kind
    if kind is BusinessHours:
        return _hours_text, _hours_from_text
    if _is_report(kind):
        return report_text, report_from_text
    if get_origin(kind) is Mapping:
        return json_text, json.loads
    return _compound_text(kind), _compound_from_text(kind)


def _required(kind: Any) -> Any:
    """Return a type without its None."""
    if get_origin(kind) in {Union, UnionType}:
        kinds = [one for one in get_args(kind) if one is not type(None)]
        if len(kinds) == 1:
            return kinds[0]
    return kind


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is Mapping


def _is_report(kind: Any) -> bool:
    return get_origin(kind) in {Union, UnionType} and CallReport in get_args(kind)


def _as_minutes(time: str) -> int:
    return int(time[:2]) * 60 + int(time[3:])


def _as_time(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def _hours_text(hours: BusinessHours) -> str:
    """Return the stored form of business hours."""
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


def _hours_from_text(text: str) -> BusinessHours:
    value = json.loads(text)
    return BusinessHours(
        enabled=value["enabled"],
        timezone=value["timezone"],
        schedule={
            day: tuple(
                TimeWindow(start_minute=_as_minutes(w["start"]), end_minute=_as_minutes(w["end"])) for w in windows
            )
            for day, windows in value["schedule"].items()
        },
        batch_concurrency=value["batchConcurrency"],
    )


def _make_json() -> cattrs.Converter:
    """Return the converter of JSON columns."""
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_unstructure_hook(date, date.isoformat)
    converter.register_structure_hook(date, lambda text, _: date.fromisoformat(text))
    converter.register_unstructure_hook(Decimal, lambda amount: format(amount, "f"))
    converter.register_structure_hook(Decimal, lambda text, _: Decimal(text))
    return converter


_inside: Final = _make_json()


def _compound_text(kind: Any) -> Callable[[Any], str]:
    if kind is not HolidayCalendar and get_origin(kind) is not tuple:
        raise TypeError(f"No column can hold a {kind}.")
    return lambda value: json_text(_inside.unstructure(value, unstructure_as=kind))


def _compound_from_text(kind: Any) -> Callable[[str], Any]:
    return lambda text: _inside.structure(json.loads(text), kind)


_KINDS: Final[dict[str, type[Any]]] = {"message": MessageReport, "call": CallReport}


def report_text(report: Report) -> str:
    """Return a report as JSON, without the provider's own event, which is stored beside it."""
    kind = "call" if isinstance(report, CallReport) else "message"
    return json.dumps({"kind": kind, **_reports.unstructure(report)}, ensure_ascii=False, separators=(",", ":"))


def report_from_text(text: str) -> Report:
    """Return the report of a JSON text; `raw` is None."""
    value = json.loads(text)
    report: Report = _reports.structure(value, _KINDS[value.pop("kind")])
    return report


def _make() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_unstructure_hook(datetime, format_timestamp)
    converter.register_structure_hook(datetime, lambda text, _: parse_timestamp(text))
    for model in _KINDS.values():
        converter.register_unstructure_hook(model, make_dict_unstructure_fn(model, converter, raw=override(omit=True)))
        converter.register_structure_hook(
            model,
            make_dict_structure_fn(model, converter, _cattrs_detailed_validation=False, raw=override(omit=True)),
        )
    return converter


_reports: Final = _make()
