"""What the tests of the carriers' adapters share: a connection, a message, callbacks, requests that are caught."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import httpx

from outreach.core.clock import Clock
from outreach.models.dispatch import DispatchOutcome
from outreach.protocols.adapter import Callback, CarrierAdapter, Connection
from outreach.protocols.carrier import LookupRequest, OutboundMessage
from outreach.testing.builders import NOW, WORKSPACE_ID, new_id
from outreach.testing.clock import ManualClock
from outreach.testing.fault_server import Answer, Received
from outreach.testing.provider_contract import Scenario
from outreach_server.stand_ins.base import Request, StandIn

CALLBACK_URL: Final = "https://hooks.example.com/webhooks/0195554e-0000-7000-8000-0000000000ac"
SENDER: Final = "+14155550199"
TO: Final = "+14155550100"
SECONDS_TO_PACIFIC_MIDNIGHT: Final = (datetime(2026, 3, 3, 8, tzinfo=UTC) - NOW).total_seconds()
"""From `NOW` to the end of the day in Los Angeles."""
BODY: Final = "Grüße 👋"


def connection(
    credentials: Mapping[str, str],
    *,
    http: httpx.AsyncClient | None = None,
    clock: Clock | None = None,
    callback_url: str | None = CALLBACK_URL,
) -> Connection:
    """Return a connection at a moment that stands still."""
    return Connection(
        workspace_id=WORKSPACE_ID,
        account_id="0195554e-0000-7000-8000-0000000000ac",
        credentials=credentials,
        http=http or httpx.AsyncClient(transport=httpx.MockTransport(lambda _: httpx.Response(500))),
        clock=clock or ManualClock(),
        callback_url=callback_url,
    )


def message(**changes: Any) -> OutboundMessage:
    """Return a message; `changes` are its fields."""
    fields: dict[str, Any] = {
        "dispatch_id": new_id(),
        "workspace_id": WORKSPACE_ID,
        "from_number": SENDER,
        "to": TO,
        "body": BODY,
        "not_after": None,
    }
    return OutboundMessage(**{**fields, **changes})


def lookup(**changes: Any) -> LookupRequest:
    """Return a look-up of a message that was committed now; `changes` are its fields."""
    fields: dict[str, Any] = {
        "workspace_id": WORKSPACE_ID,
        "dispatch_id": new_id(),
        "from_number": SENDER,
        "to": TO,
        "body": BODY,
        "since": NOW,
        "until": NOW,
    }
    return LookupRequest(**{**fields, **changes})


class Caught:
    """Catches the requests of an adapter and answers them.

    Args:
        answer: The answer, or what makes it of a request.

    Attributes:
        requests: What was asked, in order.
    """

    def __init__(self, answer: httpx.Response | Callable[[httpx.Request], httpx.Response]) -> None:
        self._answer = answer
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Catch one."""
        self.requests.append(request)
        return self._answer if isinstance(self._answer, httpx.Response) else self._answer(request)

    @property
    def request(self) -> httpx.Request:
        """The only one."""
        (only,) = self.requests
        return only

    def connection(self, credentials: Mapping[str, str], **options: Any) -> Connection:
        """Return a connection whose requests are caught."""
        return connection(credentials, http=httpx.AsyncClient(transport=httpx.MockTransport(self)), **options)


async def sent(
    adapter: CarrierAdapter,
    credentials: Mapping[str, str],
    answer: httpx.Response,
    *,
    clock: Clock | None = None,
    callback_url: str | None = CALLBACK_URL,
    **changes: Any,
) -> tuple[DispatchOutcome, list[httpx.Request]]:
    """Send one message; return its outcome, and the requests that were made for it."""
    caught = Caught(answer)
    carrier = adapter.connect(caught.connection(credentials, clock=clock, callback_url=callback_url))
    return await carrier.send(message(**changes)), caught.requests


class Played:
    """The server's stand-in of a provider, in front of the contracts.

    Args:
        stand_in: The stand-in.
    """

    def __init__(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in

    def accept(self, request: Received) -> Answer:
        """Take a message or a call, or answer a look-up."""
        asked = Request(method=request.method, path=request.path, query=request.query, body=request.body)
        found = self._stand_in.answer(asked)
        return as_json(found.document, found.status)

    def refuse(self, scenario: Scenario) -> Answer:
        """Refuse an impossible number for good, or for now."""
        assert scenario in {"refuses_for_good", "refuses_for_now"}
        found = self._stand_in.refuse(scenario)
        return as_json(found.document, found.status)


def callback(body: bytes, headers: Mapping[str, str] | None = None, *, url: str = CALLBACK_URL) -> Callback:
    """Return a callback as the server hands it over."""
    return Callback(url=url, headers=dict(headers or {}), query=dict(parse_qsl(urlsplit(url).query)), body=body)


def as_json(value: object, status: int = 200) -> Answer:
    """Return an answer in JSON."""
    return Answer(status=status, headers={"content-type": "application/json"}, body=json.dumps(value).encode())


def seconds_after(moment: datetime, seconds: float) -> datetime:
    """Return a moment some seconds later."""
    return datetime.fromtimestamp(moment.timestamp() + seconds, tz=moment.tzinfo)
