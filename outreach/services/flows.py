"""The automation flows of workspaces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

import attrs

from outreach.models.base import Page
from outreach.models.resources import Flow, FlowStep, FlowUpdate, NewFlow
from outreach.models.work import IdempotencyKey
from outreach.operations.access.usages import STARTED, require_unused, users_of_flow
from outreach.operations.common import flow_of, record_audit, workspace_of
from outreach.policy.texts import composed_or_none
from outreach.services.context import ServiceContext
from outreach.services.idempotency import Idempotency
from outreach.services.lists import PageRequest, iterate
from outreach.services.validation import changed_fields, check_kind
from outreach.working_set import Transaction


class Flows:
    """The automation flows of workspaces."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Idempotency(context)

    async def create(
        self, workspace_id: str, new: NewFlow, *, idempotency_key: IdempotencyKey[Flow] = None, actor: str = "library"
    ) -> Flow:
        """Create a flow.

        Args:
            workspace_id: The workspace.
            new: The flow.
            idempotency_key: A name for this flow, such as `order-42`: for a day, the same key returns this flow.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        check_kind("new", new, NewFlow)
        identifier, now = self._context.ids(), self._context.now()
        flow = Flow(id=identifier, workspace_id=workspace_id, name=new.name, steps=_composed(new.steps), created_at=now)

        def operation(tx: Transaction) -> Flow:
            workspace_of(tx, workspace_id)
            tx.flows.insert(flow)
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action="flow.create", subject=flow.id)
            return flow

        return await self._keys.written(
            workspace_id,
            "flows.create",
            idempotency_key,
            operation,
            content=new,
            find=lambda tx, flow_id: flow_of(tx, workspace_id, flow_id),
            kind="flow",
        )

    async def get(self, workspace_id: str, flow_id: str) -> Flow:
        """Return a flow.

        Raises:
            NotFound: The workspace has no such flow, or it was removed.
        """
        return await self._context.storage.read(lambda tx: flow_of(tx, workspace_id, flow_id))

    async def update(self, workspace_id: str, flow_id: str, change: FlowUpdate, *, actor: str = "library") -> Flow:
        """Change a flow; its steps only while no running campaign uses it.

        Raises:
            NotFound: The workspace has no such flow.
            Conflict: Its steps are to change while a started campaign that has not ended uses it.
        """
        changes = changed_fields(change, FlowUpdate)
        if "steps" in changes:
            changes["steps"] = _composed(changes["steps"])
        now = self._context.now()

        def operation(tx: Transaction) -> Flow:
            before = flow_of(tx, workspace_id, flow_id)
            if changes.get("steps", before.steps) != before.steps:
                users = users_of_flow(tx, workspace_id, flow_id, STARTED)
                todo = "Its contacts stand at these steps: create another flow for other steps."
                require_unused(f"Flow {before.name!r}", users, todo)
            after = attrs.evolve(before, **changes)
            tx.flows.update(after)
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action="flow.update", subject=flow_id)
            return after

        return await self._context.storage.write(operation)

    async def remove(self, workspace_id: str, flow_id: str, *, actor: str = "library") -> Flow:
        """Remove a flow; ended campaigns keep its id.

        Raises:
            NotFound: The workspace has no such flow.
            Conflict: A campaign that has not ended uses it.
        """
        now = self._context.now()

        def operation(tx: Transaction) -> Flow:
            flow = flow_of(tx, workspace_id, flow_id)
            users = users_of_flow(tx, workspace_id, flow_id)
            require_unused(
                f"Flow {flow.name!r}", users, "Cancel that campaign, or give it a text or another flow, first."
            )
            gone = attrs.evolve(flow, removed_at=now)
            tx.flows.update(gone)
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action="flow.remove", subject=flow_id)
            return gone

        return await self._context.storage.write(operation)

    async def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Flow]:
        """Return a page of a workspace's flows, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("flows", workspace_id, after=after, limit=limit)
        found = await self._context.storage.read(lambda tx: tx.flows.list(workspace_of(tx, workspace_id).id))
        return page_request.page_of_few([one for one in found if one.removed_at is None])

    def iter_all(self, workspace_id: str) -> AsyncIterator[Flow]:
        """Iterate over a workspace's flows, oldest first; see `list`."""
        return iterate(partial(self.list, workspace_id))


def _composed(steps: Sequence[FlowStep]) -> tuple[FlowStep, ...]:
    """Return steps with their texts in NFC."""
    return tuple(attrs.evolve(step, body=composed_or_none(step.body)) for step in steps)
