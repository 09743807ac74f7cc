"""Hold the bodies of webhook deliveries to `webhooks` in openapi.yaml, whatever the events are."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from outreach.models.events import Event
from outreach.models.webhook import WebhookPayload
from outreach.serialization.webhook_bodies import (
    DELIVERED,
    WEBHOOK_TYPES,
    body_of,
    type_of,
)
from tests.contract.document import DOCUMENT, resolve
from tests.serialization.webhook_events import CONTENTS, events_of

UUID = "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01"
WEBHOOKS: dict[str, Any] = DOCUMENT["webhooks"]


def schema_of(name: str) -> dict[str, Any]:
    """Return the schema of a type's body."""
    schema: dict[str, Any] = WEBHOOKS[name]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return schema


@cache
def strict(name: str, payload: WebhookPayload) -> Draft202012Validator:
    """Return a validator that takes nothing beside the fields of thin or full bodies, and misses none of them."""
    schema = copy.deepcopy(schema_of(name))
    data = copy.deepcopy(resolve(schema["properties"]["data"]))
    if payload == "thin":
        data["properties"] = {field: data["properties"][field] for field in data["required"]}
    else:
        data["required"] = [field for field in data["properties"] if field != "truncated"]
    data["additionalProperties"] = schema["additionalProperties"] = False
    schema["properties"]["data"] = data
    return Draft202012Validator(
        {**schema, "components": DOCUMENT["components"]}, format_checker=Draft202012Validator.FORMAT_CHECKER
    )


def test_the_document_has_the_types_that_are_delivered() -> None:
    """Each type has its entry, in the same order, and there is no other."""
    assert list(WEBHOOKS) == list(WEBHOOK_TYPES)
    assert [schema_of(name)["properties"]["type"]["const"] for name in WEBHOOKS] == list(WEBHOOK_TYPES)


@pytest.mark.parametrize("kind", DELIVERED)
@pytest.mark.parametrize("payload", ["thin", "full"])
@given(data=st.data())
def test_every_body_matches_the_schema_of_its_type(
    kind: type[Event], payload: WebhookPayload, data: st.DataObject
) -> None:
    """Thin bodies have the required fields, full ones all of them, and neither has any other."""
    event = data.draw(events_of(kind))
    content = data.draw(CONTENTS)
    body = orjson.loads(body_of(event, payload, content))
    assert [error.message for error in strict(type_of(event), payload).iter_errors(body)] == []


@pytest.mark.parametrize("name", WEBHOOKS)
def test_every_webhook_is_described_alike(name: str) -> None:
    """The three headers of Standard Webhooks, no API key, and what a receiver answers."""
    operation = WEBHOOKS[name]["post"]
    headers = [resolve(parameter)["name"] for parameter in operation["parameters"]]
    assert headers == ["webhook-id", "webhook-timestamp", "webhook-signature"]
    assert (operation["security"], operation["tags"]) == ([], ["webhooks"])
    assert list(operation["responses"]) == ["2XX", "410"]


def test_a_body_with_another_field_does_not_match() -> None:
    """The validators of this module refuse a field that the document does not have."""
    body: dict[str, Any] = {
        "type": "webhook.test",
        "timestamp": "2026-11-28T09:30:00Z",
        "data": {"number": 1, "workspace_id": UUID, "endpoint_id": UUID},
    }
    validator = strict("webhook.test", "thin")
    assert validator.is_valid(body)
    assert not validator.is_valid({**body, "type": "events.gap"})
    assert not validator.is_valid({**body, "data": {**body["data"], "phone": ""}})
    assert not validator.is_valid({**body, "data": {"number": 1, "workspace_id": UUID}})
