"""Running SMS campaigns: rendered messages, at a pace."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from outreach.config import EngineConfig
from outreach.ids import IdSource
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.recipient import Recipient
from outreach.models.states import RecipientStatus
from outreach.models.trail import Rule
from outreach.operations.wave import Ending, Hold, Intent, Move, Plan
from outreach.policy.flow_course import step_to_send
from outreach.policy.pacing import spacing
from outreach.policy.rendering import compose, values_of
from outreach.policy.segments import count_segments
from outreach.protocols.carrier import OutboundMessage
from outreach.runners.channels import Decision
from outreach.runners.contact_rules import contact_window
from outreach.runners.desk import ProviderDesk
from outreach.runners.errand import Ask, FindProvider

_MAX_WAVE: Final = 50


class SmsChannel:
    """The SMS part of running a campaign; see `runners.channels.CampaignChannel`."""

    def __init__(self, *, ids: IdSource, config: EngineConfig, desk: ProviderDesk) -> None:
        self._ids = ids
        self._config = config
        self._desk = desk

    def spacing(self, campaign: Campaign) -> timedelta:
        """Return the time between two messages."""
        return spacing(campaign.sms_rate_per_minute or 1)

    def most(self, campaign: Campaign) -> int:
        """Return how many slots lie within the look-ahead."""
        ahead = self._config.look_ahead_seconds / self.spacing(campaign).total_seconds()
        return min(_MAX_WAVE, 1 + int(ahead))

    def room(self, plan: Plan) -> bool:
        """Return True: messages take slots, not places."""
        return True

    def provider(self, plan: Plan) -> str:
        """Return the campaign's carrier."""
        return plan.campaign.sms_carrier or ""

    def decide(self, plan: Plan, recipient: Recipient, now: datetime) -> Decision:
        """Render a message and count its segments."""
        campaign = plan.campaign
        template = campaign.sms_message_body
        if plan.steps is not None:
            step = step_to_send(recipient, plan.steps)
            if step is None:
                return Move(recipient=recipient, kind="next_step")
            template = step.body
        if recipient.phone is None:
            return Ending(
                recipient=recipient, status=RecipientStatus.SKIPPED, reason="invalid_number", rule=Rule.INVALID_NUMBER
            )
        window = contact_window(plan, recipient, recipient.phone, now)
        if isinstance(window, Hold | Ending):
            return window
        text = compose(template or "", values_of(recipient), plan.settings.footer)
        if not text:
            return Ending(
                recipient=recipient, status=RecipientStatus.FAILED, reason="empty_message", rule=Rule.RENDERING
            )
        segments = count_segments(text).segments
        if segments > plan.settings.max_segments:
            return Ending(
                recipient=recipient, status=RecipientStatus.FAILED, reason="over_segment_cap", rule=Rule.SEGMENT_CAP
            )
        return Intent(
            dispatch_id=self._ids(),
            recipient=recipient,
            provider=self.provider(plan),
            sender=campaign.sms_from_number,
            to=recipient.phone,
            latest=window,
            body=text,
            segments=segments,
        )

    def request(self, plan: Plan, intent: Intent, dispatch: Dispatch, *, not_after: datetime | None) -> FindProvider:
        """Return what finds the carrier, and hands the message to it."""
        message = OutboundMessage(
            dispatch_id=dispatch.id,
            workspace_id=dispatch.workspace_id,
            sender=dispatch.sender,
            to=dispatch.to,
            body=dispatch.body or "",
            not_after=not_after,
        )

        async def find_carrier() -> Ask:
            carrier = await self._desk.carrier(plan.workspace, dispatch.provider)
            return lambda: carrier.send(message)

        return find_carrier
