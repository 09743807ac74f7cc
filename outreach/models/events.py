"""What an embedding application hears of: something that has happened and is committed."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.models.call import CallOutcome
from outreach.models.campaign import PauseReason
from outreach.models.states import CallStatus, CampaignStatus, MessageStatus, RecipientStatus
from outreach.models.trail import TrailRule
from outreach.models.unsubscribe import UnsubscribeScope


@attrs.frozen(kw_only=True)
class Event:
    """Something that has happened.

    Attributes:
        number: Its place in the database's one order of commits; a later event has a higher one. Not every number
            is an event.
        at: When.
        workspace_id: Whose.
    """

    number: int
    at: datetime
    workspace_id: str


@attrs.frozen(kw_only=True)
class CampaignStatusChanged(Event):
    """A campaign has been created, or has come to another state.

    Attributes:
        status: The state that it has come to.
        reason: Why it was paused; None otherwise.
        rule: What decided.
        actor: Who moved it; None for the engine.
    """

    campaign_id: str
    status: CampaignStatus
    reason: PauseReason | str | None
    rule: TrailRule
    actor: str | None


@attrs.frozen(kw_only=True)
class RecipientEnded(Event):
    """A recipient of a campaign has ended.

    One that has ended may end again, in another way, by what its provider tells later. Those that end as they are
    loaded (duplicates, numbers that are none) are not told of one by one.

    Attributes:
        reason: How it ended, in the engine's words; None when there is nothing to say.
        rule: What decided.
        dispatch_id: The request by which it came to this; None where none did.
    """

    campaign_id: str
    position: int
    status: RecipientStatus
    reason: str | None
    rule: TrailRule
    dispatch_id: str | None


@attrs.frozen(kw_only=True)
class CallEnded(Event):
    """A call has ended, a single one or one of a campaign; the record of the call tells the rest.

    Attributes:
        campaign_id: None for a single call, as is `position`.
        outcome: What came of it, or why it failed; None when there is nothing to say.
    """

    call_id: str
    campaign_id: str | None
    position: int | None
    status: CallStatus
    outcome: CallOutcome | str | None
    dispatch_id: str | None


@attrs.frozen(kw_only=True)
class MessageStatusChanged(Event):
    """A carrier has told how far a message has come that it had accepted.

    Attributes:
        message_id: Of a single message; None for one of a campaign, which has `campaign_id` and `position`.
        reason: Failure class of a failure; None otherwise.
    """

    dispatch_id: str
    message_id: str | None
    campaign_id: str | None
    position: int | None
    status: MessageStatus
    reason: str | None


@attrs.frozen(kw_only=True)
class OptedOut(Event):
    """A number has come onto the register, or is stopped on more channels than before.

    Attributes:
        phone: E.164.
        source: What put it there.
        actor: Who.
    """

    phone: str
    scope: UnsubscribeScope
    source: str
    actor: str | None


@attrs.frozen(kw_only=True)
class OptedIn(Event):
    """A number has been taken off the register, by its START or by somebody.

    Attributes:
        phone: E.164.
        actor: Who.
    """

    phone: str
    actor: str | None


@attrs.frozen(kw_only=True)
class MessageReceived(Event):
    """Somebody has written back.

    Attributes:
        message_id: Of the message in `messages.list_inbound`.
        from_number: E.164.
        unclear: Whether it may be meant as an opt-out, or as the way back, and was taken for neither: a person has to
            read it.
    """

    message_id: str
    from_number: str
    unclear: bool = False
