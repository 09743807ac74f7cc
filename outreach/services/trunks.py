"""The SIP trunks of workspaces."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.models.directory import Trunk
from outreach.operations.common import note, workspace_of
from outreach.protocols.storage import Transaction
from outreach.services.checks import check_name
from outreach.services.context import ServiceContext
from outreach.services.once import Keys


class Trunks:
    """The SIP trunks of workspaces."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Keys(context)

    async def create(
        self,
        workspace_id: str,
        name: str,
        *,
        address: str,
        provider_trunk_id: str | None = None,
        idempotency_key: str | None = None,
        actor: str = "library",
    ) -> Trunk:
        """Make a trunk.

        Args:
            workspace_id: Whose trunk it is.
            name: 1 to 255 characters.
            address: SIP host or URI at which it ends, 1 to 255 characters.
            provider_trunk_id: Its identifier at the voice provider, where it has one.
            idempotency_key: Names this one trunk, such as `order-42`: within a day the same key makes no other one, and
                returns it.
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A value is out of its bounds, or the key was used with other content.
            RequestInProgress: The first call with this key still runs.
        """
        check_name("name", name, 255)
        check_name("address", address, 255)
        trunk = Trunk(
            id=self._context.ids(),
            workspace_id=workspace_id,
            name=name,
            address=address,
            provider_trunk_id=provider_trunk_id,
            created_at=self._context.now(),
        )

        def operation(tx: Transaction) -> Trunk:
            workspace_of(tx, workspace_id)
            tx.trunks.insert(trunk)
            note(
                tx,
                now=trunk.created_at,
                workspace_id=workspace_id,
                actor=actor,
                action="trunk.create",
                subject=trunk.id,
            )
            return trunk

        return await self._keys.written(
            workspace_id,
            "trunks.create",
            idempotency_key,
            operation,
            content=(name, address, provider_trunk_id),
            find=lambda tx, trunk_id: tx.trunks.get(workspace_id, trunk_id),
            kind="trunk",
        )

    async def list(self, workspace_id: str) -> Sequence[Trunk]:
        """Return a workspace's trunks, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return await self._context.storage.read(lambda tx: tx.trunks.list(workspace_of(tx, workspace_id).id))
