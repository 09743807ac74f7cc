"""What must hold at every step: checked after each commit, at each request, and against the providers' records."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import ASSUMED_SENT, DispatchOutcome
from outreach.models.reports import Report
from outreach.models.states import CampaignStatus, DispatchState, RecipientStatus
from outreach.storage.unit_of_work import Transaction
from tests.simulation.faults import Faults
from tests.simulation.invariants.bounds import Bounds
from tests.simulation.invariants.campaign_statuses import CampaignStatusChecks
from tests.simulation.invariants.claims import ClaimChecks
from tests.simulation.invariants.consistency import ConsistencyChecks
from tests.simulation.invariants.delays import DelayChecks
from tests.simulation.invariants.dispatch_states import DispatchStateChecks
from tests.simulation.invariants.endings import EndingChecks
from tests.simulation.invariants.intents import IntentChecks
from tests.simulation.invariants.ledger import Broken, Ledger, Subject, named
from tests.simulation.invariants.outside_records import OutsideRecords, Reached
from tests.simulation.invariants.requests import RequestChecks
from tests.simulation.invariants.singles import SingleChecks
from tests.simulation.invariants.throttles import ThrottleChecks
from tests.simulation.writes import Writes

AUDIT_EVERY: Final = 200
"""After so many commits everything is compared with the database, and not only what was written."""

_OPEN_MESSAGE: Final = frozenset({"queued", "dispatching", "unknown"})
_CLOSED_BY: Final = {
    RecipientStatus.CANCELED: CampaignStatus.CANCELLED,
    RecipientStatus.EXPIRED: CampaignStatus.EXPIRED,
}


class Invariants:
    """Checks one workspace in one database.

    Args:
        workspace_id: The workspace that is simulated.
        bounds: The bounds that hold.
        faults: Counts what the engine did about its rules.
        records: What really happened.
        now: The present moment, by the wall clock that the engine has.
        really: The present moment as it really is.

    Attributes:
        ledger: What has been written.
        requests: Checks requests.
        intents: Checks new intents.
        claims: Checks which worker may commit an intent.
        checked: How many commits have been checked.
    """

    def __init__(
        self,
        *,
        workspace_id: str,
        bounds: Bounds,
        faults: Faults,
        records: OutsideRecords,
        now: Callable[[], datetime],
        really: Callable[[], datetime],
    ) -> None:
        self._workspace_id = workspace_id
        self._faults = faults
        self._records = records
        self._now = now
        self._really = really
        self.ledger = ledger = Ledger(workspace_id)
        self.requests = RequestChecks(ledger, records)
        self.intents = IntentChecks(ledger, records, bounds)
        self.claims = ClaimChecks(ledger, records, faults)
        self._dispatch_states = DispatchStateChecks(records, bounds)
        self._throttles = ThrottleChecks(records)
        self._endings = EndingChecks(ledger, records, bounds)
        self._singles = SingleChecks(ledger, records, bounds)
        self._campaign_statuses = CampaignStatusChecks(ledger, bounds)
        self._delays = DelayChecks(ledger, bounds)
        self._consistency = ConsistencyChecks(ledger, self._campaign_statuses)
        self._trace = hashlib.sha256()
        self.checked = 0

    @property
    def trace(self) -> str:
        """Fingerprint of all commits and requests with their moments: one seed has one."""
        return self._trace.hexdigest()

    def after_step(self, tx: Transaction, step: timedelta) -> None:
        """Take in that the wall clock was set, back or forth."""
        now = self._now()
        self._write(f"clock {now}")
        self.intents.slots.after_step(step)
        self._throttles.after_step(step)
        self._delays.after_step(step)
        self._campaign_statuses.after_step(tx, self._workspace_id, now, step)
        self._consistency.after_step(now - step)

    def after_commit(self, tx: Transaction, writes: Writes) -> None:
        """Check what a commit has written.

        Raises:
            Broken: Something does not hold.
        """
        if writes.is_empty:
            return
        now = self._now()
        self.checked += 1
        changes = self.ledger.take_in(tx, writes)
        self._note(writes, now)
        for intent, recipient in changes.intents:
            self._records.committed[intent.id] = self._really()
            self.intents.check(tx, intent, recipient, now)
            self.claims.check(tx, intent)
            self._throttles.check(intent, now)
        for dispatch, after in changes.settled:
            self._dispatch_states.check(tx, dispatch, after, now, self._really())
            self._throttles.learn(dispatch, after, now)
        for before, left in changes.recipients:
            self._consistency.check_recipient(before, left)
            self._endings.check(tx, before, left, now)
            self._delays.check(tx, before, left, now)
            self._see(left)
        for message, written_message in changes.messages:
            self._singles.check_message(tx, message, written_message, now)
        for call, written_call in changes.calls:
            self._singles.check_call(tx, call, written_call, now, self._really())
        for written in writes.dispatches.values():
            self._consistency.check_dispatch(written)
        self._campaign_statuses.check(tx, self._workspace_id, writes, now)
        for campaign_id in {**writes.campaigns, **{key[0]: None for key in writes.recipients}}:
            if self.ledger.knows(campaign_id):
                self._consistency.check_campaign(tx, self._workspace_id, campaign_id, now)
        if self.checked % AUDIT_EVERY == 0:
            self.ledger.audit(tx)

    def at_request(self, tx: Transaction, dispatch_id: str, not_after: datetime | None) -> None:
        """Check a request that begins now."""
        now = self._now()
        self._write(f"request {dispatch_id} {now}")
        self.requests.at_start(tx, dispatch_id, not_after, now, self._really())
        self._throttles.check(self.ledger.dispatches[dispatch_id], now)

    def after_report(self, report: Report) -> None:
        """Check that the ledger has a dispatch as accepted once a process has a report of it."""
        dispatch = self.ledger.dispatches[report.dispatch_id or ""]
        if dispatch.state is not DispatchState.ACCEPTED:
            raise Broken(f"The provider has told of dispatch {dispatch.id}, and it is {dispatch.state}.")

    def after_answer(self, dispatch_id: str, outcome: DispatchOutcome) -> None:
        """Check what has become of an answer that a process got a good while ago, and has lived since."""
        self._dispatch_states.check_answered(self.ledger.dispatches[dispatch_id], outcome)

    def at_reach(self, entry: Reached) -> None:
        """Check something that a provider has taken."""
        self._write(f"reached {entry.dispatch_id} {entry.accepted_at}")
        self.requests.at_reach(entry)

    def singles_open(self) -> bool:
        """Return whether a single message or call has not ended."""
        ledger = self.ledger
        return any(one.status in _OPEN_MESSAGE for one in ledger.messages.values()) or any(
            one.is_open for one in ledger.calls.values()
        )

    def at_the_end(self, tx: Transaction, campaign_ids: Sequence[str]) -> None:
        """Check that everything has ended, that nobody was lost, and that the database holds what was written."""
        self.ledger.audit(tx)
        for campaign_id in campaign_ids:
            campaign = tx.campaigns.get(self._workspace_id, campaign_id)
            if campaign is None or not campaign.is_terminal:
                groups = Counter(one.status for one in tx.recipients.page(self._workspace_id, campaign_id))
                raise Broken(f"Campaign {campaign_id} is {campaign and campaign.status} at the end: {groups}.")
            self._consistency.check_campaign(tx, self._workspace_id, campaign_id, self._now())
            for recipient in tx.recipients.page(self._workspace_id, campaign_id):
                self._check_end(campaign, recipient)
        for message in self.ledger.messages.values():
            if message.status in _OPEN_MESSAGE:
                raise Broken(f"Message {message.id} is {message.status} at the end.")
            if message.status in {"accepted", "sent", "delivered"}:
                self._check_reached(("message", message.id, 0))
        for call in self.ledger.calls.values():
            if call.is_open:
                raise Broken(f"Call {call.id} is {call.status} at the end.")
            if call.campaign_id is None and call.status in {"completed", "busy", "no-answer"}:
                self._check_reached(("call", call.id, 0))

    def _check_end(self, campaign: Campaign, recipient: Recipient) -> None:
        subject = ("recipient", campaign.id, recipient.position)
        if recipient.is_open:
            raise Broken(f"{named(subject)} is {recipient.status} at the end.")
        closed_by = _CLOSED_BY.get(recipient.status)
        if closed_by is not None and campaign.status is not closed_by:
            raise Broken(f"{named(subject)} is {recipient.status}; its campaign is {campaign.status}.")
        dispatches = list(self.ledger.dispatched(subject))
        if recipient.status is RecipientStatus.COMPLETED and recipient.reason != "replied":
            self._check_reached(subject)
        if recipient.successful:
            self._check_reached(subject)
        open_ones = [one for one in dispatches if one.state in {DispatchState.DISPATCHING, DispatchState.UNKNOWN}]
        if open_ones:
            raise Broken(f"{named(subject)} has ended; {open_ones[0].id} is {open_ones[0].state}.")

    def _check_reached(self, subject: Subject) -> None:
        dispatches = self.ledger.dispatched(subject)
        if not any(one.id in self._records.reached or one.reason == ASSUMED_SENT for one in dispatches):
            raise Broken(f"{named(subject)} is done, and no provider has it in its records.")

    def _see(self, recipient: Recipient) -> None:
        if recipient.reason == "contact_hours":
            self._faults.note("held_by_hours")
        elif recipient.reason == "frequency_cap":
            self._faults.note("held_by_cap")

    def _note(self, writes: Writes, now: datetime) -> None:
        moved = [(one.id, one.state, one.report) for one in writes.dispatches.values()]
        people = [(*key, one.status, one.attempts) for key, one in writes.recipients.items()]
        singles = [(one.id, str(one.status)) for one in writes.messages.values()]
        singles += [(one.id, str(one.status)) for one in writes.calls.values()]
        self._write(f"commit {now} {moved} {people} {singles} {writes.statuses}")
        for _, status, reason in writes.statuses:
            if status is CampaignStatus.EXPIRED:
                self._faults.note("expired")
            elif status is CampaignStatus.PAUSED and reason != "operator":
                self._faults.note("paused_by_engine")
        stale = [one.id for one in writes.messages.values() if one.reason == "stale"]
        stale += [one.id for one in writes.calls.values() if one.error == "stale"]
        if stale:
            self._faults.note("stale")

    def _write(self, line: str) -> None:
        self._trace.update(line.encode())
