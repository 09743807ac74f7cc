from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import anyio
import pytest

from outreach import NewWorkspace, Outreach

ROOT: Final = Path(__file__).resolve().parents[2]

READER: Final = """
import asyncio, sys
from outreach import Outreach
from outreach.events import OptedOut

async def main(url, hangs):
    async with Outreach.open(url) as engine:
        async with engine.events.subscribe(OptedOut, name="billing", since=0) as stream:
            print("waits", flush=True)
            async for event in stream:
                print(event.phone, flush=True)
                if hangs == event.phone:
                    await asyncio.Event().wait()
                await stream.ack()

asyncio.run(main(*sys.argv[1:]))
"""


def reader(url: str, hangs: str) -> subprocess.Popen[str]:
    """Start a process that reads the subscription, and never comes to the end of one event."""
    process = subprocess.Popen([sys.executable, "-c", READER, url, hangs], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert line_of(process) == "waits"
    return process


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.timeout(120)
def test_the_events_of_a_killed_process_go_to_the_other_within_seconds(tmp_path: Path) -> None:
    """What it had acknowledged is not told again, what it was working on is."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    numbers = ["+14155550101", "+14155550102", "+14155550103"]

    async def given() -> None:
        async with Outreach.open(url) as engine:
            workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
            for number in numbers:
                await engine.unsubscribes.add(workspace.id, number)

    anyio.run(given)
    first = reader(url, hangs=numbers[1])
    second = None
    try:
        assert [line_of(first), line_of(first)] == numbers[:2]
        second = reader(url, hangs="")
        first.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        assert [line_of(second), line_of(second)] == numbers[1:]
        assert time.monotonic() - killed < 30
    finally:
        for process in (first, second):
            if process is not None:
                process.kill()
                process.communicate()
