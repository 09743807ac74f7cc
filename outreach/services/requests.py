"""The request limit of a workspace."""

from __future__ import annotations

from outreach.operations import requests as operations
from outreach.operations.common import workspace_of
from outreach.operations.requests import Quota
from outreach.protocols.storage import Transaction
from outreach.services.context import ServiceContext


class Requests:
    """What surrounds every request of a workspace's API."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def take(self, workspace_id: str) -> Quota | None:
        """Count one request against the workspace's limit; None where there is no limit.

        Raises:
            NotFound: There is no such workspace.
            RateLimited: The limit is used up.
        """
        clock = self._context.clock

        def operation(tx: Transaction) -> Quota | None:
            return operations.take(tx, workspace_of(tx, workspace_id).id, now=clock.now())

        return await self._context.storage.write(operation)
