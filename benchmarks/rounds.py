"""Measuring sides one after the other, again and again, so that what else the machine does meets all of them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence

from benchmarks.results import Sample


def alternate(sides: Mapping[str, Callable[[], Sample]], rounds: int) -> dict[str, Sequence[Sample]]:
    """Measure each side once a round; every other round in the opposite order.

    Args:
        sides: What measures a side once, by name.
        rounds: How often, at least 1.

    Returns:
        What each round has measured, by side.
    """
    found: dict[str, list[Sample]] = {name: [] for name in sides}
    for number in range(rounds):
        names = list(sides) if number % 2 == 0 else list(sides)[::-1]
        for name in names:
            # What an earlier side has left is not collected while this one is measured.
            gc.collect()
            found[name].append(sides[name]())
    return dict(found)
