"""Questions that come at the same time are answered together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import anyio
import pytest
from anyio.lowlevel import checkpoint

from outreach.dispatch.batcher import Batcher
from outreach.storage.base.slices import SliceSize
from outreach.storage.unit_of_work import Transaction
from outreach.testing.clock import ManualClock

no_transaction = cast("Transaction", None)

pytestmark = pytest.mark.virtual_time


class Oracle:
    """Answers a number with its double, when it is let to; notes the batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.open = anyio.Event()

    async def answer(self, questions: Sequence[int]) -> Sequence[int]:
        """Answer a batch."""
        self.batches.append(list(questions))
        await self.open.wait()
        if 13 in questions:
            raise ValueError("unlucky")
        return [2 * question for question in questions]


async def ask_all(batches: Batcher[int, int], numbers: Sequence[int], answers: dict[int, int]) -> None:
    """Ask for the doubles of some numbers at the same time."""

    async def ask(number: int) -> None:
        answers[number] = await batches.submit(number)

    async with anyio.create_task_group() as tasks:
        for number in numbers:
            tasks.start_soon(ask, number)


async def test_what_is_asked_at_the_same_time_is_one_batch() -> None:
    """Each gets its own answer; what comes meanwhile is the next batch, at most so many."""
    oracle, answers = Oracle(), dict[int, int]()
    batches = Batcher(oracle.answer, max_size=lambda: 3)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_all, batches, [1, 2], answers)
        for _ in range(5):
            await checkpoint()
        tasks.start_soon(ask_all, batches, [3, 4, 5, 6], answers)
        for _ in range(5):
            await checkpoint()
        oracle.open.set()
    assert answers == {number: 2 * number for number in range(1, 7)}
    assert [sorted(batch) for batch in oracle.batches] == [[1, 2], [3, 4, 5], [6]]


async def test_an_error_is_raised_for_whose_question_it_is_and_for_nobody_else() -> None:
    """The others of its batch are answered, each by itself, and so is the next batch."""
    oracle, answers = Oracle(), dict[int, int]()
    oracle.open.set()
    batches = Batcher(oracle.answer, max_size=lambda: 10)

    async def ask_the_unlucky_one() -> None:
        with pytest.raises(ValueError, match="unlucky"):
            await batches.submit(13)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_all, batches, [1, 2], answers)
        await checkpoint()
        tasks.start_soon(ask_the_unlucky_one)
    assert answers == {1: 2, 2: 4}
    assert sorted(map(sorted, oracle.batches), key=len)[-1] == [1, 2, 13]
    assert await batches.submit(1) == 2


@pytest.mark.parametrize("leader_goes", [True, False])
@pytest.mark.parametrize("turns", range(4))
async def test_a_cancelled_request_leaves_the_others_their_answers(leader_goes: bool, turns: int) -> None:
    """It may have led the batch or not, and be cancelled at any moment. No request waits for ever."""
    oracle, answers = Oracle(), dict[int, int]()
    batches = Batcher(oracle.answer, max_size=lambda: 10)
    scope = anyio.CancelScope()

    async def goes(number: int) -> None:
        with scope:
            answers[number] = await batches.submit(number)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            if leader_goes:
                tasks.start_soon(goes, 1)
            tasks.start_soon(ask_all, batches, [2, 3], answers)
            if not leader_goes:
                tasks.start_soon(goes, 1)
            for _ in range(turns):
                await checkpoint()
            scope.cancel()
            for _ in range(5):
                await checkpoint()
            oracle.open.set()
        assert await batches.submit(9) == 18
    assert answers.items() >= {2: 4, 3: 6}.items()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
async def test_a_request_after_all_others_were_cancelled_together_is_answered(order: Sequence[int]) -> None:
    """No request is left to lead the batch, in whatever order they are cancelled. The first of them led it."""
    oracle = Oracle()
    batches = Batcher(oracle.answer, max_size=lambda: 10)
    scopes = [anyio.CancelScope() for _ in order]

    async def goes(number: int) -> None:
        with scopes[number]:
            await batches.submit(number)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(len(order)):
                tasks.start_soon(goes, number)
            for _ in range(5):
                await checkpoint()
            for number in order:
                scopes[number].cancel()
        oracle.open.set()
        assert await batches.submit(9) == 18
    assert oracle.batches == [[0, 1, 2], [9]]


