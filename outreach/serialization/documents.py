"""The one converter between models, JSON types and rows: for answers, documents, reports and stored columns.

A field has its own name, unless it is renamed here. Times are texts in UTC, dates `YYYY-MM-DD`, amounts texts that keep
every place, enumerations their values, times of the day `HH:MM`. In columns times have one width, booleans are 0 and 1,
compound values compact JSON. `from_json` and `Columns.model` trust what they read: this package wrote it. What others
send is read by `make_request_converter` of `field_rules`, which checks it and names each wrong place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from operator import attrgetter
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Generic, Literal, TypeVar, Union, get_args, get_origin

import attrs
import cattrs
import orjson
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.core.copying import maker_of
from outreach.errors import Problem
from outreach.models.diagnosis import Diagnosis
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.settings import MINUTES_A_DAY, BusinessHours, TimeWindow
from outreach.models.status import EngineStatus

T = TypeVar("T")

Document = dict[str, Any]

_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})

TIMES: Final = tuple(f"{minutes // 60:02d}:{minutes % 60:02d}" for minutes in range(MINUTES_A_DAY + 1))
"""The texts of all times of the day, by the minutes after midnight; the last one is 24:00."""

MINUTES: Final = {time: minutes for minutes, time in enumerate(TIMES)}

_REPORTS: Final[dict[str, type[Any]]] = {"message": MessageReport, "call": CallReport}


def to_json(value: object) -> Any:
    """Return a model, or a collection of models, as JSON types."""
    return converter.unstructure(value)


def document_of(item: object, *hidden: str) -> dict[str, Any]:
    """Return a model's fields as JSON types, without those that are hidden."""
    return {name: value for name, value in converter.unstructure(item).items() if name not in hidden}


def chosen_fields(item: object, names: Sequence[str], *, renamed: Mapping[str, str] = _NO_NAMES) -> Document:
    """Return these fields of a model as JSON types, in this order; some may have other names in JSON."""
    document: Document = converter.unstructure(item)
    return {renamed.get(name, name): document[name] for name in names}


def from_json(kind: type[T], data: Any) -> T:
    """Return the model that `to_json` wrote; fields that are missing have their defaults."""
    return converter.structure(data, kind)


def write_blocker(one: Problem) -> Document:
    """Return what blocks a campaign, as JSON."""
    return {"by": one.code, "until": to_json(one.until), "why": one.message}


def _write_detail(one: Problem) -> Document:
    return {"path": one.path, "message": one.message}


def _write_unusable_adapter(one: Problem) -> Document:
    return {"name": one.path, "message": one.message}


def _write_status_finding(one: Problem) -> Document:
    return {
        "kind": one.code,
        "severity": one.severity,
        "workspace_id": one.workspace_id,
        "id": one.path or None,
        "why": one.message,
        "commands": list(one.commands),
    }


def _write_diagnosis_finding(one: Problem) -> Document:
    return {
        "code": one.code,
        "severity": one.severity,
        "why": one.message,
        "where": one.path,
        "workspace_id": one.workspace_id,
        "commands": list(one.commands),
        "looks": list(one.looks),
    }


def _each(write: Callable[[Problem], Document]) -> Any:
    return override(unstruct_hook=lambda problems: [write(one) for one in problems])


def register(made: cattrs.Converter, model: type[Any], *, kind: str | None = None, **fields: Any) -> None:
    """Register how a model differs in JSON, once it is first converted.

    Args:
        made: The converter.
        model: The model.
        kind: A text that is written as `kind` before its fields, if any.
        fields: How fields differ: `override(rename=…)` or `override(omit=True)`.
    """

    def writer(_: object, used: cattrs.Converter) -> Callable[[Any], Document]:
        write = make_dict_unstructure_fn(model, used, **fields)
        return write if kind is None else lambda item: {"kind": kind, **write(item)}

    def reader(_: object, used: cattrs.Converter) -> Callable[[Any, Any], Any]:
        return make_dict_structure_fn(model, used, _cattrs_detailed_validation=False, **fields)

    made.register_unstructure_hook_factory(lambda given: given is model, writer)
    made.register_structure_hook_factory(lambda given: given is model, reader)


