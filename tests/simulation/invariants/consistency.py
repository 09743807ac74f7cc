"""Recipients, their dispatches and their campaigns must agree after every commit."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.states import CampaignStatus, DispatchState, RecipientStatus
from outreach.storage.unit_of_work import Transaction
from tests.simulation.invariants.campaign_statuses import CampaignStatusChecks, is_spent
from tests.simulation.invariants.ledger import Broken, Ledger, named, subject_of

_D = DispatchState
_OPEN: Final = frozenset(
    {
        RecipientStatus.PENDING,
        RecipientStatus.WAITING,
        RecipientStatus.DISPATCHING,
        RecipientStatus.IN_PROGRESS,
        RecipientStatus.UNKNOWN,
    }
)
_OF_DISPATCH: Final = {_D.DISPATCHING: RecipientStatus.DISPATCHING, _D.UNKNOWN: RecipientStatus.UNKNOWN}
_OVER: Final = frozenset({CampaignStatus.COMPLETED, CampaignStatus.CANCELLED, CampaignStatus.EXPIRED})


class ConsistencyChecks:
    """Checks what a commit has left.

    Args:
        ledger: What has been written.
        campaign_statuses: Knows what trouble a campaign has had.
    """

    def __init__(self, ledger: Ledger, campaign_statuses: CampaignStatusChecks) -> None:
        self._ledger = ledger
        self._campaign_statuses = campaign_statuses
        self._over: dict[str, CampaignStatus] = {}
        self._latest: datetime | None = None

    def after_step(self, before: datetime) -> None:
        """Take in that the wall clock was set: what had expired before has, whatever it shows now."""
        self._latest = max(self._latest or before, before)

    def check_recipient(self, before: Recipient | None, after: Recipient) -> None:
        """Check that a recipient is in one state, and that its dispatches say the same.

        Raises:
            Broken: It is in two states, or in none, or has come back from its end.
        """
        subject = ("recipient", after.campaign_id, after.position)
        if before is not None and before.status not in _OPEN and after.status in _OPEN:
            raise Broken(f"{named(subject)} had ended as {before.status} and is {after.status} again.")
        if (after.ended_at is None) != (after.status in _OPEN):
            raise Broken(f"{named(subject)} is {after.status} and ended at {after.ended_at}.")
        if after.successful and after.status is RecipientStatus.FAILED:
            raise Broken(f"{named(subject)} has failed ({after.reason}) and counts as successful.")
        if after.due_at is None and after.status is RecipientStatus.WAITING:
            raise Broken(f"{named(subject)} waits for nothing ({after.reason}).")
        if after.due_at is not None and after.status not in {RecipientStatus.WAITING, RecipientStatus.IN_PROGRESS}:
            raise Broken(f"{named(subject)} is {after.status} and due at {after.due_at}.")
        dispatches = list(self._ledger.dispatched(subject))
        unsettled = [dispatch for dispatch in dispatches if dispatch.state in _OF_DISPATCH]
        if len(unsettled) > 1:
            raise Broken(f"{named(subject)} has {len(unsettled)} unsettled dispatches.")
        if unsettled and after.status is not _OF_DISPATCH[unsettled[0].state]:
            raise Broken(f"{named(subject)} is {after.status}, its dispatch {unsettled[0].state}.")
        if not unsettled and after.status in _OF_DISPATCH.values():
            raise Broken(f"{named(subject)} is {after.status} without such a dispatch.")
        if after.status is RecipientStatus.IN_PROGRESS and not any(
            dispatch.state is DispatchState.ACCEPTED for dispatch in dispatches
        ):
            raise Broken(f"{named(subject)} is in progress, and nothing was accepted for it.")

    def check_dispatch(self, dispatch: Dispatch) -> None:
        """Check the recipient of a dispatch that was written, whether or not the recipient was."""
        if dispatch.campaign_id is not None:
            recipient = self._ledger.recipients.get((dispatch.campaign_id, dispatch.position or 0))
            if recipient is None:
                raise Broken(f"{named(subject_of(dispatch))} has a dispatch and is not in the ledger.")
            self.check_recipient(None, recipient)

    def check_campaign(self, tx: Transaction, workspace_id: str, campaign_id: str, now: datetime) -> None:
        """Check a campaign's counters, state, places and error budget.

        Raises:
            Broken: One of them does not hold.
        """
        campaign = tx.campaigns.get(workspace_id, campaign_id)
        if campaign is None:
            raise Broken(f"Campaign {campaign_id} is gone.")
        recount = self._ledger.recount(campaign_id)
        if recount != campaign.counters:
            raise Broken(f"Campaign {campaign_id}: counters {campaign.counters}, recount {recount}.")
        over = self._over.get(campaign_id)
        if over is not None and campaign.status is not over:
            raise Broken(f"Campaign {campaign_id} was {over} and is {campaign.status}.")
        if campaign.status in _OVER:
            self._over[campaign_id] = campaign.status
        if campaign.status is CampaignStatus.COMPLETED and recount.open:
            raise Broken(f"Campaign {campaign_id} is completed with {recount.open} open.")
        if campaign.status is CampaignStatus.EXPIRED and not _has_expired(campaign, max(self._latest or now, now)):
            raise Broken(f"Campaign {campaign_id} is expired at {now}, before {campaign.scheduled_expires_at}.")
        troubles = (
            self._campaign_statuses.troubles(campaign_id, must_count=True)
            if campaign.status is CampaignStatus.ACTIVE
            else ()
        )
        if is_spent(troubles):
            raise Broken(f"Campaign {campaign.id} goes on; the last requests were in trouble: {troubles}.")


def _has_expired(campaign: Campaign, now: datetime) -> bool:
    return campaign.scheduled_expires_at is not None and now >= campaign.scheduled_expires_at
