"""The numbers that workspaces send and call from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from outreach.errors import Conflict
from outreach.ledger.access.usages import campaigns_using
from outreach.ledger.common import wake_running_campaigns, workspace_of
from outreach.models.campaign import Campaign
from outreach.models.resources import NewNumber, Number, NumberUpdate
from outreach.models.workspace import Workspace
from outreach.rules.phones import normalise_single
from outreach.rules.spellings import person_key
from outreach.services.resource import Resource
from outreach.services.validation import check_phone, check_provider
from outreach.storage.unit_of_work import AlreadyExists, Transaction, WorkspaceTable
from outreach.storage.unit_of_work.kinds import NUMBERS


class Numbers(Resource[Number, NewNumber, NumberUpdate]):
    """The numbers that workspaces send and call from.

    A workspace has each number once. Running campaigns use a new rate at once. A number that a campaign that has not
    ended, or an active agent, uses is not removed; the dispatches of a removed one stay in the ledger.
    """

    kind = NUMBERS
    remove_advice = "Change or cancel that first, or give the agent another caller ID."
    _created = "add"

    def _table(self, tx: Transaction) -> WorkspaceTable[Number]:
        return tx.numbers

    def _users(self, tx: Transaction, one: Number) -> Sequence[str]:
        region = workspace_of(tx, one.workspace_id).default_region
        line = person_key(one.phone)

        def is_it(phone: str | None) -> bool:
            return phone is not None and person_key(phone) == line

        def uses(campaign: Campaign) -> bool:
            own = campaign.from_number
            if own is not None and is_it(normalise_single(own, region)):
                return True
            return any(is_it(entry.phone) or one.id == entry.number_id for entry in campaign.cli_group or ())

        agents = [
            f"agent {agent.name!r}"
            for agent in tx.agents.list(one.workspace_id)
            if agent.is_active and is_it(agent.from_number)
        ]
        return [*campaigns_using(tx, one.workspace_id, uses), *agents]

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
        wake_running_campaigns(tx, after.workspace_id, now)
        return super()._replace(tx, before, after, now, actor)

    def _remove(self, tx: Transaction, one: Number, now: datetime) -> Number:
        """Delete the row, so that the number can be added again."""
        tx.numbers.delete(one.workspace_id, one.id)
        return one
