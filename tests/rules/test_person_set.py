from __future__ import annotations

import random

from outreach.rules.numbering import person_key
from outreach.rules.phones import PersonSet


def test_a_person_is_new_once() -> None:
    """As in a set of keys, whatever the order, the spelling and the number of people."""
    chance = random.Random(7)
    found, wanted = PersonSet(), set[str]()
    for _ in range(20_000):
        phone = f"+{chance.choice(('1415', '521551', '52551'))}{chance.randrange(10**5, 10**5 + 6000):07}"
        assert found.add(phone) is (person_key(phone) not in wanted)
        wanted.add(person_key(phone))
    assert len(found) == len(wanted)


def test_the_longest_and_the_shortest_numbers_are_told_apart() -> None:
    """A number of 15 digits fits."""
    found = PersonSet()
    assert [found.add(phone) for phone in ("+999999999999999", "+1", "+999999999999998", "+1")] == [
        True,
        True,
        True,
        False,
    ]
