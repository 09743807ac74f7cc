"""Webhooks of processes that are killed: nothing is missed, order holds within each key, ids stay the same."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from outreach import NewWorkspace, Outreach
from outreach.core.config import EngineConfig
from outreach.core.vault import SECRET_KEY_VARIABLE
from outreach.models import NewWebhook
from outreach.testing.fault_server import Answer, FaultServer, Received
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


class Worker:
    """A process that dispatches."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.process.engine", url, json.dumps(CONFIG)],
            stdout=subprocess.DEVNULL,
            env={**os.environ, SECRET_KEY_VARIABLE: _KEY},
        )

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()


@pytest.mark.parametrize(
    ("kills", "rounds"),
    [(2, 6), pytest.param(20, 100, marks=pytest.mark.nightly("each kill waits for the lease of an endpoint"))],
)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_kills_lose_nothing(
    kills: int, rounds: int, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receiver that fails now and then gets every event: with SQLite, and with two processes on PostgreSQL."""
    monkeypatch.setenv(SECRET_KEY_VARIABLE, _KEY)
    rng = random.Random(kills)
    url = f"sqlite:///{tmp_path / 'a.db'}" if database == "sqlite" else postgres.empty_database()
    taken: dict[str, list[str]] = defaultdict(list)
    ids: dict[str, str] = {}
    refused: set[str] = set()

    def receive(request: Received) -> Answer:
        name = request.headers["webhook-id"]
        if name not in refused and rng.random() < 0.03:
            # Once each: the second step of the schedule lasts five minutes.
            refused.add(name)
            return Answer(status=503)
        data = json.loads(request.body)
        assert ids.setdefault(name, request.body.decode()) == request.body.decode()
        if name not in taken[data["data"]["phone"]]:
            taken[data["data"]["phone"]].append(name)
        return Answer(status=204)

    async with (
        FaultServer(receive) as server,
        Outreach.open(url, config=EngineConfig(**CONFIG), migrate=True) as engine,  # type: ignore[arg-type]
    ):
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        await engine.webhooks.create(workspace, NewWebhook(url=server.url, payload="full", concurrency=8))
        workers = [Worker(url) for _ in range(1 if database == "sqlite" else 2)]
        try:
            for at in range(rounds):
                for person in range(_PEOPLE):
                    phone = f"+1212555{person:04}"
                    await (engine.unsubscribes.remove if at % 2 else engine.unsubscribes.add)(workspace, phone)
            for _ in range(kills):
                before = len(ids)
                async with asyncio.timeout(90):
                    while len(ids) < min(before + 20, rounds * _PEOPLE):  # noqa: ASYNC110 - a receiver tells nobody
                        await asyncio.sleep(0.02)
                await asyncio.sleep(rng.random() / 2)
                workers.pop(0).kill()
                workers.append(Worker(url))
            async with asyncio.timeout(120 + rounds):
                while len(ids) < rounds * _PEOPLE:  # noqa: ASYNC110 - a receiver tells nobody
                    await asyncio.sleep(0.1)
        finally:
            for worker in workers:
                worker.kill()

    numbers = {phone: [int(name.split("_")[-2]) for name in names] for phone, names in taken.items()}
    assert len(numbers) == _PEOPLE
    assert all(len(found) == rounds and found == sorted(found) for found in numbers.values())
