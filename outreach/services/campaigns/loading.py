"""Creating campaigns together with their contacts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from copy import deepcopy
from datetime import datetime
from functools import partial
from typing import Any

import anyio
import attrs
import orjson

from outreach.errors import InvalidRequest, NotFound, StorageError
from outreach.ledger.campaigns import recipients as loading
from outreach.ledger.campaigns.recipients import SeenNumbers
from outreach.ledger.campaigns.transitions import find_text_warnings, missing_setup, setup_status, unknown_placeholders
from outreach.ledger.common import campaign_of, workspace_of
from outreach.models.audience import AudienceCounts, LeaveOut
from outreach.models.campaign import (
    Campaign,
    CampaignCreated,
    Counters,
    NewCallCampaign,
    NewSmsCampaign,
    PreparedRecipient,
)
from outreach.models.settings import DEFAULT_CONCURRENCY, HolidayCalendar
from outreach.models.states import CampaignStatus
from outreach.models.work import IdempotencyKey, LastingKey
from outreach.models.workspace import require_sms
from outreach.rules.holidays import extend_calendar
from outreach.rules.segments import composed, composed_or_none
from outreach.serialization.documents import from_json, to_json
from outreach.services.campaigns.audience import Audience
from outreach.services.campaigns.contacts import HashedContacts, RecipientSource, VariableNameCollector, chunks
from outreach.services.context import ServiceContext, check_kind, check_provider, run_concurrently
from outreach.services.idempotency import Idempotency, IdempotencyGuard, finished
from outreach.storage.base.slices import SliceSize
from outreach.storage.unit_of_work import Transaction


@attrs.frozen
class _NewCampaign:
    """What is to be created, but for the contacts.

    Attributes:
        draft: Returns the campaign; it checks what the campaign refers to.
        audience: Leaves contacts out; None for nobody.
        actor: Recorded in the audit trail.
    """

    workspace_id: str
    draft: Callable[[Transaction], Campaign]
    audience: Audience | None
    actor: str


class CampaignCreation:
    """Creates campaigns: all of a campaign and its contacts, or nothing."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Idempotency(context)
        self._slice = SliceSize(context.clock, most=context.config.insert_batch_size, largest_alone=True)
        self._running = 0
        self._closing = False
        self._idle = anyio.Event()
        self._reading: set[anyio.CancelScope] = set()

    def open(self) -> None:
        """Allow campaigns to be loaded."""
        self._closing = False

    def stop(self) -> None:
        """Stop loading campaigns, also while a source of contacts is slow to return the next one."""
        self._closing = True
        for scope in self._reading:
            scope.cancel()

    async def close(self, *, grace_seconds: float) -> None:
        """Stop loading campaigns; wait up to the grace for the deletion of incomplete ones."""
        self.stop()
        with anyio.move_on_after(grace_seconds):
            while self._running:
                self._idle = anyio.Event()
                await self._idle.wait()

    async def create_sms(
        self,
        workspace_id: str,
        campaign: NewSmsCampaign,
        recipients: RecipientSource,
        *,
        leave_out: LeaveOut | None = None,
        idempotency_key: IdempotencyKey[CampaignCreated] = None,
        actor: str = "library",
    ) -> CampaignCreated:
        """Create an SMS campaign with its contacts (docs/interface.md#4.3), without starting it.

        Args:
            workspace_id: The workspace.
            campaign: Everything but the contacts.
            recipients: At least one `NewRecipient`, or mapping with its fields; streamed, so the number is unlimited.
            leave_out: Which contacts of other campaigns to leave out, and people contacted lately; also counts
                them (`CampaignCreated.audience`). `count_audience` counts before the creation.
            idempotency_key: A name for this campaign, such as `order-42`: for a day, the same key with the same
                contacts in the same order returns this campaign instead of a new one.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            SmsCampaignsDisabled: The workspace does not have SMS campaigns enabled.
            InvalidRequest: A rule is broken, the flow does not exist, every contact is opted out or left out, or the
                key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        return await self._keyed(NewSmsCampaign, workspace_id, campaign, recipients, leave_out, idempotency_key, actor)

    def audience(self, workspace_id: str, leave_out: LeaveOut | None, source_id: str | None = None) -> Audience | None:
        """Return what leaves contacts of a list out, which may be those of another campaign; None for nobody."""
        return None if leave_out is None else Audience(self._context, workspace_id, leave_out, source_id=source_id)

    def draft_of(
        self, workspace_id: str, campaign: NewSmsCampaign | NewCallCampaign
    ) -> Callable[[Transaction], Campaign]:
        """Return what makes a draft of a campaign, having checked its carrier; it checks what the draft refers to."""
        if isinstance(campaign, NewCallCampaign):
            return partial(self._call_draft, workspace_id, campaign)
        check_kind("campaign", campaign, NewSmsCampaign)
        if campaign.carrier is not None:
            check_provider("carrier", campaign.carrier, "carrier", self._context.adapters)
        return partial(self._sms_draft, workspace_id, campaign)

    async def create_call(
        self,
        workspace_id: str,
        campaign: NewCallCampaign,
        recipients: RecipientSource,
        *,
        leave_out: LeaveOut | None = None,
        idempotency_key: IdempotencyKey[CampaignCreated] = None,
        actor: str = "library",
    ) -> CampaignCreated:
        """Create a calling campaign with its contacts; see `create_sms` for the arguments.

        Raises:
            NotFound: The workspace, agent or trunk does not exist.
            InvalidRequest: A rule is broken, every contact is opted out or left out, or the key was used with other
                content.
            RequestInProgress: The first call with this key is still running.
        """
        return await self._keyed(NewCallCampaign, workspace_id, campaign, recipients, leave_out, idempotency_key, actor)

    async def _keyed(
        self,
        kind: type[NewSmsCampaign | NewCallCampaign],
        workspace_id: str,
        campaign: NewSmsCampaign | NewCallCampaign,
        recipients: RecipientSource,
        leave_out: LeaveOut | None,
        idempotency_key: IdempotencyKey[CampaignCreated],
        actor: str,
    ) -> CampaignCreated:
        audience = self.audience(workspace_id, leave_out)
        check_kind("campaign", campaign, kind)
        new = _NewCampaign(workspace_id, self.draft_of(workspace_id, campaign), audience, actor)
        contacts = HashedContacts(recipients)

        def remember(created: CampaignCreated) -> bytes:
            return stored_campaign(created, contacts=contacts.digest)

        async def recall(stored: bytes) -> CampaignCreated:
            created, more = await self.recall(workspace_id, stored)
            if await contacts.read_all() != more["contacts"]:
                raise InvalidRequest.at("idempotency_key", "was used before with other contacts; use a new key")
            return created

        # A request is compared by its own digest.
        source = contacts.each() if isinstance(idempotency_key, str | LastingKey) else recipients
        return await self._keys.once(
            workspace_id,
            "campaigns.create_call" if kind is NewCallCampaign else "campaigns.create_sms",
            idempotency_key,
            # What must be the same each time that the key is used.
            content=campaign if leave_out is None else [campaign, leave_out],
            make=partial(self._create, new, source),
            remember=remember,
            recall=recall,
        )

    async def recall(self, workspace_id: str, stored: bytes) -> tuple[CampaignCreated, Mapping[str, Any]]:
        """Return the campaign that a key replays, as it is now, and what was stored beside it."""
        more = orjson.loads(stored)
        created = await self._context.storage.read(
            lambda tx: created_campaign(tx, campaign_of(tx, workspace_id, more["id"]), more["excluded"])
        )
        # Keys of earlier versions have stored none.
        counts = more.get("audience")
        audience = None if counts is None else from_json(AudienceCounts, counts)
        return attrs.evolve(created, audience=audience), more

    async def create(
        self,
        workspace_id: str,
        campaign: NewSmsCampaign | NewCallCampaign,
        audience: Audience | None,
        actor: str,
        recipients: RecipientSource,
        once: IdempotencyGuard[CampaignCreated],
    ) -> CampaignCreated:
        """Create a campaign with its contacts, but for those whom the audience leaves out."""
        new = _NewCampaign(workspace_id, self.draft_of(workspace_id, campaign), audience, actor)
        return await self._create(new, recipients, once)

    async def _create(
        self, new: _NewCampaign, recipients: RecipientSource, once: IdempotencyGuard[CampaignCreated]
    ) -> CampaignCreated:
        context = self._context
        # First, because the rest belongs to the engine's loop.
        context.loop_guard.require()
        size = context.config.insert_batch_size

        def look(tx: Transaction) -> str | None:
            new.draft(tx)
            return workspace_of(tx, new.workspace_id).default_region

        async def region() -> str | None:
            return await context.storage.read(look)

        async with self.reading(recipients, new.audience, region) as (first, source):
            # Only the last chunk is not full.
            if len(first) < size:
                return await self._create_at_once(new, first, once)
            return await self._create_in_chunks(new, first, source, once)

    @asynccontextmanager
    async def reading(
        self, recipients: RecipientSource, audience: Audience | None, region: Callable[[], Awaitable[str | None]]
    ) -> AsyncIterator[tuple[Sequence[PreparedRecipient], AsyncIterator[Sequence[PreparedRecipient]]]]:
        """Provide the first chunk of contacts and the others; the closing of the engine waits for the end of this."""
        if audience is not None:
            recipients = audience.remaining(recipients, default_region=region)
        self._running += 1
        try:
            size = self._context.config.insert_batch_size
            async with aclosing(chunks(recipients, default_region=region, size=size)) as source:
                yield await self._next(source), source
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def _create_at_once(
        self, new: _NewCampaign, contacts: Sequence[PreparedRecipient], once: IdempotencyGuard[CampaignCreated]
    ) -> CampaignCreated:
        variables = VariableNameCollector()
        variables.see(contacts)

        def create(tx: Transaction) -> CampaignCreated:
            campaign, now = new.draft(tx), self._context.now()
            if not contacts:
                if new.audience is not None and new.audience.leaves_out:
                    raise new.audience.nobody_left()
                raise InvalidRequest.at("recipients", "must have at least 1 element")
            loading.begin_loading(tx, campaign, now=now)
            loaded = loading.load_chunk(tx, campaign, contacts, seen_numbers=None, position=0, now=now)
            return self._publish(tx, new, campaign, loaded.counters, loaded.excluded, variables, once)

        self.check_not_closing()
        return await self._context.storage.write_in(new.workspace_id, create)

    async def _create_in_chunks(
        self,
        new: _NewCampaign,
        first: Sequence[PreparedRecipient],
        rest: AsyncIterator[Sequence[PreparedRecipient]],
        once: IdempotencyGuard[CampaignCreated],
    ) -> CampaignCreated:
        """Write a campaign chunk by chunk; it becomes visible with the last transaction."""
        context = self._context

        def begin(tx: Transaction) -> Campaign:
            campaign = new.draft(tx)
            loading.begin_loading(tx, campaign, now=context.now())
            return campaign

        campaign = await context.storage.write_in(new.workspace_id, begin)
        try:
            variables = VariableNameCollector()
            loaded, excluded = await self.load(campaign, first, rest, once, variables)
            return await context.storage.write_in(
                new.workspace_id, lambda tx: self._publish(tx, new, campaign, loaded, excluded, variables, once)
            )
        except BaseException:
            # Also on cancellation, nothing of the campaign may stay.
            with anyio.CancelScope(shield=True):
                await self.discard(campaign.workspace_id, campaign.id)
            raise

    def _publish(
        self,
        tx: Transaction,
        new: _NewCampaign,
        campaign: Campaign,
        loaded: Counters,
        excluded: int,
        variables: VariableNameCollector,
        once: IdempotencyGuard[CampaignCreated],
    ) -> CampaignCreated:
        # No check sees that a loading campaign uses them, so they may have been removed meanwhile.
        if campaign.trunk_id is not None:
            tx.trunks.existing(campaign.workspace_id, campaign.trunk_id)
        if campaign.flow_id is not None and campaign.message_source == "flow":
            _require_flow(tx, campaign.workspace_id, campaign.flow_id)
        published, left_out = loading.publish_loaded(
            tx,
            # The agent may have changed since loading began.
            attrs.evolve(campaign, status=setup_status(tx, campaign), changed_by=new.actor),
            loaded=loaded,
            variable_names=variables.names(),
            excluded=excluded,
            since=campaign.created_at,
            now=self._context.now(),
            actor=new.actor,
        )
        counts = new.audience.counted() if new.audience is not None else None
        return finished(tx, attrs.evolve(created_campaign(tx, published, left_out), audience=counts), once)

    async def load(
        self,
        campaign: Campaign,
        first: Sequence[PreparedRecipient],
        rest: AsyncIterator[Sequence[PreparedRecipient]],
        once: IdempotencyGuard[Any],
        variables: VariableNameCollector,
        known: Callable[[Transaction, Sequence[PreparedRecipient]], Collection[str]] = lambda _, __: (),
    ) -> tuple[Counters, int]:
        """Write the contacts of a loading campaign; return what they count, and how many are on the register.

        `known` returns the numbers of a chunk that are duplicates besides.
        """
        context = self._context
        position = excluded = 0
        loaded = Counters()
        seen_numbers = SeenNumbers()
        chunk = first
        while chunk:
            self.check_not_closing()
            size = self._slice.rows()
            written, left = chunk[:size], chunk[size:]

            def write(
                tx: Transaction, chunk: Sequence[PreparedRecipient] = written, position: int = position
            ) -> loading.ChunkResult:
                once.keep(tx)
                return loading.load_chunk(
                    tx,
                    campaign,
                    chunk,
                    seen_numbers=seen_numbers,
                    position=position,
                    now=context.now(),
                    known=known(tx, chunk),
                )

            async def go_on(
                chunk: Sequence[PreparedRecipient] = written, left: Sequence[PreparedRecipient] = left
            ) -> Sequence[PreparedRecipient]:
                variables.see(chunk)
                return left or await self._next(rest)

            # The next chunk is read while the last of this one is written.
            operation = self._slice.measured(write, len(written))
            result, chunk = await run_concurrently(
                partial(context.storage.write_in, campaign.workspace_id, operation, bulk=True), go_on
            )
            seen_numbers.add(contact.phone for contact in written)
            position = result.next_position
            excluded += result.excluded
            loaded = loaded + result.counters
        return loaded, excluded

    async def _next(self, source: AsyncIterator[Sequence[PreparedRecipient]]) -> Sequence[PreparedRecipient]:
        """Return the next chunk, empty at the end.

        Raises:
            StorageError: The engine is being closed.
        """
        with anyio.CancelScope() as scope:
            self._reading.add(scope)
            try:
                async for chunk in source:
                    return chunk
                return ()
            finally:
                self._reading.discard(scope)
        raise _being_closed()

    @property
    def is_closing(self) -> bool:
        """Whether the engine is being closed."""
        return self._closing

    def check_not_closing(self) -> None:
        """Raise `StorageError` if the engine is being closed."""
        if self._closing:
            raise _being_closed()

    async def discard(self, workspace_id: str, campaign_id: str) -> None:
        """Delete the loaded part of an incomplete campaign in slices."""
        limit = self._context.config.insert_batch_size
        try:
            while not await self._context.storage.write_in(
                workspace_id, lambda tx: tx.campaigns.delete_loading(workspace_id, campaign_id, limit=limit), bulk=True
            ):
                pass
        except StorageError:
            # The caller needs the error that stopped the creation; a dispatcher deletes the rest later.
            self._context.log_throttle.problem(
                ("discard_failed",),
                "left",
                "could not delete the loaded part of campaign %s yet",
                campaign_id,
                action="discard_failed",
                campaign_id=campaign_id,
            )

    def _sms_draft(self, workspace_id: str, new: NewSmsCampaign, tx: Transaction) -> Campaign:
        require_sms(workspace_of(tx, workspace_id).sms_campaigns_enabled)
        if new.flow_id is not None:
            _require_flow(tx, workspace_id, new.flow_id)
        concurrency = new.business_hours.batch_concurrency if new.business_hours else DEFAULT_CONCURRENCY
        return self._draft(
            workspace_id,
            new,
            channel="sms",
            batch_concurrency=concurrency,
            **pool_fields(new.from_number, new.from_numbers),
            body=composed_or_none(new.body),
        )

    def _call_draft(self, workspace_id: str, new: NewCallCampaign, tx: Transaction) -> Campaign:
        workspace_of(tx, workspace_id)
        tx.agents.existing(workspace_id, new.agent_id)
        if new.trunk_id is not None:
            tx.trunks.existing(workspace_id, new.trunk_id)
        hours = new.business_hours
        concurrency = new.batch_concurrency or (hours.batch_concurrency if hours else DEFAULT_CONCURRENCY)
        # The hours have the same number (docs/interface.md#business-hours).
        hours = hours and attrs.evolve(hours, batch_concurrency=concurrency)
        return self._draft(
            workspace_id,
            new,
            channel="call",
            batch_concurrency=concurrency,
            business_hours=hours,
            cli_group=None if new.cli_group is None else tuple(new.cli_group),
        )

    def _draft(self, workspace_id: str, new: NewSmsCampaign | NewCallCampaign, **differing: Any) -> Campaign:
        """Return a campaign with the fields of a new one of the same names, except the differing ones."""
        now, stored = self._context.now(), attrs.fields_dict(Campaign).keys()
        fields = {name: value for name, value in attrs.asdict(new, recurse=False).items() if name in stored}
        fields |= {
            "scheduled_start_at": new.scheduled_start_at if new.schedule_type == "scheduled" else None,
            "scheduled_expires_at": new.scheduled_expires_at,
            "holidays": _filled(new.holidays, now),
            "metadata": deepcopy(new.metadata),
            "csv_column_headers": tuple(map(composed, new.csv_column_headers)),
        }
        return Campaign(
            id=self._context.ids(),
            workspace_id=workspace_id,
            status=CampaignStatus.DRAFT,
            created_at=now,
            updated_at=now,
            **fields | differing,
        )


def created_campaign(tx: Transaction, campaign: Campaign, excluded: int) -> CampaignCreated:
    """Return a new campaign with what was left out and what it lacks."""
    return CampaignCreated(
        campaign=campaign,
        opted_out_excluded=excluded,
        missing=missing_setup(tx, campaign),
        unknown_placeholders=unknown_placeholders(tx, campaign),
        text_warnings=find_text_warnings(tx, campaign),
    )


def stored_campaign(created: CampaignCreated, **more: Any) -> bytes:
    """Return what a program's key stores of a new campaign."""
    stored = {"id": created.campaign.id, "excluded": created.opted_out_excluded, **more}
    return orjson.dumps(stored | {"audience": to_json(created.audience)})


def _being_closed() -> StorageError:
    return StorageError("The engine is being closed; the campaign was not created, or got no contacts.")


def _require_flow(tx: Transaction, workspace_id: str, flow_id: str) -> None:
    try:
        tx.flows.existing(workspace_id, flow_id)
    except NotFound:
        raise InvalidRequest.at("flow_id", "the workspace has no such flow") from None


def pool_fields(from_number: str | None, from_numbers: Sequence[str]) -> Mapping[str, Any]:
    """Return the stored fields of a campaign's senders: a pool of one number is that number, a blank one is none."""
    pool = tuple(from_numbers) or ((from_number,) if from_number and from_number.strip() else ())
    return {"from_number": pool[0] if pool else None, "from_numbers": pool if len(pool) > 1 else ()}


def _filled(calendar: HolidayCalendar | None, now: datetime) -> HolidayCalendar | None:
    return None if calendar is None else extend_calendar(calendar, now.year)
