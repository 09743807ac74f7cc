"""Webhooks of processes that are killed: nothing is missed, order holds within each key, ids stay the same."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final, Self

import pytest

from outreach import NewWorkspace, Outreach
from outreach.core.config import EngineConfig
from outreach.core.secret_keys import SECRET_KEY_VARIABLE
from outreach.models import NewWebhook
from tests import postgres

pytestmark = pytest.mark.anyio

CONFIG = {
    "webhook_allow": "127.0.0.0/8",
    "webhook_allow_http": True,
    "change_poll_seconds": 0.1,
    "max_workers": 2,
    "lease_seconds": 4.0,
}
_KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
_PEOPLE = 40

TAKEN: Final = b"HTTP/1.1 204 No Content\r\n\r\n"
FAULTS: Final = {
    "refuses": b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
    "redirects": b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
    "hangs": b"",
    "drips": TAKEN,
    "drops": b"HTTP/1.1 2",
}
"""What is answered to some requests: nothing at all, a byte at a time, or a part before the connection ends."""

MOST_FAULTS: Final = 2
"""So often one event meets one, so that each arrives in the end."""


class Worker:
    """A process that dispatches."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.process.webhook_engine", url, json.dumps(CONFIG)],
            stdout=subprocess.DEVNULL,
            env={**os.environ, SECRET_KEY_VARIABLE: _KEY},
        )

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()


class Receiver:
    """An endpoint that fails in each way now and then, and that can be away.

    Attributes:
        bodies: What came, by `webhook-id`.
        taken: The ids that it took, by phone, in their order.
        faults: How often it failed, by the way.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._failed: Counter[str] = Counter()
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.bodies: dict[str, bytes] = {}
        self.taken: dict[str, list[str]] = defaultdict(list)
        self.faults: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        """Come, on the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Go, and leave what is open without an answer."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        assert lines[0].startswith("POST / "), "a redirect was followed"
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        name, body = headers["webhook-id"], await reader.readexactly(int(headers["content-length"]))
        # The same event has the same body each time.
        assert self.bodies.setdefault(name, body) == body
        fault = "" if self._failed[name] == MOST_FAULTS or self._rng.random() > 0.05 else self._rng.choice([*FAULTS])
        self._failed[name] += bool(fault)
        self.faults[fault] += 1
        if fault in {"", "drips"}:
            phone = json.loads(body)["data"]["phone"]
            if name not in self.taken[phone]:
                self.taken[phone].append(name)
        answer = FAULTS.get(fault, TAKEN)
        for byte in answer if fault == "drips" else ():
            writer.write(bytes([byte]))
            await asyncio.sleep(0.01)
        if fault != "drips":
            writer.write(answer)
        if fault == "hangs":
            # Until the other side gives up.
            await reader.read()
        return fault not in {"hangs", "drops"}

    @property
    def count(self) -> int:
        """How many events it took."""
        return sum(map(len, self.taken.values()))


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("kills", "rounds"),
    [(2, 6), pytest.param(20, 250, marks=pytest.mark.nightly("each kill waits for the lease of an endpoint"))],
)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_kills_lose_nothing(
    kills: int, rounds: int, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receiver that fails, goes and comes back gets every event: from one process, and from two on PostgreSQL."""
    monkeypatch.setenv(SECRET_KEY_VARIABLE, _KEY)
    rng, events = random.Random(kills), rounds * _PEOPLE
    url = f"sqlite:///{tmp_path / 'a.db'}" if database == "sqlite" else postgres.empty_database()
    receiver = Receiver(rng)

    async def happen(engine: Outreach, workspace: str) -> None:
        for at in range(rounds):
            for person in range(_PEOPLE):
                phone = f"+1212555{person:04}"
                await (engine.unsubscribes.remove if at % 2 else engine.unsubscribes.add)(workspace, phone)

    async def taken(count: int, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while receiver.count < min(count, events):  # noqa: ASYNC110 - a receiver tells nobody
                await asyncio.sleep(0.02)

    async def missed(engine: Outreach, since: datetime) -> None:
        """Wait until a delivery has met nobody; where everything has arrived, there may be none."""
        async with asyncio.timeout(120):
            while receiver.count < events:
                tried = await engine.webhooks.list_attempts(webhook.workspace_id, webhook.id, failed=True, limit=20)
                if any(one.error == "not_connected" and one.at >= since for one in tried.items):
                    return
                # An attempt is a row that the worker's process writes: nothing tells this one of it.
                await asyncio.sleep(0.1)

    async with Outreach.open(url, config=EngineConfig(**CONFIG), migrate=True) as engine:  # type: ignore[arg-type]
        async with receiver:
            workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
            new = NewWebhook(url=f"http://127.0.0.1:{receiver.port}/", payload="full", concurrency=8)
            webhook = (await engine.webhooks.create(workspace, new)).webhook
        workers = [Worker(url) for _ in range(1 if database == "sqlite" else 2)]
        happening = asyncio.create_task(happen(engine, workspace))
        try:
            for _ in range(kills):
                async with receiver:
                    await taken(receiver.count + 20, 120)
                    await asyncio.sleep(rng.random() / 2)
                    workers.pop(0).kill()
                    workers.append(Worker(url))
                await missed(engine, engine.now())
            await happening
            async with receiver:
                await taken(events, 120 + events / 20)
        finally:
            happening.cancel()
            for worker in workers:
                worker.kill()

    numbers = {phone: [int(name.split("_")[-2]) for name in names] for phone, names in receiver.taken.items()}
    assert len(numbers) == _PEOPLE
    assert all(len(found) == rounds and found == sorted(found) for found in numbers.values())
    assert rounds < 100 or set(receiver.faults) == {"", *FAULTS}
