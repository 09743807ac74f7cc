"""The parts of a campaign's page that change while it runs, as values for their templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs
from markupsafe import Markup

from outreach.models import AuditEntry, CampaignReport
from outreach_server.console import words
from outreach_server.console.clocks import Clocks
from outreach_server.console.drawing.charts import Piece, progress
from outreach_server.console.drawing.curves import drawn
from outreach_server.console.figures import Figures
from outreach_server.console.pages.campaign_now import NowView, now_of
from outreach_server.console.pages.campaign_progress import HourRow, progress_view
from outreach_server.console.pages.campaign_views import MomentView, StateView, moment_of, state_of
from outreach_server.console.pages.views import ShareView

_UNSURE: Final = frozenset({"unknown", "unconfirmed"})


@attrs.frozen(kw_only=True)
class Tile:
    """A figure with its name."""

    name: str
    value: str
    about: str = ""
    url: str = ""


@attrs.frozen(kw_only=True)
class ReasonRow:
    """The contacts with one state and reason."""

    state: StateView
    meaning: str
    contacts: int
    share: str
    until: MomentView | None
    url: str


@attrs.frozen(kw_only=True)
class EventView:
    """Something that was done with the campaign."""

    at: MomentView
    what: str
    who: str


@attrs.frozen(kw_only=True)
class CampaignView:
    """Everything on the page that changes.

    Attributes:
        status: That which decides what can be done.
        as_of: When the figures were taken.
        funnel: The steps from loaded to opted out.
        curve: Empty where there is nothing to draw yet.
        contacts: The sum of all reasons.
        awaits_approval: Whether another person has to approve its start.
    """

    status: str
    state: StateView
    now: NowView
    as_of: MomentView
    tiles: Sequence[Tile]
    curve: Markup
    curve_says: str
    bands: Sequence[str]
    has_plan: bool
    has_ahead: bool
    hours: Sequence[HourRow]
    funnel: Sequence[ShareView]
    reasons: Sequence[ReasonRow]
    contacts: int
    events: Sequence[EventView]
    ended: bool
    awaits_approval: bool


def view_of(figures: Figures, clocks: Clocks, contacts_url: Callable[[Mapping[str, object]], str]) -> CampaignView:
    """Return what the page of a campaign shows.

    Args:
        figures: Its figures.
        clocks: Those of the times.
        contacts_url: Returns the address of its contacts with a filter.
    """
    report = figures.report
    view = progress_view(figures, clocks)
    curve = view.curve
    return CampaignView(
        status=figures.campaign.status,
        state=state_of(figures.campaign, report.at),
        now=now_of(figures, clocks, view.behind),
        as_of=moment_of(report.at, report.at, clocks, seconds=True),
        tiles=_tiles(report, contacts_url),
        curve=drawn(curve),
        curve_says=curve.label,
        bands=sorted({one.words for one in curve.bands}),
        has_plan=bool(curve.plan),
        has_ahead=bool(curve.ahead),
        hours=view.rows,
        funnel=_funnel(report),
        reasons=_reasons(figures, clocks, contacts_url),
        contacts=report.contacts,
        events=[_event(one, figures, clocks) for one in figures.changes],
        ended=figures.campaign.is_terminal,
        awaits_approval=figures.awaits_approval,
    )


def _tiles(report: CampaignReport, contacts_url: Callable[[Mapping[str, object]], str]) -> Sequence[Tile]:
    counts: dict[str, int] = {}
    for one in report.results:
        counts[one.status] = counts.get(one.status, 0) + one.contacts
    unsure = sum(counts.get(one, 0) for one in _UNSURE)
    left_out = counts.get("skipped", 0)
    tiles = [
        Tile(name="Contacts", value=f"{report.contacts:,}", about=f"{left_out:,} left out" if left_out else ""),
        Tile(
            name="Contacted",
            value=f"{report.contacted:,}",
            about=words.share(report.contacted, report.contacts),
        ),
    ]
    if report.messages is not None:
        found = report.messages
        about = f"{words.share(found.delivered, found.accepted)} of accepted" if found.accepted else ""
        tiles.append(Tile(name="Delivered", value=f"{found.delivered:,}", about=about))
    if report.calls is not None:
        talked = f"{report.calls.minutes:,} min" if report.calls.milliseconds else ""
        tiles.append(Tile(name="Answered", value=f"{report.calls.answered:,}", about=talked))
        tiles.append(Tile(name="Positive", value=f"{report.successful:,}"))
    failed = max((one for one in report.results if one.status == "failed"), key=lambda one: one.contacts, default=None)
    tiles += [
        Tile(
            name="Failed",
            value=f"{report.failed:,}",
            about=f"{failed.contacts:,} {(failed.reason or 'failed').replace('_', ' ')}" if failed else "",
        ),
        Tile(
            name="Unknown",
            value=f"{unsure:,}",
            about="look at them" if unsure else "",
            url=contacts_url({"status": "unknown" if counts.get("unknown") else "unconfirmed"}) if unsure else "",
        ),
        Tile(name="Still open", value=f"{report.still_open:,}", about=words.share(report.still_open, report.contacts)),
        Tile(name="Replies", value=f"{report.replies:,}", about=f"{report.opt_outs:,} opted out"),
    ]
    if report.cost is not None:
        tiles.append(Tile(name="Cost so far", value=report.cost.amount_text, about=report.cost.currency))
    return tiles


def _funnel(report: CampaignReport) -> Sequence[ShareView]:
    steps = [("Loaded", report.contacts), ("Contacted", report.contacted)]
    if report.messages is not None:
        steps += [("Messages accepted", report.messages.accepted), ("Messages delivered", report.messages.delivered)]
    if report.calls is not None:
        steps += [("Calls answered", report.calls.answered), ("Positive", report.successful)]
    steps += [("Replied", report.repliers), ("Opted out", report.opt_outs)]
    most = max(1, *(value for _, value in steps))
    return [
        ShareView(
            name=name,
            value=value,
            share=words.share(value, report.contacts),
            bar=progress(
                [Piece(value=value, tone="accent", words=name)], total=most, label=f"{name}: {value:,} of {most:,}"
            ),
        )
        for name, value in steps
    ]


def _reasons(
    figures: Figures, clocks: Clocks, contacts_url: Callable[[Mapping[str, object]], str]
) -> Sequence[ReasonRow]:
    rows = []
    for one in figures.report.results:
        word, icon, tone = words.CONTACT_STATES[one.status]
        due = figures.waits.get((str(one.status), one.reason))
        rows.append(
            ReasonRow(
                state=StateView(word=word, icon=icon, tone=tone),
                meaning=one.meaning or (one.reason or "").replace("_", " "),
                contacts=one.contacts,
                share=words.share(one.contacts, figures.report.contacts),
                until=None if due is None else moment_of(due, figures.report.at, clocks),
                url=contacts_url({"status": str(one.status), "reason": one.reason or ""}),
            )
        )
    return rows


def _event(entry: AuditEntry, figures: Figures, clocks: Clocks) -> EventView:
    action = entry.action.partition(".")[2]
    what = words.DONE.get(action, action.replace("_", " ").capitalize())
    detail = detail_of(action, entry.detail or "")
    return EventView(
        at=moment_of(entry.at, figures.report.at, clocks, seconds=True),
        what=words.visible(f"{what}: {detail}" if detail else what),
        who=figures.people[entry.actor],
    )


def detail_of(action: str, detail: str) -> str:
    """Return what an entry of the audit trail says besides, with words for names of fields and codes."""
    match action:
        case "update":
            fields = detail.split(", ")
            return ", ".join(sorted({words.CHANGED.get(one, one.replace("_", " ")) for one in fields}))
        case "pause" if detail == "operator":
            return ""
        case "pause":
            return words.pause_reason(detail) or detail
        case _:
            return detail
