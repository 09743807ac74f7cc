"""The overall status: who dispatches, what runs, and what needs a person."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeVar

from outreach.models.campaign import Campaign
from outreach.models.states import CampaignStatus
from outreach.models.status import DispatchedBy, DispatchOverview, EngineStatus, PausedCampaign, ThrottledProvider
from outreach.operations.campaigns.setup import not_installed
from outreach.operations.common import provider_of, workspace_of
from outreach.operations.waves import provider_throttles
from outreach.policy.explanations import PAUSE_REASONS
from outreach.providers.registry import Adapters
from outreach.services.context import ServiceContext
from outreach.working_set import Transaction

T = TypeVar("T")

MAX_LISTED: Final = 100
"""Entries of each list."""

MAX_COUNTED: Final = 10_000
"""The most unknown requests that are counted, so that a look takes milliseconds."""


class StatusQuery:
    """Reads the status of one workspace or all; costs the same however much was sent before."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def __call__(self, workspace_id: str | None = None) -> EngineStatus:
        """Return the current status of a workspace, or of all.

        Raises:
            NotFound: The workspace does not exist.
        """
        return await self._context.storage.read(lambda tx: self._look(tx, workspace_id))

    def _look(self, tx: Transaction, workspace_id: str | None) -> EngineStatus:
        if workspace_id is not None:
            workspace_of(tx, workspace_id)
        now = self._context.now()
        running = tx.campaigns.count_in_status(
            {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}, workspace_id=workspace_id
        )
        paused = tx.campaigns.paused_by_engine(workspace_id=workspace_id, limit=MAX_LISTED + 1)
        unknown = tx.dispatches.count_unknown(workspace_id, limit=MAX_COUNTED + 1)
        waits = provider_throttles.unexpired(tx, workspace_id, now, limit=MAX_LISTED + 1)
        held = tx.register.held(workspace_id, limit=MAX_LISTED + 1)
        truncated = [
            name
            for name, count, most in (
                ("paused", len(paused), MAX_LISTED),
                ("unknown", sum(each.count for each in unknown), MAX_COUNTED),
                ("waits", len(waits), MAX_LISTED),
                ("held", len(held), MAX_LISTED),
            )
            if count > most
        ]
        if "unknown" in truncated:
            unknown = tx.dispatches.count_unknown(workspace_id, limit=MAX_COUNTED)
        return EngineStatus(
            at=now,
            workspace_id=workspace_id,
            dispatching=dispatch_overview(self._context, tx, now),
            active_campaigns=running[CampaignStatus.ACTIVE],
            scheduled_campaigns=running[CampaignStatus.SCHEDULED],
            paused=[_paused(tx, campaign, self._context.adapters) for campaign in _listed(paused)],
            unknown=unknown,
            waits=[
                ThrottledProvider(workspace_id=hold.workspace_id, provider=hold.provider, until=hold.until)
                for hold in _listed(waits)
            ],
            held=_listed(held),
            truncated=truncated,
            adapter_problems=self._context.adapters.problems,
        )


def dispatch_overview(context: ServiceContext, tx: Transaction, now: datetime) -> DispatchOverview:
    """Return who dispatches from the database, by the last heartbeat."""
    lease = tx.leases.current()
    # After a clock was set back, the heartbeat may lie in the future.
    age = None if lease is None else max((now - lease.renewed_at).total_seconds(), 0.0)
    by: DispatchedBy
    if context.dispatching():
        by = "this_process"
    elif age is not None and age <= context.config.lease_seconds:
        by = "another_process"
    else:
        by = "nobody"
    return DispatchOverview(
        by=by,
        epoch=lease.epoch if lease is not None else None,
        heartbeat_at=lease.renewed_at if lease is not None else None,
        heartbeat_seconds_ago=age,
    )


def _listed(found: Sequence[T]) -> Sequence[T]:
    return found[:MAX_LISTED]


def _paused(tx: Transaction, campaign: Campaign, adapters: Adapters) -> PausedCampaign:
    assert campaign.pause_reason is not None  # noqa: S101 - the query asks for those that have one
    provider = provider_of(tx, campaign)
    why = PAUSE_REASONS[campaign.pause_reason]
    workspace = workspace_of(tx, campaign.workspace_id)
    installed = provider is None or not_installed(workspace, provider, adapters) is None
    if campaign.pause_reason == "provider_auth" and not installed:
        why = f"no adapter for {provider} is installed here"
    return PausedCampaign(
        id=campaign.id,
        workspace_id=campaign.workspace_id,
        name=campaign.name,
        channel=campaign.channel,
        provider=provider,
        agent_id=campaign.agent_id,
        reason=campaign.pause_reason,
        why=why,
        provider_installed=installed,
    )
