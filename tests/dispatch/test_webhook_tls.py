"""Deliveries over TLS: the name of the URL is what is verified, also where the address was chosen before."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from outreach.dispatch.webhook_endpoint import DeliveryAnswer
from outreach.dispatch.webhook_sender import WebhookSender
from outreach.rules.webhook_targets import Allowed
from outreach.rules.webhooks import failure_words
from outreach.testing.fault_server import Answer, FaultServer
from tests.listening.certificates import write_pair

pytestmark = pytest.mark.anyio

NAME = "hooks.example.com"


class Receiver:
    """An endpoint with a certificate of its own.

    Attributes:
        names: The names that clients asked for (SNI).
        trusting: What trusts its certificate.
    """

    def __init__(self, directory: Path, host: str, *, until: timedelta = timedelta(hours=1)) -> None:
        certificate, key = directory / "certificate.pem", directory / "key.pem"
        write_pair(certificate, key, name="Receiver", host=host, until=until)
        self.names: list[str | None] = []
        self.trusting = ssl.create_default_context(cafile=str(certificate))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        context.sni_callback = lambda _connection, name, _context: self.names.append(name)
        self.server = FaultServer(lambda _: Answer(status=204), tls=context)

    async def get(self, *, host: str = NAME, tls: ssl.SSLContext | None = None) -> DeliveryAnswer:
        """Send one delivery to a name that resolves to this machine."""

        async def resolver(_host: str, _port: int) -> Sequence[str]:
            return ["127.0.0.1"]

        allowed = Allowed.from_settings("127.0.0.1/32", http=False)
        async with self.server, WebhookSender(allowed=allowed, resolver=resolver, tls=tls) as sender:
            url = f"https://{host}:{urlsplit(self.server.url).port}/hooks"
            return await sender.send(url, {"webhook-id": "evt_1"}, b"{}")


async def test_the_name_is_verified_and_the_checked_address_is_connected_to(tmp_path: Path) -> None:
    """SNI and Host are the name: the name that nothing resolves could not be connected to."""
    receiver = Receiver(tmp_path, NAME)
    answer = await receiver.get(tls=receiver.trusting)

    (received,) = receiver.server.requests
    assert (answer.status, answer.error) == (204, None)
    assert receiver.names == [NAME]
    assert received.headers["host"].startswith(f"{NAME}:")


async def test_a_certificate_of_another_name_is_refused(tmp_path: Path) -> None:
    """Nothing of the delivery reaches such a receiver, also where the certificate has the address."""
    receiver = Receiver(tmp_path, "other.example.com")
    answer = await receiver.get(tls=receiver.trusting)

    assert (answer.ok, answer.status, receiver.server.requests) == (False, None, [])
    words = failure_words(None, answer.error)
    assert words.startswith("its certificate was not accepted (Hostname mismatch")
    assert NAME in words


async def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    """By default those of the authorities that httpx knows are taken."""
    answer = await Receiver(tmp_path, NAME).get()
    assert failure_words(None, answer.error) == "its certificate was not accepted (self-signed certificate)"


async def test_a_certificate_whose_time_is_over_is_refused(tmp_path: Path) -> None:
    """Its words say so."""
    receiver = Receiver(tmp_path, NAME, until=timedelta(minutes=-1))
    answer = await receiver.get(tls=receiver.trusting)
    assert failure_words(None, answer.error) == "its certificate was not accepted (certificate has expired)"


async def test_a_receiver_without_tls_is_not_connected(tmp_path: Path) -> None:
    """That is no question of its certificate."""
    receiver = Receiver(tmp_path, NAME)
    receiver.server = FaultServer(lambda _: Answer())
    answer = await receiver.get(tls=receiver.trusting)
    assert answer.error == "not_connected"
