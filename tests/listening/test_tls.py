"""HTTPS by files that are read again when they change."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import attrs
import pytest

from outreach import ConfigError
from outreach_server.listening import listener
from outreach_server.listening.tls import CertificateFiles
from tests.listening.certificates import write_pair
from tests.listening.conftest import PATIENCE, Client, Place, serving

pytestmark = pytest.mark.anyio


@attrs.frozen
class Secure:
    """A server with TLS, and its files."""

    place: Place
    certificates: CertificateFiles
    certificate: Path
    key: Path

    async def peer_name(self) -> str:
        """Connect, ask for /healthz, and return the name in the certificate."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        with anyio.fail_after(PATIENCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.place.port, ssl=context)
        try:
            client = Client(reader=reader, writer=writer)
            await client.send(b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n")
            assert (await client.answer()).status == 200
            ((_, name),) = writer.get_extra_info("peercert")["subject"][0]
            return str(name)
        finally:
            writer.transport.abort()


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[Secure]:
    """A server with a certificate of its own."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    write_pair(certificate, key, name="first")
    certificates = CertificateFiles(certificate, key)
    async with serving(certificates=certificates, most_connections=8) as place:
        yield Secure(place, certificates, certificate, key)


async def test_a_changed_certificate_is_used_by_the_next_connection(secure: Secure) -> None:
    """The server itself looks, once a second."""
    assert await secure.peer_name() == "first"
    before = secure.certificates.context
    write_pair(secure.certificate, secure.key, name="second")
    with anyio.fail_after(PATIENCE):
        while secure.certificates.context is before:  # noqa: ASYNC110 - the files are what changes
            await anyio.sleep(0.02)
    assert await secure.peer_name() == "second"


async def test_a_wrong_certificate_is_not_used(secure: Secure, caplog: pytest.LogCaptureFixture) -> None:
    """Half of a change too: the earlier one stays until both files fit; each state is one line in the log."""
    written = secure.certificate.read_bytes()
    secure.certificate.write_bytes(b"no certificate")
    with caplog.at_level(logging.INFO):
        secure.certificates.look()
        secure.certificates.look()
    secure.certificate.write_bytes(written)
    assert await secure.peer_name() == "first"
    assert [record.__dict__["action"] for record in caplog.records].count("certificate_refused") == 1


async def test_a_client_without_tls_is_closed(secure: Secure) -> None:
    """And others are served meanwhile, also while somebody shakes no hand."""
    async with secure.place.client() as silent, secure.place.client() as plain:
        await plain.send(b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n")
        assert await secure.peer_name() == "first"
        with anyio.fail_after(PATIENCE):
            await plain.reader.read()
        assert not silent.reader.at_eof()


async def test_handshakes_that_do_not_end_keep_nobody_out(secure: Secure) -> None:
    """They count as idle connections, and go first."""
    async with AsyncExitStack() as stack:
        for _ in range(8):
            await stack.enter_async_context(secure.place.client())
        assert await secure.peer_name() == "first"


async def test_a_handshake_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that says nothing is closed."""
    monkeypatch.setattr(listener, "HEAD_SECONDS", 0.2)
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    write_pair(certificate, key, name="first")
    async with serving(certificates=CertificateFiles(certificate, key)) as place, place.client() as client:
        assert await client.closed()


def test_files_that_are_no_pair_are_reported_in_words(tmp_path: Path) -> None:
    """Missing, unreadable, or of another pair."""
    certificate, key, other = tmp_path / "certificate.pem", tmp_path / "key.pem", tmp_path / "other.pem"
    write_pair(certificate, key, name="first")
    write_pair(tmp_path / "ignored.pem", other, name="second")
    for wrong in (tmp_path / "missing.pem", other):
        with pytest.raises(ConfigError, match="cannot be used for TLS"):
            CertificateFiles(certificate, wrong)
    with pytest.raises(ConfigError, match="A key in a file of its own is named with --tls-key"):
        CertificateFiles(certificate, None)
    both = tmp_path / "both.pem"
    both.write_bytes(certificate.read_bytes() + key.read_bytes())
    assert CertificateFiles(both, None).context.minimum_version == ssl.TLSVersion.TLSv1_2
