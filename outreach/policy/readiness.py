"""Whether a campaign can be started: the condition between draft and ready, and what it lacks."""

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

    SMS: a message is composed (a text that is not blank, or a flow) and sending number and carrier are set
    (docs/interface.md#3). Calls: the agent is active and may call out (docs/interface.md#campaigns).
    """
    return not missing_requirements(campaign, agent)


def missing_requirements(campaign: Campaign, agent: Agent | None) -> tuple[ErrorDetail, ...]:
    """Return what a campaign lacks to be ready: the field that says it, and a sentence; nothing when it is ready."""
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
"""What one segment holds in the encoding that holds least."""


@attrs.frozen(kw_only=True)
class CampaignTexts:
    """What a campaign sends, and what it may take.

    Attributes:
        templates: Its messages, in their order.
        footer: What stands under each; None for nothing.
        max_segments: The cap of the settings.
    """

    templates: Sequence[str]
    footer: str | None
    max_segments: int

    def unsendable_reason(self, values: Mapping[str, str]) -> UnsendableReason | None:
        """Return why a contact with these values will fail, at the first message that does not fit; None if all do."""
        for template in self.templates:
            text = compose(template, values, self.footer)
            if not text:
                return "empty_message"
            if exceeds_segments(text, self.max_segments):
                return "over_segment_cap"
        return None

    def fits_no_contact(self) -> bool:
        """Return whether a message is over the cap whatever stands in its placeholders: values make it longer only."""
        return any(
            exceeds_segments(f"{bare}\n{self.footer}" if self.footer else bare, self.max_segments)
            for bare in (render(template.replace("|", " "), {}) for template in self.templates)
            if bare.strip()
        )


def exceeds_segments(text: str, max_segments: int) -> bool:
    """Return whether a text takes more segments than it may."""
    if 2 * len(text) <= _MIN_SEGMENT_UNITS:
        return False
    return count_segments(text).segments > max_segments
