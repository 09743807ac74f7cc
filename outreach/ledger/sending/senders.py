"""The numbers that a wave sends from: which one each contact gets, and when each of them is free."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from outreach.ledger.campaigns.recipients import keep_sender
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.plans import Intent, Postponement, SenderPace, SenderPaces, Wave
from outreach.models.recipient import Recipient
from outreach.models.trail import TrailRule
from outreach.rules.free_first import FreeFirst
from outreach.rules.phones import normalise
from outreach.rules.senders import NUMBER_BUSY, is_service
from outreach.storage.unit_of_work import Transaction

_ANY_TIME: Final = datetime.min.replace(tzinfo=UTC)

_MAX_WAIT: Final = timedelta(minutes=15)
"""How long a contact waits before its number is looked at again, whose rate may have changed."""


class WaveSenders:
    """The sending numbers of one wave, with the slots that they have left.

    A contact of a pool has one number, from its first message on. A new contact gets the one that is free first; of
    several that are, the one whose turn it is.

    Args:
        campaign: The campaign.
        paces: The paces of its numbers.
        wave: The wave.
        turn: How many of the campaign's contacts have got a number.
    """

    def __init__(self, campaign: Campaign, paces: SenderPaces, wave: Wave, *, turn: int) -> None:
        self._pool = campaign.from_numbers
        self._default = campaign.from_number
        self._paces = paces
        self._spacing = wave.spacing
        self._turn = turn
        self._free: dict[str, datetime] = {}
        for pace in paces.values():
            moments = () if pace is None else (pace.next_slot_at, wave.numbers_from.get(pace.key))
            known = [moment for moment in moments if moment is not None]
            if pace is not None and known:
                self._free[pace.phone] = max(known)
        self._taken: dict[str, datetime] = {}
        self._turns = self._free_first(self._free)

    def in_order(self, intents: Sequence[Intent], slot: datetime) -> Sequence[Intent]:
        """Return a wave's intents in the order of the slots that they can have from `slot` on.

        A contact whose number is not free goes behind those whose numbers are.
        """
        if not self._pool:
            return intents
        free, turn, ordered = dict(self._free), self._turn, list[Intent]()
        new, waiting = deque[int](), defaultdict[str, deque[int]](deque)
        for index, intent in enumerate(intents):
            keeps = self._keeps(intent.recipient)
            (waiting[intent.recipient.caller_id or ""] if keeps else new).append(index)
        # All new contacts have the same choice, and those that keep a number go one after the other.
        pool = self._free_first(free)
        kept = FreeFirst(((indexes[0], sender) for sender, indexes in waiting.items()), self._free_at(free))
        while new or kept:
            choices = []
            if new:
                _, sender = pool.first(slot, turn % len(self._pool))
                choices.append((self._start(sender, slot, free), new[0], sender))
            if kept:
                index, sender = kept.first(slot)
                choices.append((self._start(sender, slot, free), index, sender))
            slot, index, sender = min(choices)
            self._take(sender, slot, free)
            slot += self._spacing
            ordered.append(intents[index])
            if new and index == new[0]:
                new.popleft()
                turn += 1
            else:
                waiting[sender].popleft()
                kept.replace(index, waiting[sender][0] if waiting[sender] else None)
        return ordered

    def sender_of(self, recipient: Recipient, slot: datetime) -> str | None:
        """Return the number of a contact's next message, which starts at `slot` or later."""
        if self._keeps(recipient):
            return recipient.caller_id
        return self._turns.first(slot, self._turn % len(self._pool))[1] if self._pool else self._default

    def start(self, sender: str | None, slot: datetime) -> datetime:
        """Return when a number can send, from `slot` on."""
        return self._start(sender, slot, self._free)

    def take(self, sender: str | None, recipient: Recipient, slot: datetime) -> None:
        """Take a slot of a number for a contact."""
        self._turn += bool(self._pool) and not self._keeps(recipient)
        self._take(sender, slot, self._free)
        pace = self._pace(sender)
        if pace is not None:
            self._taken[pace.phone] = slot + pace.spacing

    def waiting_for(self, intents: Iterable[Intent], latest: datetime, lead: timedelta) -> Sequence[Postponement]:
        """Return the postponements of contacts whose number has no slot until `latest`.

        Left due, they would keep those from being looked at whose numbers are free. Each is decided again `lead` before
        the slot that it may get.
        """
        found, before = [], Counter[str]()
        for intent in intents:
            pace = self._pace(intent.recipient.caller_id) if self._keeps(intent.recipient) else None
            free = self._free.get(pace.phone) if pace is not None else None
            if pace is None or free is None or free <= latest:
                continue
            due_at = min(free + before[pace.phone] * pace.spacing, latest + _MAX_WAIT) - lead
            before[pace.phone] += 1
            found.append(
                Postponement(recipient=intent.recipient, due_at=due_at, reason=NUMBER_BUSY, rule=TrailRule.PACE)
            )
        return found

    def put(self, tx: Transaction, workspace_id: str) -> None:
        """Write the next slots of the numbers that were used."""
        for phone, slot in self._taken.items():
            tx.runs.put_sender_slot(workspace_id, phone, slot)

    @property
    def turn(self) -> int:
        """How many of the campaign's contacts have got a number of the pool."""
        return self._turn

    def _keeps(self, recipient: Recipient) -> bool:
        """Return whether a contact has its number: of the pool, or by the choice of the Messaging Service."""
        known = recipient.caller_id
        return known is not None and (known in self._pool if self._pool else is_service(self._default))

    def _free_first(self, free: Mapping[str, datetime]) -> FreeFirst:
        return FreeFirst(enumerate(self._pool), self._free_at(free))

    def _free_at(self, free: Mapping[str, datetime]) -> Callable[[str], datetime]:
        return lambda sender: self._start(sender, _ANY_TIME, free)

    def _start(self, sender: str | None, slot: datetime, free: Mapping[str, datetime]) -> datetime:
        pace = self._pace(sender)
        return max(slot, free.get(pace.phone, slot)) if pace is not None else slot

    def _take(self, sender: str | None, slot: datetime, free: dict[str, datetime]) -> None:
        pace = self._pace(sender)
        if pace is not None:
            free[pace.phone] = slot + pace.spacing

    def _pace(self, sender: str | None) -> SenderPace | None:
        return None if sender is None else self._paces.get(sender)


def keep_chosen_number(tx: Transaction, dispatch: Dispatch, number: str | None) -> None:
    """Keep the number that a Messaging Service chose for a contact: its next messages come from that one."""
    if number is None or dispatch.campaign_id is None or dispatch.position is None:
        return
    if not is_service(dispatch.from_number) or normalise(number, None) is None:
        return
    recipient = tx.recipients.get(dispatch.workspace_id, dispatch.campaign_id, dispatch.position)
    if recipient is not None and recipient.caller_id is None:
        keep_sender(tx, dispatch.workspace_id, recipient, number)
