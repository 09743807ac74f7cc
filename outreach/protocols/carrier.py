"""The protocol of SMS carriers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol

import attrs

if TYPE_CHECKING:
    from outreach.models.dispatch import DispatchOutcome
    from outreach.models.reports import Report
    from outreach.protocols.sent_list import SentQuery, SentRequest

ReportSink = Callable[["Report"], Awaitable[None]]
"""Takes reports from an adapter that receives them itself; returns after the commit."""

LookupSupport = Literal["none", "evidence", "authoritative"]
"""The facts that a look-up can prove: nothing, only acceptance, or also that a request was not accepted."""


@attrs.frozen(kw_only=True)
class OutboundMessage:
    """One message to send.

    Attributes:
        dispatch_id: Our id; the carrier returns it where it can.
        from_number: The sending number or name, or a Messaging Service of the carrier; None only in a sandbox without
            numbers.
        not_after: The carrier must not deliver it later, if it has a field for that: the earliest of closing time, the
            contact's local hours and the campaign's expiry; None for no bound.
    """

    dispatch_id: str
    workspace_id: str
    from_number: str | None
    to: str
    body: str
    not_after: datetime | None


@attrs.frozen(kw_only=True)
class LookupRequest:
    """A dispatch with an unknown outcome, to be looked up at its provider.

    Attributes:
        dispatch_id: Our id, to search by where the provider has it.
        provider_id: The provider's id; None if unknown.
        from_number: The sending number or caller ID; None for the provider's default.
        to: The contact's number.
        body: The text of a message; None for a call.
        since: When the dispatch was committed: it was sent no earlier.
        until: When its last request can have ended: it was accepted no later.
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
    """The capabilities of a carrier.

    Attributes:
        look_up: The facts that `look_up` can prove.
        supports_not_after: Whether it has a field for `not_after`.
        lists_sent: Whether `list_sent` lists what it was sent; without it the method may be missing.
    """

    look_up: LookupSupport
    supports_not_after: bool
    lists_sent: bool = False


class ListsSent(Protocol):
    """A carrier or voice provider that can list what it was sent (`lists_sent`)."""

    async def list_sent(self, query: SentQuery) -> Sequence[SentRequest]:
        """List all messages, or all calls, of the account in a period, in any order; more are allowed, fewer are not.

        Requests change nothing, and their number is bounded.

        Raises:
            SentListFailed: The list is not complete.
        """
        ...


class Carrier(Protocol):
    """An SMS carrier.

    `send` makes exactly one request, without retry or redirect. It never raises for anything that the carrier or the
    network does; the outcome says what happened:

    - `accepted`, with the carrier's id.
    - `refused`, with a failure class: for good (`invalid_number`, `opted_out`, `filtered`, `bad_sender`, `bad_body`,
      `rejected`, `provider_auth`, `provider_funds`) or for now (`temporary`).
    - `deferred`: rate limited (`rate_limited`), and certainly not accepted; `retry_after_seconds` is its `Retry-After`.
    - `not_sent`: the request was never written.
    - `unknown`: anything else, such as a timeout, a dropped connection, a 5xx or an unreadable response.

    If it is cancelled after the request began, the engine records the dispatch as unknown.

    Each HTTP request of the connection belongs to the dispatch in whose context it is made, and is refused after the
    dispatch. A background task, such as one that renews a token, is therefore started without a context:
    `asyncio.create_task(..., context=contextvars.Context())`.
    """

    @property
    def name(self) -> str:
        """The name in the ledger."""
        ...

    @property
    def capabilities(self) -> CarrierCapabilities:
        """The features that the carrier supports."""
        ...

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Send one message, once."""
        ...

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Find out the outcome of a dispatch.

        Returns:
            `accepted` or `refused` if the carrier knows it; `not_sent` if it certainly does not and the look-up is
            authoritative; None if nothing is certain.
        """
        ...
