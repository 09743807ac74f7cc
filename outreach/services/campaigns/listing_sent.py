"""Campaigns of a restored database: what their provider says that it was sent after the backup."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, cast

import anyio
import attrs

from outreach.dispatch.worker import backoff_of
from outreach.errors import Conflict
from outreach.ledger.campaigns import listed as ledger
from outreach.ledger.common import campaign_of, provider_of, record_audit, workspace_of
from outreach.models.campaign import Campaign
from outreach.models.recovery import ListedContacts
from outreach.models.states import CampaignStatus
from outreach.models.workspace import Workspace
from outreach.protocols.carrier import Carrier, ListsSent
from outreach.protocols.sent_list import SentListFailed, SentQuery, SentRequest
from outreach.protocols.voice import VoiceProvider
from outreach.providers.http.request_gate import call_plugin
from outreach.providers.pool import ProviderPool
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

_SLICE: Final = 200
_LIST_SECONDS: Final = 900.0
"""How long a provider may take for the whole list."""

_Listed = Mapping[str, Sequence[SentRequest]]


class CampaignSentLists:
    """Marks the contacts of a restored campaign whom its provider lists as contacted.

    Args:
        context: What services share.
        pool_of: Finds the providers of a workspace.
    """

    def __init__(self, context: ServiceContext, pool_of: Callable[[Workspace], ProviderPool]) -> None:
        self._context = context
        self._pool_of = pool_of

    async def take_over_sent(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        known: Collection[str] = (),
        dry_run: bool = False,
        actor: str = "library",
    ) -> ListedContacts:
        """Continue a paused campaign's contacts as if the requests that its provider lists were made from here.

        Asked is for what was sent since the campaign's last request from before the restore. What this database has
        is left alone. A message is recognised by sender, number and text; an ambiguous one counts as sent.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            known: Ids of requests, ours or the provider's, that are left out: the replaced database has them.
            dry_run: Only count.
            actor: Recorded in the audit trail.

        Returns:
            Whom it concerns; no provider where it cannot list what it was sent.

        Raises:
            NotFound: The campaign does not exist.
            Conflict: The campaign is not paused, or the list could not be read to its end.
            ConfigError: There is no usable account of the provider.
        """
        now = self._context.now()

        def begin(tx: Transaction) -> tuple[Campaign, Workspace, str | None, SentQuery]:
            campaign = _paused(tx, workspace_id, campaign_id)
            query = SentQuery(
                workspace_id=workspace_id, from_number=None, since=ledger.sent_since(tx, campaign), until=now
            )
            return campaign, workspace_of(tx, workspace_id), provider_of(tx, campaign), query

        campaign, workspace, name, query = await self._context.storage.read(begin)
        listed = None if name is None else await self._list(workspace, campaign, name, query)
        if name is None or listed is None:
            return ListedContacts()
        found = await self._compare(campaign, name, ledger.by_person(listed), known, dry_run=dry_run, actor=actor)
        return attrs.evolve(found, provider=name)

    async def _list(
        self, workspace: Workspace, campaign: Campaign, name: str, query: SentQuery
    ) -> Sequence[SentRequest] | None:
        """Return what the provider lists of a campaign's senders; None if it cannot."""
        pool = self._pool_of(workspace)
        provider: Carrier | VoiceProvider = (
            await pool.carrier(workspace, name) if campaign.channel == "sms" else await pool.voice(workspace, name)
        )
        if not provider.capabilities.lists_sent:
            return None
        found: list[SentRequest] = []
        senders = campaign.senders if campaign.channel == "sms" else (None,)
        try:
            with anyio.fail_after(_LIST_SECONDS):
                for sender in senders:
                    of_sender = attrs.evolve(query, from_number=sender)
                    found += await call_plugin(cast("ListsSent", provider).list_sent(of_sender))
        except (SentListFailed, TimeoutError) as error:
            reason = error.reason if isinstance(error, SentListFailed) else f"it took {_LIST_SECONDS / 60:g} minutes"
            raise Conflict(
                f"{name} has not listed all that it was sent since the backup: {reason}. Try again, or leave the "
                "provider out: then contacts whom the other database does not know are contacted again."
            ) from error
        return found

    async def _compare(
        self,
        campaign: Campaign,
        provider: str,
        listed: _Listed,
        known: Collection[str],
        *,
        dry_run: bool,
        actor: str,
    ) -> ListedContacts:
        storage, found, after = self._context.storage, ListedContacts(), -1
        place = (campaign.workspace_id, campaign.id)
        while listed:

            def one_slice(tx: Transaction, after: int = after) -> tuple[int | None, ListedContacts]:
                current = _paused(tx, *place)
                recipients = tx.recipients.page(*place, after=after, limit=_SLICE)
                last = recipients[-1].position if recipients else None
                if dry_run:
                    return last, ledger.compare_listed(tx, current, recipients, listed, provider=provider, known=known)
                return last, ledger.mark_listed(
                    tx,
                    current,
                    recipients,
                    listed,
                    provider=provider,
                    known=known,
                    new_id=self._context.ids,
                    backoff=backoff_of(self._context.config),
                    now=self._context.now(),
                    actor=actor,
                )

            last, counts = await (
                storage.read(one_slice) if dry_run else storage.write_in(campaign.workspace_id, one_slice, bulk=True)
            )
            found += counts
            if last is None:
                break
            after = last
        if not dry_run:
            await storage.write_in(campaign.workspace_id, partial(self._finish, campaign, provider, found, actor))
        return found

    def _finish(self, campaign: Campaign, provider: str, found: ListedContacts, actor: str, tx: Transaction) -> None:
        now, place = self._context.now(), campaign.workspace_id
        detail = f"{found.contacts} contacts of the list of {provider}, {found.ambiguous} ambiguous"
        record_audit(tx, place, "campaign.take_over", campaign.id, actor=actor, now=now, detail=detail)


def _paused(tx: Transaction, workspace_id: str, campaign_id: str) -> Campaign:
    campaign = campaign_of(tx, workspace_id, campaign_id)
    if campaign.status is not CampaignStatus.PAUSED:
        raise Conflict(f"The campaign is {campaign.status}. Pause it first: nothing may be sent while it is compared.")
    return campaign
