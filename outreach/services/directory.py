"""Agents, trunks, numbers and flows of a workspace."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from outreach.errors import InvalidRequest, NotFound
from outreach.models.carriers import CARRIERS, CarrierName
from outreach.models.directory import Agent, AgentDirection, Flow, FlowStep, Number, Trunk, VoiceProviderName
from outreach.operations.common import note, workspace_of
from outreach.policy.flows import check_steps
from outreach.policy.phones import normalise
from outreach.protocols.storage import AlreadyThere, Transaction
from outreach.services.checks import check_name
from outreach.services.context import ServiceContext


@attrs.frozen(kw_only=True)
class AgentChange:
    """What to change of an agent; None leaves a field as it is."""

    name: str | None = None
    is_active: bool | None = None
    allow_outbound: bool | None = None
    from_number: str | None = None
    provider_agent_id: str | None = None
    placeholders: Sequence[str] | None = None


class Agents:
    """The voice agents of workspaces."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def create(
        self,
        workspace_id: str,
        name: str,
        *,
        provider: VoiceProviderName = "simulator",
        direction: AgentDirection = "outbound",
        allow_outbound: bool = False,
        is_active: bool = True,
        provider_agent_id: str | None = None,
        placeholders: Sequence[str] | None = None,
        from_number: str | None = None,
        actor: str = "library",
    ) -> Agent:
        """Make an agent.

        Args:
            workspace_id: Whose agent it is.
            name: 1 to 255 characters.
            provider: Its voice provider.
            direction: `outbound`, or `inbound`, which calls out only with `allow_outbound`.
            allow_outbound: Whether an inbound agent may call out.
            is_active: Whether it may be used.
            provider_agent_id: Its identifier at the provider.
            placeholders: The template variables that it expects; None accepts any.
            from_number: Caller ID; normalised to E.164.
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A value is out of its bounds.
        """
        check_name("name", name, 255)
        now = self._context.now()

        def operation(tx: Transaction) -> Agent:
            workspace = workspace_of(tx, workspace_id)
            agent = Agent(
                id=identifier,
                workspace_id=workspace_id,
                name=name,
                provider=provider,
                provider_agent_id=provider_agent_id,
                direction=direction,
                allow_outbound=allow_outbound,
                is_active=is_active,
                placeholders=None if placeholders is None else tuple(placeholders),
                from_number=_phone("from_number", from_number, workspace.default_region),
                revision=0,
                created_at=now,
                updated_at=now,
            )
            tx.agents.insert(agent)
            note(tx, now=now, workspace_id=workspace_id, actor=actor, action="agent.create", subject=agent.id)
            return agent

        identifier = self._context.ids()
        return await self._context.storage.write(operation)

    async def update(self, workspace_id: str, agent_id: str, change: AgentChange, *, actor: str = "library") -> Agent:
        """Change an agent.

        Raises:
            NotFound: The workspace has no such agent.
            InvalidRequest: A value is out of its bounds.
        """
        if change.name is not None:
            check_name("name", change.name, 255)
        now = self._context.now()

        def operation(tx: Transaction) -> Agent:
            workspace = workspace_of(tx, workspace_id)
            before = tx.agents.get(workspace_id, agent_id)
            if before is None:
                raise NotFound("agent", agent_id)
            changes = attrs.asdict(change, filter=lambda _, value: value is not None)
            if change.placeholders is not None:
                changes["placeholders"] = tuple(change.placeholders)
            if change.from_number is not None:
                changes["from_number"] = _phone("from_number", change.from_number, workspace.default_region)
            after = attrs.evolve(before, **changes, revision=before.revision + 1, updated_at=now)
            tx.agents.update(after)
            note(tx, now=now, workspace_id=workspace_id, actor=actor, action="agent.update", subject=agent_id)
            return after

        return await self._context.storage.write(operation)

    async def get(self, workspace_id: str, agent_id: str) -> Agent:
        """Return an agent.

        Raises:
            NotFound: The workspace has no such agent.
        """
        agent = await self._context.storage.read(lambda tx: tx.agents.get(workspace_id, agent_id))
        if agent is None:
            raise NotFound("agent", agent_id)
        return agent

    async def list(self, workspace_id: str) -> Sequence[Agent]:
        """Return a workspace's agents, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return await self._context.storage.read(lambda tx: tx.agents.list(workspace_of(tx, workspace_id).id))


class Trunks:
    """The SIP trunks of workspaces."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def create(
        self,
        workspace_id: str,
        name: str,
        *,
        address: str,
        provider_trunk_id: str | None = None,
        actor: str = "library",
    ) -> Trunk:
        """Make a trunk.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A value is out of its bounds.
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

        return await self._context.storage.write(operation)

    async def list(self, workspace_id: str) -> Sequence[Trunk]:
        """Return a workspace's trunks, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return await self._context.storage.read(lambda tx: tx.trunks.list(workspace_of(tx, workspace_id).id))


class Numbers:
    """The numbers that workspaces send and call from."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def add(
        self,
        workspace_id: str,
        phone: str,
        *,
        carrier: CarrierName | None = None,
        trunk_id: str | None = None,
        actor: str = "library",
    ) -> Number:
        """Add a number.

        Args:
            workspace_id: Whose number it is.
            phone: Normalised to E.164; a workspace has a number once.
            carrier: The SMS carrier that it belongs to.
            trunk_id: The trunk that it is reached over.
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: There is no such workspace, or it has no such trunk.
            InvalidRequest: It is no number, or the workspace has it already.
        """
        if carrier is not None and carrier not in CARRIERS:
            raise InvalidRequest.at("carrier", f"must be one of {', '.join(CARRIERS)}")
        identifier, now = self._context.ids(), self._context.now()

        def operation(tx: Transaction) -> Number:
            workspace = workspace_of(tx, workspace_id)
            if trunk_id is not None and tx.trunks.get(workspace_id, trunk_id) is None:
                raise NotFound("trunk", trunk_id)
            number = Number(
                id=identifier,
                workspace_id=workspace_id,
                phone=_phone("phone", phone, workspace.default_region) or "",
                carrier=carrier,
                trunk_id=trunk_id,
                created_at=now,
            )
            try:
                tx.numbers.insert(number)
            except AlreadyThere:
                raise InvalidRequest.at("phone", "the workspace has this number already") from None
            note(tx, now=now, workspace_id=workspace_id, actor=actor, action="number.add", subject=number.id)
            return number

        return await self._context.storage.write(operation)

    async def list(self, workspace_id: str) -> Sequence[Number]:
        """Return a workspace's numbers, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return await self._context.storage.read(lambda tx: tx.numbers.list(workspace_of(tx, workspace_id).id))


class Flows:
    """The automation flows of workspaces."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def create(self, workspace_id: str, name: str, *, steps: Sequence[FlowStep], actor: str = "library") -> Flow:
        """Make a flow.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A step is not valid, or no step sends anything.
        """
        check_name("name", name, 255)
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

        return await self._context.storage.write(operation)

    async def list(self, workspace_id: str) -> Sequence[Flow]:
        """Return a workspace's flows, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return await self._context.storage.read(lambda tx: tx.flows.list(workspace_of(tx, workspace_id).id))


def _phone(path: str, raw: str | None, region: str | None) -> str | None:
    if raw is None:
        return None
    phone = normalise(raw, region)
    if phone is None:
        raise InvalidRequest.at(path, "is no possible phone number; write it like +14155550102")
    return phone
