"""The calling channel: a limit of calls in flight, and double dials within an attempt."""

from __future__ import annotations

from datetime import datetime, timedelta

from outreach.ids import IdSource
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.plans import Intent, WavePlan
from outreach.models.recipient import Recipient
from outreach.policy.deciding import Reach, decide_call
from outreach.policy.rendering import values_of
from outreach.protocols.voice import CallRequest
from outreach.providers.pool import ProviderPool, ResolveProvider, SendRequest
from outreach.runners.channels import Decision


class CallChannel:
    """The calling part of running campaigns; see `runners.channels.CampaignChannel`."""

    def __init__(self, *, ids: IdSource, provider_pool: ProviderPool) -> None:
        self._ids = ids
        self._provider_pool = provider_pool

    def spacing(self, campaign: Campaign) -> timedelta:
        """Return zero: the limit in flight is the pace."""
        return timedelta()

    def max_wave_size(self, campaign: Campaign) -> int:
        """Return how many calls may be in flight."""
        return campaign.batch_concurrency

    def has_capacity(self, plan: WavePlan) -> bool:
        """Return whether another call may be placed."""
        return plan.in_flight < plan.campaign.batch_concurrency

    def provider_name(self, plan: WavePlan) -> str:
        """Return the voice provider of the agent."""
        return plan.agent.provider if plan.agent is not None else ""

    def decide(self, plan: WavePlan, recipient: Recipient, now: datetime) -> Decision:
        """Decide about a call, with the recipient's fields and variables for the agent."""
        decided = decide_call(plan, recipient, now)
        if not isinstance(decided, Reach):
            return decided
        return Intent(
            dispatch_id=self._ids(),
            call_id=self._ids(),
            recipient=recipient,
            provider=self.provider_name(plan),
            from_number=plan.agent.from_number if plan.agent is not None else None,
            to=recipient.phone or "",
            latest=decided.latest,
            variables=values_of(recipient),
        )

    def build_request(
        self, plan: WavePlan, intent: Intent, dispatch: Dispatch, *, not_after: datetime | None
    ) -> ResolveProvider:
        """Return the function that finds the voice provider of a call."""
        campaign, agent = plan.campaign, plan.agent
        request = CallRequest(
            dispatch_id=dispatch.id,
            workspace_id=dispatch.workspace_id,
            provider_agent_id=agent.provider_agent_id if agent else None,
            from_number=dispatch.from_number,
            to=dispatch.to,
            variables=intent.variables,
            provider_trunk=(plan.trunk.provider_trunk_id or plan.trunk.address) if plan.trunk else None,
            ivr_enabled=bool(campaign.ivr_enabled),
            call_screen_enabled=bool(campaign.call_screen_enabled),
            screen_identity=plan.workspace.name,
            screen_purpose=campaign.description or campaign.name,
            voicemail=agent.voicemail if agent else None,
            voicemail_message=agent.voicemail_message if agent else None,
            max_seconds=agent.max_call_seconds if agent else None,
            not_after=not_after,
        )

        async def resolve_provider() -> SendRequest:
            provider = await self._provider_pool.voice(plan.workspace, dispatch.provider)
            return lambda: provider.place_call(request)

        return resolve_provider
