from __future__ import annotations

import json
from typing import Any

import httpx
import jsonschema
import pytest

from outreach.providers.carriers.telnyx import ADAPTER
from outreach.providers.carriers.telnyx.callbacks import STATUSES
from tests.carriers.kit import Caught, lookup, sent
from tests.carriers.telnyx.given import CREDENTIALS, ID, PROFILE, a_payload
from tests.provider_documents import changed, check, is_refused, load, without

pytestmark = pytest.mark.anyio

DOCUMENT = "telnyx_messages"


async def _send(**options: Any) -> httpx.Request:
    credentials = options.pop("credentials", CREDENTIALS)
    _, (request,) = await sent(ADAPTER, credentials, httpx.Response(200, json={"data": a_payload()}), **options)
    return request


async def _requests() -> list[httpx.Request]:
    return [
        await _send(),
        await _send(callback_url=None),
        await _send(credentials={**CREDENTIALS, **PROFILE}, from_number="Acme"),
        await _send(from_number=ID),
    ]


async def _asked(**changes: Any) -> httpx.Request:
    caught = Caught(httpx.Response(200, json={"data": []}))
    await ADAPTER.connect(caught.connection(CREDENTIALS)).look_up(lookup(**changes))
    return caught.request


async def test_a_message_is_as_the_document_asks() -> None:
    """openapi-core finds nothing wrong with what is sent."""
    for request in await _requests():
        check(DOCUMENT, request)


async def test_what_a_message_must_have_is_missed() -> None:
    """The control: without its number a message is refused."""
    assert is_refused(DOCUMENT, changed(await _send(), body=without("to")))


async def test_a_message_has_no_field_that_the_document_lacks() -> None:
    """The document allows any other field; a strict copy of it does not."""
    schema = load(DOCUMENT)["components"]["schemas"]["CreateMessageRequest"]
    strict = {
        "type": "object",
        "properties": {name: {"type": part.get("type", "string")} for name, part in schema["properties"].items()},
        "required": schema["required"],
        "additionalProperties": False,
    }
    validator = jsonschema.Draft202012Validator(strict)
    for request in await _requests():
        body = json.loads(request.content)
        validator.validate(body)
        assert not validator.is_valid({**body, "dispatch": "x"})


async def test_a_search_of_the_records_is_as_the_document_asks() -> None:
    """The kind of record is required; without it, and with a page too large, it is refused."""
    request = await _asked()
    check(DOCUMENT, request)
    params = dict(request.url.params)
    assert is_refused(DOCUMENT, changed(request, params={**params, "page[size]": "51"}))
    del params["filter[record_type]"]
    assert is_refused(DOCUMENT, changed(request, params=params))


async def test_a_look_up_by_id_is_as_the_document_asks() -> None:
    """By its identifier, which is a UUID."""
    request = await _asked(provider_id=ID)
    check(DOCUMENT, request)
    assert is_refused(DOCUMENT, changed(request, path=request.url.path.replace(ID, "message-1")))


async def test_requests_without_credentials_are_refused() -> None:
    """The control for the authorization."""
    for request in (await _send(), await _asked(), await _asked(provider_id=ID)):
        stripped = changed(request)
        del stripped.headers["authorization"]
        assert is_refused(DOCUMENT, stripped)


def test_every_status_of_the_document_is_known() -> None:
    """Each status that the document lists for an outbound message."""
    to = load(DOCUMENT)["components"]["schemas"]["OutboundMessagePayload"]["properties"]["to"]
    assert set(to["items"]["properties"]["status"]["enum"]) == set(STATUSES)
