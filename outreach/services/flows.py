"""The automation flows of workspaces."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.models.directory import Flow, FlowStep
from outreach.operations.common import note, workspace_of
from outreach.policy.flows import check_steps
from outreach.protocols.storage import Transaction
from outreach.services.checks import check_kind, check_name
from outreach.services.context import ServiceContext
from outreach.services.once import Keys


class Flows:
    """The automation flows of workspaces."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Keys(context)

    async def create(
        self,
        workspace_id: str,
        name: str,
        *,
        steps: Sequence[FlowStep],
        idempotency_key: str | None = None,
        actor: str = "library",
    ) -> Flow:
        """Make a flow.

        Args:
            workspace_id: Whose flow it is.
            name: 1 to 255 characters.
            steps: What it does, in order.
            idempotency_key: Names this one flow, such as `order-42`: within a day the same key makes no other one, and
                returns it.
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A step is not valid, no step sends anything, or the key was used with other content.
            RequestInProgress: The first call with this key still runs.
        """
        check_name("name", name, 255)
        for index, step in enumerate(steps):
            check_kind(f"steps[{index}]", step, FlowStep)
        check_steps(steps)
        flow = Flow(
            id=self._context.ids(),
            workspace_id=workspace_id,
            name=name,
            steps=tuple(steps),
            created_at=self._context.now(),
        )

        def operation(tx: Transaction) -> Flow:
            workspace_of(tx, workspace_id)
            tx.flows.insert(flow)
            note(
                tx,
                now=flow.created_at,
                workspace_id=workspace_id,
                actor=actor,
                action="flow.create",
                subject=flow.id,
            )
            return flow

        return await self._keys.written(
            workspace_id,
            "flows.create",
            idempotency_key,
            operation,
            content=(name, flow.steps),
            find=lambda tx, flow_id: tx.flows.get(workspace_id, flow_id),
            kind="flow",
        )

    async def list(self, workspace_id: str) -> Sequence[Flow]:
        """Return a workspace's flows, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return await self._context.storage.read(lambda tx: tx.flows.list(workspace_of(tx, workspace_id).id))
