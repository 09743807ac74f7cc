"""The carrier keeps the engine's contract, and believes no callback that is not its provider's."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Mapping

import httpx
import pytest
from loft import Loft
from outreach_pigeon import ADAPTER, PigeonCarrier

from outreach.protocols import Callback, CallbackRefused, Connection, InboundMessageEvent, MessageReport, SystemClock
from outreach.testing.carrier_contract import CarrierContract
from outreach.testing.fault_server import FaultServer
from outreach.testing.http_harness import HttpHarness

SECRETS = {"api_key": "k3y", "signing_secret": "s3cret"}


def connection(http: httpx.AsyncClient, url: str = "https://loft.example") -> Connection:
    credentials = {"api_base": url, **SECRETS}
    return Connection(workspace_id="w", account_id="a", credentials=credentials, http=http, clock=SystemClock())


@pytest.mark.anyio
class TestPigeonCarrier(CarrierContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[HttpHarness]:
        loft = Loft()
        async with FaultServer(loft.accept) as server, httpx.AsyncClient() as http:
            yield HttpHarness(server, loft, lambda url: PigeonCarrier(connection(http, url)), http=http)


def callback(*events: dict[str, object], age: int = 0, headers: Mapping[str, str] = {}) -> Callback:
    body, when = json.dumps({"events": events}).encode(), str(int(time.time()) - age)
    signature = hmac.new(SECRETS["signing_secret"].encode(), when.encode() + b"." + body, hashlib.sha256).hexdigest()
    signed = {"pigeon-time": when, "pigeon-signature": signature, **headers}
    return Callback(url="https://o.example/webhooks/a", headers=signed, query={}, body=body)


LANDED = {"id": "e1", "kind": "landed", "reference": "d1", "message": "m1", "at": 1_700_000_000}
REPLY = {"id": "e2", "kind": "reply", "from": "+14155550101", "to": "+14155550100", "text": "STOP", "at": 1_700_000_000}


def test_what_the_provider_tells_is_read() -> None:
    told = ADAPTER.read(connection(httpx.AsyncClient()), callback(LANDED, REPLY, {**LANDED, "id": "e3", "kind": "new"}))
    report, reply, unknown = (event.content for event in told)
    assert isinstance(report, MessageReport)
    assert (report.dispatch_id, report.provider_id, report.status) == ("d1", "m1", "delivered")
    assert isinstance(reply, InboundMessageEvent)
    assert (reply.from_number, reply.body) == ("+14155550101", "STOP")
    assert unknown is None


@pytest.mark.parametrize(
    "false",
    [
        callback(LANDED, headers={"pigeon-signature": "0" * 64}),
        callback(LANDED, age=301),
        callback(LANDED, headers={"pigeon-signature": "é"}),
        callback(LANDED, headers={"pigeon-time": "0"}),
        callback({"id": "e1"}),
    ],
)
def test_what_is_not_the_providers_is_refused(false: Callback) -> None:
    with pytest.raises(CallbackRefused):
        ADAPTER.read(connection(httpx.AsyncClient()), false)
