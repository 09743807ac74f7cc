"""Signatures of deliveries, verified by the published library of Standard Webhooks."""

from __future__ import annotations

import base64
import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from outreach.core.webhook_signatures import signed_headers

_OLD, _NEW = b"o" * 32, b"n" * 32
_ID = "evt_ws1_17_1764300000000"
_BODY = '{"type":"message.received","data":{"text":"Grüße"}}'.encode()


def _receiver(secret: bytes) -> Webhook:
    return Webhook("whsec_" + base64.b64encode(secret).decode())


@pytest.mark.parametrize("secret", [_OLD, _NEW])
def test_a_delivery_verifies_with_either_secret_during_a_rotation(secret: bytes) -> None:
    """A delivery verifies with either secret during a rotation."""
    headers = signed_headers([_NEW, _OLD], _ID, int(time.time()), _BODY)

    assert _receiver(secret).verify(_BODY, dict(headers))["type"] == "message.received"


def test_a_secret_that_has_ended_verifies_no_more() -> None:
    """A secret that has ended verifies no more."""
    headers = signed_headers([_NEW], _ID, int(time.time()), _BODY)

    with pytest.raises(WebhookVerificationError):
        _receiver(_OLD).verify(_BODY, dict(headers))


@pytest.mark.parametrize("changed", ["body", "webhook-id", "webhook-timestamp"])
def test_a_changed_byte_is_refused(changed: str) -> None:
    """A changed byte is refused."""
    now = int(time.time())
    headers = dict(signed_headers([_NEW], _ID, now, _BODY))
    body = _BODY
    if changed == "body":
        body = _BODY.replace(b"Gr", b"gr")
    elif changed == "webhook-id":
        headers[changed] = _ID.replace("17", "18")
    else:
        headers[changed] = str(now - 1)

    with pytest.raises(WebhookVerificationError):
        _receiver(_NEW).verify(body, headers)


def test_a_delivery_is_refused_once_it_is_old() -> None:
    """A delivery is refused once it is old."""
    headers = signed_headers([_NEW], _ID, int(time.time()) - 3600, _BODY)

    with pytest.raises(WebhookVerificationError):
        _receiver(_NEW).verify(_BODY, dict(headers))
