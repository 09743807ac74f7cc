"""Somebody without a key who opens connections and never comes to the end of a request."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from outreach import Outreach
from outreach.providers.http.callback_bodies import MESSAGE_BYTES
from tests.process.place import Place
from tests.process.server import ServerProcess
from tests.process.waiting import PATIENCE, wait_for

DESCRIPTORS = 256
HALVES = 500
MESSAGES = 40


@contextmanager
def half_sent(server: ServerProcess, count: int) -> Iterator[list[socket.socket]]:
    """Hold so many connections open, each in the midst of a request's head; one that is closed is opened again."""
    parts = urlsplit(server.url)
    open_ones: list[socket.socket] = []
    stop = threading.Event()

    def half() -> socket.socket:
        made = socket.create_connection((parts.hostname or "", parts.port), timeout=PATIENCE)
        with suppress(OSError):
            made.sendall(b"GET /sms-campaigns HTTP/1.1\r\nHost: a\r\nX-Half: ")
        made.setblocking(False)
        return made

    def keep() -> None:
        while not stop.wait(0.01):
            for number, made in enumerate(open_ones):
                try:
                    if made.recv(4096):
                        continue
                except BlockingIOError:
                    continue
                except OSError:
                    pass
                made.close()
                open_ones[number] = half()
                if stop.wait(0.002):
                    return

    open_ones += [half() for _ in range(count)]
    keeper = threading.Thread(target=keep)
    keeper.start()
    try:
        yield open_ones
    finally:
        stop.set()
        keeper.join()
        for made in open_ones:
            made.close()


@pytest.mark.skipif(not hasattr(psutil.Process, "num_fds"), reason="needs a system with descriptors")
def test_half_sent_requests_stop_neither_answers_nor_messages(place: Place) -> None:
    """More of them than the server has descriptors: others are answered, the pace is kept, and the log stays short."""
    server = place.serve("--log-level", "warning", descriptors=DESCRIPTORS)
    process = psutil.Process(server.process.pid)
    with half_sent(server, HALVES):
        # 600 a minute: one each 0.1 s.
        place.create(campaigns=1, recipients=MESSAGES, rate=600)
        begun = time.monotonic()
        slowest = 0.0
        while len(place.books.accepted()) < MESSAGES:
            assert time.monotonic() - begun < PATIENCE, "the messages were held up"
            asked = time.monotonic()
            answer = httpx.get(f"{server.url}/sms-campaigns", headers=place.headers, timeout=PATIENCE)
            assert answer.status_code == 200, answer.text
            slowest = max(slowest, time.monotonic() - asked)
            assert process.num_fds() < DESCRIPTORS
        took = time.monotonic() - begun
    assert took < MESSAGES * 0.1 * 3
    assert slowest < PATIENCE / 3
    assert "Traceback" not in server.errors()
    assert len(server.errors()) < 5_000
    assert server.stop() == 0


def test_half_sent_requests_are_ended(place: Place) -> None:
    """They hold a connection for the time that a head may take, and no longer."""
    server = place.serve()
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname or "", parts.port), timeout=PATIENCE) as half:
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Half: ")
        assert half.recv(100).startswith(b"HTTP/1.1 400")
    process = psutil.Process(server.process.pid)
    wait_for("the connection to be gone", lambda: not process.net_connections() or len(process.net_connections()) == 1)


def test_unsigned_callbacks_do_not_stop_messages(place: Place) -> None:
    """Who knows an account's address sends what takes long to read, as fast as he can; the pace is kept."""
    credentials = {"account_sid": "AC" + "0" * 32, "auth_token": "0" * 32}

    async def connect(engine: Outreach) -> str:
        return (await engine.accounts.connect(place.workspace_id, "twilio", credentials)).id

    account_id = place.with_engine(connect)
    server = place.serve("--log-level", "warning")
    stop, refused = threading.Event(), 0
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Twilio-Signature": "AAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    }

    def flood(size: int) -> None:
        nonlocal refused
        with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
            while not stop.is_set():
                body = (b"Body=" + b"%41" * (size // 3))[:size]
                answer = client.post(f"/webhooks/{account_id}", content=body, headers=headers)
                assert answer.status_code == (403 if size <= MESSAGE_BYTES else 400)
                refused += 1

    with ThreadPoolExecutor(2) as threads:
        floods = [threads.submit(flood, size) for size in (MESSAGE_BYTES, 2**22)]
        try:
            place.create(campaigns=1, recipients=MESSAGES, rate=600)
            begun = time.monotonic()
            wait_for("the messages", lambda: len(place.books.accepted()) == MESSAGES)
            took = time.monotonic() - begun
        finally:
            stop.set()
        for each in floods:
            each.result()
    assert refused > MESSAGES / 2
    assert took < MESSAGES * 0.1 * 3
