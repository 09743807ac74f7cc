"""What is no HTTP gets the envelope too, and the connection ends with it."""

from __future__ import annotations

import json
import logging

import pytest

from tests.listening.conftest import Place

pytestmark = pytest.mark.anyio

GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
POST = b"POST /sms HTTP/1.1\r\nHost: a\r\n"

MALFORMED = {
    "a name with a blank": GET + b"Bad Name: x\r\n\r\n",
    "a blank before the colon": GET + b"X-Name : x\r\n\r\n",
    "no name": GET + b": x\r\n\r\n",
    "a name in brackets": GET + b"X(1): x\r\n\r\n",
    "a line without a colon": GET + b"nonsense\r\n\r\n",
    "a folded value": GET + b"X-Name: a\r\n b\r\n\r\n",
    "a value with NUL": GET + b"X-Name: a\0b\r\n\r\n",
    "a method in small letters": b"get /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "a method that is none": b"BREW /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "a protocol in small letters": b"GET /healthz http/1.1\r\nHost: a\r\n\r\n",
    "no version": b"GET /healthz\r\n\r\n",
    "an old version": b"GET /healthz HTTP/0.9\r\nHost: a\r\n\r\n",
    "a new version": b"GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "lines without a return": b"GET /healthz HTTP/1.1\nHost: a\n\n",
    "a target that is no path": b"GET healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "a target with letters of a language": "GET /é HTTP/1.1\r\nHost: a\r\n\r\n".encode(),
    "a proxy's request": b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    "no Host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two Hosts": GET + b"hOST: b\r\n\r\n",
    "length and coding": POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": POST + b"transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "a length below nothing": POST + b"Content-Length: -3\r\n\r\nabc",
    "a length that is none": POST + b"Content-Length: 0x3\r\n\r\nabc",
    "an unknown coding": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding of an old version": b"POST /sms HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED)
async def test_what_is_no_http_gets_the_envelope(place: Place, raw: bytes) -> None:
    """docs/interface.md#error-envelope: for every status that is not 2xx."""
    async with place.client() as client:
        await client.send(raw)
        answer = await client.answer()
        assert answer.status == 400
        assert answer.error["code"] == "invalid_request"
        assert answer.error["message"].startswith("The request is malformed: ")
        assert "date" in answer.headers
        assert await client.closed()


async def test_a_body_whose_chunks_are_none_gets_the_envelope(place: Place) -> None:
    """The application sees a disconnect, and changes nothing."""
    async with place.client() as client:
        await client.send(place.head("POST /sms-campaigns HTTP/1.1", "Transfer-Encoding: chunked"))
        await client.send(b"5\r\n{    \r\nzz\r\n")
        answer = await client.answer()
        assert (answer.status, answer.error["code"]) == (400, "invalid_request")
        assert await client.closed()


async def test_a_request_that_is_none_waits_for_the_answer_before_it(place: Place) -> None:
    """Nothing is put into the midst of an answer."""
    async with place.client() as client:
        await client.send(place.head() + b"nonsense\r\n\r\n")
        answer = await client.answer()
        assert answer.status == 200
        assert await client.closed()


async def test_what_follows_a_body_is_no_header(place: Place) -> None:
    """A trailer must not pass for a key."""
    async with place.client() as client:
        await client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
        await client.send(f"Authorization: Bearer {place.key}\r\n\r\n".encode())
        assert (await client.answer()).status == 401


async def test_who_wants_another_protocol_is_answered_in_this_one(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is logged of it, and what follows is read as requests, however many offer the same."""
    offer = GET + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    with caplog.at_level(logging.INFO, logger="uvicorn.error"):
        async with place.client() as client:
            await client.send(offer * 2 + GET + b"Connection: close\r\n\r\n")
            for _ in range(3):
                assert (await client.answer()).status == 200
            assert await client.closed()
    assert "pgrade" not in caplog.text


@pytest.mark.parametrize("body", [b"{}", b'{"max_segments":4}'])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("chunked", [True, False])
async def test_the_body_of_a_request_that_offers_http_2_is_read(
    place: Place, body: bytes, together: bool, chunked: bool
) -> None:
    """The HTTP client of Java offers it in each request to a plain address."""
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAA")
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    head = place.head("PATCH /sms/settings HTTP/1.1", *offer, length)
    sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    async with place.client() as client:
        for _ in range(2):
            if together:
                await client.send(head + sent)
            else:
                await client.send(head[:50])
                await client.send(head[50:])
                await client.send(sent)
            answer = await client.answer()
            assert answer.status == 200
            assert json.loads(answer.body)["max_segments"] == (4 if b"4" in body else 5)


async def test_a_tunnel_is_refused(place: Place) -> None:
    """What follows a CONNECT is not read as requests."""
    async with place.client() as client:
        await client.send(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n" + GET + b"\r\n")
        assert (await client.answer()).status >= 400
        assert await client.closed()


@pytest.mark.parametrize("data", [b"X-Many: " + b"x" * 1000 + b"\r\n", b"x" * 1000])
async def test_a_head_without_an_end_is_bounded(place: Place, data: bytes) -> None:
    """Whether it is many headers or one."""
    async with place.client() as client:
        await client.send(GET + b"X-One: ")
        for _ in range(200):
            await client.send(data)
        answer = await client.answer()
        assert answer.status == 400
        assert "larger than" in answer.error["message"]


async def test_a_head_that_comes_at_once_is_bounded(place: Place) -> None:
    """However much of it one look at the socket brings."""
    async with place.client() as client:
        await client.send(GET + b"X-One: " + b"x" * 65_000 + b"\r\n\r\n")
        assert (await client.answer()).status == 200
        await client.send(GET + b"X-One: " + b"x" * 65_536 + b"\r\n\r\n")
        answer = await client.answer()
        assert answer.status == 400
        assert "larger than" in answer.error["message"]


async def test_what_follows_a_body_is_bounded(place: Place) -> None:
    """Trailers without an end are not gathered."""
    async with place.client() as client:
        await client.send(place.head("POST /sms HTTP/1.1", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\nX: ")
        for _ in range(200):
            await client.send(b"x" * 1000)
        assert (await client.answer()).status == 400
