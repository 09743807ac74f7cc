"""What every carrier's adapter makes of answers that it cannot read.

What becomes of each status and fault of the network is tested once, in `tests/providers/http`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx
import pytest

from outreach.models.states import DispatchState
from outreach.protocols.adapter import CarrierAdapter
from outreach.protocols.carrier import Carrier
from outreach.testing.builders import NOW
from outreach.testing.fault_server import Answer, Fault, FaultServer
from tests.carriers.kit import connection, lookup, message


class FaultMatrix:
    """The tests; a subclass names the adapter, its credentials, and how its carrier says yes."""

    pytestmark = pytest.mark.anyio

    adapter: CarrierAdapter
    credentials: Mapping[str, str]
    accepted: Answer

    @asynccontextmanager
    async def before(self, server: FaultServer, *, patience: float = 30.0) -> AsyncIterator[Carrier]:
        """Return the carrier with its provider at a server."""
        async with httpx.AsyncClient(timeout=patience) as http:
            yield self.adapter.connect(connection({**self.credentials, "api_base": server.url}, http=http))

    @pytest.mark.parametrize(
        ("answer", "state", "reason"),
        [
            (Answer(status=500), DispatchState.UNKNOWN, "provider_error"),
            (Answer(status=429), DispatchState.DEFERRED, "rate_limited"),
            (Answer(status=403, body=b"[1]"), DispatchState.REFUSED, "provider_auth"),
            (Answer(status=400, body=b"<html>"), DispatchState.REFUSED, "rejected"),
            (Answer(status=307), DispatchState.UNKNOWN, "unreadable"),
            (Answer(status=200, body=b"<html>"), DispatchState.UNKNOWN, "unreadable"),
            (Answer(status=200, body=b""), DispatchState.UNKNOWN, "unreadable"),
            (Answer(status=201, body=b"{}"), DispatchState.UNKNOWN, "unreadable"),
            (Answer(status=202, body=b"[]"), DispatchState.UNKNOWN, "unreadable"),
            (Answer(status=200, body=b'{"data": {"id": 7}, "sid": [], "message_uuid": null}'), None, "unreadable"),
            (Answer(status=200, body=b"[" * 100_000), DispatchState.UNKNOWN, "unreadable"),
            (Answer(status=200, body=b'{"sid": 1' + b"0" * 5000 + b"}"), DispatchState.UNKNOWN, "unreadable"),
            (Answer(status=200, body=b"\xff\xfe"), DispatchState.UNKNOWN, "unreadable"),
        ],
    )
    async def test_an_answer_has_its_class(self, answer: Answer, state: DispatchState | None, reason: str) -> None:
        """docs/delivery-contract.md#rule-5: a no is a no, and whatever cannot be read is unknown; asked once."""
        async with FaultServer(lambda _: answer) as server, self.before(server) as carrier:
            outcome = await carrier.send(message())
            assert (outcome.state, outcome.reason) == (state or DispatchState.UNKNOWN, reason)
            assert [request.method for request in server.requests] == ["POST"]

    @pytest.mark.parametrize("left", [timedelta(), timedelta(seconds=-1), timedelta(seconds=3)])
    async def test_what_is_too_late_is_not_sent(self, left: timedelta) -> None:
        """A message that the carrier must not deliver any more, or could only deliver too late, is not handed over."""
        async with FaultServer(lambda _: self.accepted) as server, self.before(server) as carrier:
            if left > timedelta() and not carrier.capabilities.supports_not_after:
                pytest.skip("this carrier has no field for it: the engine's own check has to do")
            outcome = await carrier.send(message(not_after=NOW + left))
            assert (outcome.state, outcome.reason) == (DispatchState.NOT_SENT, "too_late")
            assert server.requests == []

    @pytest.mark.parametrize(
        "answer",
        [
            Answer(status=500),
            Answer(status=401),
            Answer(status=429),
            Answer(status=302, headers={"location": "/elsewhere"}),
            Answer(status=200, body=b"<html>"),
            Answer(status=200, body=b"[]"),
            Answer(status=200, body=b'{"messages": 5, "data": {"to": 5, "id": []}, "records": [5, null], "meta": []}'),
            Answer(status=200, body=b'{"messages": [5, {"sid": {}}], "data": [null, {"uuid": {}}], "_links": 7}'),
        ],
    )
    @pytest.mark.parametrize("provider_id", [None, "0195554e-0000-4000-8000-00000000beef"])
    async def test_a_look_up_that_fails_says_nothing(self, answer: Answer, provider_id: str | None) -> None:
        """Whatever a look-up is answered, it raises nothing, and no answer of that kind is evidence."""
        async with FaultServer(lambda _: answer) as server, self.before(server) as carrier:
            assert await carrier.look_up(lookup(provider_id=provider_id)) is None
            assert {request.method for request in server.requests} <= {"GET"}

    @pytest.mark.parametrize("fault", ["drop_before", "drop_during", "drop_after", "silence"])
    async def test_a_look_up_that_is_dropped_says_nothing(self, fault: Fault) -> None:
        """A network that fails is no evidence either."""
        async with FaultServer(lambda _: self.accepted) as server, self.before(server, patience=0.3) as carrier:
            server.fault = fault
            assert await carrier.look_up(lookup()) is None
            assert server.connections <= 1
