"""What must hold of a new intent at the moment of its commit.

docs/delivery-contract.md#rule-1 to #rule-4, docs/rules.md.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Final

from outreach.ledger.common import workspace_of
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.storage.unit_of_work import Transaction
from tests.simulation.invariants.bounds import Bounds
from tests.simulation.invariants.ledger import Broken, Ledger, Subject, named, subject_of
from tests.simulation.invariants.outside_records import OutsideRecords
from tests.simulation.invariants.slots import SlotChecks

_DAY: Final = timedelta(hours=24)
_NO_PROVIDER_ANSWER: Final = frozenset({DispatchState.NOT_SENT, DispatchState.WITHDRAWN, DispatchState.DEFERRED})
ACCOUNT_TROUBLE: Final = frozenset({"provider_auth", "provider_funds"})
"""Failures of our account, and not of one contact or message."""

MAY_PASS: Final = ACCOUNT_TROUBLE | {"temporary", "unreachable", "rate_limited"}
"""Refusals after which the contact has another turn: those that may pass, and those that are our account's trouble."""

NOT_SPOKEN_TO: Final = frozenset({"busy", "no_answer", "declined", "voicemail"})
"""Ends of a call after which another one may be placed."""


def is_forbidden(tx: Transaction, ledger: Ledger, dispatch: Dispatch) -> bool:
    """Return whether the register stands against a dispatch: all but the confirmation of the opt-out itself."""
    stopped = bool(tx.register.stopped(dispatch.workspace_id, dispatch.channel, {dispatch.to}))
    message = ledger.messages.get(dispatch.message_id or "")
    return not stopped if message is not None and message.purpose == "opt_out_confirmation" else stopped


