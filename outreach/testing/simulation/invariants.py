"""What must hold at every step: checked after each commit and at each request, against the providers' books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.states import CampaignStatus, DispatchState, RecipientStatus, WorkspaceStatus
from outreach.operations.common import workspace_of
from outreach.protocols.storage import Transaction
from outreach.testing.simulation.world import Reached

_MINUTE: Final = timedelta(seconds=60)
_EVERY_EPOCH: Final = 2**62
_STATUS_OF: Final = {
    DispatchState.DISPATCHING: RecipientStatus.DISPATCHING,
    DispatchState.UNKNOWN: RecipientStatus.UNKNOWN,
}
"""How a recipient stands whose dispatch has no outcome."""


class Broken(AssertionError):
    """An invariant does not hold."""


class Invariants:
    """Watches one database.

    Args:
        workspace_id: The workspace that is simulated.
    """

    def __init__(self, workspace_id: str) -> None:
        self._workspace_id = workspace_id
        self._seen: set[str] = set()
        self._starts: dict[str, list[datetime]] = {}
        self.campaigns: dict[str, Campaign] = {}
        self.retries: Counter[tuple[str, int, int]] = Counter()
        self.checked = 0

    def after_commit(self, tx: Transaction) -> None:
        """Check the ledger as it is after a commit."""
        self.checked += 1
        for dispatch in tx.dispatches.abandoned(_EVERY_EPOCH, limit=10_000):
            if dispatch.id not in self._seen:
                self._seen.add(dispatch.id)
                self._check_new_intent(tx, dispatch)
        for campaign_id in self.campaigns:
            self._check_campaign(tx, campaign_id)

    def at_request(self, tx: Transaction, dispatch_id: str, now: datetime) -> None:
        """Check a request that begins now."""
        dispatch = tx.dispatches.get(self._workspace_id, dispatch_id)
        if dispatch is None:
            raise Broken(f"The request of {dispatch_id} begins without an intent in the ledger.")
        if now > dispatch.valid_until:
            raise Broken(f"The request of {dispatch_id} begins at {now}, after its valid_until {dispatch.valid_until}.")
        if now < dispatch.slot_at:
            raise Broken(f"The request of {dispatch_id} begins at {now}, before its slot {dispatch.slot_at}.")
        campaign = self.campaigns.get(dispatch.campaign_id or "")
        if campaign is not None and campaign.sms_rate_per_minute is not None:
            self._check_pace(campaign, now)

    def at_the_end(self, tx: Transaction, reached: Mapping[str, Sequence[Reached]]) -> None:
        """Check that everybody was contacted as often as was meant, and that everything has ended."""
        for campaign_id in self.campaigns:
            campaign = tx.campaigns.get(self._workspace_id, campaign_id)
            if campaign is None or not campaign.is_terminal:
                groups = tx.recipients.groups(self._workspace_id, campaign_id)
                raise Broken(f"Campaign {campaign_id} is {campaign and campaign.status} at the end: {groups}.")
            for recipient in tx.recipients.page(self._workspace_id, campaign_id):
                if recipient.is_open:
                    raise Broken(f"Recipient {recipient.position} of {campaign_id} is {recipient.status} at the end.")
                self._check_contacts(tx, campaign_id, recipient.position, reached)

    def _check_new_intent(self, tx: Transaction, dispatch: Dispatch) -> None:
        workspace = workspace_of(tx, dispatch.workspace_id)
        if workspace.status is not WorkspaceStatus.ACTIVE:
            raise Broken(f"Intent {dispatch.id} was committed while the workspace is {workspace.status}.")
        if tx.register.stopped(dispatch.workspace_id, dispatch.channel, {dispatch.to}):
            raise Broken(f"Intent {dispatch.id} was committed for a number on the register.")
        if dispatch.campaign_id is not None:
            campaign = tx.campaigns.get(dispatch.workspace_id, dispatch.campaign_id)
            if campaign is None or campaign.status is not CampaignStatus.ACTIVE:
                raise Broken(
                    f"Intent {dispatch.id} was committed while its campaign is {campaign and campaign.status}."
                )

    def _check_campaign(self, tx: Transaction, campaign_id: str) -> None:
        campaign = tx.campaigns.get(self._workspace_id, campaign_id)
        if campaign is None:
            raise Broken(f"Campaign {campaign_id} is gone.")
        recount = tx.recipients.recount(self._workspace_id, campaign_id)
        if recount != campaign.counters:
            raise Broken(f"Campaign {campaign_id}: counters {campaign.counters}, recount {recount}.")
        if campaign.status is CampaignStatus.COMPLETED and recount.open:
            raise Broken(f"Campaign {campaign_id} is completed with {recount.open} open.")
        in_flight = 0
        for recipient in tx.recipients.page(self._workspace_id, campaign_id):
            dispatches = tx.dispatches.of_recipient(self._workspace_id, campaign_id, recipient.position)
            unsettled = [dispatch for dispatch in dispatches if dispatch.unsettled]
            if len(unsettled) > 1:
                raise Broken(
                    f"Recipient {recipient.position} of {campaign_id} has {len(unsettled)} unsettled dispatches."
                )
            expected = {
                DispatchState.DISPATCHING: RecipientStatus.DISPATCHING,
                DispatchState.UNKNOWN: RecipientStatus.UNKNOWN,
            }
            if unsettled and recipient.status is not expected[unsettled[0].state]:
                raise Broken(
                    f"Recipient {recipient.position} is {recipient.status}, its dispatch {unsettled[0].state}."
                )
            if not unsettled and recipient.status in expected.values():
                raise Broken(f"Recipient {recipient.position} is {recipient.status} without such a dispatch.")
            in_flight += recipient.status in {
                RecipientStatus.DISPATCHING,
                RecipientStatus.IN_PROGRESS,
                RecipientStatus.UNKNOWN,
            }
        if campaign.channel == "call" and in_flight > campaign.batch_concurrency:
            raise Broken(f"Campaign {campaign_id} has {in_flight} calls in flight of {campaign.batch_concurrency}.")

    def _check_pace(self, campaign: Campaign, now: datetime) -> None:
        starts = self._starts.setdefault(campaign.id, [])
        starts.append(now)
        rate = campaign.sms_rate_per_minute or 0
        within = [start for start in starts if start > now - _MINUTE]
        if len(within) > rate:
            raise Broken(f"Campaign {campaign.id} began {len(within)} requests within a minute of {rate}.")

    def _check_contacts(
        self, tx: Transaction, campaign_id: str, position: int, reached: Mapping[str, Sequence[Reached]]
    ) -> None:
        by_step: dict[int, list[Reached]] = {}
        for dispatch in tx.dispatches.of_recipient(self._workspace_id, campaign_id, position):
            by_step.setdefault(dispatch.step, []).extend(reached.get(dispatch.id, ()))
        for step, entries in by_step.items():
            allowed = 1 + sum(entry.failed or entry.unanswered for entry in entries)
            allowed += self.retries[campaign_id, position, step]
            if len(entries) > allowed:
                raise Broken(
                    f"Recipient {position} of {campaign_id} was reached {len(entries)} times in step {step}; "
                    f"{allowed} were meant."
                )
