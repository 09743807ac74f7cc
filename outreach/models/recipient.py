"""The people of a campaign: as they are supplied, as they are loaded, as the ledger holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import attrs

from outreach.models.states import OPEN_RECIPIENT_STATUSES, RecipientStatus


@attrs.frozen(kw_only=True)
class NewRecipient:
    """A contact as it is supplied (docs/interface.md#2.3).

    Attributes:
        custom_variables: Any JSON values; keys are usable as template variables.
    """

    phone_number: str
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    company: str | None = None
    custom_variables: Mapping[str, Any] = attrs.field(factory=dict)


class PreparedRecipient(NamedTuple):
    """A contact made ready to be written: checked, its number normalised, its variables as JSON text.

    A plain tuple, because hundreds of thousands of them travel between processes and into the database.

    Attributes:
        phone_number: As supplied.
        phone: E.164, or None when it is no possible number.
        custom_variables: Compact JSON object, or None for an empty one.
    """

    phone_number: str
    phone: str | None
    first_name: str | None
    last_name: str | None
    email: str | None
    company: str | None
    custom_variables: str | None


@attrs.frozen(kw_only=True)
class Recipient:
    """A contact of a campaign in the ledger.

    Attributes:
        position: Place in the campaign's list, from 0.
        phone_number: As supplied.
        phone: E.164, or None when it is no possible number.
        custom_variables: JSON values by name.
        status: The one state that it is in.
        reason: Why it waits or how it ended; None when there is nothing to say.
        due_at: When a waiting recipient is looked at again.
        step: Index of the flow's step that comes next; 0 outside flows.
        attempts: Attempts spent on this step: deferred and withdrawn dispatches do not count.
        tries: Dispatches opened for this attempt, deferred ones included; the back-off grows with it.
        leg: Which call of a double dial comes next, 1 or 2; 1 outside double dials.
        caller_id: The number that calls to this recipient come from, once one of a group has been assigned.
        dispatched: Whether at least one request has gone out to a provider, for any step.
        successful: SMS: accepted and not failed. Call: answered and marked positive.
        ended_at: When it ended.
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

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.status in OPEN_RECIPIENT_STATUSES


@attrs.frozen(kw_only=True)
class RecipientCount:
    """How many recipients of a campaign are in one state for one reason."""

    status: RecipientStatus
    reason: str | None
    count: int


PreparedChunk = Sequence[PreparedRecipient]
