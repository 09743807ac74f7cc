"""Adding contacts to campaigns that exist."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial

import anyio
import attrs
import orjson

from outreach.errors import InvalidRequest
from outreach.ledger.campaigns import adding
from outreach.ledger.campaigns import recipients as loading
from outreach.ledger.common import campaign_unit, workspace_of
from outreach.models.audience import AudienceCounts, LeaveOut
from outreach.models.campaign import Campaign, Counters, PreparedRecipient, RecipientsAdded
from outreach.models.states import CampaignStatus
from outreach.models.work import IdempotencyKey
from outreach.models.workspace import require_sms
from outreach.serialization.documents import from_json, to_json
from outreach.services.campaigns.audience import Audience, default_region_of
from outreach.services.campaigns.contacts import HashedContacts, RecipientSource, VariableNameCollector
from outreach.services.campaigns.loading import CampaignCreation
from outreach.services.context import ServiceContext
from outreach.services.idempotency import Idempotency, IdempotencyGuard, finished
from outreach.storage.unit_of_work import Transaction


class CampaignAdditions:
    """Adds contacts to campaigns: all of a list, or nothing."""

    def __init__(self, context: ServiceContext, creation: CampaignCreation) -> None:
        self._context = context
        self._creation = creation
        self._keys = Idempotency(context)

    async def add_recipients(
        self,
        workspace_id: str,
        campaign_id: str,
        recipients: RecipientSource,
        *,
        leave_out: LeaveOut | None = None,
        idempotency_key: IdempotencyKey[RecipientsAdded] = None,
        actor: str = "library",
    ) -> RecipientsAdded:
        """Add contacts to a campaign that has not ended; a running one contacts them as its others.

        The checks and counters are those of a creation. A number that the campaign has already, in any spelling, is
        added as `skipped: duplicate`. A long list is loaded out of sight first, so that an error adds nobody; then it
        joins the campaign in slices, and if the process dies meanwhile, a dispatcher goes on.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            recipients: At least one `NewRecipient`, or mapping with its fields; streamed, so the number is unlimited.
            leave_out: Which contacts of other campaigns to leave out, and people contacted lately; also counts
                them (`RecipientsAdded.audience`).
            idempotency_key: A name for this addition, such as `sign-up-42`: for a day, the same key with the same
                contacts in the same order only returns its result.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign.
            Conflict: The campaign has ended.
            SmsCampaignsDisabled: The workspace does not have SMS campaigns enabled.
            InvalidRequest: A rule is broken, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        audience = self._creation.audience(workspace_id, leave_out, campaign_id)
        contacts = HashedContacts(recipients)
        loads: list[str] = []

        def remember(added: RecipientsAdded) -> bytes:
            return orjson.dumps({"added": to_json(added), "contacts": contacts.digest, "load": "".join(loads)})

        async def recall(stored: bytes) -> RecipientsAdded:
            found = orjson.loads(stored)
            if await contacts.read_all() != found["contacts"]:
                raise InvalidRequest.at("idempotency_key", "was used before with other contacts; use a new key")
            if found["load"]:
                await self._move_all(workspace_id, campaign_id, found["load"])
            return from_json(RecipientsAdded, found["added"])

        # A request is compared by its own digest.
        source = contacts.each() if isinstance(idempotency_key, str) else recipients
        return await self._keys.once(
            workspace_id,
            "campaigns.add_recipients",
            idempotency_key,
            content=[campaign_id, leave_out],
            make=partial(self._add, workspace_id, campaign_id, source, audience, loads, actor),
            remember=remember,
            recall=recall,
        )

    async def _add(
        self,
        workspace_id: str,
        campaign_id: str,
        recipients: RecipientSource,
        audience: Audience | None,
        loads: list[str],
        actor: str,
        once: IdempotencyGuard[RecipientsAdded],
    ) -> RecipientsAdded:
        context = self._context
        context.loop_guard.require()
        # Nothing is read for a campaign that takes no contacts.
        await context.storage.read(lambda tx: self._campaign(tx, workspace_id, campaign_id))
        region = partial(default_region_of, context, workspace_id)
        async with self._creation.reading(recipients, audience, region) as (first, rest):
            # Only the last chunk is not full.
            if len(first) < context.config.insert_batch_size:
                return await self._add_at_once(workspace_id, campaign_id, first, audience, once, actor)
            return await self._add_in_chunks(workspace_id, campaign_id, first, rest, audience, loads, once, actor)

    async def _add_at_once(
        self,
        workspace_id: str,
        campaign_id: str,
        contacts: Sequence[PreparedRecipient],
        audience: Audience | None,
        once: IdempotencyGuard[RecipientsAdded],
        actor: str,
    ) -> RecipientsAdded:
        variables = VariableNameCollector()
        variables.see(contacts)
        if not contacts and (audience is None or not audience.leaves_out):
            raise InvalidRequest.at("recipients", "must have at least 1 element")

        def add(tx: Transaction) -> tuple[Campaign, RecipientsAdded]:
            campaign, now = self._campaign(tx, workspace_id, campaign_id), self._context.now()
            loaded = adding.add_chunk(tx, campaign, contacts, now=now)
            adding.note_added(tx, campaign, variables.names(), added=loaded.counters.total, now=now, actor=actor)
            added = _result(campaign_id, loaded.counters, loaded.excluded, audience)
            return campaign, finished(tx, added, once)

        self._creation.check_not_closing()
        campaign, added = await self._context.storage.write_in(workspace_id, add)
        self._wake(campaign)
        return added

    async def _add_in_chunks(
        self,
        workspace_id: str,
        campaign_id: str,
        first: Sequence[PreparedRecipient],
        rest: AsyncIterator[Sequence[PreparedRecipient]],
        audience: Audience | None,
        loads: list[str],
        once: IdempotencyGuard[RecipientsAdded],
        actor: str,
    ) -> RecipientsAdded:
        """Load contacts into a hidden campaign; in its last transaction they become the campaign's."""
        context, creation = self._context, self._creation
        begun = context.now()

        def begin(tx: Transaction) -> Campaign:
            hidden = attrs.evolve(
                self._campaign(tx, workspace_id, campaign_id),
                id=context.ids(),
                status=CampaignStatus.DRAFT,
                pause_reason=None,
                counters=Counters(),
                agent=None,
            )
            loading.begin_loading(tx, hidden, now=begun)
            return hidden

        def known(tx: Transaction, chunk: Sequence[PreparedRecipient]) -> Collection[str]:
            campaign = self._campaign(tx, workspace_id, campaign_id)
            return adding.known_in(tx, campaign, {one.phone for one in chunk if one.phone is not None})

        def stage(tx: Transaction) -> RecipientsAdded:
            campaign, now = self._campaign(tx, workspace_id, campaign_id), context.now()
            counters = adding.stage(tx, hidden, campaign, loaded=loaded, since=begun, now=now)
            adding.note_added(tx, campaign, variables.names(), added=counters.total, now=now, actor=actor)
            dropped = (loaded - counters).total
            return finished(tx, _result(campaign_id, counters, excluded + dropped, audience), once)

        hidden = await context.storage.write_in(workspace_id, begin)
        loads.append(hidden.id)
        try:
            variables = VariableNameCollector()
            loaded, excluded = await creation.load(hidden, first, rest, once, variables, known)
            added = await context.storage.write_in(workspace_id, stage)
        except BaseException:
            # Also on cancellation: either all of the contacts become the campaign's, or none.
            with anyio.CancelScope(shield=True):
                await self._discard(workspace_id, hidden.id)
            raise
        await self._move_all(workspace_id, campaign_id, hidden.id)
        return added

    async def _discard(self, workspace_id: str, loading_id: str) -> None:
        """Delete what was loaded, unless the transaction that hands it over was committed all the same."""
        staged = await self._context.storage.read(lambda tx: tx.campaigns.addition_target(workspace_id, loading_id))
        if staged is None:
            await self._creation.discard(workspace_id, loading_id)

    async def _move_all(self, workspace_id: str, campaign_id: str, loading_id: str) -> None:
        """Move the loaded contacts to their campaign; what is left when the engine closes, a dispatcher moves later."""
        context = self._context
        limit = context.config.insert_batch_size

        def move(tx: Transaction) -> tuple[bool, Campaign | None]:
            done = adding.clear_loading(tx, workspace_id, loading_id, now=context.now(), limit=limit)
            return done, tx.campaigns.get(workspace_id, campaign_id)

        done = False
        while not done and not self._creation.is_closing:
            done, campaign = await context.storage.write_in(workspace_id, move, bulk=True)
            if campaign is not None:
                self._wake(campaign)

    def _campaign(self, tx: Transaction, workspace_id: str, campaign_id: str) -> Campaign:
        campaign = adding.growing_campaign(tx, workspace_id, campaign_id, now=self._context.now())
        if campaign.channel == "sms":
            require_sms(workspace_of(tx, workspace_id).sms_campaigns_enabled)
        return campaign

    def _wake(self, campaign: Campaign) -> None:
        self._context.wake(campaign_unit(campaign))


def _result(campaign_id: str, counters: Counters, excluded: int, audience: Audience | None) -> RecipientsAdded:
    counts: AudienceCounts | None = audience.counted() if audience is not None else None
    return RecipientsAdded(
        campaign_id=campaign_id,
        added=counters.total,
        skipped=counters.total - counters.open,
        opted_out_excluded=excluded,
        audience=counts,
    )
