"""Shared parts of the stand-ins: requests, answers, callbacks, and the scenario of a request."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Literal, Protocol
from uuid import uuid4

import attrs

Refusal = Literal["refuses_for_good", "refuses_for_now"]
"""How a provider refuses a request: an impossible number, or a fault that passes."""


class Scenario(StrEnum):
    """The scenario of a request, by the last digits of the number."""

    REFUSED = "0191"
    FAILED = "0192"
    OPTED_OUT = "0193"
    ANSWERED = "0194"
    SILENT = "0195"
    USUAL = ""


def scenario_of(number: str) -> Scenario:
    """Return the scenario of a request to a number."""
    return next((one for one in Scenario if one and number.endswith(one)), Scenario.USUAL)


@attrs.frozen(kw_only=True)
class Request:
    """A request to a provider.

    Attributes:
        method: In upper case.
        path: Without the query.
        query: Decoded; of a repeated name the last.
    """

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes


@attrs.frozen(kw_only=True)
class Outgoing:
    """A callback to send.

    Attributes:
        after: Seconds after the request.
        url: Where to; None for the callback URL that is set at the provider itself, empty where none was asked for: the
            content is recorded alone.
        content: Its content, before it is written and signed.
    """

    after: float
    url: str | None
    content: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Answer:
    """An answer in JSON, and the callbacks that follow."""

    document: Any
    status: int = 200
    callbacks: Sequence[Outgoing] = ()

    @property
    def body(self) -> bytes:
        """The document as bytes."""
        return json.dumps(self.document).encode()


@attrs.frozen(kw_only=True)
class Signed:
    """A callback as it is sent."""

    headers: Mapping[str, str]
    body: bytes = attrs.field(repr=False)


class StandIn(Protocol):
    """One provider, with one account."""

    @property
    def credentials(self) -> Mapping[str, str]:
        """The credentials to connect the account with, but for `api_base`."""
        ...

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Return whether a request has the credentials; the names of its headers are in lower case."""
        ...

    def answer(self, request: Request) -> Answer:
        """Take a message or a call, answer a look-up, or show that the credentials are right."""
        ...

    def refuse(self, refusal: Refusal) -> Answer:
        """Return how the provider refuses a request."""
        ...

    def record(self, content: Mapping[str, Any]) -> None:
        """Have look-ups show what a callback reports, from its time on."""
        ...

    def sign(self, url: str, content: Mapping[str, Any], now: datetime) -> Signed:
        """Write and sign a callback as the provider does."""
        ...


SENT_AFTER: Final = 0.2
ENDED_AFTER: Final = 0.6
WRITTEN_AFTER: Final = 1.0
"""Seconds from a request to its first report, to the last one, and to a reply."""

REPLY: Final = "Yes, please"
SUMMARY: Final = "Played: a person answered and was interested."
TRANSCRIPT: Final = "agent: Hello, do you have a moment?\nuser: Yes, that sounds good."
TALK_SECONDS: Final = 1

POOL_NUMBER: Final = "+14155550198"
"""The number that a Messaging Service sends from."""

NOT_FOUND: Final = Answer(status=404, document={})
UNAUTHORIZED: Final = Answer(status=401, document={})


def reply_of(scenario: Scenario) -> str | None:
    """Return what the contact writes back; None for nothing."""
    return {Scenario.OPTED_OUT: "STOP", Scenario.ANSWERED: REPLY}.get(scenario)


def basic_auth(name: str, secret: str) -> str:
    """Return the header of HTTP basic authentication."""
    return f"Basic {base64.b64encode(f'{name}:{secret}'.encode()).decode()}"


def without_query(url: str) -> str:
    """Return the address of a reply, which belongs to no request."""
    return url.partition("?")[0]


def hexadecimal_digest(secret: str, *parts: bytes, algorithm: str = "sha256") -> str:
    """Return the keyed digest of some bytes, in hexadecimal."""
    return hmac.new(secret.encode(), b"".join(parts), algorithm).hexdigest()


def new_number(length: int) -> str:
    """Return a new number of up to 32 hexadecimal digits: no identifier comes twice, in no run."""
    return uuid4().hex[:length]


def new_uuid() -> str:
    """Return a new identifier in the form of a UUID."""
    return str(uuid4())


def timestamp(moment: datetime) -> str:
    """Return a moment in UTC with milliseconds and a Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def as_object(body: bytes) -> dict[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
