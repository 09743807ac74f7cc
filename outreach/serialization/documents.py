"""The one converter between models and JSON types: for answers, documents, reports and stored columns.

A field has its own name, unless it is renamed here. Times are texts in UTC, dates `YYYY-MM-DD`, amounts texts that keep
every place, enumerations their values, times of the day `HH:MM`.

What others send is read by `request_converter`, which checks it and names each wrong place. `from_json` reads what this
package wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeVar

import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.errors import Problem
from outreach.models.diagnosis import Diagnosis
from outreach.models.hours import MINUTES_A_DAY, BusinessHours, TimeWindow
from outreach.models.reports import CallReport, MessageReport, Report
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
