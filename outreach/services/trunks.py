"""The SIP trunks of workspaces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import attrs

from outreach.models.base import Page
from outreach.models.resources import NewTrunk, Trunk, TrunkUpdate
from outreach.operations.access.usages import require_unused, users_of_trunk
from outreach.operations.common import record_audit, trunk_of, workspace_of
from outreach.services.context import ServiceContext
from outreach.services.idempotency import Idempotency
from outreach.services.lists import PageRequest, iterate
from outreach.services.validation import changed_fields, check_kind
from outreach.working_set import Transaction


class Trunks:
    """The SIP trunks of workspaces."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Idempotency(context)

    async def create(
        self, workspace_id: str, new: NewTrunk, *, idempotency_key: str | None = None, actor: str = "library"
    ) -> Trunk:
        """Create a trunk.

        Args:
            workspace_id: The workspace.
            new: The trunk.
            idempotency_key: A name for this trunk, such as `order-42`: for a day, the same key returns this trunk.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        check_kind("new", new, NewTrunk)
        trunk = Trunk(
            id=self._context.ids(),
            workspace_id=workspace_id,
            name=new.name,
            address=new.address,
            provider_trunk_id=new.provider_trunk_id,
            created_at=self._context.now(),
        )

        def operation(tx: Transaction) -> Trunk:
            workspace_of(tx, workspace_id)
            tx.trunks.insert(trunk)
            record_audit(
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
            content=new,
            find=lambda tx, trunk_id: trunk_of(tx, workspace_id, trunk_id),
            kind="trunk",
        )

    async def get(self, workspace_id: str, trunk_id: str) -> Trunk:
        """Return a trunk.

        Raises:
            NotFound: The workspace has no such trunk, or it was removed.
        """
        return await self._context.storage.read(lambda tx: trunk_of(tx, workspace_id, trunk_id))

    async def update(self, workspace_id: str, trunk_id: str, change: TrunkUpdate, *, actor: str = "library") -> Trunk:
        """Change a trunk, for calls placed from then on.

        Raises:
            NotFound: The workspace has no such trunk.
        """
        changes = changed_fields(change, TrunkUpdate)
        now = self._context.now()

        def operation(tx: Transaction) -> Trunk:
            after = attrs.evolve(trunk_of(tx, workspace_id, trunk_id), **changes)
            tx.trunks.update(after)
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action="trunk.update", subject=trunk_id)
            return after

        return await self._context.storage.write(operation)

    async def remove(self, workspace_id: str, trunk_id: str, *, actor: str = "library") -> Trunk:
        """Remove a trunk; ended campaigns keep its id.

        Raises:
            NotFound: The workspace has no such trunk.
            Conflict: A number, or a campaign that has not ended, uses it.
        """
        now = self._context.now()

        def operation(tx: Transaction) -> Trunk:
            trunk = trunk_of(tx, workspace_id, trunk_id)
            todo = "Cancel that campaign, or take the number off the trunk, first."
            require_unused(f"Trunk {trunk.name!r}", users_of_trunk(tx, workspace_id, trunk_id), todo)
            gone = attrs.evolve(trunk, removed_at=now)
            tx.trunks.update(gone)
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action="trunk.remove", subject=trunk_id)
            return gone

        return await self._context.storage.write(operation)

    async def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Trunk]:
        """Return a page of a workspace's trunks, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("trunks", workspace_id, after=after, limit=limit)
        found = await self._context.storage.read(lambda tx: tx.trunks.list(workspace_of(tx, workspace_id).id))
        return page_request.page_of_few([one for one in found if one.removed_at is None])

    def iter_all(self, workspace_id: str) -> AsyncIterator[Trunk]:
        """Iterate over a workspace's trunks, oldest first; see `list`."""
        return iterate(partial(self.list, workspace_id))
