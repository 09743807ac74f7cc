"""The adapter of a provider: its credentials, its carrier or voice provider, and its callbacks.

An adapter is an object of this shape. Those that the engine brings are packages, `carriers/NAME` or `voice/NAME`, with
one object `ADAPTER`, which is imported when an account uses it. Others are given to `Outreach(adapters=[...])`, or
named by an entry point of the group `outreach.adapters` in an installed package.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import attrs

if TYPE_CHECKING:
    # For types only: a sandbox workspace never loads an HTTP client.
    import httpx

    from outreach.core.clock import Clock
    from outreach.models.message import Keyword
    from outreach.models.reports import Report
    from outreach.protocols.carrier import Carrier
    from outreach.protocols.voice import VoiceProvider


class CallbackRefused(Exception):
    """A callback that is not from the provider, too old or unreadable; it changes nothing.

    Args:
        reason: For the log and the response; without secrets and parts of the body.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@attrs.frozen(kw_only=True)
class CredentialField:
    """One value of an account's credentials.

    Attributes:
        name: On the command line and in a file of credentials.
        description: What it is and where to find it at the provider, one sentence.
        secret: Whether it is never shown again once stored.
        required: Whether an account needs it.
        verifies: Whether callbacks are verified with it although it is no secret, such as a public key.
    """

    name: str
    description: str
    secret: bool = True
    required: bool = True
    verifies: bool = False


@attrs.frozen(kw_only=True)
class Connection:
    """An account as its adapter uses it.

    Attributes:
        workspace_id: The account's workspace.
        account_id: Our id of the account.
        credentials: Values by the names of the adapter's fields; absent ones were not given.
        http: The HTTP client; without redirects and retries.
        clock: The source of time.
        callback_url: The URL for callbacks, without a query; None: no callback URL is sent.
    """

    workspace_id: str
    account_id: str
    credentials: Mapping[str, str] = attrs.field(repr=False)
    http: httpx.AsyncClient
    clock: Clock
    callback_url: str | None = None


@attrs.frozen(kw_only=True)
class Callback:
    """One request to our callback URL, as received.

    Attributes:
        url: The URL as the provider knows it: public base, path and query; some sign it.
        headers: By lower-case name; of a repeated one the last.
        query: The decoded parameters; of a repeated one the last.
        body: The raw bytes, which signatures cover.
    """

    url: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class InboundMessageEvent:
    """A message to one of our numbers.

    Attributes:
        provider_id: The carrier's id, which makes it unique.
        from_number: The sender, in E.164 where the carrier gives that.
        to: Our number.
        body: The text; empty for a message with media alone.
        at: When it was written, by the carrier's clock.
        keyword: The keyword that the carrier recognised, if it says.
        replied_by_carrier: Whether the carrier says that it has replied to the keyword itself.
        media: The links to its media, if any.
        media_left_out: How many of its media have no usable link; the log says so.
    """

    provider_id: str
    from_number: str
    to: str
    body: str
    at: datetime
    keyword: Keyword | None = None
    replied_by_carrier: bool = False
    media: Sequence[str] = ()
    media_left_out: int = 0


@attrs.frozen(kw_only=True)
class CallbackEvent:
    """One event of a callback.

    Attributes:
        event_id: Unique in the account: a repeated event is dropped. If the provider gives none, it is made of what
            identifies the event, such as message and status.
        content: A report or a message; None for an event that is only logged.
        to: The contact's number in an event that its signature does not cover: a report counts only if this is the
            number of its dispatch. None where the signature covers the dispatch's name.
        provider_id_may_differ: Whether the provider may have answered the request with another id than its events name.
            If not, a report with our dispatch id and another provider id than the dispatch's is rejected.
        unreadable_kind: The provider's kind of an inbound message whose sender or receiver is unreadable; logged,
            because it may be a STOP. Else None.
    """

    event_id: str
    content: Report | InboundMessageEvent | None
    to: str | None = None
    provider_id_may_differ: bool = False
    unreadable_kind: str | None = None


CheckFault = Literal["refused", "funds", "disabled", "unreachable"]
"""The fault of an account: the provider refuses its credentials or ids, it has no funds, it or a part of it is
disabled or suspended there, or the state is unknown because the provider gives no usable answer now."""


@attrs.frozen(kw_only=True)
class AccountCheck:
    """The result of testing an account's credentials.

    Attributes:
        ok: Whether the provider accepts them.
        message: The result in words, with what to do about a problem; without secrets.
        fault: The fault; None if there is none, or if the adapter does not name it.
    """

    ok: bool
    message: str
    fault: CheckFault | None = None


class Adapter(Protocol):
    """The common part of both kinds of adapters; the methods keep no state between calls."""

    @property
    def name(self) -> str:
        """The provider's name in accounts, agents and the ledger."""
        ...

    @property
    def kind(self) -> Literal["carrier", "voice"]:
        """The kind of its provider."""
        ...

    @property
    def fields(self) -> Sequence[CredentialField]:
        """The credentials, in the order in which to ask for them."""
        ...

    @property
    def replies_to_keywords(self) -> bool:
        """Whether the provider by default replies to STOP, START and HELP itself; an account may override it."""
        ...

    @property
    def max_callback_bytes(self) -> int:
        """The largest callback body; a larger one is not read."""
        ...

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        """Return what is wrong with the form and the combination of credentials, one sentence each, without a request.

        Missing and unknown fields are found before. Credentials that cannot verify callbacks are a problem.
        """
        ...

    async def check(self, connection: Connection) -> AccountCheck:
        """Test the credentials with one request that changes nothing and costs nothing.

        Never raises for anything that the provider or the network does.
        """
        ...

    def read(self, connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
        """Verify a callback's signature on the raw body, and its age where the provider signs a time; then read it.

        Parses nothing unverified, as far as the provider's signatures allow. May run in other threads, several at a
        time. Unknown fields are ignored; an event of an unknown kind has no content. Reports have the dispatch id
        wherever the provider returns it. One of another workspace than the connection's is left out.

        Raises:
            CallbackRefused: It is not from the provider, too old or unreadable.
        """
        ...


class CarrierAdapter(Adapter, Protocol):
    """The adapter of an SMS carrier; one of your own is given to `Outreach(adapters=[...])`."""

    @property
    def kind(self) -> Literal["carrier"]:
        """That it is one: `kind: Final = "carrier"`."""
        ...

    def connect(self, connection: Connection) -> Carrier:
        """Return an account's carrier; makes no request."""
        ...

    def carrier_start_words(self, to: str) -> Collection[str] | None:
        """Return the messages that lift the carrier's own block after an opt-out, where it replies to keywords itself.

        Args:
            to: Our number, as the carrier gives it.

        Returns:
            Lower-case words without punctuation; None if the carrier leaves keywords at this number to us, whatever the
            account's setting is.
        """
        ...


class VoiceAdapter(Adapter, Protocol):
    """The adapter of a voice provider; one of your own is given to `Outreach(adapters=[...])`."""

    @property
    def kind(self) -> Literal["voice"]:
        """That it is one: `kind: Final = "voice"`."""
        ...

    @property
    def trunks_by_identifier(self) -> bool:
        """Whether it takes a SIP trunk by its own identifier only, so that no call goes over a trunk without one."""
        ...

    def connect(self, connection: Connection) -> VoiceProvider:
        """Return an account's voice provider; makes no request."""
        ...


AnyAdapter: TypeAlias = CarrierAdapter | VoiceAdapter
"""An adapter that `Outreach(adapters=[...])` takes."""
