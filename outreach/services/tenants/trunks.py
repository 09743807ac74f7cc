"""The SIP trunks of workspaces."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.ledger.access.usages import campaigns_using
from outreach.models.resources import NewTrunk, Trunk, TrunkUpdate
from outreach.services.resource import Resource
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import TRUNKS


class Trunks(Resource[Trunk, NewTrunk, TrunkUpdate]):
    """The SIP trunks of workspaces.

    A change counts for calls placed from then on. A trunk that a number, or a campaign that has not ended, uses is not
    removed.
    """

    kind = TRUNKS
    remove_advice = "Cancel that campaign, or take the number off the trunk, first."

    def _users(self, tx: Transaction, one: Trunk) -> Sequence[str]:
        numbers = [
            f"number {number.phone}" for number in tx.numbers.list(one.workspace_id) if number.trunk_id == one.id
        ]
        return [*campaigns_using(tx, one.workspace_id, lambda campaign: campaign.trunk_id == one.id), *numbers]
