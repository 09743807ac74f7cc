"""Sender pools: a campaign sends from several numbers, and each contact gets all its messages from one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import attrs
import pytest

from outreach.ledger.leases.claims import NUMBERS
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.resources import Number
from outreach.models.states import DispatchState, MessageStatus, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_number
from tests.engine.given import ACCEPTED, SECOND, commit, given_active, receipt, recipient, report, settle

pytestmark = pytest.mark.virtual_time

FIRST, SECOND_ONE, THIRD = "+14155550101", "+14155550102", "+14155550103"
POOL = (FIRST, SECOND_ONE, THIRD)
SERVICE = "MG" + "0aF1" * 8
MINUTE = timedelta(minutes=1)


async def given_pool(storage: Storage, count: int, *rates: int | None, **changes: Any) -> Campaign:
    """Write an active campaign with a pool of numbers with these rates."""
    for phone, rate in zip(POOL, rates, strict=False):
        number = make_number(phone=phone, rate_per_minute=rate)
        await storage.write(partial(_insert, number))
    pool = POOL[: len(rates)]
    return await given_active(storage, count, from_number=pool[0], from_numbers=pool, **changes)


def _insert(number: Number, tx: Transaction) -> None:
    tx.numbers.insert(number)


def senders_of(dispatches: Sequence[Dispatch]) -> list[str | None]:
    """Return what messages came from."""
    return [one.from_number for one in dispatches]


async def test_new_contacts_get_the_numbers_of_a_pool_in_turn(storage: Storage) -> None:
    """Over waves, too: the run remembers how many have got one."""
    campaign = await given_pool(storage, 5, None, None, None)
    sent = (await commit(storage, campaign, 0, 1, look_ahead=9 * SECOND)).dispatches
    sent += (await commit(storage, campaign, 2, 3, 4, now=NOW + 9 * SECOND, look_ahead=9 * SECOND)).dispatches
    assert senders_of(sent) == [*POOL, FIRST, SECOND_ONE]
    assert [(await recipient(storage, campaign, n)).caller_id for n in range(5)] == senders_of(sent)


async def test_a_contact_keeps_its_number(storage: Storage) -> None:
    """Another try comes from the number of the first one, whosever turn it is."""
    campaign = await given_pool(storage, 2, None, None)
    first, second = (await commit(storage, campaign, 0, 1, look_ahead=9 * SECOND)).dispatches
    deferred = DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited")
    for dispatch in (first, second):
        await settle(storage, dispatch, deferred)
    waits = [(await recipient(storage, campaign, n)).due_at for n in (0, 1)]
    later = max(at for at in waits if at is not None)
    again = (await commit(storage, campaign, 1, 0, now=later, look_ahead=9 * SECOND)).dispatches
    assert senders_of(again) == [second.from_number, first.from_number]


async def test_the_rates_of_a_pool_add_up(storage: Storage) -> None:
    """A new contact gets the number that is free first; each number keeps its own rate."""
    campaign = await given_pool(storage, 9, 60, 30, rate_per_minute=600)
    quick = {"spacing": SECOND / 10, "intent_lifetime": 9 * SECOND}
    sent = (await commit(storage, campaign, *range(9), look_ahead=3.9 * SECOND, **quick)).dispatches
    slots = {phone: [one.slot_at - NOW for one in sent if one.from_number == phone] for phone in (FIRST, SECOND_ONE)}
    assert slots[FIRST] == [n * SECOND for n in range(4)]
    assert slots[SECOND_ONE] == [0.1 * SECOND, 2.1 * SECOND]


async def test_kept_contacts_of_a_busy_number_are_postponed_in_turn(storage: Storage) -> None:
    """Each is decided again a look-ahead before its slot, at the latest after 15 minutes."""
    campaign = await given_pool(storage, 22, 1, None, rate_per_minute=600)

    def of_first(tx: Any) -> None:
        for position in range(20):
            known = tx.recipients.get(campaign.workspace_id, campaign.id, position)
            tx.recipients.put(campaign.workspace_id, attrs.evolve(known, caller_id=FIRST))

    await storage.write(of_first)
    sent = (await commit(storage, campaign, *range(22), look_ahead=2 * SECOND, spacing=SECOND / 10)).dispatches
    assert Counter(senders_of(sent)) == {FIRST: 1, SECOND_ONE: 2}
    waiting = [await recipient(storage, campaign, n) for n in range(1, 20)]
    assert {(one.status, one.reason, one.attempts) for one in waiting} == {(RecipientStatus.WAITING, "sender_rate", 0)}
    assert [one.due_at for one in waiting[:3]] == [NOW + n * MINUTE - 2 * SECOND for n in (1, 2, 3)]
    assert waiting[-1].due_at == NOW + 15 * MINUTE
    at = waiting[0].due_at
    assert at is not None
    [again] = (await commit(storage, campaign, 1, now=at, look_ahead=2 * SECOND, spacing=SECOND / 10)).dispatches
    assert (again.from_number, again.slot_at) == (FIRST, NOW + MINUTE)


async def test_a_pool_is_driven_by_one_worker(storage: Storage) -> None:
    """Its commit claims the numbers that have a rate."""
    campaign = await given_pool(storage, 1, 60, None)
    await commit(storage, campaign)
    held = await storage.read(lambda tx: {one.subject for one in tx.claims.held()})
    assert held == {NUMBERS, campaign.id}


@pytest.mark.parametrize("number", ["+14155550177", None, "ACME"])
async def test_a_contact_keeps_the_number_that_a_messaging_service_chose(storage: Storage, number: str | None) -> None:
    """Its receipt names the number; a name is none."""
    campaign = await given_active(storage, 1, from_number=SERVICE)
    [dispatch] = (await commit(storage, campaign)).dispatches
    assert (dispatch.from_number, (await recipient(storage, campaign)).caller_id) == (SERVICE, None)
    await settle(storage, dispatch, ACCEPTED)
    await report(storage, receipt(dispatch, MessageStatus.SENT, from_number=number))
    kept = number if number != "ACME" else None
    assert (await recipient(storage, campaign)).caller_id == kept
    await report(storage, receipt(dispatch, MessageStatus.DELIVERED, from_number="+14155550178"))
    assert (await recipient(storage, campaign)).caller_id == (kept or "+14155550178")
