"""Erasing what workspaces keep no longer, in slices between other work."""

from __future__ import annotations

import secrets
from typing import Final

from outreach.clock import Clock
from outreach.operations.campaigns.trail import ENGINE
from outreach.operations.erasure.campaigns import begin_erasure
from outreach.operations.erasure.retention import due_report, retention_slice
from outreach.protocols.storage import Storage

_MAX_SLICES: Final = 100
"""Of one sweep: the next one goes on."""

_SALT_BYTES: Final = 20


async def apply_retention(storage: Storage, clock: Clock, *, limit: int) -> None:
    """Erase up to 100 slices of so many rows, of all workspaces."""
    for _ in range(_MAX_SLICES):
        now = clock.now()
        report = await storage.read(lambda tx, now=now: due_report(tx, None, now=now))  # type: ignore[misc]
        if report is not None:
            await storage.write(
                lambda tx, report=report, now=now: begin_erasure(tx, report, now=now, actor=ENGINE)  # type: ignore[misc]
            )
            continue
        salt = secrets.token_hex(_SALT_BYTES)
        if not await storage.write(
            lambda tx, salt=salt, now=now: retention_slice(tx, None, salt=salt, now=now, limit=limit),  # type: ignore[misc]
            bulk=True,
        ):
            return
