"""What a real provider brings: the credentials it wants, its carrier or voice provider, and what it calls back.

An adapter is a package, `carriers/NAME` or `voice/NAME`, with one object `ADAPTER` of this shape. It is imported when
an account uses it, and not before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import attrs

from outreach.clock import Clock
from outreach.models.message import Keyword as Keyword
from outreach.models.reports import Report
from outreach.protocols.carrier import Carrier
from outreach.protocols.voice import VoiceProvider

if TYPE_CHECKING:
    # For the types alone: a workspace that sends to the simulators never loads an HTTP client.
    import httpx


class CallbackRefused(Exception):
    """A callback that is not the provider's, is too old, or cannot be read: it changes nothing.

    Args:
        reason: In words, for the log and for the answer; holds no secret and nothing of the body.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@attrs.frozen(kw_only=True)
class CredentialField:
    """One value that an account needs.

    Attributes:
        name: As it is written on the command line and in a file of credentials.
        description: What it is and where it is found at the provider, one sentence.
        secret: Whether it is never shown again once it is stored.
        required: Whether no account is made without it.
    """

    name: str
    description: str
    secret: bool = True
    required: bool = True


@attrs.frozen(kw_only=True)
class Connection:
    """An account as its adapter works with it.

    Attributes:
        workspace_id: Whose account it is.
        account_id: Our identifier of it.
        credentials: The values of the adapter's fields; those that were not given are absent.
        http: The client to make requests with: it follows no redirect, and repeats nothing.
        clock: Where the time comes from.
        callback_url: Where the provider is to call back, without a query; None when no public address is set, and
            then the provider is told of none.
    """

    workspace_id: str
    account_id: str
    credentials: Mapping[str, str] = attrs.field(repr=False)
    http: httpx.AsyncClient
    clock: Clock
    callback_url: str | None = None


@attrs.frozen(kw_only=True)
class Callback:
    """One request that reached our address of callbacks, as it came.

    Attributes:
        url: The address as the provider knows it: the public base, the path and the query; some sign it.
        headers: Names in lower case; of a repeated one the last.
        query: The query's parameters, decoded; of a repeated one the last.
        body: The bytes that came; signatures are over these and never over something read and written again.
    """

    url: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class InboundMessageEvent:
    """A message that somebody wrote to one of our numbers.

    Attributes:
        provider_id: The carrier's identifier of it: one message is taken in once.
        from_number: Who wrote, as E.164 where the carrier gives that.
        to: Our number.
        body: What was written; empty for a message of media alone.
        at: When it was written, by the carrier's clock.
        keyword: What the carrier itself took it for; None where it does not say.
        replied_by_carrier: Whether the carrier says that it has replied to the keyword itself.
    """

    provider_id: str
    from_number: str
    to: str
    body: str
    at: datetime
    keyword: Keyword | None = None
    replied_by_carrier: bool = False


@attrs.frozen(kw_only=True)
class CallbackEvent:
    """One thing that a callback tells.

    Attributes:
        event_id: Identifies it among all of the account: what comes with an identifier a second time is dropped. Where
            the provider gives none it is made of what makes the event what it is, such as message and status.
        content: A report or a message; None for an event of which only the receipt is kept.
        to: The contact's number as the provider gives it in an event whose address is not signed: a report is believed
            only when it is that of its dispatch. None where the signature covers what names the dispatch.
        provider_id_may_differ: Whether the provider may have answered the request with another identifier than events
            name. Where it does not, a report that names our dispatch and another identifier than this has is not
            believed.
        unreadable_kind: The provider's kind of an event that tells of a message somebody wrote and has no content,
            because who wrote, or to whom, cannot be read: a STOP may be lost with it, so that the log tells of it.
            Else None.
    """

    event_id: str
    content: Report | InboundMessageEvent | None
    to: str | None = None
    provider_id_may_differ: bool = False
    unreadable_kind: str | None = None


@attrs.frozen(kw_only=True)
class AccountCheck:
    """What came of asking a provider something harmless with an account's credentials.

    Attributes:
        ok: Whether the provider accepts them.
        message: What is the case, in words, and what to do where something is wrong; holds no secret.
    """

    ok: bool
    message: str


class Adapter(Protocol):
    """What every provider's adapter brings, of either kind.

    None of the methods keeps anything between two calls: what must be remembered is in the database.
    """

    @property
    def name(self) -> str:
        """The provider's name, as accounts, agents and the ledger have it."""
        ...

    @property
    def fields(self) -> Sequence[CredentialField]:
        """What an account needs, in the order in which it is asked for."""
        ...

    @property
    def replies_to_keywords(self) -> bool:
        """Whether the provider, as it comes, answers STOP, START and HELP by itself; an account may say otherwise."""
        ...

    @property
    def max_callback_bytes(self) -> int:
        """The largest body of a callback that the provider sends; a larger one is not read, whoever sends it."""
        ...

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        """Return what is wrong with credentials as far as can be told without asking: one sentence each.

        A required field that is missing and a name that is none of the fields are found before; this is for their
        form, and for what must be given together. An account without what verifies callbacks is a problem.
        """
        ...

    async def check(self, connection: Connection) -> AccountCheck:
        """Ask the provider something that changes nothing and costs nothing, once.

        Never raises for anything that the provider or the network does.
        """
        ...

    def read(self, connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
        """Verify a callback's signature on the raw body, its age where the provider signs a time, and then read it.

        Nothing of a body is parsed that is not verified, as far as the provider's way of signing allows that. May be
        called in another thread than the event loop's, and from several at a time.

        What the provider may add is ignored; an event of an unknown kind has no content. Reports carry the dispatch
        id wherever the provider brings it back.

        Raises:
            CallbackRefused: It is not the provider's, too old, or cannot be read.
        """
        ...


class CarrierAdapter(Adapter, Protocol):
    """The adapter of an SMS carrier: `outreach/carriers/NAME/__init__.py` has it as `ADAPTER`."""

    def connect(self, connection: Connection) -> Carrier:
        """Return the carrier that works with an account; makes no request."""
        ...

    def carrier_start_words(self, to: str) -> Collection[str] | None:
        """Return the messages by which who has opted out comes back, where the carrier answers keywords by itself.

        No other message lifts the carrier's own block. An account says whether the carrier answers at all.

        Args:
            to: Our number that is written to, as the carrier gives it.

        Returns:
            Words in small letters, without punctuation; None where the carrier leaves keywords to us at this number,
            whatever the account says.
        """
        ...


class VoiceAdapter(Adapter, Protocol):
    """The adapter of a voice provider: `outreach/voice/NAME/__init__.py` has it as `ADAPTER`."""

    def connect(self, connection: Connection) -> VoiceProvider:
        """Return the voice provider that works with an account; makes no request."""
        ...
