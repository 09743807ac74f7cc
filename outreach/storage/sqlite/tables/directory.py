"""What an application sets up for a workspace: agents, trunks, numbers, flows, settings, the register."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from outreach.convert.rows import to_row
from outreach.models.carriers import Channel
from outreach.models.directory import Agent, Flow, Number, Trunk
from outreach.models.settings import CallSettings, ReplySettings, SmsSettings
from outreach.models.unsubscribe import Unsubscribe
from outreach.storage.sqlite.sql import load
from outreach.storage.sqlite.tables.base import Table, as_list


class Agents(Table):
    """Voice agents."""

    queries = load("agents")
    what = "agent"

    def get(self, workspace_id: str, agent_id: str) -> Agent | None:
        """Return an agent."""
        return self._one(Agent, "get", workspace_id=workspace_id, agent_id=agent_id)

    def insert(self, agent: Agent) -> None:
        """Write a new agent."""
        self._change("insert", to_row(agent))

    def update(self, agent: Agent) -> None:
        """Write over an agent."""
        self._change_one("update", to_row(agent))

    def list(self, workspace_id: str) -> Sequence[Agent]:
        """Return a workspace's agents, oldest first."""
        return self._all(Agent, "list", workspace_id=workspace_id)


class Trunks(Table):
    """SIP trunks."""

    queries = load("trunks")
    what = "trunk"

    def get(self, workspace_id: str, trunk_id: str) -> Trunk | None:
        """Return a trunk."""
        return self._one(Trunk, "get", workspace_id=workspace_id, trunk_id=trunk_id)

    def insert(self, trunk: Trunk) -> None:
        """Write a new trunk."""
        self._change("insert", to_row(trunk))

    def update(self, trunk: Trunk) -> None:
        """Write over a trunk."""
        self._change_one("update", to_row(trunk))

    def list(self, workspace_id: str) -> Sequence[Trunk]:
        """Return a workspace's trunks, oldest first."""
        return self._all(Trunk, "list", workspace_id=workspace_id)


class Numbers(Table):
    """Phone numbers that a workspace sends or calls from."""

    queries = load("numbers")
    what = "number"

    def get(self, workspace_id: str, number_id: str) -> Number | None:
        """Return a number."""
        return self._one(Number, "get", workspace_id=workspace_id, number_id=number_id)

    def by_phone(self, workspace_id: str, phone: str) -> Number | None:
        """Return a number by what is dialled."""
        return self._one(Number, "by_phone", workspace_id=workspace_id, phone=phone)

    def insert(self, number: Number) -> None:
        """Write a new number."""
        self._change("insert", to_row(number))

    def update(self, number: Number) -> None:
        """Write over a number."""
        self._change_one("update", to_row(number))

    def delete(self, workspace_id: str, number_id: str) -> None:
        """Delete a number."""
        self._change_one("delete", {"workspace_id": workspace_id, "number_id": number_id})

    def list(self, workspace_id: str) -> Sequence[Number]:
        """Return a workspace's numbers, oldest first."""
        return self._all(Number, "list", workspace_id=workspace_id)


class Flows(Table):
    """Automation flows."""

    queries = load("flows")
    what = "flow"

    def get(self, workspace_id: str, flow_id: str) -> Flow | None:
        """Return a flow."""
        return self._one(Flow, "get", workspace_id=workspace_id, flow_id=flow_id)

    def insert(self, flow: Flow) -> None:
        """Write a new flow."""
        self._change("insert", to_row(flow))

    def update(self, flow: Flow) -> None:
        """Write over a flow."""
        self._change_one("update", to_row(flow))

    def list(self, workspace_id: str) -> Sequence[Flow]:
        """Return a workspace's flows, oldest first."""
        return self._all(Flow, "list", workspace_id=workspace_id)


class Settings(Table):
    """SMS settings, one row a workspace at most."""

    queries = load("settings")
    what = "settings row"

    def get(self, workspace_id: str) -> SmsSettings | None:
        """Return the settings; None before the first change."""
        return self._one(SmsSettings, "get", workspace_id=workspace_id)

    def put(self, workspace_id: str, settings: SmsSettings) -> None:
        """Write the settings."""
        self._change("put", {**to_row(settings), "workspace_id": workspace_id})


class CallSettingsTable(Table):
    """Settings of calling campaigns, one row a workspace at most."""

    queries = load("call_settings")
    what = "call settings row"

    def get(self, workspace_id: str) -> CallSettings | None:
        """Return the settings; None before the first change."""
        return self._one(CallSettings, "get", workspace_id=workspace_id)

    def put(self, workspace_id: str, settings: CallSettings) -> None:
        """Write the settings."""
        self._change("put", {**to_row(settings), "workspace_id": workspace_id})


class ReplySettingsTable(Table):
    """How keywords are answered, one row a workspace at most."""

    queries = load("reply_settings")
    what = "reply settings row"

    def get(self, workspace_id: str) -> ReplySettings | None:
        """Return the settings; None before the first change."""
        return self._one(ReplySettings, "get", workspace_id=workspace_id)

    def put(self, workspace_id: str, settings: ReplySettings) -> None:
        """Write the settings."""
        self._change("put", {**to_row(settings), "workspace_id": workspace_id})


class Register(Table):
    """The unsubscribe register."""

    queries = load("register")
    what = "register entry"

    def get(self, workspace_id: str, phone: str) -> Unsubscribe | None:
        """Return the entry of a number."""
        return self._one(Unsubscribe, "get", workspace_id=workspace_id, phone=phone)

    def put(self, entry: Unsubscribe) -> None:
        """Write an entry, in place of the one that this number has."""
        self._change("put", to_row(entry))

    def delete(self, workspace_id: str, phone: str) -> bool:
        """Remove a number; return whether it was there."""
        return self._change("delete", {"workspace_id": workspace_id, "phone": phone}) == 1

    def list(self, workspace_id: str, *, after: str = "", limit: int = 1000) -> Sequence[Unsubscribe]:
        """Return entries in the order of their numbers, those greater than `after`, at most `limit`."""
        return self._all(Unsubscribe, "list", workspace_id=workspace_id, after=after, limit=limit)

    def stopped(self, workspace_id: str, channel: Channel, phones: Collection[str]) -> frozenset[str]:
        """Return those of the numbers that must not be reached by this channel."""
        rows = self._rows("stopped", workspace_id=workspace_id, channel=channel, phones=as_list(phones))
        return frozenset(row["phone"] for row in rows)
