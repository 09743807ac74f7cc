"""The contacts of a campaign: as supplied, as prepared, as stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import attrs

from outreach.models.fields import Checked, Text, ruled, sized, zone
from outreach.models.states import OPEN_RECIPIENT_STATUSES, RecipientStatus

MAX_EXTERNAL_ID: Final = 255

_ZONE_NAME: Final = Text(0, 64)


def own_zone(value: Any) -> str:
    """Return the name of a contact's time zone; raise `Refused`."""
    return zone(_ZONE_NAME(value))


@attrs.frozen(kw_only=True)
class NewRecipient:
    """A contact as supplied (docs/interface.md#2.3).

    It does not check itself, because a campaign may have hundreds of thousands: its reader does.

    Attributes:
        custom_variables: Any JSON values; the keys are template variables.
        external_id: The application's own name of the contact, 1 to 255 characters; need not be unique.
        time_zone: Its own time zone, such as `America/Denver`; it wins over what follows.
        zip_code: Its ZIP code in the United States; any other text says nothing.
        state: Its state there, as a code or a name; any other text says nothing. The zones of the number come last.
    """

    phone_number: str = ruled(Text(1))
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    company: str | None = None
    custom_variables: Mapping[str, Any] = attrs.field(factory=dict)
    external_id: str | None = sized(1, MAX_EXTERNAL_ID, default=None)
    time_zone: str | None = ruled(own_zone, default=None)
    zip_code: str | None = None
    state: str | None = None


@attrs.frozen(kw_only=True)
class RecipientSkip(Checked):
    """Why a person leaves a contact out of a campaign.

    Attributes:
        reason: In the person's words; kept in the audit trail.
    """

    reason: str | None = sized(1, 200, default=None)


class PreparedRecipient(NamedTuple):
    """A contact ready to be written; a tuple, because hundreds of thousands travel between processes.

    Attributes:
        phone_number: As supplied.
        phone: E.164; None for an invalid number.
        custom_variables: Compact JSON object; None for an empty one.
        external_id: The application's own name of the contact, if any.
        time_zone: Its own time zone, if any.
        us_place: Its place in the United States: the first three digits of its ZIP code, or else its state's code.
        caller_id: The number of a sender pool that sent to it in an earlier campaign, if this one follows that up.
    """

    phone_number: str
    phone: str | None
    first_name: str | None
    last_name: str | None
    email: str | None
    company: str | None
    custom_variables: str | None
    external_id: str | None = None
    time_zone: str | None = None
    us_place: str | None = None
    caller_id: str | None = None


@attrs.frozen(kw_only=True)
class Recipient:
    """A contact of a campaign in the ledger.

    Attributes:
        position: Place in the campaign's list, from 0.
        phone_number: As supplied.
        phone: E.164; None for an invalid number.
        custom_variables: JSON values by name.
        status: Its state.
        reason: Why it waits or how it ended; None if there is nothing to say.
        due_at: When a waiting recipient is decided again.
        step: Index of the flow's next step; 0 outside flows.
        attempts: Attempts spent on this step, without deferred and withdrawn dispatches.
        tries: Dispatches opened for this attempt, deferred ones included; the backoff grows with it.
        leg: The next call of a double dial, 1 or 2; 1 outside double dials.
        caller_id: Its number of the caller-ID group or sender pool, or the one that a Messaging Service chose, if any.
        dispatched: Whether at least one request was sent, for any step.
        successful: SMS: accepted and not failed. Call: answered and marked positive.
        ended_at: When it ended.
        external_id: The application's own name of the contact, if any.
        added_at: When it was added to a campaign that existed; None if it was loaded with its campaign.
        time_zone: Its own time zone, if any.
        us_place: Its place in the United States: the first three digits of its ZIP code, or else its state's code.
    """

    campaign_id: str
    position: int
    phone_number: str
    phone: str | None
    first_name: str | None
    last_name: str | None
    email: str | None
    company: str | None
    custom_variables: Mapping[str, Any]
    status: RecipientStatus
    reason: str | None = None
    due_at: datetime | None = None
    step: int = 0
    attempts: int = 0
    tries: int = 0
    leg: int = 1
    caller_id: str | None = None
    dispatched: bool = False
    successful: bool = False
    ended_at: datetime | None = None
    external_id: str | None = None
    added_at: datetime | None = None
    time_zone: str | None = None
    us_place: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.status in OPEN_RECIPIENT_STATUSES


@attrs.frozen(kw_only=True)
class RecipientCount:
    """The number of a campaign's recipients in one state for one reason."""

    status: RecipientStatus
    reason: str | None
    count: int


PreparedChunk = Sequence[PreparedRecipient]
