"""The ledger as it has been seen to be written, kept beside the database so that each check looks at little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import attrs

from outreach.models.call import Call
from outreach.models.campaign import Counters, Recipient
from outreach.models.dispatch import Dispatch
from outreach.models.message import Message
from outreach.models.states import DispatchState, RecipientStatus
from outreach.storage.unit_of_work import Transaction
from tests.simulation.writes import RecipientKey, Writes

Subject = tuple[str, str, int]
"""What dispatches are for: ("recipient", campaign, position), ("message", id, 0) or ("call", id, 0)."""

_S = RecipientStatus
_ENDED = frozenset({_S.COMPLETED, _S.FAILED, _S.SKIPPED, _S.CANCELED, _S.EXPIRED, _S.UNCONFIRMED})
_IN_FLIGHT = frozenset({_S.DISPATCHING, _S.IN_PROGRESS, _S.UNKNOWN})
_EVERY_PAGE = 100_000


class Broken(AssertionError):
    """An invariant does not hold."""


def subject_of(dispatch: Dispatch) -> Subject:
    """Return what a dispatch is for."""
    if dispatch.campaign_id is not None:
        return "recipient", dispatch.campaign_id, dispatch.position or 0
    if dispatch.message_id is not None:
        return "message", dispatch.message_id, 0
    return "call", dispatch.call_id or "", 0


def named(subject: Subject) -> str:
    """Return what a subject is called in messages."""
    kind, identifier, position = subject
    return f"Recipient {position} of {identifier}" if kind == "recipient" else f"The {kind} {identifier}"


@attrs.frozen(kw_only=True)
class Changes:
    """What a commit has changed.

    Attributes:
        intents: New dispatches, each with its recipient as it was before; None for a single message or call.
        settled: Dispatches that have moved, before and after.
        recipients: Recipients that have moved, before and after.
        messages: Single messages that were written, before and after; None before for a new one.
        calls: The same of calls, also those of campaigns.
    """

    intents: list[tuple[Dispatch, Recipient | None]] = attrs.field(factory=list)
    settled: list[tuple[Dispatch, Dispatch]] = attrs.field(factory=list)
    recipients: list[tuple[Recipient, Recipient]] = attrs.field(factory=list)
    messages: list[tuple[Message | None, Message]] = attrs.field(factory=list)
    calls: list[tuple[Call | None, Call]] = attrs.field(factory=list)


class Ledger:
    """Everything that was written of one workspace.

    Args:
        workspace_id: The workspace that is simulated.

    Attributes:
        workspace_id: The same.
        dispatches: All dispatches.
        of: What was dispatched for each subject, in the order of the commits.
        of_campaign: The same for each campaign.
        in_flight: Recipients of each campaign that are at a provider, or perhaps there.
        under_hours: Dispatches that were committed while the workspace had contact hours.
        open_of_epoch: Dispatches without an outcome, by epoch.
    """

    def __init__(self, workspace_id: str) -> None:
        self.workspace_id = workspace_id
        self.recipients: dict[RecipientKey, Recipient] = {}
        self.dispatches: dict[str, Dispatch] = {}
        self.calls: dict[str, Call] = {}
        self.messages: dict[str, Message] = {}
        self.of: dict[Subject, list[str]] = {}
        self._of_call: dict[str, list[str]] = {}
        self.of_campaign: dict[str, list[str]] = {}
        self.in_flight: Counter[str] = Counter()
        self.under_hours: set[str] = set()
        self.open_of_epoch: Counter[int] = Counter()
        self._sums: dict[str, list[int]] = {}

    def take_in(self, tx: Transaction, writes: Writes) -> Changes:
        """Follow a commit, and return what it has changed."""
        changes = Changes()
        for campaign_id in writes.loaded:
            self._read(tx, campaign_id)
        for dispatch in writes.dispatches.values():
            before = self.dispatches.get(dispatch.id)
            self._put_dispatch(before, dispatch)
            if before is not None:
                changes.settled.append((before, dispatch))
                continue
            key = (dispatch.campaign_id or "", dispatch.position or 0)
            changes.intents.append((dispatch, self.recipients.get(key)))
        for key, recipient in writes.recipients.items():
            earlier = self.recipients.get(key)
            if earlier is not None:
                self._put_recipient(key, earlier, recipient)
                changes.recipients.append((earlier, recipient))
        changes.calls.extend((self.calls.get(call.id), call) for call in writes.calls.values())
        changes.messages.extend((self.messages.get(message.id), message) for message in writes.messages.values())
        self.calls.update(writes.calls)
        self.messages.update(writes.messages)
        return changes

    def recount(self, campaign_id: str) -> Counters:
        """Return what the counters of a campaign must be, by what has been written."""
        total, pending, completed, successful, failed, is_open = self._sums[campaign_id]
        return Counters(
            total=total,
            pending=pending,
            completed=completed,
            successful=successful,
            failed=failed,
            open=is_open,
        )

    def knows(self, campaign_id: str) -> bool:
        """Return whether a campaign has been loaded."""
        return campaign_id in self._sums

    def dispatched(self, subject: Subject) -> Iterator[Dispatch]:
        """Return what was dispatched for a subject, in the order of the commits."""
        return (self.dispatches[dispatch_id] for dispatch_id in self.of.get(subject, ()))

    def of_call(self, call_id: str) -> Iterator[Dispatch]:
        """Return what was dispatched for a call, single or of a campaign, in the order of the commits."""
        return (self.dispatches[dispatch_id] for dispatch_id in self._of_call.get(call_id, ()))

    def waits_since(self, subject: Subject) -> datetime:
        """Return since when a single message or call waits: an operator's decision to try it again begins anew."""
        record = self.calls.get(subject[1]) or self.messages[subject[1]]
        given_up = [
            earlier.settled_at
            for earlier in self.dispatched(subject)
            if earlier.state is DispatchState.GIVEN_UP and earlier.settled_at is not None
        ]
        return max([record.created_at, *given_up])

    def audit(self, tx: Transaction) -> None:
        """Compare all of it with what the database holds, row by row.

        Raises:
            Broken: Something was written, or left out, in a way that was not seen.
        """
        for campaign_id in self._sums:
            rows = {
                (campaign_id, row.position): row
                for row in tx.recipients.page(self.workspace_id, campaign_id, limit=_EVERY_PAGE)
            }
            seen = {key: row for key, row in self.recipients.items() if key[0] == campaign_id}
            if rows.keys() != seen.keys():
                raise Broken(f"Campaign {campaign_id} has recipients {sorted(rows)}, not {sorted(seen)}.")
            for key, row in rows.items():
                self._compare_recipient(tx, row, seen[key])
            recount = tx.recipients.recount(self.workspace_id, campaign_id)
            if recount != self.recount(campaign_id):
                raise Broken(f"Campaign {campaign_id}: the database counts {recount}, not {self.recount(campaign_id)}.")

    def _compare_recipient(self, tx: Transaction, row: Recipient, seen: Recipient) -> None:
        if attrs.evolve(row, custom_variables={}) != attrs.evolve(seen, custom_variables={}):
            raise Broken(f"A recipient is {row} in the database; {seen} was written.")
        subject = ("recipient", row.campaign_id, row.position)
        stored = {
            dispatch.id: dispatch
            for dispatch in tx.dispatches.of_recipient(self.workspace_id, row.campaign_id, row.position)
        }
        if stored != {dispatch.id: dispatch for dispatch in self.dispatched(subject)}:
            raise Broken(f"{named(subject)} has other dispatches in the database than were written.")

    def _read(self, tx: Transaction, campaign_id: str) -> None:
        if tx.campaigns.get(self.workspace_id, campaign_id) is None:
            return
        for key in [key for key in self.recipients if key[0] == campaign_id]:
            del self.recipients[key]
        self._sums[campaign_id] = [0] * 6
        self.in_flight[campaign_id] = 0
        for recipient in tx.recipients.page(self.workspace_id, campaign_id, limit=_EVERY_PAGE):
            self._put_recipient((campaign_id, recipient.position), None, recipient)

    def _put_recipient(self, key: RecipientKey, before: Recipient | None, after: Recipient) -> None:
        self.recipients[key] = after
        sums = self._sums[key[0]]
        for recipient, sign in ((before, -1), (after, 1)):
            if recipient is None:
                continue
            for place, value in enumerate(_counts(recipient)):
                sums[place] += sign * value
            self.in_flight[key[0]] += sign * (recipient.status in _IN_FLIGHT)

    def _put_dispatch(self, before: Dispatch | None, after: Dispatch) -> None:
        self.dispatches[after.id] = after
        if before is None:
            self.of.setdefault(subject_of(after), []).append(after.id)
            if after.call_id is not None:
                self._of_call.setdefault(after.call_id, []).append(after.id)
            if after.campaign_id is not None:
                self.of_campaign.setdefault(after.campaign_id, []).append(after.id)
        for dispatch, sign in ((before, -1), (after, 1)):
            if dispatch is not None and dispatch.state is DispatchState.DISPATCHING:
                self.open_of_epoch[dispatch.epoch] += sign


def _counts(recipient: Recipient) -> tuple[int, int, int, int, int, int]:
    """Return what a recipient adds to total, pending, completed, successful, failed and open.

    docs/interface.md#counters.
    """
    is_open = recipient.status not in _ENDED
    untried = not recipient.dispatched and recipient.attempts == 0
    return (
        1,
        int(is_open and untried),
        int(not is_open and recipient.dispatched),
        int(recipient.successful),
        int(recipient.status is _S.FAILED),
        int(is_open),
    )
