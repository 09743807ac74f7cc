"""The contract of what is due, overdue and closable among recipients."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import attrs
import pytest

from outreach.models.campaign import Recipient
from outreach.models.states import CLOSABLE_RECIPIENT_STATUSES, CampaignStatus, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.rules.settlement import DOUBLE_DIAL
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_campaign, make_prepared, new_id
from outreach.testing.storage_tables.base_contract import (
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    change_recipient,
    given_campaign,
    given_recipients,
)

State = tuple[RecipientStatus, datetime | None]
PENDING: State = (RecipientStatus.PENDING, None)
LATER = NOW + timedelta(hours=1)


def waiting(due_at: datetime | None) -> State:
    """Return the state of a recipient that waits."""
    return RecipientStatus.WAITING, due_at


def in_progress(due_at: datetime | None) -> State:
    """Return the state of a recipient that is in progress."""
    return RecipientStatus.IN_PROGRESS, due_at


async def given_states(storage: Storage, *states: State) -> str:
    """Write a campaign whose recipients are in these states, by position; return its identifier."""
    campaign = await given_recipients(storage, len(states))

    def put(tx: Transaction) -> None:
        for recipient, (status, due_at) in zip(tx.recipients.page(THIS_WORKSPACE, campaign.id), states, strict=True):
            tx.recipients.put(THIS_WORKSPACE, attrs.evolve(recipient, status=status, due_at=due_at))

    await storage.write(put)
    return campaign.id


def positions(recipients: Sequence[Recipient]) -> list[int]:
    """Return the positions of recipients."""
    return [recipient.position for recipient in recipients]


class DueContract(ContractBase):
    """The recipients that are due."""

    async def test_waiting_ones_come_before_pending_ones(self, storage: Storage) -> None:
        """By (due_at, position), then by position; due at exactly now counts, a moment later does not."""
        states = [PENDING, waiting(NOW), waiting(NOW + TICK), PENDING, waiting(NOW - TICK), waiting(NOW), waiting(None)]
        campaign_id = await given_states(storage, *states)
        await given_states(storage, PENDING, waiting(NOW))

        async def due(now: datetime, limit: int, owner: str = THIS_WORKSPACE) -> list[int]:
            return await storage.read(lambda tx: positions(tx.recipients.due(owner, campaign_id, now, limit=limit)))

        assert await due(NOW, 100) == [4, 1, 5, 0, 3]
        assert await due(NOW + TICK, 100) == [4, 1, 5, 2, 0, 3]
        assert await due(NOW - TICK, 100) == [4, 0, 3]
        assert [await due(NOW, limit) for limit in (1, 3, 4)] == [[4], [4, 1, 5], [4, 1, 5, 0]]
        assert await due(NOW, 100, OTHER_WORKSPACE) == []

    async def test_second_calls_of_double_dials_come_before_all_others(self, storage: Storage) -> None:
        """They are made within seconds, or dropped: by (due_at, position) among themselves, and only when due."""
        at = [NOW - TICK, NOW, NOW - 2 * TICK, NOW - TICK, NOW + TICK, NOW]
        campaign_id = await given_states(storage, *map(waiting, at), PENDING)

        def put(tx: Transaction) -> None:
            for recipient in tx.recipients.page(THIS_WORKSPACE, campaign_id):
                reason = {1: DOUBLE_DIAL, 3: DOUBLE_DIAL, 4: DOUBLE_DIAL, 5: "contact_hours"}.get(recipient.position)
                tx.recipients.put(THIS_WORKSPACE, attrs.evolve(recipient, reason=reason))

        await storage.write(put)

        async def due(limit: int) -> list[int]:
            return await storage.read(
                lambda tx: positions(tx.recipients.due(THIS_WORKSPACE, campaign_id, NOW, limit=limit))
            )

        assert await due(100) == [3, 1, 2, 0, 5, 6]
        assert [await due(limit) for limit in (1, 2, 3, 5)] == [[3], [3, 1], [3, 1, 2], [3, 1, 2, 0, 5]]

    @pytest.mark.parametrize(
        "status", sorted(set(RecipientStatus) - {RecipientStatus.PENDING, RecipientStatus.WAITING})
    )
    async def test_no_other_state_is_due(self, storage: Storage, status: RecipientStatus) -> None:
        """Not even with a due time that has passed."""
        campaign_id = await given_states(storage, (status, NOW - TICK))
        assert await storage.read(lambda tx: list(tx.recipients.due(THIS_WORKSPACE, campaign_id, NOW, limit=9))) == []

    async def test_a_recipient_that_changes_its_state_changes_what_is_due(self, storage: Storage) -> None:
        """A recipient that is put in a transaction is due, or no longer due, in that transaction."""
        campaign_id = await given_states(storage, PENDING, PENDING, PENDING)

        def change(tx: Transaction) -> list[list[int]]:
            seen = []
            for status, due_at in ((RecipientStatus.COMPLETED, None), waiting(LATER), waiting(NOW), PENDING):
                change_recipient(tx, campaign_id, 1, status=status, due_at=due_at)
                seen.append(positions(tx.recipients.due(THIS_WORKSPACE, campaign_id, NOW, limit=9)))
            return seen

        assert await storage.write(change) == [[0, 2], [0, 2], [1, 0, 2], [0, 1, 2]]

    async def test_the_next_due_time_is_the_earliest_of_waiting_and_in_progress(self, storage: Storage) -> None:
        """Whether it has passed or not; other states and those without a due time do not count."""
        other = (RecipientStatus.UNKNOWN, NOW - TICK), (RecipientStatus.FAILED, NOW)

        async def next_due(*states: State, owner: str = THIS_WORKSPACE) -> datetime | None:
            campaign_id = await given_states(storage, *states)
            return await storage.read(lambda tx: tx.recipients.next_due(owner, campaign_id))

        assert await next_due(waiting(LATER), waiting(NOW), in_progress(LATER), *other) == NOW
        assert await next_due(waiting(LATER), in_progress(NOW + TICK), *other) == NOW + TICK
        assert await next_due(in_progress(LATER)) == LATER
        assert await next_due(PENDING, waiting(None), in_progress(None), *other) is None
        assert await next_due(waiting(NOW), owner=OTHER_WORKSPACE) is None
        assert await storage.read(lambda tx: tx.recipients.next_due(THIS_WORKSPACE, new_id())) is None

    async def test_what_is_due_now_and_what_is_due_later_is_counted_up_to_a_limit(self, storage: Storage) -> None:
        """Due at exactly now counts as due; later ones are counted by reasons, up to and including a moment."""
        states = (PENDING, waiting(NOW), waiting(NOW + TICK), waiting(LATER), waiting(LATER), waiting(LATER + TICK))
        campaign_id = await given_states(storage, *states, in_progress(NOW), (RecipientStatus.SKIPPED, None))

        def give_reasons(tx: Transaction) -> None:
            for position in range(2, 6):
                change_recipient(tx, campaign_id, position, reason="retry" if position == 2 else "contact_hours")

        await storage.write(give_reasons)

        def look(tx: Transaction) -> object:
            table = tx.recipients
            first = table.first_postponed(THIS_WORKSPACE, campaign_id, NOW)
            later = table.first_postponed(THIS_WORKSPACE, campaign_id, NOW + TICK)
            return (
                [table.count_due(THIS_WORKSPACE, campaign_id, NOW, limit=limit) for limit in (1, 9)],
                [
                    table.count_postponed(THIS_WORKSPACE, campaign_id, reasons, NOW, until=until, limit=limit)
                    for reasons, until, limit in (
                        (["contact_hours"], None, 9),
                        (["contact_hours"], LATER, 9),
                        (["contact_hours"], LATER - TICK, 9),
                        (["contact_hours"], None, 2),
                        (["contact_hours", "retry", "flow"], None, 9),
                    )
                ],
                [None if one is None else one.position for one in (first, later)],
                table.first_postponed(THIS_WORKSPACE, campaign_id, LATER + TICK),
                table.count_due(OTHER_WORKSPACE, campaign_id, NOW, limit=9),
                table.first_postponed(OTHER_WORKSPACE, campaign_id, NOW),
            )

        assert await storage.read(look) == ([1, 2], [3, 2, 0, 2, 4], [2, 3], None, 0, None)

    async def test_the_next_due_times_of_many_campaigns_are_read_together(self, storage: Storage) -> None:
        """Of each that has one; a campaign that is asked for in another workspace has none."""
        first, second, third = [
            await given_states(storage, *states)
            for states in ((waiting(LATER), in_progress(NOW)), (waiting(LATER),), (PENDING,))
        ]
        asked = [(THIS_WORKSPACE, one) for one in (first, second, third, new_id())]

        def look(tx: Transaction) -> object:
            return tx.recipients.next_due_of_campaigns(asked), tx.recipients.next_due_of_campaigns(
                [(OTHER_WORKSPACE, first)]
            )

        assert await storage.read(look) == ({first: NOW, second: LATER}, {})

    async def test_campaigns_in_which_somebody_waits_for_too_long_are_found_together(self, storage: Storage) -> None:
        """By a reason and a moment for each; a wait that ends at the moment is not beyond it."""
        night, later = [
            await given_states(storage, waiting(at), waiting(NOW), (RecipientStatus.FAILED, LATER + TICK))
            for at in (LATER, LATER + TICK)
        ]

        def look(tx: Transaction) -> list[set[str]]:
            return [
                set(tx.recipients.waiting_beyond((owner, one, reason, after) for one in (night, later, new_id())))
                for owner, reason, after in (
                    (THIS_WORKSPACE, "night", LATER),
                    (THIS_WORKSPACE, "night", LATER - TICK),
                    (THIS_WORKSPACE, "day", NOW),
                    (OTHER_WORKSPACE, "night", NOW),
                )
            ]

        def hold(tx: Transaction) -> None:
            for campaign_id in (night, later):
                change_recipient(tx, campaign_id, 0, reason="night")

        await storage.write(hold)
        assert await storage.read(look) == [{later}, {night, later}, set(), set()]

    async def test_campaigns_in_which_a_receipt_is_awaited_for_too_long_are_found_together(
        self, storage: Storage
    ) -> None:
        """A wait that ends at the moment is not beyond it, and waiting ones do not count."""
        first, second = [
            await given_states(storage, in_progress(at), waiting(LATER + TICK)) for at in (LATER, LATER + TICK)
        ]

        def look(tx: Transaction) -> list[set[str]]:
            return [
                set(tx.recipients.in_progress_beyond([(owner, first), (owner, second)], after))
                for owner, after in ((THIS_WORKSPACE, LATER), (THIS_WORKSPACE, NOW), (OTHER_WORKSPACE, NOW))
            ]

        assert await storage.read(look) == [{second}, {first, second}, set()]

    async def test_overdue_ones_in_progress_come_by_due_time(self, storage: Storage) -> None:
        """By (due_at, position); due at exactly now counts, and waiting ones do not."""
        states = [in_progress(NOW), in_progress(NOW + TICK), in_progress(NOW - TICK), in_progress(NOW)]
        campaign_id = await given_states(storage, *states, waiting(NOW), in_progress(None))

        async def overdue(limit: int, owner: str = THIS_WORKSPACE) -> list[int]:
            return await storage.read(
                lambda tx: positions(tx.recipients.overdue_in_progress(owner, campaign_id, NOW, limit=limit))
            )

        assert await overdue(100) == [2, 0, 3]
        assert await overdue(2) == [2, 0]
        assert await overdue(100, OTHER_WORKSPACE) == []

    async def test_those_in_progress_after_a_moment_come_by_due_time(self, storage: Storage) -> None:
        """By (due_at, position); due at exactly that moment does not count, nor do waiting ones."""
        states = [in_progress(LATER), in_progress(NOW + TICK), in_progress(NOW), in_progress(NOW + TICK)]
        campaign_id = await given_states(storage, *states, waiting(LATER), in_progress(None))

        async def after(limit: int, owner: str = THIS_WORKSPACE) -> list[int]:
            return await storage.read(
                lambda tx: positions(tx.recipients.in_progress_after(owner, campaign_id, NOW, limit=limit))
            )

        assert await after(100) == [1, 3, 0]
        assert await after(2) == [1, 3]
        assert await after(100, OTHER_WORKSPACE) == []

    async def test_those_put_off_for_a_reason_come_by_due_time(self, storage: Storage) -> None:
        """By (due_at, position); due at exactly now is not put off, and another reason or state does not count."""
        at = [NOW + TICK, NOW, LATER, NOW + TICK, LATER, LATER, None]
        campaign_id = await given_states(storage, *map(waiting, at), in_progress(LATER))

        def put(tx: Transaction) -> None:
            for recipient in tx.recipients.page(THIS_WORKSPACE, campaign_id):
                reason = {4: "retry", 5: None}.get(recipient.position, "night")
                tx.recipients.put(THIS_WORKSPACE, attrs.evolve(recipient, reason=reason))

        await storage.write(put)

        async def postponed(limit: int, reason: str = "night", owner: str = THIS_WORKSPACE) -> list[int]:
            return await storage.read(
                lambda tx: positions(tx.recipients.postponed(owner, campaign_id, reason, NOW, limit=limit))
            )

        assert await postponed(100) == [0, 3, 2]
        assert await postponed(2) == [0, 3]
        assert (await postponed(9, "retry"), await postponed(9, "day"), await postponed(9, owner=OTHER_WORKSPACE)) == (
            [4],
            [],
            [],
        )

    async def test_those_that_wait_in_active_campaigns_are_counted_by_reason(self, storage: Storage) -> None:
        """Over all workspaces, up to a limit; no reason is an empty one, and other campaigns do not count."""
        campaign_id = await given_states(
            storage, PENDING, waiting(NOW), waiting(LATER), waiting(None), in_progress(NOW)
        )
        await given_states(storage, waiting(NOW))

        def put(tx: Transaction) -> None:
            campaign = tx.campaigns.get(THIS_WORKSPACE, campaign_id)
            assert campaign is not None
            tx.campaigns.update(attrs.evolve(campaign, status=CampaignStatus.ACTIVE))
            for recipient in tx.recipients.page(THIS_WORKSPACE, campaign_id):
                reason = {1: "contact_hours", 2: "contact_hours"}.get(recipient.position)
                tx.recipients.put(THIS_WORKSPACE, attrs.evolve(recipient, reason=reason))

        await storage.write(put)
        count = await storage.read(lambda tx: dict(tx.recipients.count_waiting(limit=9)))
        assert count == {"": 1, "contact_hours": 2}
        assert await storage.read(lambda tx: sum(tx.recipients.count_waiting(limit=2).values())) == 2

    async def test_those_that_wait_with_a_number_are_found_in_every_campaign(self, storage: Storage) -> None:
        """By (campaign, position), of one workspace, due or not; no other state counts."""
        phone = "+14155550123"
        contact = make_prepared(phone=phone)
        people = (contact, make_prepared(phone="+14155550124"), contact, contact, make_prepared(phone=None))
        ours = [await given_campaign(storage, *people) for _ in range(2)]
        theirs = await given_campaign(storage, contact, campaign=make_campaign(workspace_id=OTHER_WORKSPACE))

        def put(tx: Transaction) -> None:
            for campaign in (*ours, theirs):
                for recipient in tx.recipients.page(campaign.workspace_id, campaign.id):
                    status = RecipientStatus.PENDING if recipient.position == 3 else RecipientStatus.WAITING
                    tx.recipients.put(campaign.workspace_id, attrs.evolve(recipient, status=status, due_at=None))

        await storage.write(put)

        async def waiting_for_phone(number: str, owner: str = THIS_WORKSPACE) -> list[tuple[str, int]]:
            found = await storage.read(lambda tx: tx.recipients.waiting_for_phone(owner, number))
            for one in found:
                assert one == await storage.read(
                    lambda tx, one=one: tx.recipients.get(owner, one.campaign_id, one.position)  # type: ignore[misc]
                )
            return [(one.campaign_id, one.position) for one in found]

        assert await waiting_for_phone(phone) == sorted((one.id, position) for one in ours for position in (0, 2))
        assert await waiting_for_phone(phone, OTHER_WORKSPACE) == [(theirs.id, 0)]
        assert await waiting_for_phone("+14155550125") == []

    async def test_closable_ones_are_pending_and_waiting_ones(self, storage: Storage) -> None:
        """The pending ones by position, then the waiting ones as they are due; no other state is closed by a stop."""
        campaign_id = await given_states(
            storage, waiting(LATER), *((status, NOW) for status in RecipientStatus), PENDING
        )
        at = {status: 1 + position for position, status in enumerate(RecipientStatus)}
        wanted = [at[RecipientStatus.PENDING], 1 + len(RecipientStatus), at[RecipientStatus.WAITING], 0]
        assert set(CLOSABLE_RECIPIENT_STATUSES) == {RecipientStatus.PENDING, RecipientStatus.WAITING}

        async def closable(limit: int, owner: str = THIS_WORKSPACE) -> list[int]:
            return await storage.read(lambda tx: positions(tx.recipients.closable(owner, campaign_id, limit=limit)))

        assert await closable(100) == wanted
        assert await closable(3) == wanted[:3]
        assert await closable(100, OTHER_WORKSPACE) == []
