"""Reports as JSON-ready dicts, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import attrs

from outreach.clock import format_timestamp, parse_timestamp
from outreach.models.campaign_report import (
    CallFigures,
    CampaignReport,
    FailureCount,
    MessageFigures,
    ResultCount,
    TimeBucket,
)
from outreach.models.prices import Cost, CostLine
from outreach.models.reports import Explanation, ProviderFailure
from outreach.models.states import CampaignStatus, RecipientStatus


def write_campaign_report(report: CampaignReport) -> dict[str, Any]:
    """Return a report with every field, null where not applicable."""
    calls, cost = report.calls, report.cost
    return {
        "campaign_id": report.campaign_id,
        "workspace_id": report.workspace_id,
        "name": report.name,
        "channel": report.channel,
        "status": report.status.value,
        "created_at": format_timestamp(report.created_at),
        "started_at": _moment(report.started_at),
        "completed_at": _moment(report.completed_at),
        "at": format_timestamp(report.at),
        "erased_at": _moment(report.erased_at),
        "contacts": report.contacts,
        "contacted": report.contacted,
        "successful": report.successful,
        "failed": report.failed,
        "open": report.still_open,
        "results": [
            {"status": one.status.value, "reason": one.reason, "meaning": one.meaning, "contacts": one.contacts}
            for one in report.results
        ],
        "messages": None if report.messages is None else attrs.asdict(report.messages),
        "calls": None
        if calls is None
        else {
            "calls": calls.calls,
            "answered": calls.answered,
            "open": calls.open,
            "outcomes": dict(calls.outcomes),
            "milliseconds": calls.milliseconds,
            "seconds": calls.seconds,
            "minutes": calls.minutes,
            "begun_minutes": calls.begun_minutes,
        },
        "failures": [_failure(one) for one in report.failures],
        "replies": report.replies,
        "repliers": report.repliers,
        "opt_outs": report.opt_outs,
        "timezone": report.timezone,
        "over_time": [_bucket(one) for one in report.over_time],
        "cost": None if cost is None else _cost(cost),
    }


def read_campaign_report(written: Mapping[str, Any]) -> CampaignReport:
    """Return the report that `write_campaign_report` wrote."""
    messages, calls, cost = written["messages"], written["calls"], written["cost"]
    plain = ("campaign_id", "workspace_id", "name", "channel", "contacts", "contacted", "successful", "failed")
    return CampaignReport(
        **{name: written[name] for name in (*plain, "replies", "repliers", "opt_outs", "timezone")},
        status=CampaignStatus(written["status"]),
        created_at=parse_timestamp(written["created_at"]),
        started_at=_parsed(written["started_at"]),
        completed_at=_parsed(written["completed_at"]),
        at=parse_timestamp(written["at"]),
        erased_at=_parsed(written["erased_at"]),
        still_open=written["open"],
        results=[ResultCount(**one | {"status": RecipientStatus(one["status"])}) for one in written["results"]],
        messages=None if messages is None else MessageFigures(**messages),
        calls=None if calls is None else _read_calls(calls),
        failures=[_read_failure(one) for one in written["failures"]],
        over_time=[
            TimeBucket(**one | {"since": parse_timestamp(one["since"]), "until": parse_timestamp(one["until"])})
            for one in written["over_time"]
        ],
        cost=None if cost is None else _read_cost(cost),
    )


def _read_calls(written: Mapping[str, Any]) -> CallFigures:
    plain = ("calls", "answered", "open", "outcomes")
    return CallFigures(
        **{name: written[name] for name in plain},
        # Reports of campaigns that an earlier version erased or archived have neither.
        milliseconds=written.get("milliseconds", written["seconds"] * 1000),
        begun_minutes=written.get("begun_minutes"),
    )


def _cost(cost: Cost) -> dict[str, Any]:
    return {
        "amount": f"{cost.amount:f}",
        "currency": cost.currency,
        "unpriced": cost.unpriced,
        "lines": [
            attrs.asdict(line) | {name: _plain(getattr(line, name)) for name in ("price", "amount")}
            for line in cost.lines
        ],
    }


def _plain(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:f}"


def _read_cost(written: Mapping[str, Any]) -> Cost:
    return Cost(
        amount=Decimal(written["amount"]),
        currency=written["currency"],
        unpriced=written["unpriced"],
        lines=tuple(
            CostLine(**one | {name: None if one[name] is None else Decimal(one[name]) for name in ("price", "amount")})
            for one in written["lines"]
        ),
    )


def _read_failure(one: Mapping[str, Any]) -> FailureCount:
    explained = None
    if one["meaning"] is not None:
        explained = Explanation(meaning=one["meaning"], advice=one["advice"], source=one["source"])
    fields = {name: one[name] for name in ("provider", "reason", "error_code", "error_message")}
    return FailureCount(failure=ProviderFailure(**fields, explanation=explained), requests=one["requests"])


def _parsed(text: str | None) -> datetime | None:
    return None if text is None else parse_timestamp(text)


def write_provider_failure(failure: ProviderFailure) -> dict[str, Any]:
    """Return a provider's code and words, what they mean and what to do."""
    explanation = failure.explanation
    return {
        "provider": failure.provider,
        "reason": failure.reason,
        "error_code": failure.error_code,
        "error_message": failure.error_message,
        "meaning": None if explanation is None else explanation.meaning,
        "advice": None if explanation is None else explanation.advice,
    }


def _failure(one: FailureCount) -> dict[str, Any]:
    explanation = one.failure.explanation
    source = None if explanation is None else explanation.source
    return {**write_provider_failure(one.failure), "source": source, "requests": one.requests}


def _bucket(one: TimeBucket) -> dict[str, Any]:
    return {
        "since": format_timestamp(one.since),
        "until": format_timestamp(one.until),
        "requests": one.requests,
        "replies": one.replies,
        "opt_outs": one.opt_outs,
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else format_timestamp(moment)
