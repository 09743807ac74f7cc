"""The channels of a campaign, SMS and calls, and what both have in common."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Protocol

from outreach.core.config import EngineConfig
from outreach.core.ids import IdSource
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.plans import Advance, Ending, Intent, Postponement, WavePlan
from outreach.models.recipient import Recipient
from outreach.protocols.carrier import OutboundMessage
from outreach.protocols.voice import CallRequest
from outreach.providers.pool import ProviderPool, ResolveProvider, SendRequest
from outreach.rules.deciding import Reach, decide_call, decide_message, spacing
from outreach.rules.holding import LocalRules
from outreach.rules.placeholders import values_for

Decision = Intent | Ending | Advance | Postponement
"""The decision about one due recipient."""

_MAX_WAVE: Final = 50


class CampaignChannel(Protocol):
    """One channel's part in running a campaign."""

    def spacing(self, campaign: Campaign) -> timedelta:
        """Return the time between two starts; zero if the pace is limited otherwise."""
        ...

    def max_wave_size(self, campaign: Campaign) -> int:
        """Return the maximum number of intents in a wave."""
        ...

    def has_capacity(self, plan: WavePlan) -> bool:
        """Return whether another request may be in flight; a freed place wakes the campaign."""
        ...

    def provider_name(self, plan: WavePlan) -> str:
        """Return the campaign's carrier or voice provider."""
        ...

    def decide(self, plan: WavePlan, local: LocalRules, recipient: Recipient, now: datetime) -> Decision:
        """Decide about one due recipient, by pure rules; `local` are those of the plan's workspace."""
        ...

    def build_request(
        self, plan: WavePlan, intent: Intent, dispatch: Dispatch, *, not_after: datetime | None
    ) -> ResolveProvider:
        """Return the function that finds the provider and makes the request of a committed intent.

        `not_after` goes to the provider with the request: the contact must not be reached later.
        """
        ...


class SmsChannel:
    """The SMS part of running campaigns; see `runners.channels.CampaignChannel`."""

    def __init__(self, *, ids: IdSource, config: EngineConfig, provider_pool: ProviderPool) -> None:
        self._ids = ids
        self._config = config
        self._provider_pool = provider_pool

    def spacing(self, campaign: Campaign) -> timedelta:
        """Return the time between two messages."""
        return spacing(campaign.rate_per_minute or 1)

    def max_wave_size(self, campaign: Campaign) -> int:
        """Return how many slots lie within the look-ahead."""
        ahead = self._config.look_ahead_seconds / self.spacing(campaign).total_seconds()
        return min(_MAX_WAVE, 1 + int(ahead))

    def has_capacity(self, plan: WavePlan) -> bool:
        """Return True: messages take slots, not permits."""
        return True

    def provider_name(self, plan: WavePlan) -> str:
        """Return the campaign's carrier."""
        return plan.campaign.carrier or ""

    def decide(self, plan: WavePlan, local: LocalRules, recipient: Recipient, now: datetime) -> Decision:
        """Render a message and count its segments."""
        decided = decide_message(plan, local, recipient, now)
        if not isinstance(decided, Reach):
            return decided
        return Intent(
            dispatch_id=self._ids(),
            recipient=recipient,
            provider=self.provider_name(plan),
            from_number=plan.campaign.from_number,
            to=recipient.phone or "",
            closing=decided.closing,
            body=decided.body,
            segments=decided.segments,
        )

    def build_request(
        self, plan: WavePlan, intent: Intent, dispatch: Dispatch, *, not_after: datetime | None
    ) -> ResolveProvider:
        """Return the function that finds the carrier of a message."""
        message = outbound_message(dispatch, not_after=not_after)

        async def find_carrier() -> SendRequest:
            carrier = await self._provider_pool.carrier(plan.workspace, dispatch.provider)
            return lambda: carrier.send(message)

        return find_carrier


def outbound_message(dispatch: Dispatch, *, not_after: datetime | None) -> OutboundMessage:
    """Return the request to the carrier for a committed message."""
    return OutboundMessage(
        dispatch_id=dispatch.id,
        workspace_id=dispatch.workspace_id,
        from_number=dispatch.from_number,
        to=dispatch.to,
        body=dispatch.body or "",
        not_after=not_after,
    )


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

    def decide(self, plan: WavePlan, local: LocalRules, recipient: Recipient, now: datetime) -> Decision:
        """Decide about a call, with the recipient's fields and variables for the agent."""
        decided = decide_call(plan, local, recipient, now)
        if not isinstance(decided, Reach):
            return decided
        return Intent(
            dispatch_id=self._ids(),
            call_id=self._ids(),
            recipient=recipient,
            provider=self.provider_name(plan),
            from_number=plan.agent.from_number if plan.agent is not None else None,
            to=recipient.phone or "",
            closing=decided.closing,
            variables=values_for(plan.campaign, plan.agent, recipient),
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
