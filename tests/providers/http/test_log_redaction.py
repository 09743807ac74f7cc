from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest
from cryptography.fernet import Fernet

from outreach.core.clock import SystemClock
from outreach.core.vault import Vault
from outreach.protocols.carrier import LookupRequest
from outreach.providers.http.log_redaction import redact_http_logs
from outreach.providers.pool import AccountConnections
from outreach.providers.registry import Adapters
from outreach.testing.builders import NOW, WORKSPACE_ID, make_account, new_id
from outreach.testing.fault_server import Answer, FaultServer
from tests.carriers.telnyx.given import CREDENTIALS as TELNYX
from tests.carriers.twilio.given import CREDENTIALS as TWILIO

pytestmark = pytest.mark.anyio

PERSON, OURS = "4155550100", "4155550199"


@pytest.fixture(autouse=True)
def _filters() -> Iterator[None]:
    """Leave the loggers as they were."""
    loggers = [logging.getLogger(name) for name in ("httpx", "httpcore.http11", "httpcore.connection")]
    before = [logger.filters[:] for logger in loggers]
    for logger in loggers:
        logger.filters.clear()
    yield
    for logger, filters in zip(loggers, before, strict=True):
        logger.filters[:] = filters


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
@pytest.mark.parametrize(("name", "credentials"), [("twilio", TWILIO), ("telnyx", TELNYX)])
async def test_no_number_of_a_look_up_is_logged(
    name: str, credentials: dict[str, str], level: int, caplog: pytest.LogCaptureFixture
) -> None:
    """SECURITY.md: no full phone number in a log, also in a program that logs everything."""
    # Another test may have served in this process, which quietens httpx.
    caplog.set_level(level, logger="httpx")
    caplog.set_level(level)
    vault = Vault(keys=Fernet.generate_key().decode())
    connections = AccountConnections(vault=vault, clock=SystemClock(), answer_seconds=30.0, public_url=None)
    moved = {"location": f"https://a.example/Messages?To=%2B1{PERSON}", "x-odd": f"'+1{PERSON}'"}
    async with FaultServer(lambda _: Answer(body=b"{}", headers=moved)) as server:
        url = server.url
        account = make_account(provider=name)
        sealed = vault.encrypt(account.id, {**credentials, "api_base": url})
        connection = connections.connection(make_account(id=account.id, provider=name, sealed=sealed))
        lookup = LookupRequest(
            workspace_id=WORKSPACE_ID,
            dispatch_id=new_id(),
            provider_id=None,
            from_number=f"+1{OURS}",
            to=f"+1{PERSON}",
            body="Hello",
            since=NOW,
            until=NOW + timedelta(seconds=30),
        )
        await Adapters().adapter(name).connect(connection).look_up(lookup)  # type: ignore[attr-defined]
        await connections.aclose()
        assert any(PERSON in value for value in server.requests[0].query.values())
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("http")]
    assert any(line.startswith(f"HTTP Request: GET {url}/") for line in lines)
    assert any(record.name.startswith("httpcore") for record in caplog.records) is (level == logging.DEBUG)
    assert not [line for line in lines if PERSON in line or OURS in line]


async def test_an_answer_that_is_none_is_not_quoted(caplog: pytest.LogCaptureFixture) -> None:
    """The parser's error has the line in it that it does not understand."""
    caplog.set_level(logging.DEBUG)
    connections = AccountConnections(vault=Vault(), clock=SystemClock(), answer_seconds=30.0, public_url=None)
    raw = f"HTTP/1.1 200 OK\r\nLocation +1{PERSON}\r\n\r\n".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(httpx.RemoteProtocolError, match=PERSON):
            await connections._client("twilio", "a").get(f"http://127.0.0.1:{port}/")
    await connections.aclose()
    assert "receive_response_headers.failed exception=RemoteProtocolError" in caplog.messages
    assert PERSON not in caplog.text


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("GET https://a.example/b?To=%2B14155550100&x[y]=1 200", "GET https://a.example/b 200"),
        ('"https://a.example/b?c" and https://d.example?e', '"https://a.example/b" and https://d.example'),
        ("GET https://a.example/b 100% ?", "GET https://a.example/b 100% ?"),
    ],
)
def test_a_line_loses_its_queries_alone(line: str, kept: str, caplog: pytest.LogCaptureFixture) -> None:
    """However the line was put together; installing the filter again changes nothing."""
    caplog.set_level(logging.INFO, logger="httpx")
    redact_http_logs()
    redact_http_logs()
    logger = logging.getLogger("httpx")
    assert len(logger.filters) == 1
    logger.info(line)
    logger.info("%s", httpx.URL("https://a.example/b?To=1") if "?To" in line else line)
    assert caplog.messages == [kept, "https://a.example/b" if "?To" in line else kept]
