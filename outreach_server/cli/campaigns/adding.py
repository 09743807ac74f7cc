"""`campaigns add`: adds the contacts of spreadsheets or CSV files to a campaign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, BinaryIO

import attrs
import click

from outreach import Campaign, Outreach
from outreach.http import document_of
from outreach.models import LeaveOut, RecipientsAdded
from outreach_server.cli.base import Command, actor, state, with_campaign
from outreach_server.cli.campaigns.audience import LEAVE_OUT_OPTIONS, show_audience
from outreach_server.cli.campaigns.importing import FILE_OPTIONS, ListFiles, opened_files
from outreach_server.cli.lists.import_report import show_warnings
from outreach_server.cli.output import console, echo_json_with, fields
from outreach_server.cli.values import CAMPAIGN, options


@click.command("add", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.argument("files", metavar="FILE...", type=click.File("rb"), nargs=-1, required=True)
@options(*LEAVE_OUT_OPTIONS)
@options(*FILE_OPTIONS)
def add_(
    campaign_id: str,
    files: Sequence[BinaryIO],
    left_out_campaigns: Sequence[str],
    left_out_days: int | None,
    **given: Any,
) -> None:
    """Add the contacts of XLSX or CSV files to a campaign that has not ended.

    A running campaign contacts them as its others. The files are read as campaigns import reads them. A number that the
    campaign has already is not contacted again.
    """
    leave_out = LeaveOut(campaigns=left_out_campaigns, contacted_within_days=left_out_days)
    with opened_files(files, **given) as opened:
        show = with_campaign(campaign_id, _Addition(leave_out=leave_out, **opened).add)
        show()


@attrs.frozen(kw_only=True)
class _Addition(ListFiles):
    """An addition of the contacts of files."""

    leave_out: LeaveOut

    async def add(self, engine: Outreach, campaign: Campaign) -> Callable[[], None]:
        """Add the contacts, and return what shows how many they are."""
        workspace = await engine.workspaces.get(campaign.workspace_id)
        stream = await self.begin(engine, workspace, campaign)
        self._show_columns()
        added = await engine.campaigns.add_recipients(
            campaign.workspace_id, campaign.id, stream, leave_out=self.leave_out, actor=actor()
        )
        return partial(self._show_added, campaign, added)

    def _show_added(self, campaign: Campaign, added: RecipientsAdded) -> None:
        rejects, sms = self.rejects, campaign.channel == "sms"
        if state().as_json:
            echo_json_with(self._document(document_of(added), sms=sms), "rejected", rejects.items())
            return
        show_warnings(self._warnings(sms=sms))
        document = {
            "campaign": campaign.name,
            "rows": self._rows,
            "added": added.added,
            "of them skipped, duplicates for example": added.skipped,
            "left out, opted out": added.opted_out_excluded,
            "rejected": rejects.count,
        }
        if added.audience is not None and added.audience.left_out:
            document["left out, in other campaigns or contacted"] = added.audience.left_out
        console().print(fields(document))
        self._show_rows()
        show_audience(added.audience, self.leave_out.contacted_within_days)
