"""The SMS channel: rendered messages at a pace."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from outreach.config import EngineConfig
from outreach.ids import IdSource
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.plans import Intent, WavePlan
from outreach.models.recipient import Recipient
from outreach.policy.deciding import Reach, decide_message
from outreach.policy.pacing import spacing
from outreach.protocols.carrier import OutboundMessage
from outreach.providers.pool import ProviderPool, ResolveProvider, SendRequest
from outreach.runners.channels import Decision

_MAX_WAVE: Final = 50


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

    def decide(self, plan: WavePlan, recipient: Recipient, now: datetime) -> Decision:
        """Render a message and count its segments."""
        decided = decide_message(plan, recipient, now)
        if not isinstance(decided, Reach):
            return decided
        return Intent(
            dispatch_id=self._ids(),
            recipient=recipient,
            provider=self.provider_name(plan),
            from_number=plan.campaign.from_number,
            to=recipient.phone or "",
            latest=decided.latest,
            body=decided.body,
            segments=decided.segments,
        )

    def build_request(
        self, plan: WavePlan, intent: Intent, dispatch: Dispatch, *, not_after: datetime | None
    ) -> ResolveProvider:
        """Return the function that finds the carrier of a message."""
        message = OutboundMessage(
            dispatch_id=dispatch.id,
            workspace_id=dispatch.workspace_id,
            from_number=dispatch.from_number,
            to=dispatch.to,
            body=dispatch.body or "",
            not_after=not_after,
        )

        async def find_carrier() -> SendRequest:
            carrier = await self._provider_pool.carrier(plan.workspace, dispatch.provider)
            return lambda: carrier.send(message)

        return find_carrier
