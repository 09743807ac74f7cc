"""Whether a campaign is ready to start, and what it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import attrs

from outreach.errors import ErrorDetail
from outreach.models.campaign import Campaign
from outreach.models.resources import Agent
from outreach.policy.rendering import compose, render
from outreach.policy.segments import count_segments


def is_ready(campaign: Campaign, agent: Agent | None) -> bool:
    """Return whether a campaign's setup is complete.

    SMS: a text or a flow, a sending number and a carrier (docs/interface.md#3). Calls: an active agent that may call
    out (docs/interface.md#campaigns).
    """
    return not missing_requirements(campaign, agent)


def missing_requirements(campaign: Campaign, agent: Agent | None) -> tuple[ErrorDetail, ...]:
    """Return what a campaign needs to be ready, each as a field and a sentence."""
    return tuple(_of_calls(agent) if campaign.channel == "call" else _of_messages(campaign))


def _of_messages(campaign: Campaign) -> list[ErrorDetail]:
    found = []
    if campaign.message_source == "flow":
        if campaign.flow_id is None:
            found.append(ErrorDetail("flow_id", "It has no flow_id: the flow that drives it."))
    elif not (campaign.body and campaign.body.strip()):
        found.append(ErrorDetail("body", "It has no body: the text to send."))
    if not campaign.from_number:
        found.append(ErrorDetail("from_number", "It has no from_number: the number to send from."))
    if campaign.carrier is None:
        found.append(ErrorDetail("carrier", "It has no carrier: the carrier that sends."))
    return found


def _of_calls(agent: Agent | None) -> list[ErrorDetail]:
    if agent is None:
        return [ErrorDetail("agent_id", "It has no agent.")]
    found = []
    if not agent.is_active:
        found.append(ErrorDetail("agent.is_active", f"Its agent {agent.name!r} is inactive."))
    if not agent.can_place_calls:
        sentence = f"Its agent {agent.name!r} is inbound and may not call out."
        found.append(ErrorDetail("agent.allow_outbound", sentence))
    return found


UnsendableReason = Literal["over_segment_cap", "empty_message"]

_MIN_SEGMENT_UNITS: Final = 70
"""The size of one segment in the smaller encoding."""


@attrs.frozen(kw_only=True)
class CampaignTexts:
    """A campaign's texts and their limit.

    Attributes:
        templates: Its messages in order.
        footer: The line under each, if any.
        max_segments: The limit of segments.
    """

    templates: Sequence[str]
    footer: str | None
    max_segments: int

    def unsendable_reason(self, values: Mapping[str, str]) -> UnsendableReason | None:
        """Return why a contact with these values will fail, by the first unsendable message, or None."""
        for template in self.templates:
            text = compose(template, values, self.footer)
            if not text:
                return "empty_message"
            if exceeds_segments(text, self.max_segments):
                return "over_segment_cap"
        return None

    def fits_no_contact(self) -> bool:
        """Return whether a message exceeds the limit even with empty placeholders."""
        return any(
            exceeds_segments(f"{bare}\n{self.footer}" if self.footer else bare, self.max_segments)
            for bare in (render(template.replace("|", " "), {}) for template in self.templates)
            if bare.strip()
        )


def exceeds_segments(text: str, max_segments: int) -> bool:
    """Return whether a text takes more segments than allowed."""
    if 2 * len(text) <= _MIN_SEGMENT_UNITS:
        return False
    return count_segments(text).segments > max_segments
