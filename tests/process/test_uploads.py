"""Uploads while servers are killed: another server goes on, and no campaign has half a list."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from outreach.models import MAX_CHUNK_BYTES, MAX_UPLOAD_BYTES
from tests import postgres
from tests.process.place import Place, open_place
from tests.process.server import ServerProcess
from tests.process.uploading import largest_resident
from tests.process.waiting import PATIENCE, wait_for

ROWS: Final = 60_000
CHUNK: Final = 64 * 1024
MAX_RESIDENT: Final = 600_000_000
"""Of a server and the helper that reads; the list alone would take more as objects."""

BODY: Final = {"campaign": {"channel": "sms", "name": "List", "message_body": "Hi"}}


@pytest.fixture(params=["sqlite", "postgres"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty database of each kind."""
    with ExitStack() as stack:
        name = None if request.param == "sqlite" else stack.enter_context(postgres.server().database())
        url = None if name is None else postgres.server().url(name)
        yield stack.enter_context(open_place(tmp_path, server_url=url))


def cut_off(
    place: Place, server: ServerProcess, what: str, send: Callable[[httpx.Client, threading.Event], Any], begun: Any
) -> None:
    """Kill a server as soon as what is being sent has begun; `send` gets an event that is set after the kill."""
    killed, ended = threading.Event(), threading.Event()

    def run() -> None:
        with suppress(httpx.HTTPError), place.client(server) as client:
            send(client, killed)
            ended.set()

    sender = threading.Thread(target=run)
    sender.start()
    wait_for(what, begun)
    server.kill()
    killed.set()
    sender.join(PATIENCE)
    assert not ended.is_set(), f"{what}: it had ended before the kill"


def begin(client: httpx.Client, content: bytes) -> str:
    """Begin the upload of a file; return its path."""
    made = client.post("/manage/uploads", json={"file_name": "list.csv", "size_bytes": len(content)})
    assert made.status_code == 201, made.text
    return f"/manage/uploads/{made.json()['id']}"


def send_from(client: httpx.Client, path: str, content: bytes, offset: int, size: int = CHUNK) -> None:
    """Send the chunks of a file from an offset on."""
    for start in range(offset, len(content), size):
        chunk = content[start : start + size]
        headers = {"Content-Type": "application/octet-stream"}
        answer = client.put(f"{path}/content", params={"offset": start}, content=chunk, headers=headers)
        assert answer.status_code == 200, answer.text


def send_in_part(client: httpx.Client, path: str, content: bytes, killed: threading.Event) -> None:
    """Send three chunks and half of a fourth, and the other half after the kill."""
    send_from(client, path, content[: 3 * CHUNK], 0)

    def halves() -> Iterator[bytes]:
        yield content[3 * CHUNK : 3 * CHUNK + CHUNK // 2]
        killed.wait(PATIENCE)
        yield content[3 * CHUNK + CHUNK // 2 : 4 * CHUNK]

    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(CHUNK)}
    client.put(f"{path}/content", params={"offset": 3 * CHUNK}, content=halves(), headers=headers)


def received(place: Place) -> int:
    """Return how much of the one upload is there."""
    return sum(row["received_bytes"] for row in place.books.rows("SELECT received_bytes FROM uploads"))


@pytest.mark.turn(2, "kills servers on each database")
def test_an_upload_goes_on_over_killed_servers(anywhere: Place) -> None:
    """One is killed among the chunks, one during a check, one during a load; the last one loads the list once."""
    place = anywhere
    content = "\n".join(["phone", *place.phones(ROWS), "no number"]).encode()
    server = place.serve()
    with place.client(server) as client:
        path = begin(client, content)
    cut_off(
        place,
        server,
        "some chunks to arrive",
        lambda client, killed: send_in_part(client, path, content, killed),
        lambda: received(place) == 3 * CHUNK,
    )
    server = place.serve()
    with place.client(server) as client:
        there = client.get(path).json()["received_bytes"]
        assert there == received(place) < len(content)
        assert client.post(f"{path}/check").status_code == 409
        send_from(client, path, content, there)
    cut_off(
        place,
        server,
        "the list to be read",
        lambda client, _: client.post(f"{path}/check", json=BODY),
        lambda: any(file.stat().st_size == len(content) for file in place.spool.glob("*/list")),
    )
    server = place.serve()
    with place.client(server) as client:
        checked = client.post(f"{path}/check", json=BODY).json()
        assert (checked["preflight"]["contacts"], checked["rejected_count"]) == (ROWS, 1)
        assert client.get("/campaigns").json()["data"] == []
    cut_off(
        place,
        server,
        "the loading to begin",
        lambda client, _: client.post(f"{path}/load", json=BODY),
        lambda: place.books.recipients()["pending"] >= 5000,
    )
    assert place.books.loading() == 1
    server = place.serve()
    with place.client(server) as client:
        assert client.get("/campaigns").json()["data"] == []
        key = {"Idempotency-Key": "it"}
        loaded = [client.post(f"{path}/load", json=BODY, headers=key).json() for _ in range(2)]
        assert loaded[0] == loaded[1]
        assert loaded[0]["total_recipients"] == ROWS
        assert [one["id"] for one in client.get("/campaigns").json()["data"]] == [loaded[0]["id"]]
        assert client.post(f"{path}/rejects").text.splitlines()[1:] == [
            f"{ROWS + 2},phone,{checked['rejected'][0]['message']},no number"
        ]
    wait_for("temporary files to be swept", lambda: not list(place.spool.iterdir()))
    place.books.check_counters()


@pytest.mark.nightly("the largest upload takes minutes")
@pytest.mark.timeout(1800)
def test_the_largest_upload_takes_little_memory(place: Place) -> None:
    """It is kept, read, checked and loaded in pieces."""
    server = place.serve()
    lines = [f"{phone},{phone * 75}" for phone in place.phones(MAX_UPLOAD_BYTES // 914)]
    content = "\n".join(["phone,note", *lines]).encode()
    assert 0.99 * MAX_UPLOAD_BYTES < len(content) <= MAX_UPLOAD_BYTES
    answers: list[httpx.Response] = []

    def run() -> None:
        with place.client(server) as client:
            path = begin(client, content)
            send_from(client, path, content, 0, MAX_CHUNK_BYTES)
            answers.extend(client.post(f"{path}/{name}", json=BODY, timeout=900) for name in ("check", "load"))

    sender = threading.Thread(target=run)
    sender.start()
    most = largest_resident(server, lambda: not sender.is_alive(), seconds=1500)
    assert [answer.status_code for answer in answers] == [200, 201]
    assert answers[1].json()["total_recipients"] == len(lines)
    assert most < MAX_RESIDENT, f"{most / 1e6:.0f} MB"
    assert not list(place.spool.iterdir())
