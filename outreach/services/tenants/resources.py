"""Definitions of the resources that a workspace's owner sets up, each with its own rules.

Service, table, operations under /manage, commands and the service for synchronous code follow from the definition
(docs/adding-a-resource.md).

What is set up in another way has plain code, because the common methods would be overridden one by one: prices and
settings (one row a workspace, replaced or changed, never listed), workspaces (in no workspace), API keys (shown once,
revoked and never changed), users (in several workspaces, invited).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, Final, get_type_hints

import attrs

from outreach.errors import Conflict, InvalidRequest
from outreach.ledger.access.usages import OPEN, STARTED, campaigns_using
from outreach.ledger.campaigns.ended_approvals import take_approvals
from outreach.ledger.campaigns.transitions import sync_setups_of_agent
from outreach.ledger.common import caller_of, wake_running_campaigns, workspace_of
from outreach.models.campaign import Campaign
from outreach.models.fields import OneOf, check_value
from outreach.models.resources import (
    Agent,
    AgentUpdate,
    Flow,
    FlowUpdate,
    NewAgent,
    NewFlow,
    NewNumber,
    NewTrunk,
    Number,
    NumberUpdate,
    StepCount,
    Trunk,
    TrunkUpdate,
    voicemail_problems,
)
from outreach.models.states import CampaignStatus
from outreach.models.workspace import Workspace
from outreach.rules.numbering import person_key
from outreach.rules.phones import normalise_single
from outreach.rules.segments import composed_or_none
from outreach.services.context import check_phone, check_provider
from outreach.services.resource import EVERY_OPERATION, CommandTexts, Resource, SyncResource, require_unused
from outreach.services.tenants.schedules import Schedules
from outreach.services.tenants.webhooks import Webhooks
from outreach.storage.unit_of_work import AlreadyExists, Transaction, WorkspaceTable


class Agents(Resource[Agent, NewAgent, AgentUpdate]):
    """The voice agents of workspaces.

    Campaigns that have not started become ready or draft by whether their agent can place calls. An agent that a
    campaign or a call that has not ended uses is not removed.
    """

    remove_advice = "Cancel that campaign or give it another agent, and wait for the end of its calls, first."
    managed = ("list", "create", "get", "update")

    def _used_by(self, tx: Transaction, one: Agent) -> Sequence[str]:
        call = tx.calls.open_of_agent(one.workspace_id, one.id)
        calls = [] if call is None else [f"call {call.id} ({call.status})"]
        return [*campaigns_using(tx, one.workspace_id, partial(_calls_by, one)), *calls]

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
        if _said(after) != _said(before):
            take_approvals(tx, after.workspace_id, partial(_calls_by, after), now=now, actor=actor)
        if _callable(after) is not _callable(before):
            sync_setups_of_agent(tx, after, now=now, actor=actor)
        return after

    def _remove(self, tx: Transaction, one: Agent, now: datetime, actor: str) -> Agent:
        return self._revised(tx, attrs.evolve(one, is_active=False, removed_at=now), now)

    def _revised(self, tx: Transaction, agent: Agent, now: datetime) -> Agent:
        revised = attrs.evolve(agent, revision=agent.revision + 1, updated_at=now)
        tx.agents.update(revised)
        return revised


def _calls_by(agent: Agent, campaign: Campaign) -> bool:
    return campaign.agent_id == agent.id


def _callable(agent: Agent) -> bool:
    return agent.is_active and agent.can_place_calls


def _said(agent: Agent) -> tuple[object, ...]:
    """Return the fields of an agent that decide its words, the length of its calls and its caller ID."""
    return (
        *(agent.provider_agent_id, agent.placeholders, agent.from_number),
        *(agent.voicemail, agent.voicemail_message, agent.max_call_seconds),
    )


class Trunks(Resource[Trunk, NewTrunk, TrunkUpdate]):
    """The SIP trunks of workspaces.

    A change counts for calls placed from then on. A trunk that a number, or a campaign that has not ended, uses is not
    removed.
    """

    remove_advice = "Cancel that campaign, or take the number off the trunk, first."
    commands = CommandTexts(
        update="Change a trunk, for calls placed from then on.",
        remove="Remove a trunk, unless a campaign or a number uses it.",
    )

    def _used_by(self, tx: Transaction, one: Trunk) -> Sequence[str]:
        numbers = [
            f"number {number.phone}" for number in tx.numbers.list(one.workspace_id) if number.trunk_id == one.id
        ]
        return [*campaigns_using(tx, one.workspace_id, partial(_calls_through, one)), *numbers]

    def _replace(self, tx: Transaction, before: Trunk, after: Trunk, now: datetime, actor: str) -> Trunk:
        if (after.address, after.provider_trunk_id) != (before.address, before.provider_trunk_id):
            take_approvals(tx, after.workspace_id, partial(_calls_through, after), now=now, actor=actor)
        return super()._replace(tx, before, after, now, actor)


def _calls_through(trunk: Trunk, campaign: Campaign) -> bool:
    return campaign.trunk_id == trunk.id


class Numbers(Resource[Number, NewNumber, NumberUpdate]):
    """The numbers that workspaces send and call from.

    A workspace has each number once. Running campaigns use a new rate at once. A number that a campaign that has not
    ended, or an active agent, uses is not removed; the dispatches of a removed one stay in the ledger.
    """

    remove_advice = "Change or cancel that first, or give the agent another caller ID."
    created = "add"
    title = "phone"
    managed = EVERY_OPERATION
    commands = CommandTexts(
        create="Add the number PHONE, such as +14155550102.",
        empty="Add one with: outreach-server numbers create WORKSPACE_ID PHONE",
        update="Change the number PHONE; running campaigns use its new rate at once.",
        remove="Remove the number PHONE, unless a campaign or an active agent uses it.",
        columns=("id", "phone", "carrier", "trunk_id", "rate_per_minute", "created_at"),
    )

    def _table(self, tx: Transaction) -> WorkspaceTable[Number]:
        return tx.numbers

    def _used_by(self, tx: Transaction, one: Number) -> Sequence[str]:
        region = workspace_of(tx, one.workspace_id).default_region
        agents = [
            f"agent {agent.name!r}"
            for agent in tx.agents.list(one.workspace_id)
            if agent.is_active and _is_line(one, agent.from_number)
        ]
        return [*campaigns_using(tx, one.workspace_id, partial(_comes_from, one, region)), *agents]

    def _name(self, one: Number) -> str:
        return f"Number {one.phone}"

    def _stored(self, tx: Transaction, workspace: Workspace, values: dict[str, Any]) -> dict[str, Any]:
        """Check carrier and trunk, and write the number in E.164."""
        if values.get("carrier") is not None:
            check_provider("carrier", values["carrier"], "carrier", self._context.adapters)
        if values.get("trunk_id") is not None:
            tx.trunks.existing(workspace.id, values["trunk_id"])
        if "phone" in values:
            return {**values, "phone": check_phone("phone", values["phone"], workspace.default_region)}
        return values

    def _insert(self, tx: Transaction, made: Number) -> None:
        try:
            super()._insert(tx, made)
        except AlreadyExists:
            raise Conflict(f"The workspace has number {made.phone} already. Change it, or remove it first.") from None

    def _replace(self, tx: Transaction, before: Number, after: Number, now: datetime, actor: str) -> Number:
        if (after.carrier, after.trunk_id) != (before.carrier, before.trunk_id):
            region = workspace_of(tx, after.workspace_id).default_region

            def uses(campaign: Campaign) -> bool:
                caller = caller_of(tx, campaign)
                own = caller is not None and _is_line(after, caller.from_number)
                return own or _comes_from(after, region, campaign)

            take_approvals(tx, after.workspace_id, uses, now=now, actor=actor)
        wake_running_campaigns(tx, after.workspace_id, now)
        return super()._replace(tx, before, after, now, actor)

    def _remove(self, tx: Transaction, one: Number, now: datetime, actor: str) -> Number:
        """Delete the row, so that the number can be added again."""
        tx.numbers.delete(one.workspace_id, one.id)
        return one


def _is_line(number: Number, phone: str | None) -> bool:
    return phone is not None and person_key(phone) == person_key(number.phone)


def _comes_from(number: Number, region: str | None, campaign: Campaign) -> bool:
    """Return whether a campaign names a number as one that its messages or calls come from."""
    if any(_is_line(number, normalise_single(own, region)) for own in campaign.senders):
        return True
    return any(_is_line(number, entry.phone) or number.id == entry.number_id for entry in campaign.cli_group or ())


class Flows(Resource[Flow, NewFlow, FlowUpdate]):
    """The automation flows of workspaces.

    The steps of a flow change only while no started campaign that has not ended uses it. A flow that a campaign that
    has not ended uses is not removed.
    """

    remove_advice = "Cancel that campaign, or give it a text or another flow, first."
    managed = EVERY_OPERATION

    async def count_contacts(self, workspace_id: str, flow_id: str) -> Sequence[StepCount]:
        """Return how many contacts of campaigns that have not ended are at each step of a flow, in its order.

        Raises:
            NotFound: The workspace has no such flow.
        """

        def operation(tx: Transaction) -> Sequence[StepCount]:
            flow = tx.flows.existing(workspace_id, flow_id)
            counts = [0] * len(flow.steps)
            for campaign in tx.campaigns.in_status(OPEN, workspace_id=workspace_id):
                if _runs(flow, campaign):
                    found = [one for one in tx.recipients.at_steps(workspace_id, campaign.id) if one.step < len(counts)]
                    for one in found:
                        counts[one.step] += one.contacts
                    counts[0] += campaign.counters.open - sum(one.contacts for one in found)
            return [StepCount(step=step, contacts=count) for step, count in enumerate(counts)]

        return await self._context.storage.read(operation)

    def _used_by(self, tx: Transaction, one: Flow, statuses: Collection[CampaignStatus] = OPEN) -> Sequence[str]:
        return campaigns_using(tx, one.workspace_id, partial(_runs, one), statuses)

    def _stored(self, tx: Transaction, workspace: Workspace, values: dict[str, Any]) -> dict[str, Any]:
        """Write the texts of the steps in NFC."""
        if "steps" in values:
            steps = tuple(attrs.evolve(step, body=composed_or_none(step.body)) for step in values["steps"])
            return {**values, "steps": steps}
        return values

    def _replace(self, tx: Transaction, before: Flow, after: Flow, now: datetime, actor: str) -> Flow:
        if after.steps != before.steps:
            advice = "Its contacts stand at these steps: create another flow for other steps."
            require_unused(self._name(before), self._used_by(tx, before, STARTED), advice)
            take_approvals(tx, after.workspace_id, partial(_runs, after), now=now, actor=actor)
        return super()._replace(tx, before, after, now, actor)


def _runs(flow: Flow, campaign: Campaign) -> bool:
    # One that sends a text may name a flow all the same, and needs nothing of it.
    return campaign.flow_id == flow.id and campaign.message_source == "flow"


class ResourceServices:
    """The services of the resources; the engine has each under the plural of its noun.

    Attributes:
        agents: Voice agents.
        trunks: SIP trunks.
        numbers: Numbers to send and call from.
        flows: Automation flows.
        schedules: Schedules, by which campaigns recur.
        webhooks: Endpoints that events are delivered to.
    """

    agents: Agents
    trunks: Trunks
    numbers: Numbers
    flows: Flows
    schedules: Schedules
    webhooks: Webhooks


class SyncResourceServices:
    """Those of the synchronous engine that have the common methods alone (outreach/sync/services.py has the others)."""

    agents: SyncResource[Agent, NewAgent, AgentUpdate]
    trunks: SyncResource[Trunk, NewTrunk, TrunkUpdate]
    numbers: SyncResource[Number, NewNumber, NumberUpdate]


RESOURCE_SERVICES: Final[Mapping[str, type[Resource[Any, Any, Any]]]] = MappingProxyType(
    get_type_hints(ResourceServices)
)
"""The definition of each resource, by the engine's attribute."""
