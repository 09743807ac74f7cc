"""What a provider's part in a test of the whole engine is made of: it takes requests, and calls back signed events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import attrs
import httpx

from outreach.models.base import Channel
from outreach.protocols.adapter import Callback
from outreach.testing.fault_server import Answer, Received
from outreach.testing.http_harness import FakeProvider

PUBLIC_URL: Final = "https://outreach.test"
"""Where providers believe the server to be; it is on the loopback, as behind a proxy."""


@attrs.frozen(kw_only=True)
class Taken:
    """A message or a call that a provider has taken.

    Attributes:
        provider_id: The provider's identifier.
        dispatch_id: Ours, as the request brought it.
        to: The contact's number, in E.164.
    """

    provider_id: str
    dispatch_id: str
    to: str


@attrs.frozen(kw_only=True)
class Event:
    """What a provider tells, before it is signed.

    Attributes:
        content: The form's fields, or the value that is sent as JSON.
        query: What stands behind the callback's address, without the question mark.
    """

    content: Any
    query: str = ""


class Part:
    """One provider: its stand-in, and the signatures of its callbacks.

    Attributes:
        name: The provider's.
        channel: What it carries.
        credentials: Of an account there, but for `api_base`.
        stand_in_of: Makes what plays it.
        stand_in: Plays it.
    """

    name: ClassVar[str]
    channel: ClassVar[Channel]
    credentials: ClassVar[Mapping[str, str]]
    stand_in_of: ClassVar[Callable[[], FakeProvider]]

    def __init__(self) -> None:
        self.stand_in = type(self).stand_in_of()

    def asks(self, request: Received) -> bool:
        """Return whether a request asks for a message or a call."""
        return request.method == "POST"

    def dispatch_id(self, request: Received) -> str:
        """Return our identifier that a request brings."""
        raise NotImplementedError("A subclass knows where its provider carries it.")

    def taken(self, request: Received, answer: Answer) -> Taken:
        """Return what a request was for, by the answer of the stand-in."""
        raise NotImplementedError("A subclass knows the forms of its provider.")

    def sign(self, event: Event, *, url: str, at: datetime) -> Callback:
        """Return the callback of an event, signed for an address at a moment."""
        raise NotImplementedError("A subclass knows the signature of its provider.")


class Provider:
    """A provider on the loopback, which notes what it has taken.

    Args:
        part: Which one.
        notice: Called with each message or call, before it is answered.

    Attributes:
        taken: In order.
        refuses: Whether it refuses, for good, what comes from now on.
    """

    def __init__(self, part: Part, notice: Callable[[Taken], None] = lambda _: None) -> None:
        self._part = part
        self._notice = notice
        self.taken: list[Taken] = []
        self.refuses = False

    def answer(self, request: Received) -> Answer:
        """Answer as the stand-in does."""
        asks = self._part.asks(request)
        if asks and self.refuses:
            return self._part.stand_in.refuse("refuses_for_good")
        answer = self._part.stand_in.accept(request)
        if asks:
            taken = self._part.taken(request, answer)
            self.taken.append(taken)
            self._notice(taken)
        return answer


async def call_back(client: httpx.AsyncClient, server_url: str, callback: Callback) -> int:
    """Send a callback to where the server really is, and return the status of its answer."""
    parts = urlsplit(callback.url)
    target = f"{server_url}{parts.path}" + (f"?{parts.query}" if parts.query else "")
    answer = await client.post(target, content=callback.body, headers=dict(callback.headers))
    return answer.status_code