def _make_converter() -> cattrs.Converter:
    made = cattrs.Converter(detailed_validation=False, unstruct_collection_overrides={Sequence: list, Set: list})
    made.register_unstructure_hook(Enum, lambda member: member.value)
    made.register_unstructure_hook(datetime, format_timestamp)
    made.register_structure_hook(datetime, lambda text, _: parse_timestamp(text))
    made.register_unstructure_hook(date, date.isoformat)
    made.register_structure_hook(date, lambda text, _: date.fromisoformat(text))
    made.register_unstructure_hook(Decimal, lambda amount: format(amount, "f"))
    made.register_structure_hook(Decimal, lambda text, _: Decimal(text))
    made.register_unstructure_hook(
        TimeWindow, lambda window: {"start": TIMES[window.start_minute], "end": TIMES[window.end_minute]}
    )
    made.register_structure_hook(
        TimeWindow,
        lambda times, _: TimeWindow(start_minute=MINUTES[times["start"]], end_minute=MINUTES[times["end"]]),
    )
    register(made, BusinessHours, batch_concurrency=override(rename="batchConcurrency"))
    for kind, report in _REPORTS.items():
        # The provider's own event has a column of its own.
        register(made, report, kind=kind, raw=override(omit=True))
    # A problem shows what the noun of the interface has, with its names; by itself it is a detail of an error.
    made.register_unstructure_hook(Problem, _write_detail)
    register(made, EngineStatus, findings=_each(_write_status_finding), adapter_problems=_each(_write_unusable_adapter))
    register(made, Diagnosis, findings=_each(_write_diagnosis_finding))
    made.register_structure_hook(Report, lambda data, _: made.structure(data, _REPORTS[data["kind"]]))
    return made


converter: Final = _make_converter()


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


_decode: Final = json.JSONDecoder().raw_decode


def _from_json_text(text: str) -> Any:
    # What `json.loads` does besides takes longer than to decode the variables of a contact.
    return _decode(text)[0]


_Codec = tuple[Callable[[Any], Value], Callable[[Any], Any]]


def _codec(kind: Any) -> _Codec | None:
    """Return the writer and reader of a type's non-None values; None for a type that is stored as it is."""
    kind = _required(kind)
    if kind in _PLAIN or get_origin(kind) is Literal:
        return None
    if kind is datetime:
        return format_timestamp, parse_timestamp
    if kind is date:
        return date.isoformat, date.fromisoformat
    if kind is Decimal:
        return _millionths, money_of
    if kind is bool:
        return int, bool
    if isinstance(kind, type) and issubclass(kind, Enum):
        # The database driver has no adapter for enum members.
        # A call of the class takes ten times as long.
        return str, {member.value: member for member in kind}.__getitem__
    if _is_mapping(kind):
        return json_text, _from_json_text
    return (
        lambda value: json_text(converter.unstructure(value, unstructure_as=kind)),
        lambda text: from_json(kind, json.loads(text)),
    )


_MILLIONTH: Final = Decimal(1).scaleb(-6)


def _millionths(amount: Decimal) -> int:
    """Return an amount of money as databases add it up exactly."""
    return int(amount.quantize(_MILLIONTH) / _MILLIONTH)


def money_of(count: int) -> Decimal:
    """Return an amount of money that is stored as millionths."""
    amount = (count * _MILLIONTH).normalize()
    return amount if amount.as_tuple().exponent <= 0 else amount.quantize(Decimal(1))  # type: ignore[operator]


def _required(kind: Any) -> Any:
    """Return a type without its None."""
    if get_origin(kind) in {Union, UnionType}:
        return Union[tuple(one for one in get_args(kind) if one is not NoneType)]  # noqa: UP007 - made of what is left
    return kind


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is Mapping
