"""Workspaces and what an application sets up in them: keys, agents, trunks, numbers, flows."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.models.directory import Agent, Flow, Number, Trunk
from outreach.models.workspace import ApiKey, Workspace
from outreach.protocols.storage import AlreadyThere
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.owned import OwnedRows, by_age
from outreach.storage.memory.table import Table


class Workspaces:
    """Workspaces."""

    def __init__(self, journal: Journal) -> None:
        self._rows = Table[str, Workspace](journal, "workspace")
        self._by_age = self._rows.index(lambda row: (None, by_age(row)))

    def get(self, workspace_id: str) -> Workspace | None:
        """Return a workspace."""
        return self._rows.get(workspace_id)

    def insert(self, workspace: Workspace) -> None:
        """Write a new workspace."""
        self._rows.insert(workspace.id, workspace)

    def update(self, workspace: Workspace) -> None:
        """Write over a workspace."""
        self._rows.replace(workspace.id, workspace)

    def list(self) -> Sequence[Workspace]:
        """Return all, oldest first."""
        return self._rows.rows(self._by_age.keys(None))


class Keys:
    """API keys."""

    def __init__(self, journal: Journal) -> None:
        self._rows = OwnedRows[ApiKey](journal, "API key")
        self._by_digest = self._rows.index(lambda row: (row.digest, ()))

    def by_digest(self, digest: str) -> ApiKey | None:
        """Return the key with this digest."""
        key_id = self._by_digest.first(digest)
        return None if key_id is None else self._rows.get(key_id)

    def get(self, key_id: str) -> ApiKey | None:
        """Return a key by its id."""
        return self._rows.get(key_id)

    def insert(self, key: ApiKey) -> None:
        """Write a new key."""
        if key.digest in self._by_digest:
            raise AlreadyThere("There is an API key with this digest already.")
        self._rows.insert(key.id, key)

    def update(self, key: ApiKey) -> None:
        """Write over a key."""
        holder = self._by_digest.first(key.digest)
        if holder not in {None, key.id}:
            raise AlreadyThere("There is an API key with this digest already.")
        self._rows.overwrite(key)

    def list(self, workspace_id: str) -> Sequence[ApiKey]:
        """Return a workspace's keys, oldest first."""
        return self._rows.rows(self._rows.by_workspace.keys(workspace_id))


class Agents:
    """Voice agents."""

    def __init__(self, journal: Journal) -> None:
        self._rows = OwnedRows[Agent](journal, "agent")

    def get(self, workspace_id: str, agent_id: str) -> Agent | None:
        """Return an agent."""
        return self._rows.within(workspace_id, agent_id)

    def insert(self, agent: Agent) -> None:
        """Write a new agent."""
        self._rows.insert(agent.id, agent)

    def update(self, agent: Agent) -> None:
        """Write over an agent."""
        self._rows.overwrite(agent)

    def list(self, workspace_id: str) -> Sequence[Agent]:
        """Return a workspace's agents, oldest first."""
        return self._rows.rows(self._rows.by_workspace.keys(workspace_id))


class Trunks:
    """SIP trunks."""

    def __init__(self, journal: Journal) -> None:
        self._rows = OwnedRows[Trunk](journal, "trunk")

    def get(self, workspace_id: str, trunk_id: str) -> Trunk | None:
        """Return a trunk."""
        return self._rows.within(workspace_id, trunk_id)

    def insert(self, trunk: Trunk) -> None:
        """Write a new trunk."""
        self._rows.insert(trunk.id, trunk)

    def update(self, trunk: Trunk) -> None:
        """Write over a trunk."""
        self._rows.overwrite(trunk)

    def list(self, workspace_id: str) -> Sequence[Trunk]:
        """Return a workspace's trunks, oldest first."""
        return self._rows.rows(self._rows.by_workspace.keys(workspace_id))


class Numbers:
    """Phone numbers; (workspace, phone) is unique."""

    def __init__(self, journal: Journal) -> None:
        self._rows = OwnedRows[Number](journal, "number")
        self._by_phone = self._rows.index(lambda row: ((row.workspace_id, row.phone), ()))

    def get(self, workspace_id: str, number_id: str) -> Number | None:
        """Return a number by its id."""
        return self._rows.within(workspace_id, number_id)

    def by_phone(self, workspace_id: str, phone: str) -> Number | None:
        """Return a number by its phone number."""
        number_id = self._by_phone.first((workspace_id, phone))
        return None if number_id is None else self._rows.get(number_id)

    def insert(self, number: Number) -> None:
        """Write a new number."""
        if (number.workspace_id, number.phone) in self._by_phone:
            raise AlreadyThere("The workspace has this phone number already.")
        self._rows.insert(number.id, number)

    def update(self, number: Number) -> None:
        """Write over a number."""
        self._rows.overwrite(number)

    def delete(self, workspace_id: str, number_id: str) -> None:
        """Delete a number."""
        if self._rows.within(workspace_id, number_id) is None:
            raise self._rows.missing(number_id)
        self._rows.delete(number_id)

    def list(self, workspace_id: str) -> Sequence[Number]:
        """Return a workspace's numbers, oldest first."""
        return self._rows.rows(self._rows.by_workspace.keys(workspace_id))


class Flows:
    """Automation flows."""

    def __init__(self, journal: Journal) -> None:
        self._rows = OwnedRows[Flow](journal, "flow")

    def get(self, workspace_id: str, flow_id: str) -> Flow | None:
        """Return a flow."""
        return self._rows.within(workspace_id, flow_id)

    def insert(self, flow: Flow) -> None:
        """Write a new flow."""
        self._rows.insert(flow.id, flow)

    def update(self, flow: Flow) -> None:
        """Write over a flow."""
        self._rows.overwrite(flow)

    def list(self, workspace_id: str) -> Sequence[Flow]:
        """Return a workspace's flows, oldest first."""
        return self._rows.rows(self._rows.by_workspace.keys(workspace_id))
