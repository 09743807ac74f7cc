"""Why recipients end: each end has a cause that can be seen in the ledger, the register or the campaign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from outreach.ledger.common import settings_of
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import ASSUMED_SENT, Dispatch
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.storage.unit_of_work import Transaction
from tests.simulation.invariants.bounds import Bounds
from tests.simulation.invariants.dispatch_states import NOT_TAKEN
from tests.simulation.invariants.intents import ACCOUNT_TROUBLE, MAY_PASS, NOT_SPOKEN_TO
from tests.simulation.invariants.ledger import Broken, Ledger, named
from tests.simulation.invariants.outside_records import OutsideRecords

_S = RecipientStatus
_CLOSED_BY: Final = {_S.CANCELED: CampaignStatus.CANCELLED, _S.EXPIRED: CampaignStatus.EXPIRED}


class EndingChecks:
    """Checks the end of a recipient when it is written.

    Args:
        ledger: What has been written, this end included.
        records: What really happened.
        bounds: The bounds that hold.
    """

    def __init__(self, ledger: Ledger, records: OutsideRecords, bounds: Bounds) -> None:
        self._ledger = ledger
        self._records = records
        self._bounds = bounds

    def check(self, tx: Transaction, before: Recipient, after: Recipient, now: datetime) -> None:
        """Check why a recipient has ended, or has ended otherwise than was thought.

        Raises:
            Broken: Nothing explains it.
        """
        same = (before.status, before.reason, before.successful) == (after.status, after.reason, after.successful)
        if after.is_open or same:
            return
        campaign = tx.campaigns.get(self._ledger.workspace_id, after.campaign_id)
        if campaign is None or not self._is_explained(tx, campaign, before, after, now):
            subject = named(("recipient", after.campaign_id, after.position))
            requests = [f"{one.step}: {one.state} ({one.reason}, {one.report})" for one in self._of(after)]
            raise Broken(
                f"{subject} was {before.status} ({before.reason}) and is {after.status} ({after.reason}, "
                f"{'successful' if after.successful else 'not successful'}) at {now}, and nothing explains it; "
                f"its campaign is {campaign and campaign.status}, its requests are {requests}."
            )

    def _is_explained(
        self, tx: Transaction, campaign: Campaign, before: Recipient, after: Recipient, now: datetime
    ) -> bool:
        match after.status:
            case _S.SKIPPED:
                return self._is_skipped_rightly(tx, campaign, after)
            case _S.CANCELED | _S.EXPIRED:
                return campaign.status is _CLOSED_BY[after.status]
            case _S.UNCONFIRMED:
                return self._is_unknown_everywhere(after)
            case _S.FAILED:
                return self._has_failed(tx, campaign, before, after, now)
            case _ if after.reason == "replied":
                since = campaign.started_at or campaign.created_at
                return tx.inbound.replied_since(campaign.workspace_id, after.phone or "", since)
            case _ if campaign.channel == "call":
                return self._call_is_done(after)
            case _:
                return self._message_is_done(tx, campaign, before, after, now)

    def _is_skipped_rightly(self, tx: Transaction, campaign: Campaign, after: Recipient) -> bool:
        if after.reason == "opted_out":
            stopped = bool(tx.register.stopped(campaign.workspace_id, campaign.channel, {after.phone or ""}))
            return stopped and self._records.asked_not_to_call(campaign.workspace_id, after.phone or "")
        return after.reason == "invalid_number" and after.phone is None

    def _is_unknown_everywhere(self, after: Recipient) -> bool:
        latest = self._latest(after)
        if latest is not None and latest.state in NOT_TAKEN:
            # It had been tried again meanwhile, which gives way to what was taken after all.
            latest = self._latest(after, DispatchState.ACCEPTED)
        if latest is None or latest.state is DispatchState.UNCONFIRMED:
            return latest is not None
        call = self._ledger.calls.get(latest.call_id or "")
        return call is not None and call.status is CallStatus.UNCONFIRMED

    def _has_failed(
        self, tx: Transaction, campaign: Campaign, before: Recipient, after: Recipient, now: datetime
    ) -> bool:
        """Return whether an attempt has failed so, and no other one was due to it."""
        # Who replied has ended behind the step that was sent last, and its receipt may still say that it failed.
        replied_to = before.reason == "replied"
        requests = [one for one in self._of(after) if one.step == after.step or (replied_to and one.step < after.step)]
        if not any(self._failed_so(one, after.reason) for one in requests):
            return False
        # What was taken has had its turn: only a refusal for the account's sake leaves the contact another one.
        if after.reason in ACCOUNT_TROUBLE and any(_reported_later(one, after.reason) for one in requests):
            return True
        # Spent, switched off, over with the campaign; or it had ended before, and does not begin again.
        if after.reason not in MAY_PASS | NOT_SPOKEN_TO or campaign.is_terminal or not before.is_open:
            return True
        if campaign.channel == "call":
            return after.attempts >= self._bounds.call_attempts
        settings = settings_of(tx, campaign.workspace_id)
        if not settings.retry_enabled or after.attempts >= settings.retry_max_attempts:
            return True
        if receipt_wait_is_over(before, now):
            return True
        # It was accepted, its contact had replied, which ends a flow, and it failed: one report can tell all of it.
        since = campaign.started_at or campaign.created_at
        replied = tx.inbound.replied_since(campaign.workspace_id, after.phone or "", since)
        return campaign.message_source == "flow" and replied

    def _failed_so(self, dispatch: Dispatch, reason: str | None) -> bool:
        if dispatch.state is DispatchState.REFUSED:
            return dispatch.reason == reason
        if dispatch.channel == "sms":
            return dispatch.report is MessageStatus.FAILED
        call = self._ledger.calls.get(dispatch.call_id or "")
        return call is not None and not call.is_open and call.outcome == reason

    def _call_is_done(self, after: Recipient) -> bool:
        latest = self._latest(after, DispatchState.ACCEPTED)
        if latest is None:
            return False
        if after.reason == ASSUMED_SENT:
            return latest.reason == ASSUMED_SENT and not after.successful
        call = self._ledger.calls.get(latest.call_id or "")
        if call is None or call.is_open or call.outcome in NOT_SPOKEN_TO:
            return False
        positive = call.outcome == "positive"
        return after.successful is positive and after.reason == (None if positive else call.outcome)

    def _message_is_done(
        self, tx: Transaction, campaign: Campaign, before: Recipient, after: Recipient, now: datetime
    ) -> bool:
        """Return whether every message of its course was accepted, and no receipt is waited for any more."""
        goes_on = before.is_open and not campaign.is_terminal
        sent = [step for step in self._steps_to_send(tx, campaign) if goes_on or step == after.step]
        accepted = [self._accepted_of(after, step) for step in sent]
        last = accepted[-1]
        # A failure after the next message was sent stands in that dispatch alone; the last message decides.
        if not after.successful or None in accepted or last is None or last.report is MessageStatus.FAILED:
            return False
        if after.reason == "no_receipt":
            return campaign.is_terminal or (before.due_at is not None and before.due_at <= now)
        if after.reason is not None:
            return False
        # Receipts of two requests that were thought not to be taken may come together: one that arrived is enough.
        delivered = any(one.step == sent[-1] and one.report is MessageStatus.DELIVERED for one in self._of(after))
        return delivered or not goes_on or not settings_of(tx, campaign.workspace_id).retry_enabled

    def _accepted_of(self, after: Recipient, step: int) -> Dispatch | None:
        """Return the request that decides: the last that was taken, where the last of all is; else one that arrived."""
        requests = [one for one in self._of(after) if one.step == step]
        accepted = [one for one in requests if one.state is DispatchState.ACCEPTED]
        arrived = [one for one in accepted if one.report is not MessageStatus.FAILED]
        if requests and requests[-1].state in NOT_TAKEN and arrived:
            return arrived[-1]
        return accepted[-1] if accepted else None

    def _steps_to_send(self, tx: Transaction, campaign: Campaign) -> Sequence[int]:
        if campaign.message_source != "flow":
            return (0,)
        flow = tx.flows.get(campaign.workspace_id, campaign.flow_id or "")
        steps = flow.steps if flow is not None else ()
        return [number for number, step in enumerate(steps) if step.kind == "send"]

    def _latest(self, after: Recipient, *states: DispatchState) -> Dispatch | None:
        fitting = [one for one in self._of(after) if not states or one.state in states]
        return fitting[-1] if fitting else None

    def _of(self, recipient: Recipient) -> Iterator[Dispatch]:
        return self._ledger.dispatched(("recipient", recipient.campaign_id, recipient.position))


def receipt_wait_is_over(before: Recipient, now: datetime) -> bool:
    """Return whether a receipt was waited for long enough: one that comes later opens nothing."""
    return before.status is _S.IN_PROGRESS and before.due_at is not None and before.due_at <= now


def _reported_later(dispatch: Dispatch, reason: str | None) -> bool:
    """Return whether a request was accepted, and then reported to have failed for a reason."""
    return dispatch.state is DispatchState.ACCEPTED and dispatch.reason == reason
