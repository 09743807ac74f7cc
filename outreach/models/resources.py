"""A workspace's resources: agents, trunks, numbers, flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, TypeAlias

import attrs

from outreach.errors import Problem
from outreach.models.base import UNSET, CarrierName, Unset
from outreach.models.fields import Checked, ListOf, Model, Option, Text, bounded, bounded_fields, ruled, sized
from outreach.models.schedule import Schedule
from outreach.models.webhook import Webhook

__all__ = [
    "RESOURCES",
    "Agent",
    "AgentDirection",
    "AgentUpdate",
    "Flow",
    "FlowStep",
    "FlowUpdate",
    "NewAgent",
    "NewFlow",
    "NewNumber",
    "NewTrunk",
    "Number",
    "NumberUpdate",
    "StepCount",
    "Trunk",
    "TrunkUpdate",
    "VoiceProviderName",
    "VoicemailPolicy",
]

AgentDirection = Literal["outbound", "inbound"]
VoiceProviderName: TypeAlias = str
"""The name of a voice provider: `simulator`, one that the engine brings, or one of an adapter of one's own."""
VoicemailPolicy = Literal["hang_up", "leave_message"]
"""The action of a call when a machine answers."""


@attrs.frozen(kw_only=True)
class Agent:
    """A configured voice agent with a voice provider.

    Attributes:
        provider_agent_id: The agent's id at the provider; None for the simulator.
        placeholders: The template variables that the agent accepts; None for any.
        from_number: Caller ID in E.164; None for the provider's default.
        voicemail: What to do when a machine answers; None for the agent's setting at the provider.
        voicemail_message: What to say to the machine with `leave_message`.
        max_call_seconds: The longest call; None for the agent's setting at the provider.
        revision: Increases with each change.
        removed_at: When it was removed, while ended campaigns and calls still name it; else None.
    """

    _hidden: ClassVar = ("revision",)

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
    removed_at: datetime | None = None

    @property
    def can_place_calls(self) -> bool:
        """Whether this agent may place calls (docs/interface.md#4.1)."""
        return self.direction == "outbound" or self.allow_outbound


@attrs.frozen(kw_only=True)
class Trunk:
    """A SIP trunk of a calling campaign.

    Attributes:
        address: SIP host or URI.
        provider_trunk_id: The trunk's id at the voice provider, if any.
        removed_at: When it was removed, while ended campaigns still name it; else None.
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
        carrier: Its SMS carrier; None for a number only for calls.
        trunk_id: Its trunk, if any.
        rate_per_minute: Messages per minute over all campaigns; None for no limit.
    """

    id: str
    workspace_id: str
    phone: str
    carrier: CarrierName | None
    trunk_id: str | None
    created_at: datetime
    rate_per_minute: int | None = None


MAX_STEPS: Final = 50
"""Of one flow."""


@attrs.frozen(kw_only=True)
class FlowStep:
    """One step of an automation flow.

    Attributes:
        kind: `send` a message, `wait` a while, or end here for those who have replied.
        body: The message template of a `send`; None elsewhere.
        wait_minutes: How long a `wait` takes; None elsewhere.
    """

    kind: Literal["send", "wait", "stop_if_replied"]
    body: str | None = sized(1, 1600, default=None)
    wait_minutes: int | None = bounded(1, 60 * 24 * 365, default=None)


@attrs.frozen(kw_only=True)
class Flow:
    """An automation flow: the ordered steps of a campaign with `sms_message_source: flow`.

    Attributes:
        removed_at: When it was removed, while ended campaigns still name it; else None.
    """

    id: str
    workspace_id: str
    name: str
    steps: tuple[FlowStep, ...]
    created_at: datetime
    removed_at: datetime | None = None


@attrs.frozen(kw_only=True)
class StepCount:
    """The contacts of campaigns at one step of a flow.

    Attributes:
        step: The index of the step.
        contacts: Those that wait there, or whose message is on its way.
    """

    step: int
    contacts: int


@attrs.frozen(kw_only=True)
class NewAgent(Checked):
    """An agent to create.

    Attributes:
        name: 1 to 255 characters.
        provider: Its voice provider.
        direction: `outbound`, or `inbound`, which places calls only with `allow_outbound`.
        allow_outbound: Whether an inbound agent may place calls.
        is_active: Whether it may be used.
        provider_agent_id: Its id at the provider.
        placeholders: The template variables that it accepts; None for any.
        from_number: Caller ID, in any notation.
        voicemail: What to do when a machine answers; None for the agent's setting at the provider.
        voicemail_message: What to say to the machine, 1 to 1,000 characters; only with `leave_message`.
        max_call_seconds: The longest call, 10 to 43,200; None for the provider's setting.
    """

    name: str = sized(1, 255)
    provider: VoiceProviderName = sized(1, 255, default="simulator")
    direction: AgentDirection = "outbound"
    allow_outbound: bool = False
    is_active: bool = True
    provider_agent_id: str | None = sized(
        *(1, 255),
        default=None,
        option=Option("Its identifier at the provider.", "Forget its identifier at the provider.", metavar="ID"),
    )
    placeholders: Sequence[str] | None = ruled(
        ListOf(Text(1, 255), maximum=1000),
        default=None,
        option=Option(
            "A variable it expects; repeatable.", "Accept any variables.", word="placeholder", metavar="NAME"
        ),
    )
    from_number: str | None = sized(
        *(1, 64),
        default=None,
        option=Option("Caller ID.", "Leave the caller ID to the provider.", word="from", metavar="NUMBER"),
    )
    voicemail: VoicemailPolicy | None = ruled(
        None,
        default=None,
        option=Option("What to do when a machine answers.", "Leave machines to the agent as the provider has it."),
    )
    # The narrowest bounds of the providers (Vapi: voicemailMessage, maxDurationSeconds).
    voicemail_message: str | None = sized(
        *(1, 1000), default=None, option=Option("What to leave there with leave_message.", metavar="TEXT")
    )
    max_call_seconds: int | None = bounded(
        *(10, 43_200),
        default=None,
        option=Option("How many seconds a call may last.", "Leave the length of calls to the provider."),
    )

    def _problems(self) -> Sequence[Problem]:
        return voicemail_problems(self)


