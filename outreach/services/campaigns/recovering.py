"""Campaigns of a restored database: what was sent from the replaced one after the backup."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

from outreach.dispatch.adapter_answers import SafeAnalyser
from outreach.dispatch.worker import backoff_of
from outreach.errors import Conflict
from outreach.ledger.campaigns import recovering
from outreach.ledger.common import campaign_of, record_audit
from outreach.models.recovery import ContactedMeanwhile
from outreach.models.states import CampaignStatus
from outreach.protocols.voice import Analyser
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

_SLICE: Final = 200


class CampaignRecovery:
    """Takes over what a replaced database knows of a campaign."""

    def __init__(self, context: ServiceContext, analyser: Analyser) -> None:
        self._context = context
        self._analyser = SafeAnalyser(analyser, context.log_throttle)

    async def take_over(
        self,
        workspace_id: str,
        campaign_id: str,
        replaced: CampaignRecovery,
        *,
        seen: set[str] | None = None,
        dry_run: bool = False,
        actor: str = "library",
    ) -> ContactedMeanwhile:
        """Continue a paused campaign's contacts from their state in the database that this one was restored for.

        Contacts with requests there that are unknown here get these requests and that state, so that resuming the
        campaign repeats none; those who had opted out or were erased, or whom a person had left out, are left out here
        too. Opt-outs come onto the register here, unless the person has opted in since. Nothing is changed there, where
        nothing may be sent any more. A request without an outcome is unknown here too, and is looked up at its provider
        as every unknown one. It works in slices; a repetition finishes what a crash stopped.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            replaced: The same for the replaced database, from which nothing is sent.
            seen: Gets the ids of the requests there, ours and the provider's.
            dry_run: Only count.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: One of the databases has no such campaign.
            Conflict: The campaign is not paused, something is sent from the replaced database, or the ledger was
                moved to a ledger archive or erased in one of them.
        """
        now = self._context.now()
        await replaced._context.storage.read(lambda tx: _require_idle(tx, workspace_id, campaign_id, now))
        await self._context.storage.read(lambda tx: _require_paused(tx, workspace_id, campaign_id))
        found, after = ContactedMeanwhile(), -1
        while True:
            contacts = await replaced._context.storage.read(
                partial(
                    recovering.replaced_contacts,
                    workspace_id=workspace_id,
                    campaign_id=campaign_id,
                    after=after,
                    limit=_SLICE,
                )
            )
            if not contacts:
                break
            after = contacts[-1].recipient.position
            if seen is not None:
                requests = [request for one in contacts for request in one.dispatches]
                seen.update(name for one in requests for name in (one.id, one.provider_id) if name is not None)

            def compare(
                tx: Transaction, contacts: Sequence[recovering.ReplacedContact] = contacts
            ) -> ContactedMeanwhile:
                places = [(workspace_id, campaign_id, one.recipient.position) for one in contacts]
                tx.recipients.prefetch(places)
                tx.dispatches.prefetch_of_recipients(places)
                if dry_run:
                    return recovering.compare_slice(tx, workspace_id, contacts)
                _require_paused(tx, workspace_id, campaign_id)
                return recovering.take_over_slice(
                    tx,
                    workspace_id,
                    campaign_id,
                    contacts,
                    backoff=backoff_of(self._context.config),
                    analyser=self._analyser,
                    now=self._context.now(),
                    actor=actor,
                )

            storage = self._context.storage
            found += await (storage.read(compare) if dry_run else storage.write_in(workspace_id, compare, bulk=True))
        if not dry_run:
            await self._context.storage.write_in(
                workspace_id, partial(self._finish, workspace_id, campaign_id, found, actor)
            )
        return found

    def _finish(
        self, workspace_id: str, campaign_id: str, found: ContactedMeanwhile, actor: str, tx: Transaction
    ) -> None:
        detail = f"{found.contacts} contacts, {found.left_out} left out"
        record_audit(
            tx, workspace_id, "campaign.take_over", campaign_id, actor=actor, now=self._context.now(), detail=detail
        )


def _require_ledger(tx: Transaction, workspace_id: str, campaign_id: str) -> None:
    campaign = campaign_of(tx, workspace_id, campaign_id)
    place = tx.archives.of_campaign(workspace_id, campaign_id)
    if campaign.erased_at is not None or (place is not None and place.is_read_there):
        raise Conflict(
            "The contacts of this campaign are erased or in a ledger archive: nothing of it can be compared."
        )


def _require_idle(tx: Transaction, workspace_id: str, campaign_id: str, now: datetime) -> None:
    _require_ledger(tx, workspace_id, campaign_id)
    if any(worker.until > now for worker in tx.workers.list()):
        raise Conflict(
            "A process sends from the replaced database, or has stopped a moment ago. Make sure that it is gone, and "
            "try again in a minute."
        )


def _require_paused(tx: Transaction, workspace_id: str, campaign_id: str) -> None:
    campaign = campaign_of(tx, workspace_id, campaign_id)
    if campaign.status is not CampaignStatus.PAUSED:
        raise Conflict(f"The campaign is {campaign.status}. Pause it first: nothing may be sent while it is compared.")
    _require_ledger(tx, workspace_id, campaign_id)
