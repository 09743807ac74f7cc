"""The results of campaigns: reports, and exports with one row a contact, streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Final, get_args

from outreach.ledger.campaigns.reporting import event_window, report_of
from outreach.ledger.common import campaign_of, record_audit
from outreach.models.campaign import Campaign, Recipient
from outreach.models.campaign_report import CampaignReport, ExportedContact, ExportedReply, ExportFormat
from outreach.models.fields import OneOf, check_value
from outreach.models.states import RecipientStatus
from outreach.protocols.storage import Within
from outreach.rules.explanations import describe_reason
from outreach.serialization.exports import export_bytes
from outreach.services.context import ServiceContext
from outreach.services.messaging.failures import last_failure
from outreach.storage.unit_of_work import Transaction

_BATCH: Final = 500

_BATCH_OF_CALLS: Final = 100
"""Contacts whose calls are read at once: transcripts may be long."""


class CampaignExports:
    """The contacts of campaigns, with all that happened to them."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def iter_export(self, workspace_id: str, campaign_id: str) -> AsyncIterator[ExportedContact]:
        """Iterate over a campaign's contacts by position, each with its requests, calls and replies.

        They are read in batches: while a campaign runs, later ones may be further than earlier ones.

        Raises:
            NotFound: The workspace has no such campaign.
            ArchiveUnavailable: Its contacts are in an archive that cannot be read.
        """
        now = self._context.now()
        after = -1
        while True:

            def operation(tx: Transaction, after: int = after) -> tuple[Sequence[ExportedContact], int | None]:
                campaign = campaign_of(tx, workspace_id, campaign_id)
                limit = _BATCH if campaign.channel == "sms" else _BATCH_OF_CALLS
                rows = tx.recipients.page(workspace_id, campaign.id, after=after, limit=limit)
                return _exported(tx, campaign, rows, now), rows[-1].position if len(rows) == limit else None

            batch, last = await self._context.storage.read_ledger(workspace_id, campaign_id, operation)
            for contact in batch:
                yield contact
            if last is None:
                return
            after = last

    async def export(
        self, workspace_id: str, campaign_id: str, kind: ExportFormat, *, actor: str = "library"
    ) -> AsyncIterator[bytes]:
        """Iterate over a campaign's contacts as the parts of a file; see `iter_export`.

        Before the first part the audit trail notes who took how many contacts out.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            kind: `csv` (UTF-8 with a byte order mark), `jsonl` (a JSON object a line) or `xlsx`.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: The format is unknown.
            ConfigError: A library for XLSX is not installed.
        """
        check_value("kind", kind, OneOf(get_args(ExportFormat)))
        now = self._context.now()

        def begin(tx: Transaction) -> Campaign:
            found = campaign_of(tx, workspace_id, campaign_id)
            record_audit(
                tx,
                now=now,
                workspace_id=workspace_id,
                actor=actor,
                action="campaign.export",
                subject=campaign_id,
                detail=f"{kind}, rows: {found.counters.total}",
            )
            return found

        campaign = await self._context.storage.write(Within([workspace_id], begin))
        contacts = self.iter_export(workspace_id, campaign_id)
        parts = export_bytes(
            contacts, kind, channel=campaign.channel, variables=campaign.variable_names, zone=campaign.timezone
        )
        # A reader that stops early leaves no open file behind.
        async with aclosing(parts):
            async for part in parts:
                yield part


def _exported(
    tx: Transaction, campaign: Campaign, rows: Sequence[Recipient], now: datetime
) -> Sequence[ExportedContact]:
    workspace_id, campaign_id = campaign.workspace_id, campaign.id
    tried = [row for row in rows if row.dispatched or row.tries or row.attempts]
    tx.dispatches.prefetch_of_recipients((workspace_id, campaign_id, row.position) for row in tried)
    dispatches = {row.position: tx.dispatches.of_recipient(workspace_id, campaign_id, row.position) for row in tried}
    call_ids = {
        position: list(dict.fromkeys(one.call_id for one in found if one.call_id is not None))
        for position, found in dispatches.items()
    }
    tx.calls.prefetch((workspace_id, call_id) for found in call_ids.values() for call_id in found)
    transcripts = tx.calls.transcripts(workspace_id, [one for found in call_ids.values() for one in found])
    phones = {row.phone for row in tried if row.phone is not None}
    replies: Mapping[str, Sequence[tuple[datetime, str]]] = {}
    opt_outs: Mapping[str, datetime] = {}
    window = event_window(tx, campaign, now) if phones else None
    if window is not None:
        replies = tx.reports.replies_of(workspace_id, campaign_id, phones, *window)
        opt_outs = tx.reports.opt_outs_of(workspace_id, campaign_id, phones, *window)
    exported = []
    for row in rows:
        found = dispatches.get(row.position, ())
        calls = [call for one in call_ids.get(row.position, ()) if (call := tx.calls.get(workspace_id, one))]
        failure = None
        if found and row.status is not RecipientStatus.COMPLETED:
            failure = last_failure(found, calls[-1] if calls else None)
        # A number that is there twice was contacted at one position.
        phone = row.phone if found else None
        exported.append(
            ExportedContact(
                recipient=row,
                meaning=describe_reason(
                    row.status,
                    row.reason,
                    campaign.channel,
                    report=found[-1].report if found else None,
                    campaign=campaign.status,
                ),
                failure=failure,
                dispatches=found,
                calls=calls,
                replies=[ExportedReply(received_at=at, body=body) for at, body in replies.get(phone or "", ())],
                opted_out_at=opt_outs.get(phone or ""),
                transcripts={one.id: transcripts[one.id] for one in calls if one.id in transcripts},
            )
        )
    return exported


class CampaignReports:
    """The reports of campaigns."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def report(self, workspace_id: str, campaign_id: str) -> CampaignReport:
        """Return what became of a campaign's contacts, and what was sent for it, from one snapshot of the ledger.

        It reads every request of the campaign once: a million take half a second of computing, and with prices by
        country a second. A campaign that is erased or in a ledger archive has the report from before.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        now = self._context.now()
        return await self._context.storage.read(
            lambda tx: report_of(tx, campaign_of(tx, workspace_id, campaign_id), now)
        )
