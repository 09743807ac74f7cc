from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anyio
import httpx
import pytest

from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.providers.http.sending import (
    UnreadableResponse,
    refusal,
    retry_after,
    send_once,
)
from outreach.testing.clock import ManualClock
from outreach.testing.fault_server import Answer, Fault, FaultServer

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CLOCK = ManualClock(NOW)

pytestmark = pytest.mark.anyio


def _accepted(response: httpx.Response) -> DispatchOutcome:
    if response.is_success:
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=response.json()["id"])
    return refusal(None, response, now=NOW)


async def _send(url: str, *, patience: float = 30.0) -> DispatchOutcome:
    async with httpx.AsyncClient(timeout=patience) as http:
        return await send_once(
            http, http.build_request("POST", f"{url}/messages", json={"to": "x"}), _accepted, clock=CLOCK
        )


@pytest.mark.parametrize(
    ("answer", "state", "reason"),
    [
        (Answer(status=201, body=b'{"id": "a"}'), DispatchState.ACCEPTED, None),
        (Answer(status=201, body=b"<html>"), DispatchState.UNKNOWN, "unreadable"),
        (Answer(status=201, body=b"{}"), DispatchState.UNKNOWN, "unreadable"),
        (Answer(status=400), DispatchState.REFUSED, "rejected"),
        (Answer(status=401), DispatchState.REFUSED, "provider_auth"),
        (Answer(status=402), DispatchState.REFUSED, "provider_funds"),
        (Answer(status=403), DispatchState.REFUSED, "provider_auth"),
        (Answer(status=408, body=b'{"message": "Request timeout"}'), DispatchState.UNKNOWN, "timeout"),
        (Answer(status=429), DispatchState.DEFERRED, "rate_limited"),
        (Answer(status=500), DispatchState.UNKNOWN, "provider_error"),
        (Answer(status=503), DispatchState.UNKNOWN, "provider_error"),
    ],
)
async def test_a_status_has_its_outcome(answer: Answer, state: DispatchState, reason: str | None) -> None:
    """docs/delivery-contract.md#rule-5: yes and no are outcomes, a 5xx and what cannot be read are unknown."""
    async with FaultServer(lambda _: answer) as server:
        outcome = await _send(server.url)
        assert (outcome.state, outcome.reason) == (state, reason)
        assert len(server.requests) == 1


@pytest.mark.parametrize("fault", ["drop_before", "drop_during", "drop_after"])
async def test_a_connection_that_is_dropped_leaves_it_unknown(fault: Fault) -> None:
    """Once a connection stands, nobody can tell what the provider has read; and nothing is asked again."""
    async with FaultServer(lambda _: Answer()) as server:
        server.fault = fault
        assert (await _send(server.url)).state is DispatchState.UNKNOWN
        assert server.connections == 1


async def test_what_cannot_be_connected_was_not_sent() -> None:
    """Where nobody listens nobody has heard anything."""
    async with FaultServer(lambda _: Answer()) as server:
        url = server.url
    assert (await _send(url)).state is DispatchState.NOT_SENT


async def test_a_redirect_is_not_followed() -> None:
    """A redirect is no acceptance, and what it points to is not asked."""
    async with FaultServer(lambda _: Answer(status=307, headers={"location": "/elsewhere"})) as server:
        assert (await _send(server.url)).state is not DispatchState.ACCEPTED
        assert [request.path for request in server.requests] == ["/messages"]


async def test_silence_can_be_cancelled() -> None:
    """A provider that never answers holds nobody up who stops waiting."""
    async with FaultServer(lambda _: Answer()) as server:
        server.fault = "silence"
        with anyio.move_on_after(0.2) as scope:
            await _send(server.url)
        assert scope.cancelled_caught


async def test_silence_is_unknown_in_the_end() -> None:
    """A provider that never answers may have sent the message."""
    async with FaultServer(lambda _: Answer()) as server:
        server.fault = "silence"
        outcome = await _send(server.url, patience=0.3)
        assert (outcome.state, outcome.reason) == (DispatchState.UNKNOWN, "timeout")
        assert len(server.requests) == 1


async def test_a_read_that_finds_nothing_readable_is_unknown() -> None:
    """An adapter says so by an error of its own."""

    def unreadable(_: httpx.Response) -> DispatchOutcome:
        raise UnreadableResponse

    async with FaultServer(lambda _: Answer()) as server, httpx.AsyncClient() as http:
        outcome = await send_once(http, http.build_request("POST", server.url), unreadable, clock=CLOCK)
    assert outcome.state is DispatchState.UNKNOWN


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=90), usegmt=True)}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "1e300"}, 86_400.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Mon, 01 Jan 2026 00:00:00 +9999999999999"}, None),
        ({"retry-after": "Mon, 01 Jan 2026 00:00:00 +2400"}, None),
        ({"retry-after": "Mon, 01 Jan 99999 00:00:00 +0000"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 -2359"}, 86_400.0),
        ({"retry-after": "9" * 400}, None),
        ({"x-ratelimit-reset": "12"}, 12.0),
        ({"x-ratelimit-reset": str(int(NOW.timestamp() * 1000) + 30_500)}, 30.5),
        ({"x-ratelimit-reset": str(int(NOW.timestamp() * 1000) - 30_500)}, 0.0),
        ({"retry-after": str(int(NOW.timestamp() * 1000) + 7_000)}, 7.0),
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 30)}, 30.0),
        ({}, None),
    ],
)
async def test_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    """RFC 9110, 10.2.3: seconds or a date; never a time that has passed, never longer than a day."""
    assert retry_after(headers, now=NOW) == seconds


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (503, {"retry-after": "30"}, 30.0),
        (503, {"retry-after": format_datetime(NOW + timedelta(seconds=40))}, 40.0),
        (503, {"x-ratelimit-reset": "30"}, None),
        (503, {}, None),
        (500, {"retry-after": "30"}, None),
    ],
)
async def test_who_is_out_of_order_may_say_for_how_long(
    status: int, headers: dict[str, str], seconds: float | None
) -> None:
    """RFC 9110, 15.6.4: a 503 may carry `Retry-After`. What became of the request is as unknown as after any 5xx."""
    async with FaultServer(lambda _: Answer(status=status, headers=headers)) as server:
        outcome = await _send(server.url)
        assert (outcome.state, outcome.reason) == (DispatchState.UNKNOWN, "provider_error")
        assert outcome.retry_after_seconds == seconds
