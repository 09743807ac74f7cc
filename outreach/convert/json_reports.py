"""Writers of reports and exports, as JSON-ready dicts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs

from outreach.clock import format_timestamp
from outreach.models.campaign_report import CampaignReport, FailureCount, TimeBucket


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
            "seconds": calls.seconds,
            "minutes": calls.minutes,
        },
        "failures": [_failure(one) for one in report.failures],
        "replies": report.replies,
        "repliers": report.repliers,
        "opt_outs": report.opt_outs,
        "timezone": report.timezone,
        "over_time": [_bucket(one) for one in report.over_time],
        "cost": None if cost is None else {"amount": str(cost.amount), "currency": cost.currency},
    }


def _failure(one: FailureCount) -> dict[str, Any]:
    failure = one.failure
    explanation = failure.explanation
    return {
        "provider": failure.provider,
        "reason": failure.reason,
        "error_code": failure.error_code,
        "error_message": failure.error_message,
        "meaning": None if explanation is None else explanation.meaning,
        "advice": None if explanation is None else explanation.advice,
        "source": None if explanation is None else explanation.source,
        "requests": one.requests,
    }


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
