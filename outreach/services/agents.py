"""The voice agents of workspaces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import attrs

from outreach.errors import InvalidRequest
from outreach.models.base import Page
from outreach.models.fields import OneOf, check_value
from outreach.models.resources import (
    Agent,
    AgentUpdate,
    NewAgent,
    voicemail_problems,
)
from outreach.models.work import IdempotencyKey
from outreach.operations.access.usages import require_unused, users_of_agent
from outreach.operations.campaigns.transitions import sync_setups_of_agent
from outreach.operations.common import agent_of, record_audit, workspace_of
from outreach.services.context import ServiceContext
from outreach.services.idempotency import Idempotency
from outreach.services.lists import PageRequest, iterate
from outreach.services.validation import changed_fields, check_kind, check_phone
from outreach.working_set import Transaction


class Agents:
    """The voice agents of workspaces."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._keys = Idempotency(context)

    async def create(
        self, workspace_id: str, new: NewAgent, *, idempotency_key: IdempotencyKey[Agent] = None, actor: str = "library"
    ) -> Agent:
        """Create an agent.

        Args:
            workspace_id: The workspace.
            new: The agent.
            idempotency_key: A name for this agent, such as `order-42`: for a day, the same key returns this agent.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A value is out of its bounds, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        check_kind("new", new, NewAgent)
        check_value("provider", new.provider, OneOf(("simulator", *self._context.adapters.names("voice"))))
        identifier, now = self._context.ids(), self._context.now()

        def operation(tx: Transaction) -> Agent:
            workspace = workspace_of(tx, workspace_id)
            agent = Agent(
                id=identifier,
                workspace_id=workspace_id,
                name=new.name,
                provider=new.provider,
                provider_agent_id=new.provider_agent_id,
                direction=new.direction,
                allow_outbound=new.allow_outbound,
                is_active=new.is_active,
                placeholders=None if new.placeholders is None else tuple(new.placeholders),
                from_number=check_phone("from_number", new.from_number, workspace.default_region),
                voicemail=new.voicemail,
                voicemail_message=new.voicemail_message,
                max_call_seconds=new.max_call_seconds,
                revision=0,
                created_at=now,
                updated_at=now,
            )
            tx.agents.insert(agent)
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action="agent.create", subject=agent.id)
            return agent

        return await self._keys.written(
            workspace_id,
            "agents.create",
            idempotency_key,
            operation,
            content=new,
            find=lambda tx, agent_id: agent_of(tx, workspace_id, agent_id),
            kind="agent",
        )

    async def update(self, workspace_id: str, agent_id: str, change: AgentUpdate, *, actor: str = "library") -> Agent:
        """Change an agent; campaigns that have not started become ready or draft by whether it can place calls.

        Raises:
            NotFound: The workspace has no such agent.
            InvalidRequest: A value is out of its bounds.
        """
        changes = changed_fields(change, AgentUpdate)
        if "voicemail" in changes and changes["voicemail"] != "leave_message":
            # The message belongs to the old policy.
            changes.setdefault("voicemail_message", None)
        now = self._context.now()

        def operation(tx: Transaction) -> Agent:
            workspace = workspace_of(tx, workspace_id)
            before = agent_of(tx, workspace_id, agent_id)
            number = {}
            if "from_number" in changes:
                number["from_number"] = check_phone("from_number", changes["from_number"], workspace.default_region)
            after = attrs.evolve(before, **changes | number, revision=before.revision + 1, updated_at=now)
            problems = voicemail_problems(after)
            if problems:
                raise InvalidRequest(details=problems)
            tx.agents.update(after)
            if _callable(after) is not _callable(before):
                sync_setups_of_agent(tx, after, now=now, actor=actor)
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action="agent.update", subject=agent_id)
            return after

        return await self._context.storage.write(operation)

    async def remove(self, workspace_id: str, agent_id: str, *, actor: str = "library") -> Agent:
        """Remove an agent; ended campaigns and calls keep its id.

        Raises:
            NotFound: The workspace has no such agent.
            Conflict: A campaign or a call that has not ended uses it.
        """
        now = self._context.now()

        def operation(tx: Transaction) -> Agent:
            agent = agent_of(tx, workspace_id, agent_id)
            advice = "Cancel that campaign or give it another agent, and wait for the end of its calls, first."
            require_unused(f"Agent {agent.name!r}", users_of_agent(tx, workspace_id, agent_id), advice)
            gone = attrs.evolve(agent, is_active=False, revision=agent.revision + 1, updated_at=now, removed_at=now)
            tx.agents.update(gone)
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action="agent.remove", subject=agent_id)
            return gone

        return await self._context.storage.write(operation)

    async def get(self, workspace_id: str, agent_id: str) -> Agent:
        """Return an agent.

        Raises:
            NotFound: The workspace has no such agent, or it was removed.
        """
        return await self._context.storage.read(lambda tx: agent_of(tx, workspace_id, agent_id))

    async def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Agent]:
        """Return a page of a workspace's agents, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("agents", workspace_id, after=after, limit=limit)
        found = await self._context.storage.read(lambda tx: tx.agents.list(workspace_of(tx, workspace_id).id))
        return page_request.page_of_few([one for one in found if one.removed_at is None])

    def iter_all(self, workspace_id: str) -> AsyncIterator[Agent]:
        """Iterate over a workspace's agents, oldest first; see `list`."""
        return iterate(partial(self.list, workspace_id))


def _callable(agent: Agent) -> bool:
    return agent.is_active and agent.can_place_calls
