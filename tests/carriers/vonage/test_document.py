from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest

from outreach.providers.carriers.vonage import ADAPTER
from outreach.providers.carriers.vonage.callbacks import STATUSES
from outreach.providers.carriers.vonage.errors import AMBIGUOUS, FAILURES
from outreach.testing.builders import NOW
from tests.carriers.kit import sent
from tests.carriers.vonage.given import ACCEPTED, CREDENTIALS, application
from tests.provider_documents import changed, check, is_refused, load, without

pytestmark = pytest.mark.anyio

DOCUMENT = "vonage_messages"


async def _send(**options: Any) -> httpx.Request:
    credentials = options.pop("credentials", CREDENTIALS)
    _, (request,) = await sent(ADAPTER, credentials, httpx.Response(202, json=ACCEPTED), **options)
    return request


async def _requests() -> list[httpx.Request]:
    return [
        await _send(not_after=NOW + timedelta(hours=1)),
        await _send(callback_url=None),
        await _send(credentials={**CREDENTIALS, **application()}),
    ]


async def test_a_message_is_as_the_document_asks() -> None:
    """openapi-core finds nothing wrong with what is sent."""
    for request in await _requests():
        check(DOCUMENT, request)


@pytest.mark.parametrize("field", ["message_type", "text", "to", "from", "channel"])
async def test_what_a_message_must_have_is_missed(field: str) -> None:
    """The control: without any of these a message is refused."""
    for request in await _requests():
        assert is_refused(DOCUMENT, changed(request, body=without(field)))


async def test_a_number_with_a_plus_is_too_long_for_the_document() -> None:
    """The bounds of a number count: 7 to 15 characters."""

    def prolong(body: bytes) -> bytes:
        return json.dumps({**json.loads(body), "to": "+" + "1" * 15}).encode()

    assert is_refused(DOCUMENT, changed(await _send(), body=prolong))


async def test_a_message_has_no_field_that_the_document_lacks() -> None:
    """The document allows any other field; the fields that it names for a text message are these."""
    schemas = load(DOCUMENT)["components"]["schemas"]
    named = {"message_type", "text"}
    named |= set(schemas["channelOptionsSms"]["properties"]) | set(schemas["outboundMessageCommon"]["properties"])
    for request in await _requests():
        assert set(json.loads(request.content)) <= named


async def test_requests_without_credentials_are_refused() -> None:
    """The control for the authorization."""
    request = changed(await _send())
    del request.headers["authorization"]
    assert is_refused(DOCUMENT, request)


def test_every_published_code_has_its_class() -> None:
    """`x-errors` of the document, in the table or among those that say nothing for sure."""
    published = set(load(DOCUMENT)["x-errors"])
    assert len(published) > 50
    assert published <= set(FAILURES) | AMBIGUOUS
    assert not set(FAILURES) & AMBIGUOUS
    assert {code for code in FAILURES if code.isdigit()} | AMBIGUOUS == published


def test_every_word_that_the_document_has_for_a_code_has_its_class() -> None:
    """The general errors of the platform that an answer to a message can have."""
    schemas = load(DOCUMENT)["components"]["schemas"]
    examples = [schema["properties"]["type"]["example"] for name, schema in schemas.items() if name.startswith("Error")]
    words = {example.rpartition("#")[2] for example in examples if "#" in example}
    assert {word for word in words if not word.isdigit()} - {"not-found"} <= set(FAILURES)


def test_every_status_of_the_document_is_known() -> None:
    """Each status that the document lists."""
    listed = load(DOCUMENT)["components"]["schemas"]["messageStatusBase"]["properties"]["status"]["enum"]
    assert set(listed) == set(STATUSES)
