"""The automation flows of workspaces."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import attrs

from outreach.ledger.access.usages import OPEN, STARTED, campaigns_using
from outreach.models.campaign import Campaign
from outreach.models.resources import Flow, FlowUpdate, NewFlow
from outreach.models.states import CampaignStatus
from outreach.models.workspace import Workspace
from outreach.rules.texts import composed_or_none
from outreach.services.resource import Resource, require_unused
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import FLOWS


class Flows(Resource[Flow, NewFlow, FlowUpdate]):
    """The automation flows of workspaces.

    The steps of a flow change only while no started campaign that has not ended uses it. A flow that a campaign that
    has not ended uses is not removed.
    """

    kind = FLOWS
    remove_advice = "Cancel that campaign, or give it a text or another flow, first."

    def _users(self, tx: Transaction, one: Flow, statuses: Collection[CampaignStatus] = OPEN) -> Sequence[str]:
        def uses(campaign: Campaign) -> bool:
            # One that sends a text may name a flow all the same, and needs nothing of it.
            return campaign.flow_id == one.id and campaign.message_source == "flow"

        return campaigns_using(tx, one.workspace_id, uses, statuses)

    def _stored(self, tx: Transaction, workspace: Workspace, values: dict[str, Any]) -> dict[str, Any]:
        """Write the texts of the steps in NFC."""
        if "steps" in values:
            steps = tuple(attrs.evolve(step, body=composed_or_none(step.body)) for step in values["steps"])
            return {**values, "steps": steps}
        return values

    def _replace(self, tx: Transaction, before: Flow, after: Flow, now: datetime, actor: str) -> Flow:
        if after.steps != before.steps:
            advice = "Its contacts stand at these steps: create another flow for other steps."
            require_unused(self._name(before), self._users(tx, before, STARTED), advice)
        return super()._replace(tx, before, after, now, actor)
