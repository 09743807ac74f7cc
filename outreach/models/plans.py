"""What a runner decides on, and what it decides: one wave of a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

import attrs

from outreach.models.account import ProviderThrottle
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.recipient import Recipient
from outreach.models.resources import Agent, FlowStep, Trunk
from outreach.models.settings import SmsSettings
from outreach.models.states import RecipientStatus
from outreach.models.trail import TrailRule
from outreach.models.workspace import Workspace


@attrs.frozen(kw_only=True)
class DecisionBasis:
    """The revisions on which a decision was made; the commit compares them."""

    campaign: int
    workspace: int
    settings: int
    agent: int | None = None


@attrs.frozen(kw_only=True)
class WavePlan:
    """What a runner needs to decide about the next wave of a campaign.

    Attributes:
        due: Recipients to look at now, in order.
        next_due: When the next waiting one is due, when none is now; None when nobody waits.
        next_slot_at: The first moment at which the next message may start by the campaign's own pace; None for any.
        agent: The agent of a calling campaign.
        trunk: The trunk of a calling campaign.
        in_flight: Recipients that take a place at the provider, or may.
        steps: The steps of the flow that drives the campaign; None when none does.
        sender: The pace of the sending number, over all campaigns; None when it has none of its own.
        capped_until: Until when the frequency cap keeps who of those that are due from being contacted, by position.
        provider_throttle: The provider wants to be left alone; None when it does not.
        contact_rules_outdated: Recipients may wait under rules of the workspace that have changed since.
    """

    campaign: Campaign
    workspace: Workspace
    settings: SmsSettings
    basis: DecisionBasis
    due: Sequence[Recipient]
    next_due: datetime | None
    next_slot_at: datetime | None
    agent: Agent | None
    trunk: Trunk | None
    in_flight: int
    steps: Sequence[FlowStep] | None = None
    sender: SenderPace | None = None
    capped_until: Mapping[int, datetime] = attrs.field(factory=dict)
    provider_throttle: ProviderThrottle | None = None
    contact_rules_outdated: bool = False

    @property
    def agent_missing(self) -> bool:
        """Whether this is a calling campaign whose agent is gone, switched off or may not call out."""
        fit = self.agent is not None and self.agent.is_active and self.agent.can_place_calls
        return self.campaign.channel == "call" and not fit


@attrs.frozen(kw_only=True)
class Intent:
    """One message that is about to be sent to one recipient, or one call about to be placed.

    Attributes:
        sender: None leaves the caller ID to the provider; a group's number goes before it.
        body: The rendered text; None for a call.
        call_id: Identifier for the record of a call; None for a message.
        variables: Template variables of a call.
        latest: The request may not start later: the contact's own evening; None for no such bound.
    """

    dispatch_id: str
    recipient: Recipient
    provider: str
    from_number: str | None
    to: str
    body: str | None = None
    segments: int | None = None
    call_id: str | None = None
    variables: Mapping[str, str] = attrs.field(factory=dict)
    latest: datetime | None = None


@attrs.frozen(kw_only=True)
class Ending:
    """A recipient that ends without being contacted, why, and by which rule."""

    recipient: Recipient
    status: RecipientStatus
    reason: str
    rule: TrailRule


@attrs.frozen(kw_only=True)
class Advance:
    """A recipient that goes on without a request.

    Attributes:
        kind: `next_step`: it stands at a step of its flow that sends nothing. `drop_second_leg`: the second call
            of its double dial may not start any more, or not yet.
    """

    recipient: Recipient
    kind: Literal["next_step", "drop_second_leg"]


@attrs.frozen(kw_only=True)
class Postponement:
    """A recipient that is looked at again later, why, and by which rule."""

    recipient: Recipient
    due_at: datetime
    reason: str
    rule: TrailRule


@attrs.frozen(kw_only=True)
class Wave:
    """Intents and endings to commit together.

    Attributes:
        not_before: The first slot may not lie earlier, whatever the ledger says.
        look_ahead: Slots that lie farther ahead of the commit are left for the next wave. It counts from the commit:
            where that had to wait longer than this, the wave would otherwise commit nobody, and the next one neither.
        latest: No request of this wave may have its slot then or later: closing time, expiry, end of the lease.
        spacing: Time between two slots; zero for calls, whose pace is the places they take.
        advances: Recipients that go on without a request: to the next step, or after a second call that is dropped.
    """

    workspace_id: str
    campaign_id: str
    epoch: int
    basis: DecisionBasis
    intents: Sequence[Intent]
    endings: Sequence[Ending]
    not_before: datetime
    look_ahead: timedelta
    latest: datetime
    spacing: timedelta
    intent_lifetime: timedelta
    advances: Sequence[Advance] = ()
    postponements: Sequence[Postponement] = ()

    @property
    def recipients(self) -> Sequence[Recipient]:
        """All recipients that it is about."""
        return [
            *(one.recipient for one in self.intents),
            *(one.recipient for one in self.endings),
            *(one.recipient for one in self.advances),
            *(one.recipient for one in self.postponements),
        ]


@attrs.frozen(kw_only=True)
class WaveResult:
    """What a wave did.

    Attributes:
        stale: The decision was made on something that has changed since; nothing was committed.
        changed: Somebody is not as before: has an intent, waits, or has ended.
        dispatches: The intents that now stand in the ledger, in the order of their slots.
        stops: How many stops there had been then; while there is none more, nothing stands against these intents.
    """

    stale: bool
    changed: bool
    dispatches: Sequence[Dispatch]
    stops: int | None = None


def sender_key(workspace_id: str, phone: str) -> str:
    """Return what the pace of a sending number is known by."""
    return f"{workspace_id}/{phone}"


@attrs.frozen(kw_only=True)
class SenderPace:
    """The pace of a sending number, over all campaigns and single messages.

    Attributes:
        phone: The number as the workspace has it, however the campaign spells it.
        spacing: Time between two of its messages.
        next_slot_at: The first moment at which its next message may start; None for any.
    """

    workspace_id: str
    phone: str
    spacing: timedelta
    next_slot_at: datetime | None

    @property
    def key(self) -> str:
        """The key under which requests keep it (`providers.pool.ProviderRequest.paces`)."""
        return sender_key(self.workspace_id, self.phone)