def voicemail_problems(agent: Agent | NewAgent) -> Sequence[Problem]:
    """Return the fault in an agent's message to a machine."""
    message = agent.voicemail_message
    if (agent.voicemail == "leave_message") is not (message is not None):
        return (Problem(path="voicemail_message", message="goes with voicemail leave_message, which needs it"),)
    blank = message is not None and not message.strip()
    return (Problem(path="voicemail_message", message="must not be blank"),) if blank else ()


def _rate_option(meaning: str) -> Option:
    return Option(meaning, "Remove its own rate.", word="rate", metavar="N")


@attrs.frozen(kw_only=True)
class NewNumber(Checked):
    """A number to add.

    Attributes:
        phone: In any notation; unique in the workspace.
        carrier: Its SMS carrier.
        trunk_id: Its trunk.
        rate_per_minute: Messages per minute over all campaigns, 1 to 600; None for no limit.
    """

    phone: str = sized(1, 64)
    carrier: CarrierName | None = ruled(
        None, default=None, option=Option("Its SMS carrier.", "Use it for calls only.", names="carrier")
    )
    trunk_id: str | None = ruled(
        None, default=None, option=Option("Its trunk.", "Use no trunk.", word="trunk", names="trunk")
    )
    rate_per_minute: int | None = bounded(
        *(1, 600), default=None, option=_rate_option("At most N messages a minute, over all campaigns.")
    )


@attrs.frozen(kw_only=True)
class NewTrunk(Checked):
    """A trunk to create.

    Attributes:
        name: 1 to 255 characters.
        address: SIP host or URI, 1 to 255 characters.
        provider_trunk_id: Its id at the voice provider, if any.
    """

    name: str = sized(1, 255)
    address: str = sized(1, 255, option=Option("SIP host or URI at which the trunk ends."))
    provider_trunk_id: str | None = sized(
        *(1, 255),
        default=None,
        option=Option("Its identifier at the voice provider.", "Forget that identifier.", metavar="ID"),
    )


@attrs.frozen(kw_only=True)
class NewFlow(Checked):
    """A flow to create.

    Attributes:
        name: 1 to 255 characters.
        steps: The steps in order; at least one sends.
    """

    name: str = sized(1, 255)
    steps: Sequence[FlowStep] = ruled(ListOf(Model(FlowStep), 1, MAX_STEPS))

    def _problems(self) -> Sequence[Problem]:
        return _step_problems(self.steps)


@attrs.frozen(kw_only=True)
class AgentUpdate(Checked):
    """The fields of an agent to change; `UNSET` leaves a field as it is.

    None clears the optional ones; without `placeholders` the agent accepts any variable.
    """

    _rules_from: ClassVar = (NewAgent,)

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
class FlowUpdate(Checked):
    """The fields of a flow to change; `UNSET` leaves a field as it is."""

    _rules_from: ClassVar = (NewFlow,)

    name: str | Unset = UNSET
    steps: Sequence[FlowStep] | Unset = UNSET

    def _problems(self) -> Sequence[Problem]:
        return () if self.steps is UNSET else _step_problems(self.steps)


def _step_problems(steps: Sequence[FlowStep]) -> Sequence[Problem]:
    details: list[Problem] = []
    if not any(step.kind == "send" for step in steps):
        details.append(Problem(path="steps", message="no step sends anything"))
    bounds = bounded_fields(FlowStep)
    for index, step in enumerate(steps):
        if step.kind == "send" and (step.body is None or not step.body.strip()):
            words = "a send step needs a text of {} to {} characters".format(*bounds["body"])
            details.append(Problem(path=f"steps[{index}].body", message=words))
        if step.kind == "wait" and step.wait_minutes is None:
            words = "a wait step needs {} to {} minutes".format(*bounds["wait_minutes"])
            details.append(Problem(path=f"steps[{index}].wait_minutes", message=words))
    return details


@attrs.frozen(kw_only=True)
class NumberUpdate(Checked):
    """The fields of a number to change; `UNSET` leaves a field as it is, None clears it."""

    _rules_from: ClassVar = (NewNumber,)

    carrier: CarrierName | Unset | None = UNSET
    trunk_id: str | Unset | None = UNSET
    rate_per_minute: int | Unset | None = ruled(
        None, default=UNSET, option=_rate_option("At most N messages a minute.")
    )


@attrs.frozen(kw_only=True)
class TrunkUpdate(Checked):
    """The fields of a trunk to change; `UNSET` leaves a field as it is, None clears the provider's id."""

    _rules_from: ClassVar = (NewTrunk,)

    name: str | Unset = UNSET
    address: str | Unset = UNSET
    provider_trunk_id: str | Unset | None = UNSET


RESOURCES: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {
        "agent": Agent,
        "trunk": Trunk,
        "number": Number,
        "flow": Flow,
        "schedule": Schedule,
        "webhook": Webhook,
    }
)
"""The models by what one of them is called; its plural is their table. A table may refer to those before it."""
