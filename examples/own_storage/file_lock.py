"""The dispatch lock of a file: a lock of the system beside it, and a note of how far the database had come."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path

from anyio import to_thread

from outreach.protocols import DatabaseHome, HighWaterMark


class FileLock:
    """See `outreach.protocols.DispatchLock`.

    Args:
        path: The database's file.
        check: Reads all stored data and returns what is wrong, or None.
    """

    def __init__(self, path: Path, *, check: Callable[[], str | None]) -> None:
        self._path = path
        self._note = path.with_name(path.name + ".note")
        self._check = check
        self._held: int | None = None

    async def acquire(self) -> int:
        if self._held is not None:
            return 0
        held = os.open(self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            return 0
        self._held = held
        return 1

    async def find_free(self, places: Collection[int]) -> Collection[int]:
        # There is one place. A lock that can be taken is not held, and is given back at once.
        if not await self.acquire():
            return ()
        await self.release()
        return places

    async def release(self, place: int | None = None) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def home(self) -> DatabaseHome | None:
        return DatabaseHome(host=socket.gethostname(), path=str(self._path.resolve()))

    def high_water(self) -> HighWaterMark | None:
        if not self._note.exists():
            return None
        noted = json.loads(self._note.read_text())
        at = noted["renewed_at"]
        return HighWaterMark(
            database=noted["database"],
            epoch=noted["epoch"],
            change=noted["change"],
            renewed_at=None if at is None else datetime.fromisoformat(at),
        )

    def record_high_water(self, mark: HighWaterMark, *, ended: bool = False) -> None:
        noted = {
            "database": mark.database,
            "epoch": mark.epoch,
            "change": mark.change,
            "renewed_at": None if mark.renewed_at is None else mark.renewed_at.isoformat(),
            "ended": ended,
        }
        written = self._note.with_name(self._note.name + ".new")
        written.write_text(json.dumps(noted))
        written.replace(self._note)

    def ended_uncleanly(self) -> bool:
        return self._note.exists() and not json.loads(self._note.read_text())["ended"]

    async def check_integrity(self) -> str | None:
        return await to_thread.run_sync(self._check)
