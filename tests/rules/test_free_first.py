"""The number that is free first: the same as of a look at all of them, with far fewer looks."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from outreach.rules.free_first import FreeFirst
from outreach.testing.builders import NOW

SECOND = timedelta(seconds=1)


@given(
    waits=st.lists(st.integers(-2, 4), min_size=1, max_size=6),
    uses=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 4)), max_size=20),
)
def test_it_is_the_first_of_all(waits: list[int], uses: list[tuple[int, int, int]]) -> None:
    """The one that is free earliest from a moment on; of several, the lowest rank from the given one."""
    numbers = {rank: f"+1415555{rank:04d}" for rank in range(len(waits))}
    free = {number: NOW + waits[rank] * SECOND for rank, number in numbers.items()}
    first, moment = FreeFirst(numbers.items(), free.__getitem__), NOW
    for later, from_rank, used in uses:
        moment += later * SECOND
        expected = min(
            numbers, key=lambda rank: (max(moment, free[numbers[rank]]), rank < from_rank % len(numbers), rank)
        )
        assert first.first(moment, from_rank % len(numbers)) == (expected, numbers[expected])
        moment = max(moment, free[numbers[expected]])
        free[numbers[expected]] = moment + used * SECOND


def test_a_number_gets_another_rank_or_goes() -> None:
    """Its next rank counts from then on."""
    first = FreeFirst([(0, "a"), (1, "b")], lambda _: NOW)
    assert first.first(NOW) == (0, "a")
    first.replace(0, 2)
    assert first.first(NOW) == (1, "b")
    first.replace(1, None)
    assert first.first(NOW) == (2, "a")
    first.replace(2, None)
    assert not first


def test_a_thousand_uses_of_a_hundred_numbers_look_at_few() -> None:
    """Each use would look at a hundred otherwise."""
    looks = 0
    numbers = [f"+1415555{rank:04d}" for rank in range(100)]
    free = dict.fromkeys(numbers, NOW)

    def free_at(number: str) -> datetime:
        nonlocal looks
        looks += 1
        return free[number]

    first, moment = FreeFirst(enumerate(numbers), free_at), NOW
    for turn in range(1000):
        _, number = first.first(moment, turn % 100)
        moment = max(moment, free[number]) + SECOND / 100
        free[number] = moment + 6 * SECOND
    assert looks <= 5000