async def test_what_comes_within_the_pause_after_a_batch_is_the_next_one_and_what_comes_later_does_not_wait() -> None:
    """It does not begin anew when the one that waits for its end is cancelled."""
    oracle, answers = Oracle(), dict[int, int]()
    oracle.open.set()
    batches, began = Batcher(oracle.answer, max_size=lambda: 10, pause_seconds=1.0), anyio.current_time()
    await ask_all(batches, [1, 2], answers)
    assert anyio.current_time() == began
    async with anyio.create_task_group() as tasks:
        with anyio.move_on_after(0.25):
            await batches.submit(3)
        tasks.start_soon(batches.submit, 4)
        await anyio.sleep(0.25)
        tasks.start_soon(batches.submit, 5)
    assert oracle.batches == [[1, 2], [4, 5]]
    assert anyio.current_time() - began == pytest.approx(1.0)
    await anyio.sleep(5.0)
    assert await batches.submit(6) == 12
    assert anyio.current_time() - began == pytest.approx(6.0)


async def test_nothing_is_collected_after_a_batch_of_one() -> None:
    """No other would come: a campaign that is alone, or a single message, does not wait for its next turn."""
    oracle = Oracle()
    oracle.open.set()
    batches, began = Batcher(oracle.answer, max_size=lambda: 10, pause_seconds=1.0), anyio.current_time()
    assert [await batches.submit(number) for number in range(3)] == [0, 2, 4]
    assert anyio.current_time() == began


async def test_the_pause_ends_when_enough_has_come() -> None:
    """Whatever is left of them waits for the next pause."""
    oracle, answers = Oracle(), dict[int, int]()
    oracle.open.set()
    batches = Batcher(oracle.answer, max_size=lambda: 4, pause_seconds=1.0, enough=3)
    began = anyio.current_time()
    await ask_all(batches, [1, 2], answers)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_all, batches, [3, 4], answers)
        await anyio.sleep(0.5)
        assert oracle.batches == [[1, 2]]
        tasks.start_soon(ask_all, batches, [5, 6, 7], answers)
        await anyio.sleep(0.25)
        assert oracle.batches == [[1, 2], [3, 4, 5, 6]]
    assert oracle.batches == [[1, 2], [3, 4, 5, 6], [7]]
    assert anyio.current_time() - began == pytest.approx(1.5)


async def test_a_full_batch_does_not_wait_for_the_end_of_the_pause() -> None:
    """Its size counts, not only how many items there are."""
    oracle, answers = Oracle(), dict[int, int]()
    oracle.open.set()
    batches = Batcher(oracle.answer, max_size=lambda: 12, size=lambda number: number, pause_seconds=1.0)
    began = anyio.current_time()
    await ask_all(batches, [1, 2], answers)
    await ask_all(batches, [5, 7], answers)
    assert oracle.batches == [[1, 2], [5, 7]]
    assert anyio.current_time() == began


async def test_items_whose_turn_has_not_come_end_no_pause() -> None:
    """Those of somebody who is being answered are not enough for a batch of the others."""
    oracle, answers = Oracle(), dict[int, int]()
    oracle.open.set()
    batches = Batcher(
        oracle.answer, max_size=lambda: 10, whose=lambda number: number // 10, pause_seconds=1.0, enough=3
    )
    await ask_all(batches, [1, 2], answers)
    oracle.open = anyio.Event()
    async with anyio.create_task_group() as tasks:
        # In virtual time: it sets when each comes, and whether the pause has ended.
        for numbers in ([10, 11, 12], [14, 15, 16, 20], [21]):
            tasks.start_soon(ask_all, batches, numbers, answers)
            await anyio.sleep(0.25)
        assert oracle.batches == [[1, 2], [10, 11, 12]]
        await anyio.sleep(0.5)
        assert oracle.batches == [[1, 2], [10, 11, 12], [20, 21]]
        oracle.open.set()
    assert oracle.batches[3:] == [[14, 15, 16]]


