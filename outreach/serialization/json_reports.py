"""Reports as JSON-ready dicts, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
from cattrs import override

from outreach.models.campaign_report import CallFigures, CampaignReport, FailureCount
from outreach.models.prices import Cost
from outreach.models.reports import ProviderFailure
from outreach.serialization.documents import Document, chosen_fields, converter, document_of, register, to_json

_COST: Final = ("amount", "currency", "unpriced", "lines")


def write_campaign_report(report: CampaignReport) -> dict[str, Any]:
    """Return a report with every field, null where not applicable."""
    written: Document = _reports.unstructure(report)
    return written


def read_campaign_report(written: Mapping[str, Any]) -> CampaignReport:
    """Return the report that `write_campaign_report` wrote."""
    return _reports.structure(written, CampaignReport)


def _write_failure(one: FailureCount) -> Document:
    return {**document_of(one.failure), "requests": one.requests}


def _read_failure(written: Mapping[str, Any], _: object) -> FailureCount:
    fields = {name: written[name] for name in attrs.fields_dict(ProviderFailure)}
    return FailureCount(failure=ProviderFailure(**fields), requests=written["requests"])


def _write_calls(calls: CallFigures) -> Document:
    return {
        **document_of(calls, "begun_minutes", "provider_costs"),
        "seconds": calls.seconds,
        "minutes": calls.minutes,
        "begun_minutes": calls.begun_minutes,
        "provider_costs": to_json(calls.provider_costs),
    }


def _read_calls(written: Mapping[str, Any], kind: type[CallFigures]) -> CallFigures:
    # Reports that an earlier version made for an erasure, or for a ledger archive, have whole seconds only.
    return converter.structure({"milliseconds": written["seconds"] * 1000, **written}, kind)


_reports: Final = converter.copy()
_reports.register_unstructure_hook(FailureCount, _write_failure)
_reports.register_structure_hook(FailureCount, _read_failure)
_reports.register_unstructure_hook(CallFigures, _write_calls)
_reports.register_structure_hook(CallFigures, _read_calls)
_reports.register_unstructure_hook(Cost, lambda cost: chosen_fields(cost, _COST))
register(_reports, CampaignReport, still_open=override(rename="open"))
