from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from outreach import ConfigError, NewWorkspace, Outreach
from outreach_server import create_app
from tests.contract.document import read_yaml
from tests.own_adapter import OwnAdapter


@contextmanager
def served(*carriers: str) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """Serve an engine that has a carrier of one's own; give a client and the headers of a tenant."""
    engine = Outreach.open("memory://", adapters=[OwnAdapter()])

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with engine:
            yield

    host = Starlette(routes=[Mount("/", create_app(engine=engine, carriers=carriers))], lifespan=lifespan)
    with TestClient(host) as client:
        assert client.portal is not None
        workspace = client.portal.call(engine.workspaces.create, NewWorkspace(name="Acme", sms_campaigns_enabled=True))
        key = client.portal.call(engine.api_keys.create, workspace.id)
        yield client, {"Authorization": f"Bearer {key.api_key}"}


def _campaign(people: int = 1) -> dict[str, Any]:
    recipients = [{"phone_number": f"+1415555{n:04}", "company": "x" * 200} for n in range(people)]
    return {
        "name": "Own",
        "message_body": "Hello",
        "sms_carrier": "mycarrier",
        "sms_from_number": "+14155550100",
        "recipients": recipients,
    }


@pytest.mark.parametrize("people", [1, 300, 12_000], ids=["inline", "thread", "helper"])
def test_a_body_may_name_a_carrier_that_the_host_accepts(people: int) -> None:
    """However large it is, and so wherever it is read; single messages too."""
    with served("mycarrier") as (client, headers):
        made = client.post("/sms-campaigns", json=_campaign(people), headers=headers)
        assert (made.status_code, made.json()["sms_carrier"], made.json()["status"]) == (201, "mycarrier", "ready")
        sent = client.post("/sms", json={"to": "+14155550101", "body": "x", "carrier": "mycarrier"}, headers=headers)
        assert (sent.status_code, sent.json()["carrier"]) == (201, "mycarrier")


def test_by_default_a_body_names_the_carriers_of_the_interface_alone() -> None:
    """The contract names three, and a body may name no other."""
    with served() as (client, headers):
        message = {"to": "+14155550101", "body": "x", "carrier": "mycarrier"}
        for path, body in (("/sms-campaigns", _campaign()), ("/sms", message)):
            refused = client.post(path, json=body, headers=headers)
            assert refused.status_code == 400
            assert "must be one of twilio, telnyx, vonage" in refused.json()["error"]["message"]
        assert _carriers(client) == ["twilio", "telnyx", "vonage"]


def test_the_contract_names_the_carriers_that_are_accepted() -> None:
    """The document that a server gives is that of this server, mounted or not."""
    with served("mycarrier") as (client, _):
        assert _carriers(client) == ["twilio", "telnyx", "vonage", "mycarrier"]


@pytest.mark.parametrize("wrong", ["mycarrier", [1], {"mycarrier"}])
def test_what_are_no_names_is_refused(wrong: Any) -> None:
    """Where the app is made."""
    with pytest.raises(ConfigError, match="carriers is"):
        create_app("memory://", carriers=wrong)


def test_a_carrier_that_the_engine_lacks_is_refused() -> None:
    """At once where the engine is given, else as the app starts."""
    with pytest.raises(ConfigError, match=r"'other' is no carrier of the engine\. It has: twilio, telnyx"):
        create_app(engine=Outreach.open("memory://"), carriers=["other"])
    with (
        pytest.raises(ConfigError, match="'vapi' is no carrier"),
        TestClient(create_app("memory://", dispatch=False, carriers=["vapi"])),
    ):
        pass


def _carriers(client: TestClient) -> Any:
    return read_yaml(client.get("/openapi.yaml").text)["components"]["schemas"]["Carrier"]["enum"]
