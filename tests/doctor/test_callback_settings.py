"""What providers' APIs tell about where callbacks go, as their own libraries read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import pytest

from outreach.insight.diagnosis.accounts import of_setting
from outreach.models.account import PROVIDERS
from outreach.protocols import CallbackSetting, CallbackSettings, Connection
from outreach.providers.registry import Adapters
from outreach.testing.builders import make_account
from outreach.testing.clock import ManualClock
from tests.documents.provider import CREDENTIALS

pytestmark = pytest.mark.anyio

OURS = "https://outreach.example.com/webhooks/a"
NUMBER = "+14155550100"
MORE = {"vonage": {"application_id": "app-1"}}
TELLING = sorted(name for name in PROVIDERS if isinstance(Adapters().adapter(name), CallbackSettings))


def telnyx(url: str | None, version: str = "2") -> Mapping[str, Any]:
    """Return two profiles, of which the number has the first, and the numbers."""
    return {
        "/v2/messaging_profiles": {
            "data": [
                {"id": "p1", "name": "Ours", "webhook_url": url, "webhook_api_version": version},
                {"id": "p2", "name": "Others", "webhook_url": "https://elsewhere.example.com"},
            ]
        },
        "/v2/phone_numbers/messaging": {"data": [{"phone_number": NUMBER, "messaging_profile_id": "p1"}]},
    }


def vonage(inbound: str | None, status: str | None = OURS, version: str = "v1") -> Mapping[str, Any]:
    """Return an application."""
    webhooks = {
        name: {"address": url, "http_method": "POST"}
        for name, url in (("inbound_url", inbound), ("status_url", status))
        if url is not None
    }
    capabilities = {"messages": {"version": version, "webhooks": webhooks}}
    return {"/v2/applications/app-1": {"id": "app-1", "capabilities": capabilities}}


def elevenlabs(url: str, **more: bool) -> Mapping[str, Any]:
    """Return a workspace with one webhook."""
    hook = {"name": "x", "webhook_id": "w", "webhook_url": url, "is_disabled": False, "is_auto_disabled": False, **more}
    return {"/v1/workspace/webhooks": {"webhooks": [hook]}}


def twilio(url: str | None, application: str = "") -> Mapping[str, Any]:
    """Return the account's numbers."""
    numbers = [
        {"phone_number": NUMBER, "sms_url": url, "sms_application_sid": application},
        {"phone_number": "+14155550199", "sms_url": "https://elsewhere.example.com", "sms_application_sid": ""},
    ]
    path = f"/2010-04-01/Accounts/{CREDENTIALS['twilio']['account_sid']}/IncomingPhoneNumbers.json"
    return {path: {"incoming_phone_numbers": numbers}}


def vapi(url: str | None, messages: Sequence[str] | None = None) -> Mapping[str, Any]:
    """Return an assistant."""
    assistant: dict[str, Any] = {"id": "agent-1", "serverMessages": messages}
    return {"/assistant/agent-1": {**assistant, "server": {"url": url}} if url else assistant}


async def settings(provider: str, told: Mapping[str, Any] | httpx.Response) -> list[CallbackSetting]:
    """Return what an adapter makes of a provider's answers."""

    def answer(request: httpx.Request) -> httpx.Response:
        if isinstance(told, httpx.Response):
            return told
        found = told.get(request.url.path)
        return httpx.Response(404) if found is None else httpx.Response(200, json=found)

    adapter = Adapters().adapter(provider)
    assert isinstance(adapter, CallbackSettings)
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        connection = Connection(
            workspace_id="w",
            account_id="a",
            credentials={**CREDENTIALS[provider], **MORE.get(provider, {})},
            http=http,
            clock=ManualClock(),
            callback_url=OURS,
        )
        return list(await adapter.callback_settings(connection, senders=[NUMBER], agents=["agent-1"]))


@pytest.mark.parametrize(
    ("provider", "told", "codes"),
    [
        ("telnyx", telnyx(OURS), []),
        ("telnyx", telnyx(None), ["callback_not_set"]),
        ("telnyx", telnyx("https://elsewhere.example.com/x"), ["callback_elsewhere"]),
        ("telnyx", telnyx(OURS, "1"), ["callback_setting_wrong"]),
        ("vonage", vonage(OURS), []),
        ("vonage", vonage(None, "https://elsewhere.example.com"), ["callback_not_set", "callback_elsewhere"]),
        ("vonage", vonage(OURS, version="v0.1"), ["callback_setting_wrong"] * 2),
        ("elevenlabs", elevenlabs(OURS), []),
        ("elevenlabs", elevenlabs("https://elsewhere.example.com"), ["callback_not_set"]),
        ("elevenlabs", elevenlabs(OURS, is_auto_disabled=True), ["callback_setting_wrong"]),
        ("vapi", vapi(OURS), []),
        ("vapi", vapi(OURS, ["status-update", "end-of-call-report"]), []),
        ("vapi", vapi(OURS, ["status-update"]), ["callback_setting_wrong"]),
        ("vapi", vapi(None), ["callback_not_set"]),
        ("vapi", vapi("https://elsewhere.example.com"), ["callback_elsewhere"]),
        ("vapi", vapi("https://[elsewhere"), ["callback_elsewhere"]),
        ("vapi", vapi("elsewhere"), ["callback_elsewhere"]),
        ("twilio", twilio(f"{OURS}/"), []),
        ("twilio", twilio(None), ["callback_not_set"]),
        ("twilio", twilio("https://demo.twilio.com/x"), ["callback_elsewhere"]),
        ("twilio", twilio("https://demo.twilio.com/x", "AP1"), []),
    ],
)
async def test_where_callbacks_go_is_reported(provider: str, told: Mapping[str, Any], codes: Sequence[str]) -> None:
    """Only settings of what the workspace sends from count."""
    found = await settings(provider, told)
    account, kind = make_account(provider=provider), PROVIDERS[provider]
    findings = [one for setting in found for one in of_setting(account, kind, setting, OURS)]
    assert [one.code for one in findings] == codes
    assert all(one.severity == "warning" and one.looks and "None" not in one.message for one in findings)
    assert all(
        ("STOP" in one.message) == (kind == "carrier") for one in findings if one.code != "callback_setting_wrong"
    )


def test_these_providers_tell() -> None:
    """At Retell each call brings the address with it."""
    assert TELLING == ["elevenlabs", "telnyx", "twilio", "vapi", "vonage"]


@pytest.mark.parametrize("provider", TELLING)
@pytest.mark.parametrize(
    "answer",
    [httpx.Response(403, json={}), httpx.Response(200, text="<html>"), httpx.Response(200, json=[1, {"data": 5}])],
    ids=["refused", "no JSON", "another shape"],
)
async def test_a_provider_that_does_not_tell_is_no_fault(provider: str, answer: httpx.Response) -> None:
    """A key that may send need not be allowed to read settings."""
    assert await settings(provider, answer) == []
