from __future__ import annotations

import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach.models.campaign import CallerIdAllocation
from outreach.rules.deciding import next_caller_id


def group(*counts: int) -> list[CallerIdAllocation]:
    """Return a group of numbers +1, +2, … with these counts."""
    return [CallerIdAllocation(number_id=f"n{n}", phone=f"+{n}", count=c) for n, c in enumerate(counts, start=1)]


@pytest.mark.parametrize(
    ("counts", "numbers"),
    [
        ((1,), "1111"),
        ((2, 1), "112112112"),
        ((1, 3, 2), "122233122233"),
    ],
)
def test_each_number_gets_its_count_in_turn_and_the_first_comes_again(counts: tuple[int, ...], numbers: str) -> None:
    """docs/rules.md#caller-id: `count` recipients to each number in turn, from the first again after the last."""
    assert [next_caller_id(group(*counts), n) for n in range(len(numbers))] == [f"+{number}" for number in numbers]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(1, 5))
def test_a_round_gives_every_number_exactly_its_count(counts: list[int], rounds: int) -> None:
    """Whatever the counts: after whole rounds each number has had its count as often as there were rounds."""
    numbers = group(*counts)
    got = [next_caller_id(numbers, n) for n in range(sum(counts) * rounds)]
    assert [got.count(entry.phone) for entry in numbers] == [entry.count * rounds for entry in numbers]
    changes = sum(1 for before, after in itertools.pairwise(got) if before != after)
    assert changes == (0 if len(counts) == 1 else len(counts) * rounds - 1)


@pytest.mark.parametrize("counts", [(), (0,), (0, 0)])
def test_a_group_without_a_place_is_refused(counts: tuple[int, ...]) -> None:
    """A group that could give nobody a number is an error, not an endless search."""
    with pytest.raises(ValueError, match="at least one entry"):
        next_caller_id(group(*counts), 0)


def test_a_group_of_huge_counts_takes_no_more_room_than_its_entries() -> None:
    """It is asked for every call, while others wait to write: the places of a group are counted, not laid out."""
    most = 1_000_000
    numbers = group(most, most, 1)
    asked = (0, most - 1, most, 2 * most, 2 * most + 1)
    tracemalloc.start()
    try:
        got = [next_caller_id(numbers, assigned) for assigned in asked]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert got == ["+1", "+1", "+2", "+3", "+1"]
    assert peak < most
