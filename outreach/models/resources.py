"""What an application sets up for a workspace before it can reach anybody: agents, trunks, numbers, flows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import attrs

from outreach.models.base import UNSET, CarrierName, Unset

AgentDirection = Literal["outbound", "inbound"]
VoiceProviderName = Literal["simulator", "vapi", "retell", "elevenlabs"]
VoicemailPolicy = Literal["hang_up", "leave_message"]
"""What a call does when a machine answers."""


@attrs.frozen(kw_only=True)
class Agent:
    """A configured voice agent with a voice provider.

    Attributes:
        provider_agent_id: The agent's identifier at the provider; None for the simulator.
        placeholders: The template variables that the agent expects; None when it has not declared them.
        from_number: Caller ID in E.164; None leaves it to the provider.
        voicemail: What its calls do when a machine answers; None leaves it to the agent as the provider has it.
        voicemail_message: What they leave there with `leave_message`.
        max_call_seconds: How long a call may last; None leaves it to the agent as the provider has it.
        revision: Goes up with each change.
    """

    id: str
    workspace_id: str
    name: str
    provider: VoiceProviderName
    provider_agent_id: str | None
    direction: AgentDirection
    allow_outbound: bool
    is_active: bool
    placeholders: tuple[str, ...] | None
    from_number: str | None
    revision: int
    created_at: datetime
    updated_at: datetime
    voicemail: VoicemailPolicy | None = None
    voicemail_message: str | None = None
    max_call_seconds: int | None = None

    @property
    def can_place_calls(self) -> bool:
        """Whether this agent may place calls (docs/interface.md#4.1)."""
        return self.direction == "outbound" or self.allow_outbound


@attrs.frozen(kw_only=True)
class Trunk:
    """A SIP trunk that a calling campaign can dial over.

    Attributes:
        address: SIP host or URI at which the trunk ends.
        provider_trunk_id: The trunk's identifier at the voice provider, where it has one.
        removed_at: When it was removed; only campaigns that are over still name it then. None while it is there.
    """

    id: str
    workspace_id: str
    name: str
    address: str
    provider_trunk_id: str | None
    created_at: datetime
    removed_at: datetime | None = None


@attrs.frozen(kw_only=True)
class Number:
    """A phone number that a workspace sends or calls from.

    Attributes:
        phone: E.164.
        carrier: The SMS carrier it belongs to; None for a number used only for calls.
        trunk_id: The trunk it is reached over; None for none.
        rate_per_minute: Messages a minute that it may send, over all campaigns; None for no rate of its own.
    """

    id: str
    workspace_id: str
    phone: str
    carrier: CarrierName | None
    trunk_id: str | None
    created_at: datetime
    rate_per_minute: int | None = None


@attrs.frozen(kw_only=True)
class FlowStep:
    """One step of an automation flow.

    Attributes:
        kind: `send` a message, `wait` a while, or end here for those who have replied.
        body: The message template of a `send`; None elsewhere.
        wait_minutes: How long a `wait` takes; None elsewhere.
    """

    kind: Literal["send", "wait", "stop_if_replied"]
    body: str | None = None
    wait_minutes: int | None = None


@attrs.frozen(kw_only=True)
class Flow:
    """An automation flow: ordered steps that a campaign with `sms_message_source: flow` runs.

    Attributes:
        removed_at: When it was removed; only campaigns that are over still name it then. None while it is there.
    """

    id: str
    workspace_id: str
    name: str
    steps: tuple[FlowStep, ...]
    created_at: datetime
    removed_at: datetime | None = None


@attrs.frozen(kw_only=True)
class AgentUpdate:
    """What to change of an agent; `UNSET` leaves a field as it is.

    None clears what an agent can be without: its number, its identifier at the provider, its placeholders (then it
    accepts any), what it does at a machine, and how long its calls may last.
    """

    name: str | Unset = UNSET
    is_active: bool | Unset = UNSET
    allow_outbound: bool | Unset = UNSET
    from_number: str | Unset | None = UNSET
    provider_agent_id: str | Unset | None = UNSET
    placeholders: Sequence[str] | Unset | None = UNSET
    voicemail: VoicemailPolicy | Unset | None = UNSET
    voicemail_message: str | Unset | None = UNSET
    max_call_seconds: int | Unset | None = UNSET


@attrs.frozen(kw_only=True)
class FlowUpdate:
    """What to change of a flow; `UNSET` leaves a field as it is."""

    name: str | Unset = UNSET
    steps: Sequence[FlowStep] | Unset = UNSET


@attrs.frozen(kw_only=True)
class NumberUpdate:
    """What to change of a number; `UNSET` leaves a field as it is, None clears it."""

    carrier: CarrierName | Unset | None = UNSET
    trunk_id: str | Unset | None = UNSET
    rate_per_minute: int | Unset | None = UNSET


@attrs.frozen(kw_only=True)
class TrunkUpdate:
    """What to change of a trunk; `UNSET` leaves a field as it is, None clears the provider's identifier."""

    name: str | Unset = UNSET
    address: str | Unset = UNSET
    provider_trunk_id: str | Unset | None = UNSET
