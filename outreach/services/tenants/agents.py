"""The voice agents of workspaces."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import attrs

from outreach.errors import InvalidRequest
from outreach.ledger.access.usages import campaigns_using
from outreach.ledger.campaigns.transitions import sync_setups_of_agent
from outreach.models.fields import OneOf, check_value
from outreach.models.resources import Agent, AgentUpdate, NewAgent, voicemail_problems
from outreach.models.workspace import Workspace
from outreach.services.resource import Resource
from outreach.services.validation import check_phone
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import AGENTS


class Agents(Resource[Agent, NewAgent, AgentUpdate]):
    """The voice agents of workspaces.

    Campaigns that have not started become ready or draft by whether their agent can place calls. An agent that a
    campaign or a call that has not ended uses is not removed.
    """

    kind = AGENTS
    remove_advice = "Cancel that campaign or give it another agent, and wait for the end of its calls, first."

    def _users(self, tx: Transaction, one: Agent) -> Sequence[str]:
        call = tx.calls.open_of_agent(one.workspace_id, one.id)
        calls = [] if call is None else [f"call {call.id} ({call.status})"]
        return [*campaigns_using(tx, one.workspace_id, lambda campaign: campaign.agent_id == one.id), *calls]

    def _stored(self, tx: Transaction, workspace: Workspace, values: dict[str, Any]) -> dict[str, Any]:
        """Check the provider, and write the caller ID in E.164."""
        if "provider" in values:
            names = ("simulator", *self._context.adapters.names("voice"))
            check_value("provider", values["provider"], OneOf(names))
        if values.get("voicemail", "leave_message") != "leave_message":
            # The message belongs to the old policy.
            values = {"voicemail_message": None, **values}
        if "from_number" in values:
            phone = check_phone("from_number", values["from_number"], workspace.default_region)
            return {**values, "from_number": phone}
        return values

    def _begun(self, values: dict[str, Any], now: datetime) -> dict[str, Any]:
        return {**values, "revision": 0, "updated_at": now}

    def _replace(self, tx: Transaction, before: Agent, after: Agent, now: datetime, actor: str) -> Agent:
        problems = voicemail_problems(after)
        if problems:
            raise InvalidRequest(details=problems)
        after = self._revised(tx, after, now)
        if _callable(after) is not _callable(before):
            sync_setups_of_agent(tx, after, now=now, actor=actor)
        return after

    def _remove(self, tx: Transaction, one: Agent, now: datetime) -> Agent:
        return self._revised(tx, attrs.evolve(one, is_active=False, removed_at=now), now)

    def _revised(self, tx: Transaction, agent: Agent, now: datetime) -> Agent:
        revised = attrs.evolve(agent, revision=agent.revision + 1, updated_at=now)
        tx.agents.update(revised)
        return revised


def _callable(agent: Agent) -> bool:
    return agent.is_active and agent.can_place_calls