class IntentChecks:
    """Checks each new intent against everything that was known when it was committed.

    Args:
        ledger: What has been written, this intent included.
        records: What really happened.
        bounds: The bounds that hold.

    Attributes:
        slots: Which slots were taken.
    """

    def __init__(self, ledger: Ledger, records: OutsideRecords, bounds: Bounds) -> None:
        self._ledger = ledger
        self._records = records
        self._bounds = bounds
        self.slots = SlotChecks(bounds)
        self._callers: dict[Subject, str | None] = {}
        self._called: Counter[str] = Counter()
        self._positions: dict[tuple[str, str], int] = {}

    def check(self, tx: Transaction, intent: Dispatch, before: Recipient | None, now: datetime) -> None:
        """Check one intent.

        Raises:
            Broken: It should not have been committed.
        """
        if intent.state is not DispatchState.DISPATCHING:
            raise Broken(f"Dispatch {intent.id} was committed as {intent.state}, not as an intent.")
        lease = tx.leases.current()
        if lease is None or tx.workers.get(intent.epoch) is None:
            raise Broken(f"Intent {intent.id} was committed under epoch {intent.epoch}, whose lease has ended.")
        self._check_permits(tx, intent.epoch)
        workspace = workspace_of(tx, intent.workspace_id)
        if workspace.status != "active":
            raise Broken(f"Intent {intent.id} was committed while the workspace is {workspace.status}.")
        if workspace.contact_hours:
            self._ledger.under_hours.add(intent.id)
        if is_forbidden(tx, self._ledger, intent):
            raise Broken(f"Intent {intent.id} was committed for a number on the register.")
        self._check_earlier(intent)
        moved_at = self._records.moved_at(lease.home)
        if intent.campaign_id is None:
            self._check_single(intent, moved_at, now)
            self.slots.check(intent, None, now)
            return
        campaign = tx.campaigns.get(intent.workspace_id, intent.campaign_id)
        if campaign is None or campaign.status is not CampaignStatus.ACTIVE:
            raise Broken(f"Intent {intent.id} was committed while its campaign is {campaign and campaign.status}.")
        if campaign.scheduled_start_at is not None and now < campaign.scheduled_start_at:
            raise Broken(f"Intent {intent.id} was committed at {now}, before the start of its campaign.")
        if campaign.scheduled_expires_at is not None and now >= campaign.scheduled_expires_at:
            raise Broken(f"Intent {intent.id} was committed at {now}, after the expiry of its campaign.")
        if moved_at is not None and campaign.updated_at < moved_at:
            raise Broken(f"Intent {intent.id} was committed; the database has moved, and nobody has resumed it.")
        self._check_recipient(intent, before, campaign, now)
        self._check_caller(intent, campaign)
        in_flight = self._ledger.in_flight[campaign.id]
        # At a commit alone: evidence that a provider has placed a call which it denied takes no place from anybody.
        if campaign.channel == "call" and in_flight > campaign.batch_concurrency:
            raise Broken(f"Intent {intent.id} is call {in_flight} in flight of {campaign.batch_concurrency}.")
        self.slots.check(intent, campaign, now)
        self._check_cap(intent, workspace.frequency_cap)
        self._check_reply(tx, intent, campaign)

    def _check_permits(self, tx: Transaction, epoch: int) -> None:
        """Check that a worker has no more intents than it may have, nor all of them together."""
        workers = tx.workers.list()
        granted = {worker.epoch: worker.intent_permits + worker.request_permits for worker in workers}
        unsettled = self._ledger.open_of_epoch[epoch]
        if unsettled > granted[epoch]:
            raise Broken(f"Epoch {epoch} has {unsettled} intents without an outcome; it may have {granted[epoch]}.")
        # A worker that joins has one permit of each kind at once, even where the others still have them all.
        most = self._bounds.most_unsettled + 2 * (len(workers) - 1)
        if sum(granted.values()) > most:
            raise Broken(f"The workers may have {granted} intents without an outcome, together more than {most}.")

    def _check_earlier(self, intent: Dispatch) -> None:
        """Check that every earlier request for the same thing provably reached nobody, or was given up by hand."""
        subject = subject_of(intent)
        before = [one for one in self._ledger.dispatched(subject) if one.id != intent.id and one.step == intent.step]
        if any(entry.denied for one in before[:-1] for entry in self._records.entries(one.id)):
            # Its provider refused it, but reported that after the next request was out: either of the two counts.
            before = [one for one in before if one.unsettled]
        for earlier in before:
            if not self._did_not_reach(earlier):
                raise Broken(
                    f"{named(subject)} has intent {intent.id} after {earlier.id}, which is {earlier.state} "
                    f"({earlier.reason}, {earlier.report})."
                )

    def _did_not_reach(self, dispatch: Dispatch) -> bool:
        if dispatch.state in _NO_PROVIDER_ANSWER or dispatch.state is DispatchState.GIVEN_UP:
            return True
        if dispatch.campaign_id is None:
            # A single message or call has one attempt.
            return False
        if dispatch.state is DispatchState.REFUSED:
            return dispatch.reason in MAY_PASS
        if dispatch.state is not DispatchState.ACCEPTED:
            return False
        if dispatch.channel == "sms":
            return dispatch.report is MessageStatus.FAILED
        call = self._ledger.calls.get(dispatch.call_id or "")
        return call is not None and not call.is_open and call.outcome in NOT_SPOKEN_TO

    def _check_recipient(self, intent: Dispatch, before: Recipient | None, campaign: Campaign, now: datetime) -> None:
        subject = named(subject_of(intent))
        if before is None:
            raise Broken(f"{subject} has an intent and is not in the ledger.")
        if before.status is RecipientStatus.WAITING:
            if before.due_at is None or before.due_at > now:
                raise Broken(f"{subject} has an intent at {now} and waits until {before.due_at} ({before.reason}).")
        elif before.status is not RecipientStatus.PENDING:
            raise Broken(f"{subject} has an intent while it is {before.status}.")
        if before.step != intent.step:
            raise Broken(f"{subject} has an intent for step {intent.step} while it stands at {before.step}.")
        position = self._positions.setdefault((before.campaign_id, intent.to), before.position)
        if position != before.position:
            raise Broken(f"{subject} has the number of recipient {position}, to whom it was sent already.")
        most = self._bounds.sms_attempts if intent.channel == "sms" else self._bounds.call_attempts
        if not 1 <= intent.attempt <= most:
            raise Broken(f"{subject} has an intent for attempt {intent.attempt} of {most}.")
        if intent.leg != 1:
            self._check_second_leg(intent, before, campaign, now)

    def _check_second_leg(self, intent: Dispatch, before: Recipient, campaign: Campaign, now: datetime) -> None:
        first = [
            dispatch
            for dispatch in self._ledger.dispatched(subject_of(intent))
            if (dispatch.attempt, dispatch.leg) == (intent.attempt, 1) and dispatch.state is DispatchState.ACCEPTED
        ]
        call = self._ledger.calls.get(first[-1].call_id or "") if first else None
        rang_out = call is not None and (call.status is CallStatus.NO_ANSWER or call.outcome == "no_answer")
        if intent.leg != 2 or not campaign.double_dial or not rang_out:
            raise Broken(f"Intent {intent.id} is leg {intent.leg} without a first call that rang out.")
        late = before.due_at is None or now > before.due_at + self._bounds.second_leg_within
        if late or before.reason != "double_dial":
            raise Broken(f"Intent {intent.id} is a second call at {now}, which was due at {before.due_at}.")
        heard, ended = before.due_at, None if call is None else call.ended_at
        if heard is not None and ended is not None and heard - ended > self._bounds.rang_out_within:
            raise Broken(f"Intent {intent.id} is a second call after one that ended at {ended}, heard of at {heard}.")

    def _check_cap(self, intent: Dispatch, cap: int | None) -> None:
        if cap is None:
            return
        within = [
            dispatch
            for dispatch in self._ledger.dispatches.values()
            if dispatch.to == intent.to
            and dispatch.campaign_id is not None
            and dispatch.state not in _NO_PROVIDER_ANSWER
            and dispatch.created_at > intent.created_at - _DAY
        ]
        if len(within) > cap:
            raise Broken(f"Intent {intent.id} is number {len(within)} to its contact in a day of at most {cap}.")

    def _check_reply(self, tx: Transaction, intent: Dispatch, campaign: Campaign) -> None:
        if campaign.message_source != "flow" or intent.step == 0:
            return
        flow = tx.flows.get(campaign.workspace_id, campaign.flow_id or "")
        if flow is None or flow.steps[intent.step - 1].kind != "stop_if_replied":
            return
        recipient = tx.recipients.get(campaign.workspace_id, campaign.id, intent.position or 0)
        since = campaign.started_at or campaign.created_at
        if recipient is not None and recipient.added_at is not None:
            since = max(since, recipient.added_at)
        if tx.inbound.replied_since(campaign.workspace_id, intent.to, since):
            raise Broken(f"Intent {intent.id} was committed although its contact has replied.")

    def _check_single(self, intent: Dispatch, moved_at: datetime | None, now: datetime) -> None:
        subject = subject_of(intent)
        message = self._ledger.messages.get(subject[1])
        since = self._ledger.waits_since(subject)
        until = (
            since + self._bounds.stale_after if message is None or message.send_until is None else message.send_until
        )
        if now >= until:
            raise Broken(f"{named(subject)} has an intent at {now}; it has been waiting since {since}.")
        if moved_at is not None and since < moved_at:
            raise Broken(f"{named(subject)} has an intent; the database has moved since it was asked for, at {since}.")

    def _check_caller(self, intent: Dispatch, campaign: Campaign) -> None:
        """Check that all contacts with one person come from one number of the group or pool."""
        if campaign.from_numbers:
            known = self._callers.setdefault(subject_of(intent), intent.from_number)
            if known != intent.from_number or known not in campaign.from_numbers:
                raise Broken(f"Intent {intent.id} comes from {intent.from_number}; its contact has heard from {known}.")
        if campaign.cli_mode != "group":
            return
        subject = subject_of(intent)
        if subject not in self._callers:
            # In turn: each number so many times, from the first again after the last.
            turns = [entry.phone for entry in campaign.cli_group or () for _ in range(entry.count)]
            self._callers[subject] = turns[self._called[campaign.id] % len(turns)]
            self._called[campaign.id] += 1
        known = self._callers[subject]
        if known != intent.from_number:
            raise Broken(
                f"Intent {intent.id} has the caller ID {intent.from_number}; its contact is called from {known}."
            )
