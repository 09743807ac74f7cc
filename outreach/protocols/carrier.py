"""What the engine asks of an SMS carrier."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Literal, Protocol

import attrs

from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import Report

ReportSink = Callable[[Report], Awaitable[None]]
"""Where an adapter that hears of things by itself hands them in; returns when they are committed."""

LookupSupport = Literal["none", "evidence", "authoritative"]
"""What a look-up can tell: nothing, only that something was accepted, or also that it was not."""


@attrs.frozen(kw_only=True)
class OutboundMessage:
    """One message to send.

    Attributes:
        dispatch_id: Our identifier; the carrier carries it back where it can.
        from_number: The number or name that it is sent from; None only in a sandbox without numbers.
        not_after: The carrier must not deliver it later, where it has a field for that: the earliest of the
            campaign's closing time, the contact's own evening and the campaign's expiry; None for no bound.
    """

    dispatch_id: str
    workspace_id: str
    from_number: str | None
    to: str
    body: str
    not_after: datetime | None


@attrs.frozen(kw_only=True)
class LookupRequest:
    """A dispatch of which nobody knows what became, as far as a provider can be asked for it.

    Attributes:
        dispatch_id: Our identifier; found by it where the provider carries it.
        provider_id: The provider's identifier; None where it never reached us.
        from_number: The number that it was sent or called from; None where that was left to the provider.
        to: The contact's number.
        body: The text of a message; None for a call.
        since: When the dispatch was committed: the provider cannot have heard of it earlier.
        until: When the last request for it can have ended: the provider cannot have taken it later.
    """

    workspace_id: str
    dispatch_id: str
    provider_id: str | None = None
    from_number: str | None = None
    to: str
    body: str | None = attrs.field(default=None, repr=False)
    since: datetime
    until: datetime


@attrs.frozen(kw_only=True)
class CarrierCapabilities:
    """What a carrier can do.

    Attributes:
        look_up: What `look_up` can tell.
        supports_not_after: Whether it has a field for `not_after`.
    """

    look_up: LookupSupport
    supports_not_after: bool


class Carrier(Protocol):
    """An SMS carrier.

    `send` makes one request and no more: no retry, no redirect. It does not raise for anything that the
    carrier or the network does; what happened is in the outcome:

    - `accepted`, with the carrier's id: it said yes.
    - `refused`, with a failure class: it said no, for good (`invalid_number`, `opted_out`, `filtered`,
      `bad_sender`, `bad_body`, `rejected`, `provider_auth`, `provider_funds`) or for now (`temporary`).
    - `deferred`: it was too busy for us (`rate_limited`) and certainly did nothing; its wish for the next try
      stands in `retry_after_seconds`.
    - `not_sent`: the request was never written, so the carrier cannot have heard of it.
    - `unknown`: anything else, such as a timeout, a dropped connection, a 5xx, an answer that cannot be read.

    When it is cancelled after the request began, the engine records the dispatch as unknown.
    """

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""
        ...

    @property
    def capabilities(self) -> CarrierCapabilities:
        """What it can do."""
        ...

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Hand one message to the carrier, once."""
        ...

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Find out what became of a dispatch.

        Returns:
            `accepted` or `refused` when the carrier knows of it; `not_sent` when it certainly has none and the
            look-up is authoritative; None when nothing can be said.
        """
        ...
