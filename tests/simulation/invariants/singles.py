"""Single messages and calls, and the calls of campaigns: what their records say is what has happened."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Final

from outreach.models.base import Channel
from outreach.models.call import Call
from outreach.models.dispatch import Dispatch
from outreach.models.message import Message
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.storage.unit_of_work import Transaction
from tests.simulation.invariants.bounds import Bounds
from tests.simulation.invariants.ledger import Broken, Ledger, Subject, named
from tests.simulation.invariants.outside_records import OutsideRecords, Reached

_TAKEN: Final = frozenset({MessageStatus.ACCEPTED, MessageStatus.SENT, MessageStatus.DELIVERED})
_BACK: Final = frozenset(
    {DispatchState.DEFERRED, DispatchState.NOT_SENT, DispatchState.WITHDRAWN, DispatchState.GIVEN_UP}
)
_OUTCOME_OF: Final = {CallStatus.BUSY: "busy", CallStatus.NO_ANSWER: "no_answer"}


class SingleChecks:
    """Checks the records of messages and calls when they are written.

    Args:
        ledger: What has been written, this record included.
        records: What really happened.
        bounds: The bounds that hold.
    """

    def __init__(self, ledger: Ledger, records: OutsideRecords, bounds: Bounds) -> None:
        self._ledger = ledger
        self._records = records
        self._bounds = bounds
        self._confirmed: Counter[str] = Counter()

    def check_message(self, tx: Transaction, before: Message | None, after: Message, now: datetime) -> None:
        """Check a single message.

        Raises:
            Broken: Its status says what has not happened.
        """
        if before is None:
            self._check_purpose(after)
            return
        if before.status is after.status:
            return
        subject = ("message", after.id, 0)
        latest = self._latest(subject)
        match after.status:
            case MessageStatus.CANCELED:
                explained = self._is_canceled_rightly(tx, subject, after.to, after.reason, now, after)
            case MessageStatus.FAILED:
                explained = self._any(subject, DispatchState.REFUSED, after.reason) or self._failed(subject)
            case MessageStatus.QUEUED:
                explained = latest is not None and latest.state in _BACK
            case status if status in _TAKEN:
                explained = self._any(subject, DispatchState.ACCEPTED)
            case status:
                # Dispatching, unknown and unconfirmed are called alike.
                explained = latest is not None and str(latest.state) == str(status)
        if not explained:
            raise Broken(
                f"{named(subject)} was {before.status} and is {after.status} ({after.reason}) at {now}; its last "
                f"request is {latest and latest.state} ({latest and latest.reason}, {latest and latest.report})."
            )

    def check_call(self, tx: Transaction, before: Call | None, after: Call, now: datetime, really: datetime) -> None:
        """Check the record of a call, single or of a campaign.

        Raises:
            Broken: Its status or outcome says what has not happened.
        """
        if before is None or (before.status, before.outcome) == (after.status, after.outcome):
            return
        dispatches = list(self._ledger.of_call(after.id))
        latest = dispatches[-1] if dispatches else None
        if not self._is_explained(tx, after, dispatches, now, really):
            raise Broken(
                f"{named(('call', after.id, 0))} was {before.status} and is {after.status} ({after.outcome}, "
                f"{after.error}) at {now}; its last request is {latest and latest.state} ({latest and latest.reason})."
            )

    def _is_explained(
        self, tx: Transaction, after: Call, dispatches: list[Dispatch], now: datetime, really: datetime
    ) -> bool:
        states = {one.state for one in dispatches}
        match after.status:
            case CallStatus.QUEUED:
                return dispatches[-1].state in _BACK
            case CallStatus.CANCELED if after.campaign_id is not None:
                return dispatches[-1].state in _BACK
            case CallStatus.CANCELED:
                return self._is_canceled_rightly(tx, ("call", after.id, 0), after.to, after.error, now, after)
            case CallStatus.FAILED:
                return DispatchState.REFUSED in states
            case CallStatus.UNKNOWN:
                return dispatches[-1].state is DispatchState.UNKNOWN
            case CallStatus.UNCONFIRMED if after.error == "no_news":
                return now >= (after.dialed_at or after.created_at) + self._bounds.call_silence
            case CallStatus.UNCONFIRMED:
                return DispatchState.UNCONFIRMED in states or any(one.id in self._records.decided for one in dispatches)
            case CallStatus.DISPATCHING:
                return dispatches[-1].state is DispatchState.DISPATCHING
            case _:
                entries = [entry for one in dispatches for entry in self._records.entries(one.id)]
                return any(_has_come_to(entry, after, really) for entry in entries)

    def _is_canceled_rightly(
        self, tx: Transaction, subject: Subject, to: str, reason: str | None, now: datetime, record: Message | Call
    ) -> bool:
        channel: Channel = "sms" if isinstance(record, Message) else "call"
        stopped = bool(tx.register.stopped(record.workspace_id, channel, {to}))
        match reason:
            case "stale":
                send_until = record.send_until if isinstance(record, Message) else None
                return now >= (send_until or self._ledger.waits_since(subject) + self._bounds.stale_after)
            case "opted_out":
                return stopped and self._records.asked_not_to_call(record.workspace_id, to)
            case "opted_in":
                return not stopped
            case "moved":
                return self._records.has_moved
            case _:
                return False

    def _check_purpose(self, message: Message) -> None:
        """Check that an opt-out is confirmed once: again only after the number was taken off the register."""
        if message.purpose != "opt_out_confirmation":
            return
        self._confirmed[message.to] += 1
        who = message.workspace_id, message.to
        meant = min(self._records.stops[who], 1 + self._records.lifted[who])
        if self._confirmed[message.to] > meant:
            raise Broken(f"{named(('message', message.id, 0))} confirms an opt-out that needs no confirmation.")

    def _latest(self, subject: Subject) -> Dispatch | None:
        dispatches = list(self._ledger.dispatched(subject))
        return dispatches[-1] if dispatches else None

    def _any(self, subject: Subject, state: DispatchState, *reasons: str | None) -> bool:
        return any(
            one.state is state and (not reasons or one.reason in reasons) for one in self._ledger.dispatched(subject)
        )

    def _failed(self, subject: Subject) -> bool:
        return any(one.report is MessageStatus.FAILED for one in self._ledger.dispatched(subject))


def _has_come_to(entry: Reached, call: Call, now: datetime) -> bool:
    """Return whether a provider's records have a call at its status and outcome by now."""
    if call.status is CallStatus.INITIATED:
        return call.outcome is None
    if not any(status is call.status and moment <= now for moment, status in entry.course):
        return False
    return call.is_open or call.outcome in {_OUTCOME_OF.get(call.status, entry.verdict), None}
