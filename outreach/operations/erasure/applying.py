"""Erasing what workspaces keep no longer, slice by slice, each in a transaction of its own."""

from __future__ import annotations

import secrets
from typing import Final, Protocol, TypeVar

from outreach.clock import Clock
from outreach.models.erasure import RetentionResult
from outreach.operations.erasure.campaigns import begin_erasure
from outreach.operations.erasure.retention import due_report, retention_slice
from outreach.protocols.storage import Operation

T = TypeVar("T")

_SALT_BYTES: Final = 20


class Transactions(Protocol):
    """The part of a storage, or of a guard before one, that runs operations."""

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction."""
        ...

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation on a snapshot."""
        ...


async def apply_retention(
    storage: Transactions, clock: Clock, *, workspace_id: str | None, actor: str, limit: int, max_slices: int
) -> RetentionResult:
    """Erase at most `max_slices` slices of `limit` rows, of one workspace or, with None, of all."""
    campaigns = 0
    for done in range(max_slices):
        now = clock.now()
        report = await storage.read(lambda tx, now=now: due_report(tx, workspace_id, now=now))  # type: ignore[misc]
        if report is not None:
            await storage.write(
                lambda tx, report=report, now=now: begin_erasure(tx, report, now=now, actor=actor)  # type: ignore[misc]
            )
            campaigns += 1
            continue
        salt = secrets.token_hex(_SALT_BYTES)
        if not await storage.write(
            lambda tx, salt=salt, now=now: retention_slice(  # type: ignore[misc]
                tx, workspace_id, salt=salt, now=now, limit=limit
            ),
            bulk=True,
        ):
            return RetentionResult(campaigns=campaigns, slices=done - campaigns, more=False)
    return RetentionResult(campaigns=campaigns, slices=max_slices - campaigns, more=True)
