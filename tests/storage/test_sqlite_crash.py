from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import anyio.to_thread
import pytest

from outreach.core.clock import SystemClock
from outreach.storage.sqlite import SqliteStorage
from tests.storage.sqlite_support import subjects

WRITER = """
import asyncio, sys
from outreach.core.clock import SystemClock
from outreach.storage.sqlite import SqliteStorage
from tests.storage.sqlite_support import appending

async def write(storage, first):
    number = first
    while True:
        # Two entries: half an operation would be seen.
        await storage.write(appending(f"{number}", f"{number}"))
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
        number += 10

async def main():
    async with SqliteStorage(sys.argv[1], clock=SystemClock()) as storage:
        await asyncio.gather(*(write(storage, first) for first in range(10)))

asyncio.run(main())
"""


def kill_after(database: Path, acknowledged: int) -> list[str]:
    """Run the writer, kill it once it was told so often that something is done; return what it was told."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(database)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline().strip() for _ in range(acknowledged)]
        process.send_signal(signal.SIGKILL)
        # What it had still written into the pipe was acknowledged, too; a last line may be torn.
        told += [line.strip() for line in process.stdout if line.endswith("\n")]
    return told


@pytest.mark.anyio
@pytest.mark.parametrize("acknowledged", [1, 200, 1000])
async def test_what_was_acknowledged_survives_a_kill(database: Path, acknowledged: int) -> None:
    """A process killed in the midst of writing loses nothing that it was told is done, and leaves no half."""
    told = await anyio.to_thread.run_sync(kill_after, database, acknowledged)
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        written = await storage.read(subjects)
    assert set(told) <= set(written)
    assert all(written.count(subject) == 2 for subject in told)
    assert len(written) % 2 == 0
    connection = sqlite3.connect(database)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


@pytest.mark.anyio
async def test_a_restarted_process_finds_what_was_written(database: Path) -> None:
    """An orderly end takes the log into the file and leaves nothing beside it."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        assert await storage.write(subjects) == []
    assert [path.name for path in database.parent.iterdir()] == [database.name]
