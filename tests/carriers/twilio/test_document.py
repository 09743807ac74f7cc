from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

import httpx
import jsonschema
import pytest

from outreach.providers.carriers.twilio import ADAPTER
from outreach.providers.carriers.twilio.callbacks import STATUSES
from outreach.providers.carriers.twilio.carrier import FAILED
from outreach.testing.builders import NOW
from tests.carriers.kit import Caught, lookup, sent
from tests.carriers.twilio.given import CREDENTIALS, SID, a_message
from tests.provider_documents import changed, check, is_refused, load

pytestmark = pytest.mark.anyio

DOCUMENT = "twilio_messages"
_MESSAGES = "/2010-04-01/Accounts/{AccountSid}/Messages.json"


async def _send(**options: Any) -> httpx.Request:
    credentials = options.pop("credentials", CREDENTIALS)
    _, (request,) = await sent(ADAPTER, credentials, httpx.Response(201, json=a_message()), **options)
    return request


async def _requests() -> list[httpx.Request]:
    return [
        await _send(not_after=NOW + timedelta(hours=3)),
        await _send(callback_url=None),
        await _send(from_number="Acme"),
        await _send(from_number="MG" + "0aF1" * 8),
    ]


async def test_a_message_is_as_the_document_asks() -> None:
    """openapi-core finds nothing wrong with what is sent."""
    for request in await _requests():
        check(DOCUMENT, request)


@pytest.mark.parametrize(
    "field",
    [lambda form: form.pop("To"), lambda form: form.update(ValidityPeriod="soon")],
    ids=["without To", "no integer"],
)
async def test_what_a_message_must_have_is_missed(field: Callable[[dict[str, str]], Any]) -> None:
    """The control: a form without its number, or with a period that is no number, is refused."""

    def change(body: bytes) -> bytes:
        form = dict(parse_qsl(body.decode()))
        field(form)
        return urlencode(form).encode()

    assert is_refused(DOCUMENT, changed(await _send(), body=change))


async def test_a_form_has_no_field_that_the_document_lacks() -> None:
    """openapi-core drops unknown fields of a form before it looks; plain jsonschema does not."""
    operation = load(DOCUMENT)["paths"][_MESSAGES]["post"]
    schema = operation["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"]
    strict = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in schema["properties"]},
        "required": ["To"],
    }
    validator = jsonschema.Draft202012Validator({**strict, "additionalProperties": False})
    for request in await _requests():
        form = dict(parse_qsl(request.content.decode(), strict_parsing=True))
        validator.validate(form)
        assert not validator.is_valid({**form, "Dispatch": "x"})
        assert not validator.is_valid({name: value for name, value in form.items() if name != "To"})


async def test_look_ups_are_as_the_document_asks() -> None:
    """Listing the messages to a number, and one message by its id; a page too large is refused."""
    caught = Caught(httpx.Response(200, json={"messages": [], "next_page_uri": None}))
    carrier = ADAPTER.connect(caught.connection(CREDENTIALS))
    await carrier.look_up(lookup())
    await carrier.look_up(lookup(provider_id=SID))
    listing, one = caught.requests
    check(DOCUMENT, listing)
    check(DOCUMENT, one)
    assert is_refused(DOCUMENT, changed(listing, params={**listing.url.params, "PageSize": "5000"}))
    assert is_refused(DOCUMENT, changed(one, path=one.url.path.replace(SID, "SM1")))


@pytest.mark.parametrize("kind", ["list", "one"])
async def test_requests_without_credentials_are_refused(kind: str) -> None:
    """The control for the authorization: without it the document refuses."""
    caught = Caught(httpx.Response(200, json={"messages": []}))
    await ADAPTER.connect(caught.connection(CREDENTIALS)).look_up(lookup(provider_id=SID if kind == "one" else None))
    request = changed(caught.request)
    del request.headers["authorization"]
    assert is_refused(DOCUMENT, request)


def test_every_status_of_the_document_is_known() -> None:
    """Each status that the document lists is one of a message that was sent, or of one that came."""
    listed = set(load(DOCUMENT)["components"]["schemas"]["message_enum_status"]["enum"])
    assert listed - {"receiving", "received"} == set(STATUSES)
    assert listed >= FAILED
