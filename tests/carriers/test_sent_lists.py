"""What adapters ask a provider for what it was sent, and what they make of the pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any, cast

import httpx
import pytest

from outreach.core.clock import format_timestamp
from outreach.models.states import DispatchState
from outreach.protocols.adapter import AnyAdapter
from outreach.protocols.carrier import ListsSent
from outreach.protocols.sent_list import SentListFailed, SentQuery, SentRequest
from outreach.providers.carriers.telnyx import ADAPTER as TELNYX
from outreach.providers.carriers.twilio import ADAPTER as TWILIO
from outreach.providers.carriers.vonage import ADAPTER as VONAGE
from outreach.providers.http.client import ResponseTooLarge
from outreach.providers.voice.elevenlabs import ADAPTER as ELEVENLABS
from outreach.providers.voice.retell import ADAPTER as RETELL
from outreach.providers.voice.vapi import ADAPTER as VAPI
from outreach.testing.builders import NOW, WORKSPACE_ID
from outreach_server.stand_ins.elevenlabs import ElevenLabsStandIn
from outreach_server.stand_ins.retell import RetellStandIn
from outreach_server.stand_ins.telnyx import detail_record
from outreach_server.stand_ins.vapi import VapiStandIn
from tests.carriers.kit import BODY, SENDER, TO, Caught
from tests.carriers.telnyx.given import CREDENTIALS as TELNYX_CREDENTIALS
from tests.carriers.twilio.given import CREDENTIALS as TWILIO_CREDENTIALS
from tests.carriers.twilio.given import a_message
from tests.carriers.vonage.given import CREDENTIALS as VONAGE_CREDENTIALS
from tests.provider_documents import check

pytestmark = pytest.mark.anyio

SINCE = (NOW - timedelta(hours=2)).replace(microsecond=0)
SERVICE = "MG" + "0aF1" * 8
OUR_ID = "0195554e-0000-7000-8000-00000000d1d1"

CREDENTIALS = {
    TWILIO: TWILIO_CREDENTIALS,
    TELNYX: TELNYX_CREDENTIALS,
    VONAGE: VONAGE_CREDENTIALS,
    RETELL: RetellStandIn.credentials,
    VAPI: VapiStandIn.credentials,
    ELEVENLABS: ElevenLabsStandIn.credentials,
}


async def listed(
    adapter: AnyAdapter, answer: Callable[[httpx.Request], httpx.Response], sender: str | None = SENDER
) -> tuple[Sequence[SentRequest], list[httpx.Request]]:
    """List what was sent since `SINCE`; return it, with the requests."""
    caught = Caught(answer)
    made = adapter.connect(caught.connection(CREDENTIALS[adapter]))
    query = SentQuery(workspace_id=WORKSPACE_ID, from_number=sender, since=SINCE, until=NOW)
    return await cast("ListsSent", made).list_sent(query), caught.requests


def pages(*documents: Any) -> Callable[[httpx.Request], httpx.Response]:
    """Answer with one document after the other."""
    left = list(documents)
    return lambda _: httpx.Response(200, json=left.pop(0))


def at(minutes: int) -> datetime:
    """Return a time after `SINCE`."""
    return SINCE + timedelta(minutes=minutes)


def twilio_message(minutes: int, **changes: Any) -> dict[str, Any]:
    """Return a message resource made at a time."""
    return a_message(date_created=format_datetime(at(minutes)), body=BODY, to=TO, **{"from": SENDER}, **changes)


async def test_twilio_lists_by_sender_until_messages_are_older() -> None:
    """With the text; a page of older messages is the last that is read, and inbound ones are left out."""
    more = "/2010-04-01/Accounts/AC1/Messages.json?Page=1"
    newest = [twilio_message(100), twilio_message(50, direction="inbound"), twilio_message(40, status="failed")]
    answer = pages(
        {"messages": newest, "next_page_uri": more},
        {"messages": [twilio_message(10), twilio_message(-30)], "next_page_uri": more},
        {"messages": [twilio_message(-40)], "next_page_uri": more},
    )
    found, requests = await listed(TWILIO, answer)
    assert [one.at for one in found] == [at(100), at(40), at(10)]
    assert [one.outcome.state for one in found][:2] == [DispatchState.ACCEPTED, DispatchState.REFUSED]
    assert {(one.to, one.body, one.dispatch_id) for one in found} == {(TO, BODY, None)}
    assert len(requests) == 3
    assert dict(requests[0].url.params) == {"PageSize": "1000", "From": SENDER}
    check("twilio_messages", requests[0])


async def test_twilio_lists_all_for_a_messaging_service() -> None:
    """It has no filter for one, so each message is compared."""
    ours, other = twilio_message(1, messaging_service_sid=SERVICE), twilio_message(2, messaging_service_sid="MG1")
    found, requests = await listed(TWILIO, pages({"messages": [ours, other], "next_page_uri": None}), SERVICE)
    assert [one.outcome.provider_id for one in found] == [ours["sid"]]
    assert dict(requests[0].url.params) == {"PageSize": "1000"}


async def test_telnyx_lists_the_records_of_those_days() -> None:
    """They have no text, but our id in the address of the webhook."""
    url = f"https://hooks.example.com/webhooks/a?dispatch={OUR_ID}"
    ours = detail_record(uuid="m-1", created_at=format_timestamp(at(1)), delivery_status_webhook_url=url)
    older = detail_record(uuid="m-2", created_at=format_timestamp(at(-10)))
    other = detail_record(uuid="m-3", created_at=format_timestamp(at(2)), cli="+14155550177")
    unknown = detail_record(uuid="m-4", created_at=format_timestamp(at(3)))
    answer = pages(
        {"data": [ours, older], "meta": {"total_pages": 2}}, {"data": [other, unknown], "meta": {"total_pages": 2}}
    )
    found, requests = await listed(TELNYX, answer)
    assert [(one.outcome.provider_id, one.dispatch_id, one.body) for one in found] == [
        ("m-1", OUR_ID, None),
        ("m-4", None, None),
    ]
    assert [request.url.params["page[number]"] for request in requests] == ["1", "2"]
    check("telnyx_messages", requests[0])


async def test_retell_lists_the_calls_that_began() -> None:
    """Page by page, each from the last call of the one before."""
    begun = int(at(5).timestamp() * 1000)
    full = [
        {"call_id": f"call-{n}", "to_number": TO, "direction": "outbound", "start_timestamp": begun} for n in range(100)
    ]
    last = [
        {"call_id": "ours", "to_number": TO, "direction": "outbound", "metadata": {"outreach_dispatch_id": OUR_ID}},
        {"call_id": "theirs", "to_number": TO, "direction": "inbound"},
    ]
    found, requests = await listed(RETELL, pages(full, last), None)
    assert len(found) == 101
    assert found[0].at == at(5)
    assert found[-1].outcome.provider_id == "ours"
    assert json.loads(requests[1].content)["pagination_key"] == "call-99"
    for request in requests:
        check("retell_call", request)


async def test_vapi_lists_the_calls_that_were_created() -> None:
    """Ours have our id; inbound ones are left out."""
    ours = {
        "id": "call-1",
        "createdAt": format_timestamp(at(1)),
        "customer": {"number": TO, "externalId": OUR_ID},
        "type": "outboundPhoneCall",
    }
    found, requests = await listed(VAPI, pages([ours, {**ours, "id": "call-2", "type": "inboundPhoneCall"}]), None)
    assert [(one.outcome.provider_id, one.to, one.at, one.dispatch_id) for one in found] == [
        ("call-1", TO, at(1), OUR_ID)
    ]
    check("vapi_call", requests[0])


def called(number: int, created: datetime) -> dict[str, Any]:
    """Return a call of both providers."""
    return {
        "id": f"call-{number}",
        "createdAt": format_timestamp(created),
        "customer": {"number": TO},
        "call_id": f"call-{number}",
        "to_number": TO,
        "direction": "outbound",
        "type": "outboundPhoneCall",
    }


async def test_vapi_lists_the_calls_of_one_millisecond_over_the_edge_of_a_page() -> None:
    """The next page begins with that millisecond again; a page that has nothing else is followed by what is older."""
    calls = [called(number, at(9 if number < 99 else 5)) for number in range(102)] + [called(102, at(1))]

    def answer(request: httpx.Request) -> httpx.Response:
        query = request.url.params
        latest = query.get("createdAtLe") or query["createdAtLt"]
        found = [
            one for one in calls if one["createdAt"] < latest or ("createdAtLe" in query and one["createdAt"] == latest)
        ]
        return httpx.Response(200, json=found[: int(query["limit"])])

    found, _ = await listed(VAPI, answer, None)
    assert [one.outcome.provider_id for one in found] == [f"call-{number}" for number in range(103)]


@pytest.mark.parametrize("adapter", [RETELL, VAPI], ids=lambda one: one.name)
async def test_a_page_that_is_larger_than_an_answer_may_be_comes_in_parts(adapter: AnyAdapter) -> None:
    """A call has its transcript with it, so a hundred long ones are tens of megabytes."""

    def answer(request: httpx.Request) -> httpx.Response:
        size = int(request.url.params.get("limit") or json.loads(request.content)["limit"])
        if size > 50:
            raise ResponseTooLarge("It has more than 8 MB.", request=request)
        return httpx.Response(200, json=[called(1, at(1))])

    found, requests = await listed(adapter, answer, None)
    assert [one.outcome.provider_id for one in found] == ["call-1"]
    assert len(requests) == 2


@pytest.mark.parametrize("adapter", [TWILIO, TELNYX, RETELL, VAPI], ids=lambda one: one.name)
@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500),
        httpx.Response(401, json={}),
        httpx.Response(200, content=b"<html>"),
        httpx.Response(200, json={}),
        httpx.Response(200, json="x"),
    ],
    ids=["error", "refused", "no JSON", "nothing", "text"],
)
async def test_a_page_that_does_not_come_is_an_error(adapter: AnyAdapter, answer: httpx.Response) -> None:
    """What it would have had may be sent again otherwise."""
    with pytest.raises(SentListFailed, match="did not come"):
        await listed(adapter, lambda _: answer)


async def test_a_list_without_end_is_an_error() -> None:
    """The number of pages is bounded."""
    endless = {"messages": [], "next_page_uri": "/2010-04-01/Accounts/AC1/Messages.json?Page=1"}
    with pytest.raises(SentListFailed, match="more than 200 pages"):
        await listed(TWILIO, lambda _: httpx.Response(200, json=endless))


@pytest.mark.parametrize("adapter", [VONAGE, ELEVENLABS], ids=lambda one: one.name)
async def test_the_others_do_not_list(adapter: AnyAdapter) -> None:
    """Their documents have no list with numbers or references."""
    made = adapter.connect(Caught(httpx.Response(500)).connection(CREDENTIALS[adapter]))
    assert not made.capabilities.lists_sent
