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

from outreach.errors import InvalidRequest, NotFound, SmsCampaignsDisabled, StorageError
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
from outreach.models.workspace import Workspace
from outreach.rules.holidays import extend_calendar
from outreach.rules.segments import composed, composed_or_none
from outreach.serialization.documents import from_json, to_json
from outreach.services.campaigns.audience import Audience
from outreach.services.campaigns.contacts import HashedContacts, RecipientSource, VariableNameCollector, chunks
from outreach.services.context import ServiceContext, check_kind, check_provider, run_concurrently
from outreach.services.idempotency import Idempotency, IdempotencyGuard, finished
from outreach.storage.base.slices import SliceSize
from outreach.storage.unit_of_work import Transaction

Make = Callable[[RecipientSource, IdempotencyGuard[CampaignCreated]], Awaitable[CampaignCreated]]


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
            leave_out: Which contacts of other campaigns to leave out, and whom who was contacted lately; also counts
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
        make = self.make_sms(workspace_id, campaign, actor, self.audience(workspace_id, leave_out))
        operation, content = "campaigns.create_sms", _content(campaign, leave_out)
        return await self._keyed(workspace_id, operation, idempotency_key, content, recipients, make)

    def audience(self, workspace_id: str, leave_out: LeaveOut | None, source_id: str | None = None) -> Audience | None:
        """Return what leaves contacts of a list out, which may be those of another campaign; None for nobody."""
        return None if leave_out is None else Audience(self._context, workspace_id, leave_out, source_id=source_id)

    def make_sms(
        self, workspace_id: str, campaign: NewSmsCampaign, actor: str, audience: Audience | None = None
    ) -> Make:
        """Return what creates an SMS campaign from its contacts, having checked all but these."""
        check_kind("campaign", campaign, NewSmsCampaign)
        return partial(self._create, workspace_id, self.draft_of(workspace_id, campaign), actor, audience)

    def draft_of(
        self, workspace_id: str, campaign: NewSmsCampaign | NewCallCampaign
    ) -> Callable[[Transaction], Campaign]:
        """Return what makes a draft of a campaign, having checked its carrier; it checks what the draft refers to."""
        if isinstance(campaign, NewCallCampaign):
            return partial(self._new_call_draft, workspace_id, campaign)
        check_kind("campaign", campaign, NewSmsCampaign)
        if campaign.carrier is not None:
            check_provider("carrier", campaign.carrier, "carrier", self._context.adapters)
        return partial(self._new_sms_draft, workspace_id, campaign)

    def _new_sms_draft(self, workspace_id: str, campaign: NewSmsCampaign, tx: Transaction) -> Campaign:
        require_sms(workspace_of(tx, workspace_id))
        if campaign.flow_id is not None:
            _require_flow(tx, workspace_id, campaign.flow_id)
        return self._sms_draft(workspace_id, campaign, self._context.now())

    def _new_call_draft(self, workspace_id: str, campaign: NewCallCampaign, tx: Transaction) -> Campaign:
        workspace_of(tx, workspace_id)
        tx.agents.existing(workspace_id, campaign.agent_id)
        if campaign.trunk_id is not None:
            tx.trunks.existing(workspace_id, campaign.trunk_id)
        return self._call_draft(workspace_id, campaign, self._context.now())

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
        make = self.make_call(workspace_id, campaign, actor, self.audience(workspace_id, leave_out))
        operation, content = "campaigns.create_call", _content(campaign, leave_out)
        return await self._keyed(workspace_id, operation, idempotency_key, content, recipients, make)

    def make_call(
        self, workspace_id: str, campaign: NewCallCampaign, actor: str, audience: Audience | None = None
    ) -> Make:
        """Return what creates a calling campaign from its contacts, having checked all but these."""
        check_kind("campaign", campaign, NewCallCampaign)
        return partial(self._create, workspace_id, self.draft_of(workspace_id, campaign), actor, audience)

    async def _keyed(
        self,
        workspace_id: str,
        operation: str,
        idempotency_key: IdempotencyKey[CampaignCreated],
        content: object,
        recipients: RecipientSource,
        make: Make,
    ) -> CampaignCreated:
        contacts = HashedContacts(recipients)

        def remember(created: CampaignCreated) -> bytes:
            return stored_campaign(created, contacts=contacts.digest)

        async def recall(stored: bytes) -> CampaignCreated:
            created, more = await self.recall(workspace_id, stored)
            if await contacts.read_all() != more["contacts"]:
                raise InvalidRequest.at("idempotency_key", "was used before with other contacts; use a new key")
            return created

        return await self._keys.once(
            workspace_id,
            operation,
            idempotency_key,
            content=content,
            # A request is compared by its own digest.
            make=partial(make, contacts.each() if isinstance(idempotency_key, str | LastingKey) else recipients),
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

    async def _create(
        self,
        workspace_id: str,
        draft: Callable[[Transaction], Campaign],
        actor: str,
        audience: Audience | None,
        recipients: RecipientSource,
        once: IdempotencyGuard[CampaignCreated],
    ) -> CampaignCreated:
        context = self._context
        # First, because the rest belongs to the engine's loop.
        context.loop_guard.require()
        size = context.config.insert_batch_size

        def look(tx: Transaction) -> str | None:
            draft(tx)
            return workspace_of(tx, workspace_id).default_region

        async def region() -> str | None:
            return await context.storage.read(look)

        async with self.reading(recipients, audience, region) as (first, source):
            # Only the last chunk is not full.
            if len(first) < size:
                return await self._create_at_once(workspace_id, draft, first, audience, once, actor)
            return await self._create_in_chunks(workspace_id, draft, first, source, audience, once, actor)

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
        self,
        workspace_id: str,
        draft: Callable[[Transaction], Campaign],
        contacts: Sequence[PreparedRecipient],
        audience: Audience | None,
        once: IdempotencyGuard[CampaignCreated],
        actor: str,
    ) -> CampaignCreated:
        variables = VariableNameCollector()
        variables.see(contacts)

        def create(tx: Transaction) -> CampaignCreated:
            campaign, now = draft(tx), self._context.now()
            if not contacts:
                if audience is not None and audience.leaves_out:
                    raise audience.nobody_left()
                raise InvalidRequest.at("recipients", "must have at least 1 element")
            loading.begin_loading(tx, campaign, now=now)
            loaded = loading.load_chunk(tx, campaign, contacts, seen_numbers=None, position=0, now=now)
            return self._publish(tx, campaign, loaded.counters, loaded.excluded, variables, audience, once, actor)

        self.check_not_closing()
        return await self._context.storage.write_in(workspace_id, create)

    async def _create_in_chunks(
        self,
        workspace_id: str,
        draft: Callable[[Transaction], Campaign],
        first: Sequence[PreparedRecipient],
        rest: AsyncIterator[Sequence[PreparedRecipient]],
        audience: Audience | None,
        once: IdempotencyGuard[CampaignCreated],
        actor: str,
    ) -> CampaignCreated:
        """Write a campaign chunk by chunk; it becomes visible with the last transaction."""
        context = self._context

        def begin(tx: Transaction) -> Campaign:
            campaign = draft(tx)
            loading.begin_loading(tx, campaign, now=context.now())
            return campaign

        campaign = await context.storage.write_in(workspace_id, begin)
        try:
            variables = VariableNameCollector()
            loaded, excluded = await self.load(campaign, first, rest, once, variables)
            return await context.storage.write_in(
                workspace_id, lambda tx: self._publish(tx, campaign, loaded, excluded, variables, audience, once, actor)
            )
        except BaseException:
            # Also on cancellation, nothing of the campaign may stay.
            with anyio.CancelScope(shield=True):
                await self.discard(campaign.workspace_id, campaign.id)
            raise

    def _publish(
        self,
        tx: Transaction,
        campaign: Campaign,
        loaded: Counters,
        excluded: int,
        variables: VariableNameCollector,
        audience: Audience | None,
        once: IdempotencyGuard[CampaignCreated],
        actor: str,
    ) -> CampaignCreated:
        # No check sees that a loading campaign uses them, so they may have been removed meanwhile.
        if campaign.trunk_id is not None:
            tx.trunks.existing(campaign.workspace_id, campaign.trunk_id)
        if campaign.flow_id is not None and campaign.message_source == "flow":
            _require_flow(tx, campaign.workspace_id, campaign.flow_id)
        published, left_out = loading.publish_loaded(
            tx,
            # The agent may have changed since loading began.
            attrs.evolve(campaign, status=setup_status(tx, campaign), changed_by=actor),
            loaded=loaded,
            variable_names=variables.names(),
            excluded=excluded,
            since=campaign.created_at,
            now=self._context.now(),
            actor=actor,
        )
        counts = audience.counted() if audience is not None else None
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

    def _sms_draft(self, workspace_id: str, new: NewSmsCampaign, now: datetime) -> Campaign:
        concurrency = new.business_hours.batch_concurrency if new.business_hours else DEFAULT_CONCURRENCY
        return self._draft(
            workspace_id,
            new,
            now,
            channel="sms",
            batch_concurrency=concurrency,
            **pool_fields(new.from_number, new.from_numbers),
            body=composed_or_none(new.body),
        )

    def _call_draft(self, workspace_id: str, new: NewCallCampaign, now: datetime) -> Campaign:
        hours = new.business_hours
        concurrency = new.batch_concurrency or (hours.batch_concurrency if hours else DEFAULT_CONCURRENCY)
        # The hours have the same number (docs/interface.md#business-hours).
        hours = hours and attrs.evolve(hours, batch_concurrency=concurrency)
        return self._draft(
            workspace_id,
            new,
            now,
            channel="call",
            batch_concurrency=concurrency,
            business_hours=hours,
            cli_group=None if new.cli_group is None else tuple(new.cli_group),
        )

    def _draft(
        self, workspace_id: str, new: NewSmsCampaign | NewCallCampaign, now: datetime, **differing: Any
    ) -> Campaign:
        """Return a campaign with the fields of a new one of the same names, except the differing ones."""
        stored = attrs.fields_dict(Campaign).keys()
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


def _content(campaign: NewSmsCampaign | NewCallCampaign, leave_out: LeaveOut | None) -> object:
    """Return what must be the same each time that a key is used."""
    return campaign if leave_out is None else [campaign, leave_out]


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


def require_sms(workspace: Workspace) -> None:
    """Raise `SmsCampaignsDisabled` if a workspace does not have SMS campaigns enabled."""
    if not workspace.sms_campaigns_enabled:
        raise SmsCampaignsDisabled


def _filled(calendar: HolidayCalendar | None, now: datetime) -> HolidayCalendar | None:
    return None if calendar is None else extend_calendar(calendar, now.year)
