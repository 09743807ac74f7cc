"""The last run of a campaign: one of the same name, or the one that it is a copy of, beside the new one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import attrs

from outreach import Campaign
from outreach.models import Preflight
from outreach_server.console.context import Visit

_COPY: Final = re.compile(r"( \((copy|follow-up)\))+$")
_LOOKED_AT: Final = 20
_MINUS: Final = "\N{MINUS SIGN}"


@attrs.frozen(kw_only=True)
class ComparedRow:
    """A figure then and now."""

    name: str
    then: str
    now: str
    difference: str


@attrs.frozen(kw_only=True)
class LastRunView:
    """The last run.

    Attributes:
        state: What is said of one that has not ended.
        text: What is said of the text; empty for calls.
    """

    name: str
    url: str
    when: str
    state: str
    text: str
    rows: Sequence[ComparedRow]


async def last_run_of(visit: Visit, campaign: Campaign, found: Preflight) -> LastRunView | None:
    """Return what differs from the last run; None if there was none."""
    before = await _before(visit, campaign)
    if before is None or before.started_at is None:
        return None
    report = await visit.engine.campaigns.report(visit.place.id, before.id)
    rows = [
        _row("Contacts", report.contacts, found.contacts),
        _row("Contacted", report.contacted, found.contacted),
    ]
    if report.messages is not None:
        rows.append(_row("Segments", report.messages.segments, found.segments))
    if report.cost is not None and found.cost is not None and report.cost.currency == found.cost.currency:
        more = found.cost.amount - report.cost.amount
        now = attrs.evolve(found.cost, amount=abs(more))
        rows.append(
            ComparedRow(
                name=f"Cost in {found.cost.currency}",
                then=report.cost.amount_text,
                now=found.cost.amount_text,
                difference=f"{_MINUS if more < 0 else '+'}{now.amount_text}" if more else "the same",
            )
        )
    clocks = visit.clocks(campaign.timezone)
    same = (before.body, before.flow_id) == (campaign.body, campaign.flow_id)
    return LastRunView(
        name=before.name,
        url=visit.url("campaign", campaign=before.id),
        when=f"{clocks.moment(before.started_at, visit.now)} ({clocks.name})",
        state="" if before.is_terminal else f"It is still {before.status}.",
        text="" if campaign.channel == "call" else f"The text is {'the same' if same else 'another one'}.",
        rows=rows,
    )


async def _before(visit: Visit, campaign: Campaign) -> Campaign | None:
    name = _bare(campaign.name)
    page = await visit.engine.campaigns.list(
        visit.place.id, search=name, channel=campaign.channel, archived=None, limit=_LOOKED_AT
    )
    runs = [one for one in page.items if one.id != campaign.id and one.started_at and _bare(one.name) == name]
    return max(runs, key=lambda one: one.started_at or one.created_at, default=None)


def _bare(name: str) -> str:
    """Return a name without what copies have behind it."""
    return _COPY.sub("", name)


def _row(name: str, then: int, now: int) -> ComparedRow:
    difference = f"{now - then:+,}".replace("-", _MINUS) if now != then else "the same"
    return ComparedRow(name=name, then=f"{then:,}", now=f"{now:,}", difference=difference)
