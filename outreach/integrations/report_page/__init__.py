"""A campaign's report as one HTML page: no script, no request to anywhere, light and dark. A public module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from importlib import resources
from typing import Final
from zoneinfo import ZoneInfo

from outreach.integrations.report_page.charts import Bar, bars, columns
from outreach.models.campaign_report import CampaignReport, FailureCount

__all__ = ["render_report_page"]

_MAX_FAILURES: Final = 20

_OUTCOMES: Final = {
    "positive": "Positive",
    "negative": "Not positive",
    "callback": "Asks for a call back",
    "voicemail": "Voicemail",
    "busy": "Busy",
    "no_answer": "No answer",
    "declined": "Declined",
    "failed": "Failed",
    "unknown": "Outcome unknown",
}


def render_report_page(report: CampaignReport) -> str:
    """Return a report as a self-contained HTML page, in UTF-8."""
    style = resources.files(__name__).joinpath("page.css").read_text(encoding="utf-8")
    name = escape(report.name)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{name}: report</title>
<style>{style}</style>
</head>
<body>
<main>
<header>
<h1>{name}</h1>
<p class="about">{_about(report)}</p>
</header>
{_tiles(report)}
{_section("What became of the contacts", _results(report))}
{_section(*_requests(report))}
{_section("Over time", _over_time(report))}
{_section("What went wrong", _failures(report.failures))}
<footer>Figures of {_time(report, report.at)}. Campaign {escape(report.campaign_id)}.</footer>
</main>
</body>
</html>
"""


def _about(report: CampaignReport) -> str:
    """Return what kind of campaign it is, and its times, as HTML."""
    kind = "SMS campaign" if report.channel == "sms" else "Calling campaign"
    parts = [f"{kind}, {report.status.value}"]
    if report.started_at is not None:
        parts.append(f"started {_time(report, report.started_at)}")
    if report.completed_at is not None:
        parts.append(f"ended {_time(report, report.completed_at)}")
    if report.erased_at is not None:
        parts.append(f"contacts erased {_time(report, report.erased_at)}")
    return "; ".join(parts)


def _time(report: CampaignReport, moment: datetime) -> str:
    """Return a time that stays on one line, as HTML."""
    local = moment.astimezone(ZoneInfo(report.timezone))
    return f"<time>{local:%Y-%m-%d %H:%M} {escape(report.timezone)}</time>"


def _tiles(report: CampaignReport) -> str:
    """Return the figures that are asked for first."""
    messages, calls = report.messages, report.calls
    tiles = [("Contacts", f"{report.contacts:,}", ""), ("Contacted", f"{report.contacted:,}", _share(report))]
    if messages is not None:
        tiles.append(("Messages delivered", f"{messages.delivered:,}", f"of {messages.accepted:,} accepted"))
    if calls is not None:
        tiles.append(("Calls answered", f"{calls.answered:,}", f"of {calls.calls:,}"))
        tiles.append(("Positive", f"{report.successful:,}", "contacts"))
    tiles += [
        ("Failed", f"{report.failed:,}", "contacts"),
        ("Replies", f"{report.replies:,}", f"from {report.repliers:,} contacts"),
        ("Opt-outs", f"{report.opt_outs:,}", "contacts"),
    ]
    if messages is not None:
        tiles.append(("Segments", f"{messages.segments:,}", "of accepted messages"))
    if calls is not None:
        begun = "" if calls.begun_minutes is None else f"; {calls.begun_minutes:,} begun"
        tiles.append(("Minutes", f"{calls.minutes:,.1f}", f"between answer and end{begun}"))
    tiles.append(("Cost", *_cost(report)))
    if calls is not None:
        tiles += [
            ("Charged", one.amount_text, f"{one.currency} by the providers, for {one.calls:,} calls")
            for one in calls.provider_costs
        ]
    if report.still_open:
        tiles.append(("Still open", f"{report.still_open:,}", "contacts"))
    # By its length a figure is written so small that its card holds it.
    shown = "".join(
        f"<div><dt>{escape(title)}</dt><dd><strong style='--length:{len(figure)}'>{escape(figure)}</strong> "
        f"<span>{escape(note)}</span></dd></div>"
        for title, figure, note in tiles
    )
    return f"<dl class='tiles'>{shown}</dl>"


