"""The options that leave contacts out of a new campaign, and the overlaps of its list with other campaigns."""

from __future__ import annotations

from typing import Final

import click

from outreach.http import document_of
from outreach.models import AudienceCounts, LeaveOut
from outreach_server.cli.documents import Document
from outreach_server.cli.output import cell, note, plural
from outreach_server.cli.values import CAMPAIGN, integer_of

LEAVE_OUT_OPTIONS: Final = (
    click.option(
        "--leave-out-campaign",
        "left_out_campaigns",
        type=CAMPAIGN,
        multiple=True,
        help="Leave out the contacts of this campaign, in whatever state; may be repeated.",
    ),
    click.option(
        "--leave-out-days",
        "left_out_days",
        type=integer_of(LeaveOut, "contacted_within_days"),
        help="Leave out who was contacted in the workspace within so many days, as the frequency cap counts.",
    ),
)


def audience_document(counts: AudienceCounts | None) -> Document:
    """Return the counts under their key."""
    return {"audience": None if counts is None else document_of(counts)}


def show_audience(counts: AudienceCounts | None, days: int | None) -> None:
    """Show people how many of the list are in which other campaigns."""
    if counts is None:
        return
    for one in counts.campaigns:
        if one.people:
            are = "is" if one.people == 1 else "are"
            out = ", left out" if one.left_out else ""
            note(f"{one.people:,} of these {are} in {cell(one.name)!r} ({one.campaign_id}){out}.")
    if counts.contacted:
        were = "was" if counts.contacted == 1 else "were"
        note(f"{counts.contacted:,} of these {were} contacted within {plural(days or 0, 'day')}, left out.")