async def test_nobody_waits_for_a_batch_of_others_while_there_is_one() -> None:
    """What comes from others than those in the batch forms a second one; there is no third one."""
    oracle, answers = Oracle(), dict[int, int]()
    batches = Batcher(oracle.answer, max_size=lambda: 10, whose=lambda number: number // 10)
    async with anyio.create_task_group() as tasks:
        for numbers in ([1], [2, 20], [3, 21, 30, 40], [22, 41]):
            tasks.start_soon(ask_all, batches, numbers, answers)
            for _ in range(5):
                await checkpoint()
        assert oracle.batches == [[1], [20]]
        oracle.open.set()
    assert answers == {number: 2 * number for number in (1, 2, 3, 20, 21, 22, 30, 40, 41)}
    assert [sorted(batch) for batch in oracle.batches] == [[1], [20], [2, 3, 21, 22, 30, 40, 41]]


async def test_an_owner_with_items_left_has_its_next_turn_after_the_others() -> None:
    """A batch takes the items of one owner after those of another, so that a second one can be of other owners."""
    oracle, answers = Oracle(), dict[int, int]()
    oracle.open.set()
    batches = Batcher(oracle.answer, max_size=lambda: 3, whose=lambda number: number // 10)
    await ask_all(batches, [1, 20, 2, 3, 4, 30, 5, 21], answers)
    assert answers == {number: 2 * number for number in (1, 2, 3, 4, 5, 20, 21, 30)}
    assert oracle.batches == [[1, 2, 3], [20, 21, 30], [4, 5]]


async def test_an_owner_whose_item_fills_a_batch_has_its_next_turn_after_the_others_too() -> None:
    """Otherwise two owners of large items would keep all others waiting for as long as they have more."""
    oracle, answers = Oracle(), dict[int, int]()
    oracle.open.set()
    batches = Batcher(oracle.answer, max_size=lambda: 3, size=lambda _: 2, whose=lambda number: number // 10)
    await ask_all(batches, [1, 2, 3, 21, 22, 30, 40], answers)
    assert oracle.batches == [[1], [21], [30], [40], [2], [22], [3]]


async def test_items_of_an_owner_keep_their_order_and_a_large_one_keeps_its_turn() -> None:
    """None behind it is taken before it, however well that fits; other owners' items are."""
    oracle, answers = Oracle(), dict[int, int]()
    oracle.open.set()
    batches = Batcher(
        oracle.answer, max_size=lambda: 10, size=lambda number: number % 10, whose=lambda number: number // 10
    )
    await ask_all(batches, [4, 18, 11, 22, 25, 31], answers)
    assert answers == {number: 2 * number for number in (4, 18, 11, 22, 25, 31)}
    assert oracle.batches == [[4, 22, 31], [18, 11], [25]]


async def test_a_request_cancelled_while_others_are_answered_gives_up_its_turn() -> None:
    """The next request without an answer leads the second batch."""
    oracle, answers, scope = Oracle(), dict[int, int](), anyio.CancelScope()
    batches = Batcher(oracle.answer, max_size=lambda: 10, whose=lambda number: number // 10, pause_seconds=1.0)

    async def goes() -> None:
        with scope:
            await batches.submit(20)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_all, batches, [1], answers)
        await checkpoint()
        await checkpoint()
        tasks.start_soon(goes)
        await checkpoint()
        tasks.start_soon(ask_all, batches, [2, 30], answers)
        scope.cancel()
        for _ in range(5):
            await checkpoint()
        assert oracle.batches == [[1], [30]]
        oracle.open.set()
    assert answers == {1: 2, 2: 4, 30: 60}
    assert await batches.submit(20) == 40


async def test_an_operation_writes_as_much_as_takes_so_long() -> None:
    """What is measured counts for the next ones; the largest and the least are limits."""
    clock = ManualClock()
    size = SliceSize(clock, most=800)
    assert size.rows() == 800

    def run(rows: int, *, milliseconds: float) -> int:
        size.measured(lambda _: clock.advance(milliseconds / 1000), rows)(no_transaction)
        return size.rows()

    assert run(800, milliseconds=16) == 800
    assert run(800, milliseconds=64) < 500
    assert run(100, milliseconds=1000) == 266
    for _ in range(50):
        run(100, milliseconds=5)
    assert size.rows() == pytest.approx(500, abs=5)


async def test_an_operation_that_keeps_nobody_waiting_writes_as_much_as_it_may() -> None:
    """It has not waited for others, so that nobody else writes."""
    clock = ManualClock()
    size = SliceSize(clock, most=800, largest_alone=True)
    for waits, rows in ((0.0, 800), (0.1, 400), (0.005, 800), (0.1, 400)):
        operation = size.measured(lambda _: clock.advance(0.05), 800)
        clock.advance(waits)
        operation(no_transaction)
        assert size.rows() == pytest.approx(rows, abs=1)