def _cost(report: CampaignReport) -> tuple[str, str]:
    """Return a cost, and what it leaves out."""
    cost = report.cost
    if cost is None:
        return "unknown", "the workspace has no prices"
    unit = "segments" if report.channel == "sms" else "minutes"
    left_out = f", without {cost.unpriced:,} {unit} that have no price" if cost.unpriced else ""
    return cost.amount_text, f"{cost.currency}{left_out}"


def _share(report: CampaignReport) -> str:
    return f"{report.contacted / report.contacts:.1%} of all" if report.contacts else ""


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _results(report: CampaignReport) -> str:
    found = []
    for one in report.results:
        words = one.meaning or (one.reason or "").replace("_", " ")
        label = f"{one.status.value}: {words}" if words else one.status.value
        found.append(Bar(label, one.contacts, _tone(one.status.value)))
    return bars(found, total=report.contacts, unit="contacts")


def _tone(status: str) -> str:
    match status:
        case "completed":
            return "good"
        case "failed" | "unconfirmed":
            return "bad"
        case _:
            return "plain"


def _requests(report: CampaignReport) -> tuple[str, str]:
    """Return the title and the chart of the messages or calls."""
    messages, calls = report.messages, report.calls
    if messages is not None:
        shown = (
            Bar("delivered", messages.delivered, "good"),
            Bar("accepted, no final report", messages.unreported, "plain"),
            Bar("accepted, not delivered", messages.undelivered, "bad"),
            Bar("refused", messages.refused, "bad"),
            Bar("not known whether accepted", messages.uncertain, "bad"),
            Bar("not sent: deferred or withdrawn", messages.not_sent, "plain"),
            Bar("on their way", messages.in_flight, "plain"),
        )
        return "Messages, retries included", _nonzero(shown, messages.requests, "messages")
    assert calls is not None  # noqa: S101 - a report has one of both
    found = [
        Bar(_OUTCOMES.get(outcome, outcome), count, "good" if outcome == "positive" else "plain")
        for outcome, count in calls.outcomes.items()
    ]
    return "Calls by outcome, retries included", _nonzero([*found, Bar("Not ended", calls.open)], calls.calls, "calls")


def _nonzero(shown: Iterable[Bar], total: int, unit: str) -> str:
    return bars([one for one in shown if one.value], total=total, unit=unit)


def _over_time(report: CampaignReport) -> str:
    if not report.over_time:
        return ""
    zone = ZoneInfo(report.timezone)
    starts = [one.since.astimezone(zone) for one in report.over_time]
    hourly = (report.over_time[0].until - report.over_time[0].since).total_seconds() <= 3600
    labels = [f"{start:%d %b %H:%M}" if hourly else f"{start:%d %b %Y}" for start in starts]
    what = "messages" if report.messages is not None else "calls"
    parts = [columns(labels, [one.requests for one in report.over_time], unit=what, title=f"Requests for {what}")]
    if report.replies:
        parts.append(columns(labels, [one.replies for one in report.over_time], unit="replies", title="Replies"))
    if report.opt_outs:
        parts.append(columns(labels, [one.opt_outs for one in report.over_time], unit="opt-outs", title="Opt-outs"))
    return "".join(parts) + f"<p class='about'>Times of {escape(report.timezone)}.</p>"


def _failures(failures: Sequence[FailureCount]) -> str:
    if not failures:
        return ""
    rows = "".join(_failure(one) for one in failures[:_MAX_FAILURES])
    rest = sum(one.requests for one in failures[_MAX_FAILURES:])
    more = f"<p class='about'>{rest:,} requests failed for other causes.</p>" if rest else ""
    head = "<tr><th>Requests</th><th>Provider</th><th>Cause</th><th>What to do</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>{more}"


def _failure(one: FailureCount) -> str:
    failure = one.failure
    cause = failure.meaning or failure.error_message or failure.reason or ""
    code = f" <code>{escape(failure.error_code)}</code>" if failure.error_code else ""
    advice = failure.advice or ""
    return (
        f"<tr><td class='number'>{one.requests:,}</td><td>{escape(failure.provider)}</td>"
        f"<td>{escape(cause)}{code}</td><td>{escape(advice)}</td></tr>"
    )
