"""A platform team: its own SMS gateway as the carrier, its own dispatcher and identities, and billing by events.

Written from `docs/own-carrier.md` and `docs/embedding.md` alone, as a team would; `few_at_a_time` is the dispatcher of
`examples/own_dispatcher`, which such a team has copied.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import httpx
from few_at_a_time import FewAtATime
from starlette.requests import Request

from outreach import DispatchState, MessageStatus, Outreach, WorkspaceMode
from outreach.events import EventGap, RecipientEnded
from outreach.protocols import (
    AccountCheck,
    Callback,
    CallbackEvent,
    CallbackRefused,
    CarrierCapabilities,
    Connection,
    CredentialField,
    Dispatcher,
    DispatcherParts,
    DispatchOutcome,
    LookupRequest,
    MessageReport,
    OutboundMessage,
)
from outreach_server import create_app, running

PEOPLE: Final = 25


class Gateway:
    """The team's own gateway: it knows each message by the identifier that it was handed in with."""

    def __init__(self) -> None:
        self.messages: dict[str, OutboundMessage] = {}


class GatewayCarrier:
    name = "gateway"
    # It lists everything that it has taken, at once: what it does not know never arrived.
    capabilities = CarrierCapabilities(look_up="authoritative", supports_not_after=False)

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        self._gateway.messages[message.dispatch_id] = message
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=f"gw-{message.dispatch_id}")

    async def look_up(self, question: LookupRequest) -> DispatchOutcome | None:
        if question.dispatch_id not in self._gateway.messages:
            return None
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=f"gw-{question.dispatch_id}")


class GatewayAdapter:
    name = "gateway"
    kind: Final = "carrier"
    fields: Sequence[CredentialField] = (CredentialField(name="secret", description="What the gateway signs with."),)
    replies_to_keywords = False
    max_callback_bytes = 64 * 1024

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        return [] if len(credentials["secret"]) > 15 else ["secret must have 16 characters."]

    async def check(self, connection: Connection) -> AccountCheck:
        return AccountCheck(ok=True, message="The gateway is part of this program.")

    def connect(self, connection: Connection) -> GatewayCarrier:
        return GatewayCarrier(self._gateway)

    def carrier_start_words(self, to: str) -> Collection[str] | None:
        return None

    def read(self, connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
        if not hmac.compare_digest(callback.headers.get("signature", ""), sign(connection, callback.body)):
            raise CallbackRefused("The signature does not fit the body.")
        told = json.loads(callback.body)
        report = MessageReport(
            workspace_id=connection.workspace_id,
            provider=self.name,
            dispatch_id=told["reference"],
            provider_id=f"gw-{told['reference']}",
            status=MessageStatus.DELIVERED,
            at=connection.clock.now(),
        )
        return [CallbackEvent(event_id=f"delivered-{told['reference']}", content=report)]


def sign(connection: Connection, body: bytes) -> str:
    return hmac.new(connection.credentials["secret"].encode(), body, hashlib.sha256).hexdigest()


async def bill(engine: Outreach, bills: dict[int, str]) -> None:
    """Note each contact that was reached, by the number of its event: told twice it is noted once."""
    async with engine.events.subscribe(RecipientEnded, name="billing", since=0) as stream:
        async for event in stream:
            if isinstance(event, EventGap):
                raise RuntimeError(f"Events {event.first} to {event.last} may be missing.")
            bills[event.number] = event.status
            await stream.ack()
            if len(bills) == 2 * PEOPLE:
                return


async def main(directory: Path) -> None:
    gateway, secret, bills = Gateway(), "0123456789abcdef", dict[int, str]()

    def dispatcher(parts: DispatcherParts) -> Dispatcher:
        return FewAtATime(parts, most=1)

    engine = Outreach.open(
        f"sqlite:///{directory / 'outreach.db'}",
        dispatch=True,
        adapters=[GatewayAdapter(gateway)],
        dispatcher=dispatcher,
    )
    async with engine:
        workspace = await engine.workspaces.create("Team A", mode=WorkspaceMode.LIVE, contact_hours=False)
        account = await engine.accounts.connect(workspace.id, "gateway", {"secret": secret})

        async def authenticate(request: Request) -> str | None:
            return workspace.id if request.headers.get("X-Team") == "a" else None

        api = create_app(engine=engine, authenticate=authenticate, carriers=["gateway"])
        transport = httpx.ASGITransport(api)
        async with running(api), httpx.AsyncClient(transport=transport, base_url="http://team") as http:
            billing = asyncio.create_task(bill(engine, bills))
            for name in ("First", "Second"):
                body = {
                    "name": name,
                    "message_body": "Hello {{first_name}}",
                    "sms_carrier": "gateway",
                    "sms_from_number": "+14155550199",
                    "sms_rate_per_minute": 600,
                    "recipients": [{"phone_number": f"+141555501{n:02}", "first_name": "Ada"} for n in range(PEOPLE)],
                }
                refused = await http.post("/sms-campaigns", json=body)
                made = await http.post("/sms-campaigns", json=body, headers={"X-Team": "a"})
                print(refused.status_code, made.status_code, made.json()["status"])
                await engine.campaigns.start(workspace.id, made.json()["id"])
            await billing
            one = next(iter(gateway.messages))
            told = json.dumps({"reference": one}).encode()
            signature = hmac.new(secret.encode(), told, hashlib.sha256).hexdigest()
            for given in ("0" * 64, signature):
                answer = await http.post(f"/webhooks/{account.id}", content=told, headers={"signature": given})
                print(answer.status_code)
    print(len(gateway.messages), "messages,", len(bills), "billed:", *sorted(set(bills.values())))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
