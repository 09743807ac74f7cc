"""What a small tenant notices of a large one: its list and the pace of its messages, beside the other's load and alone.

The large tenant has many campaigns that send as fast as they may, and loads another one over and over.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import anyio

from benchmarks.load import Client, request
from benchmarks.people import MESSAGE, body, contact
from benchmarks.processes import Server, serve_outreach
from benchmarks.results import Results, Sample, at_most, percentile
from benchmarks.rounds import alternate
from benchmarks.settings import Settings
from benchmarks.tenants import Tenant, tenant
from outreach import NewRecipient, NewSmsCampaign, NewWorkspace, Outreach

_SMALL_SENDER: Final = "+14155550111"
_RATE: Final = 600
_SPACING_SECONDS: Final = 60 / _RATE
_PAUSE_SECONDS: Final = 0.01
_PATIENCE: Final = 60.0
_LATENCY_MS: Final = "20"


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    settings.say("neighbour")
    samples = alternate(
        {"outreach": partial(_once, settings, beside=True), "alone": partial(_once, settings, beside=False)},
        settings.rounds,
    )
    case = f"beside {settings.sized(200, 3)} campaigns and loading {settings.sized(100_000, 500):,} contacts"
    for unit in ("list p50 ms", "list p99 ms", "late by p50 ms", "late by p99 ms"):
        results.compare(samples, "alone", row="neighbour", case=case, unit=unit)
    for unit, most in (("list p99 ms", 50), ("late by p99 ms", 100)):
        results.figure(samples["outreach"], unit, row="neighbour", case=case, wanted=at_most(most))
    return results


def _once(settings: Settings, *, beside: bool) -> Sample:
    with settings.scratch("neighbour") as directory:
        return _measured(settings, directory, beside=beside)


def _measured(settings: Settings, directory: Path, *, beside: bool) -> Sample:
    """Let the small tenant send and look at its list, and the large one do what it does meanwhile."""
    small, messages = tenant(directory), settings.sized(60, 4)
    log = directory / "log.jsonl"
    anyio.run(_add_campaign, small, messages)
    large = anyio.run(_add_large, small, settings.sized(200, 3), settings.sized(100, 10)) if beside else None
    environment = {"OUTREACH_SIMULATOR_LOG": str(log), "OUTREACH_SIMULATOR_LATENCY_MS": _LATENCY_MS}
    with ExitStack() as stack:
        server = stack.enter_context(serve_outreach(small.database, environment=environment))
        if large is not None:
            stack.enter_context(_Loading(server, large, settings.sized(100_000, 500)))
        taken = _list_until(server, small, log, messages)
    starts = _starts(log, _SMALL_SENDER)
    late = [(later - earlier).total_seconds() - _SPACING_SECONDS for earlier, later in pairwise(starts)]
    return {
        "list p50 ms": percentile(taken, 0.5) * 1000,
        "list p99 ms": percentile(taken, 0.99) * 1000,
        # A start that is exactly in time is late by what a clock cannot tell.
        "late by p50 ms": max(percentile(late, 0.5) * 1000, 0.1),
        "late by p99 ms": max(percentile(late, 0.99) * 1000, 0.1),
    }


async def _add_campaign(whose: Tenant, messages: int) -> None:
    async with Outreach.open(whose.url) as engine:
        await _start(engine, whose.workspace_id, _SMALL_SENDER, range(messages))


async def _add_large(beside: Tenant, campaigns: int, recipients: int) -> Tenant:
    """Make a second workspace in the same file, with campaigns that are started."""
    async with Outreach.open(beside.url) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Large", request_limit=None, default_region="US"))
        key = await engine.api_keys.create(workspace.id, name="benchmark")
        each = [range(n * recipients, (n + 1) * recipients) for n in range(campaigns)]
        await asyncio.gather(*(_start(engine, workspace.id, f"+1415556{n:04d}", who) for n, who in enumerate(each)))
    return Tenant(database=beside.database, workspace_id=workspace.id, agent_id="", api_key=key.api_key)


async def _start(engine: Outreach, workspace_id: str, sender: str, people: range) -> None:
    new = NewSmsCampaign(
        name=f"From {sender}",
        body=MESSAGE,
        carrier="twilio",
        from_number=sender,
        rate_per_minute=_RATE,
    )
    recipients = [NewRecipient(**contact(number)) for number in people]
    made = (await engine.campaigns.create_sms(workspace_id, new, recipients)).campaign
    await engine.campaigns.start(workspace_id, made.id)


class _Loading:
    """Creates a large campaign over and over, until it is left."""

    def __init__(self, server: Server, large: Tenant, contacts: int) -> None:
        self._raw = request("POST", "/sms-campaigns", key=large.api_key, body=body(contacts))
        self._server = server
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._ended = threading.Event()

    def _work(self) -> None:
        # The server is ended while a request is on its way.
        with suppress(OSError, RuntimeError), Client(self._server.address) as client:
            while not self._ended.is_set():
                client.ask(self._raw)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()


def _list_until(server: Server, small: Tenant, log: Path, messages: int) -> Sequence[float]:
    """Ask for the list again and again until all messages of the small tenant were sent; return how long each took."""
    asked = request("GET", "/sms-campaigns", key=small.api_key)
    taken = []
    look, ends = time.monotonic(), time.monotonic() + _PATIENCE
    with Client(server.address) as client:
        while time.monotonic() < ends:
            taken.append(client.ask(asked, expect=200).seconds)
            time.sleep(_PAUSE_SECONDS)
            if time.monotonic() > look:
                if len(_starts(log, _SMALL_SENDER)) >= messages:
                    return taken
                look = time.monotonic() + 0.5
    raise RuntimeError(f"Not sent within {_PATIENCE:g} s: {len(_starts(log, _SMALL_SENDER))} of {messages}")


def _starts(log: Path, sender: str) -> list[datetime]:
    """Return when the simulator was asked to send from a number."""
    if not log.exists():
        return []
    lines = [line for line in log.read_bytes().split(b"\n")[:-1] if sender.encode() in line]
    return sorted(datetime.fromisoformat(json.loads(line)["at"]).astimezone(UTC) for line in lines)
