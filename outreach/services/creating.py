"""Creating campaigns together with their contacts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

import anyio
import attrs

from outreach.errors import InvalidRequest, NotFound, SmsCampaignsDisabled, StorageError
from outreach.models.campaign import Campaign, CampaignCreated, Counters, NewCallCampaign, NewSmsCampaign
from outreach.models.directory import Agent
from outreach.models.holidays import HolidayCalendar
from outreach.models.states import CampaignStatus
from outreach.models.workspace import Workspace
from outreach.operations import loading
from outreach.operations.common import agent_of, flow_of, trunk_of, workspace_of
from outreach.operations.requests import Answer
from outreach.operations.templates import unknown_placeholders
from outreach.policy.holidays import refill
from outreach.policy.readiness import is_ready
from outreach.protocols.storage import Transaction
from outreach.services.context import ServiceContext
from outreach.services.new_campaigns import check_new_call_campaign, check_new_sms_campaign
from outreach.services.preparing import RecipientSource, chunks
from outreach.services.requests import Claim
from outreach.services.variable_names import VariableNames

_log = logging.getLogger(__name__)

Render = Callable[[CampaignCreated], Answer]
"""Makes the answer that an idempotency key replays."""


class CampaignCreation:
    """Creates campaigns: all of a campaign and its contacts, or nothing."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._running = 0
        self._closing = False
        self._idle = anyio.Event()

    def open(self) -> None:
        """Let campaigns be loaded, again or for the first time."""
        self._closing = False

    async def close(self, *, grace_seconds: float) -> None:
        """Let no campaign be loaded any more; wait until those that were are deleted, at most for the grace."""
        self._closing = True
        with anyio.move_on_after(grace_seconds):
            while self._running:
                self._idle = anyio.Event()
                await self._idle.wait()

    async def sms(
        self,
        workspace_id: str,
        campaign: NewSmsCampaign,
        recipients: RecipientSource,
        *,
        claim: Claim | None = None,
        render: Render | None = None,
        actor: str = "library",
    ) -> CampaignCreated:
        """Create an SMS campaign with its contacts (interface, section 4.3). Nothing is sent by this.

        Args:
            workspace_id: Whose campaign it is.
            campaign: Everything but the contacts.
            recipients: At least one contact; any number of them, they are never all in memory.
            claim: The idempotency key that the request holds, with `render`.
            render: Makes the answer that is stored under the key, in the transaction that publishes the campaign.
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: There is no such workspace.
            SmsCampaignsDisabled: SMS campaigns are not turned on for it.
            InvalidRequest: A rule is broken, a flow is not the workspace's, or every contact is opted out.
        """
        check_new_sms_campaign(campaign)
        now = self._context.now()

        def draft(tx: Transaction) -> Campaign:
            _require_sms(workspace_of(tx, workspace_id))
            if campaign.sms_flow_id is not None:
                _require_flow(tx, workspace_id, campaign.sms_flow_id)
            return self._sms_draft(workspace_id, campaign, now)

        return await self._create(workspace_id, draft, recipients, claim=claim, render=render, actor=actor)

    async def call(
        self,
        workspace_id: str,
        campaign: NewCallCampaign,
        recipients: RecipientSource,
        *,
        claim: Claim | None = None,
        render: Render | None = None,
        actor: str = "library",
    ) -> CampaignCreated:
        """Create a calling campaign with its contacts; see `sms` for the arguments.

        Raises:
            NotFound: There is no such workspace, or it has no such agent or trunk.
            InvalidRequest: A rule is broken, or every contact is opted out.
        """
        check_new_call_campaign(campaign)
        now = self._context.now()

        def draft(tx: Transaction) -> Campaign:
            workspace_of(tx, workspace_id)
            agent = agent_of(tx, workspace_id, campaign.agent_id)
            if campaign.sip_trunk_id is not None:
                trunk_of(tx, workspace_id, campaign.sip_trunk_id)
            return self._call_draft(workspace_id, campaign, agent, now)

        return await self._create(workspace_id, draft, recipients, claim=claim, render=render, actor=actor)

    async def check_sms_enabled(self, workspace_id: str) -> None:
        """Check that SMS campaigns are turned on, before a body is even looked at.

        Raises:
            SmsCampaignsDisabled: They are not.
        """
        await self._context.storage.read(lambda tx: _require_sms(workspace_of(tx, workspace_id)))

    async def _create(
        self,
        workspace_id: str,
        draft: Callable[[Transaction], Campaign],
        recipients: RecipientSource,
        *,
        claim: Claim | None,
        render: Render | None,
        actor: str,
    ) -> CampaignCreated:
        context = self._context

        def begin(tx: Transaction) -> tuple[Campaign, str | None]:
            campaign = draft(tx)
            loading.begin(tx, campaign, now=context.now())
            return campaign, workspace_of(tx, workspace_id).default_region

        self._running += 1
        try:
            campaign, region = await context.storage.write(begin)
            try:
                variables = VariableNames()
                loaded, excluded = await self._load(campaign, recipients, region, claim, variables)

                def publish(tx: Transaction) -> CampaignCreated:
                    published, left_out = loading.publish(
                        tx,
                        campaign,
                        loaded=loaded,
                        variable_names=variables.names(),
                        excluded=excluded,
                        since=campaign.created_at,
                        now=context.now(),
                        actor=actor,
                    )
                    created = CampaignCreated(
                        campaign=published,
                        opted_out_excluded=left_out,
                        unknown_placeholders=unknown_placeholders(tx, published),
                    )
                    if claim is not None and render is not None:
                        claim.finish(tx, render(created), context)
                    return created

                return await context.storage.write(publish)
            except BaseException:
                # Whatever went wrong, cancellation included: nothing of the campaign stays.
                with anyio.CancelScope(shield=True):
                    await self._discard(workspace_id, campaign.id)
                raise
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def _load(
        self,
        campaign: Campaign,
        recipients: RecipientSource,
        region: str | None,
        claim: Claim | None,
        variables: VariableNames,
    ) -> tuple[Counters, int]:
        context = self._context
        position = excluded = 0
        loaded = Counters()
        async for chunk in chunks(recipients, default_region=region, size=context.config.chunk_rows):
            if self._closing:
                raise StorageError("The engine is being closed; the campaign was not created.")

            def write(tx: Transaction, chunk: object = chunk, position: int = position) -> loading.ChunkResult:
                if claim is not None:
                    claim.keep(tx, context)
                return loading.load_chunk(tx, campaign, chunk, position=position, now=context.now())  # type: ignore[arg-type]

            result = await context.storage.write(write, bulk=True)
            variables.see(chunk)
            position = result.next_position
            excluded += result.excluded
            loaded = loaded + result.counters
        if loaded.total + excluded == 0:
            raise InvalidRequest.at("recipients", "must have at least 1 element")
        return loaded, excluded

    async def _discard(self, workspace_id: str, campaign_id: str) -> None:
        """Delete what was written of a campaign that never became visible, in slices."""
        limit = self._context.config.chunk_rows
        try:
            while not await self._context.storage.write(
                lambda tx: tx.campaigns.delete_loading(workspace_id, campaign_id, limit=limit), bulk=True
            ):
                pass
        except StorageError:
            # What made the creation fail must be told, not this; a dispatcher sweeps what is left.
            _log.warning(
                "What was loaded of campaign %s could not be deleted yet.",
                campaign_id,
                extra={"action": "discard_failed", "campaign_id": campaign_id},
            )

    def _sms_draft(self, workspace_id: str, new: NewSmsCampaign, now: datetime) -> Campaign:
        hours = new.business_hours
        campaign = Campaign(
            id=self._context.ids(),
            workspace_id=workspace_id,
            channel="sms",
            name=new.name,
            description=new.description,
            status=CampaignStatus.DRAFT,
            schedule_type=new.schedule_type,
            scheduled_start_at=new.scheduled_start_at if new.schedule_type == "scheduled" else None,
            scheduled_expires_at=new.scheduled_expires_at,
            business_hours=hours,
            holidays=_filled(new.holidays, now),
            batch_concurrency=hours.batch_concurrency if hours else 10,
            csv_column_headers=tuple(new.csv_column_headers),
            sms_mode=new.sms_mode,
            sms_message_source=new.sms_message_source,
            sms_message_body=new.message_body,
            sms_flow_id=new.sms_flow_id,
            sms_carrier=new.sms_carrier,
            sms_from_number=new.sms_from_number or None,
            sms_rate_per_minute=new.sms_rate_per_minute,
            created_at=now,
            updated_at=now,
        )
        return _with_status(campaign, None)

    def _call_draft(self, workspace_id: str, new: NewCallCampaign, agent: Agent, now: datetime) -> Campaign:
        hours = new.business_hours
        concurrency = new.batch_concurrency or (hours.batch_concurrency if hours else 10)
        campaign = Campaign(
            id=self._context.ids(),
            workspace_id=workspace_id,
            channel="call",
            name=new.name,
            description=new.description,
            status=CampaignStatus.DRAFT,
            agent_id=new.agent_id,
            schedule_type=new.schedule_type,
            scheduled_start_at=new.scheduled_start_at if new.schedule_type == "scheduled" else None,
            scheduled_expires_at=new.scheduled_expires_at,
            business_hours=hours,
            holidays=_filled(new.holidays, now),
            batch_concurrency=concurrency,
            sip_trunk_id=new.sip_trunk_id,
            cli_mode=new.cli_mode,
            cli_group=None if new.cli_group is None else tuple(new.cli_group),
            ivr_enabled=new.ivr_enabled,
            call_screen_enabled=new.call_screen_enabled,
            double_dial=new.double_dial,
            csv_column_headers=tuple(new.csv_column_headers),
            created_at=now,
            updated_at=now,
        )
        return _with_status(campaign, agent)


def _with_status(campaign: Campaign, agent: Agent | None) -> Campaign:
    status = CampaignStatus.READY if is_ready(campaign, agent) else CampaignStatus.DRAFT
    return attrs.evolve(campaign, status=status)


def _require_flow(tx: Transaction, workspace_id: str, flow_id: str) -> None:
    try:
        flow_of(tx, workspace_id, flow_id)
    except NotFound:
        raise InvalidRequest.at("sms_flow_id", "the workspace has no such flow") from None


def _require_sms(workspace: Workspace) -> None:
    if not workspace.sms_campaigns_enabled:
        raise SmsCampaignsDisabled(
            "SMS campaigns are not enabled for this workspace. An organization owner can turn them on."
        )


def _filled(calendar: HolidayCalendar | None, now: datetime) -> HolidayCalendar | None:
    return None if calendar is None else refill(calendar, now.year)
