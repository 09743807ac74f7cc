"""Reports of providers as JSON text: those that are kept until it is known which dispatch they are about."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from outreach.clock import from_text, to_text
from outreach.models.reports import CallReport, MessageReport, Report

_KINDS: Final[dict[str, type[Any]]] = {"message": MessageReport, "call": CallReport}


def report_text(report: Report) -> str:
    """Return a report as JSON, without the provider's own event: that is kept beside it, as it came."""
    kind = "call" if isinstance(report, CallReport) else "message"
    return json.dumps({"kind": kind, **_reports.unstructure(report)}, ensure_ascii=False, separators=(",", ":"))


def report_from_text(text: str) -> Report:
    """Return the report that a text of `report_text` holds; `raw` is None."""
    value = json.loads(text)
    report: Report = _reports.structure(value, _KINDS[value.pop("kind")])
    return report


def _make() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_unstructure_hook(datetime, to_text)
    converter.register_structure_hook(datetime, lambda text, _: from_text(text))
    for model in _KINDS.values():
        converter.register_unstructure_hook(model, make_dict_unstructure_fn(model, converter, raw=override(omit=True)))
        converter.register_structure_hook(
            model,
            make_dict_structure_fn(model, converter, _cattrs_detailed_validation=False, raw=override(omit=True)),
        )
    return converter


_reports: Final = _make()
