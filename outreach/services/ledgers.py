"""Reading the contacts and requests of a campaign, wherever they are."""

from __future__ import annotations

from typing import TypeVar

from outreach.operations.archives.reading import ledger_of
from outreach.protocols.storage import Operation
from outreach.services.context import ServiceContext
from outreach.working_set import Transaction

T = TypeVar("T")


async def read_ledger(context: ServiceContext, workspace_id: str, campaign_id: str, operation: Operation[T]) -> T:
    """Run an operation on a snapshot in which a campaign has its contacts, requests, calls and trail.

    Raises:
        ArchiveUnavailable: They are in an archive that cannot be read; the message names it.
    """

    def over(tx: Transaction) -> T:
        with ledger_of(tx, workspace_id, campaign_id) as ledger:
            return operation(ledger)

    return await context.storage.read(over)
