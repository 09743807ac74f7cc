"""The input and output of a runner's decisions: one wave of a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

import attrs

from outreach.models.account import ProviderThrottle
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.resources import Agent, FlowStep, Trunk
from outreach.models.settings import SmsSettings
from outreach.models.states import RecipientStatus, TrailRule
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
    """The data that a runner needs to decide the next wave of a campaign.

    Attributes:
        due: Recipients to decide now, in order.
        next_due: When the next waiting one is due, if none is now; None if nobody waits.
        next_slot_at: The earliest start of the next message by the campaign's pace; None for any.
        agent: The agent of a calling campaign.
        trunk: The trunk of a calling campaign.
        in_flight: Recipients that take, or may take, a place at the provider.
        steps: The steps of the campaign's flow, if any.
        senders: The paces of the sending numbers over all campaigns, by the numbers as the campaign has them.
        capped_until: Until when the frequency cap postpones due recipients, by position.
        unreachable: Numbers of due recipients that are left out as unreachable.
        provider_throttle: The provider's throttle, if any.
        contact_rules_outdated: Recipients may wait under contact rules of the workspace that have changed since.
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
    senders: SenderPaces = attrs.field(factory=dict)
    capped_until: Mapping[int, datetime] = attrs.field(factory=dict)
    unreachable: AbstractSet[str] = frozenset()
    provider_throttle: ProviderThrottle | None = None
    contact_rules_outdated: bool = False

    @property
    def paces(self) -> Sequence[SenderPace]:
        """The paces of those of its numbers that have one."""
        return [pace for pace in self.senders.values() if pace is not None]

    @property
    def agent_missing(self) -> bool:
        """Whether this is a calling campaign whose agent is missing, inactive or may not place calls."""
        fit = self.agent is not None and self.agent.is_active and self.agent.can_place_calls
        return self.campaign.channel == "call" and not fit


@attrs.frozen(kw_only=True)
class Intent:
    """A message to send to a recipient, or a call to place.

    Attributes:
        from_number: Caller ID; None for the provider's default. A number of the campaign's group or pool precedes it.
        body: The rendered text; None for a call.
        call_id: Id of the call record; None for a message.
        variables: Template variables of a call.
        closing: The end of the contact's local hours; None for no end.
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
    closing: Closing | None = None

    @property
    def latest(self) -> datetime | None:
        """The request starts no later; None for no bound."""
        return None if self.closing is None else self.closing.at


@attrs.frozen(kw_only=True)
class Ending:
    """A recipient that ends without being contacted, with reason and rule."""

    recipient: Recipient
    status: RecipientStatus
    reason: str
    rule: TrailRule


@attrs.frozen(kw_only=True)
class Advance:
    """A recipient that advances without a request.

    Attributes:
        kind: `next_step`: its step of the flow sends nothing. `drop_second_leg`: the second call of its double dial may
            not start now.
    """

    recipient: Recipient
    kind: Literal["next_step", "drop_second_leg"]


@attrs.frozen(kw_only=True)
class Postponement:
    """A recipient to be decided again later, with reason and rule."""

    recipient: Recipient
    due_at: datetime
    reason: str
    rule: TrailRule


class Closing(NamedTuple):
    """The end of a contact's local hours, with the reason and rule that hold it back from then on.

    A tuple, because most contacts of a wave share one.
    """

    at: datetime
    reason: str
    rule: TrailRule

    def hold(self, recipient: Recipient) -> Postponement:
        """Return the postponement of a recipient whose slot would come too late."""
        return Postponement(recipient=recipient, due_at=self.at, reason=self.reason, rule=self.rule)


@attrs.frozen(kw_only=True)
class Wave:
    """Decisions to commit together.

    Attributes:
        not_before: The earliest slot, whatever the ledger has.
        look_ahead: Slots later than this after the commit are left for the next wave. Counted from the commit, because
            a commit that waited longer would otherwise take no slot at all.
        latest: The end of all slots: closing time, expiry, end of the lease.
        spacing: Time between two slots; zero for calls, which are paced by places.
        numbers_from: The earliest slots of sending numbers, whatever the ledger has, by their keys.
        advances: Recipients that advance without a request.
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
    numbers_from: Mapping[str, datetime] = attrs.field(factory=dict)
    advances: Sequence[Advance] = ()
    postponements: Sequence[Postponement] = ()

    @property
    def recipients(self) -> Sequence[Recipient]:
        """All recipients that the wave decides."""
        return [
            *(one.recipient for one in self.intents),
            *(one.recipient for one in self.endings),
            *(one.recipient for one in self.advances),
            *(one.recipient for one in self.postponements),
        ]


@attrs.frozen(kw_only=True)
class WaveResult:
    """The result of a wave.

    Attributes:
        stale: The decisions' basis has changed; nothing was committed.
        unclaimed: It is stale because another worker drives its campaign.
        changed: A recipient got an intent, was postponed or ended.
        dispatches: The committed intents, in the order of their slots.
        stops: The stops of its workspace so far; while it is the same, these intents may be sent.
    """

    stale: bool
    changed: bool
    dispatches: Sequence[Dispatch]
    stops: int | None = None
    unclaimed: bool = False


def sender_key(workspace_id: str, phone: str) -> str:
    """Return the key of a sending number's pace."""
    return f"{workspace_id}/{phone}"


@attrs.frozen(kw_only=True)
class SenderPace:
    """The pace of a sending number, over all campaigns and single messages.

    Attributes:
        phone: The number as the workspace has it.
        spacing: Time between two of its messages.
        next_slot_at: The earliest start of its next message; None for any.
    """

    workspace_id: str
    phone: str
    spacing: timedelta
    next_slot_at: datetime | None

    @property
    def key(self) -> str:
        """The key of the pace (`providers.pool.ProviderRequest.paces`)."""
        return sender_key(self.workspace_id, self.phone)


SenderPaces = Mapping[str, SenderPace | None]
"""The paces of numbers, by the numbers as a campaign has them; None for one without a rate."""
