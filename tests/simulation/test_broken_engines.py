"""An engine that is broken does not get through: what is wrong with it is found, and soon."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import pytest

from tests.simulation.broken.clusters import CLUSTERS
from tests.simulation.broken.cuts import CUTS
from tests.simulation.broken.engines import BROKEN
from tests.simulation.driver import simulate
from tests.simulation.invariants.ledger import Broken

MAX_SEEDS = 300

MAX_SEEDS_OF: Final[Mapping[str, int]] = {
    # A request of a lost worker and a leap of the clock must meet: in about one seed of four hundred.
    "that time which a clock has jumped over counts as passed": 1_000,
}
"""More for what few seeds can find."""

FOUND_BY: Final[Mapping[str, int]] = {
    "a slot recedes after the clock was set back": 157,
    "the answers of a worker that was replaced are lost": 132,
    "permits are not given back": 108,
    "the stops are counted too early": 99,
    "that time which a clock has jumped over counts as passed": 74,
    "a cap does not count what is committed with it": 71,
    "intents in doubt are forgotten": 44,
    "a single message counts as accepted that was not": 44,
    "a slot of a wrong clock is waited for": 42,
    "that nothing has arrived is believed too early": 40,
    "what was stopped meanwhile is committed all the same": 40,
    "a campaign in trouble goes on": 35,
    "what a receipt says of the account is not heard": 34,
    "an opt-out is confirmed again and again": 30,
    "others go on without credentials or funds": 23,
    "a look-up that finds nothing proves that nothing was sent": 18,
    "a database that was moved goes on sending": 20,
    "two campaigns take one slot of a number": 10,
}
"""Seeds that found what many others do not: each is tried first. The summary of the tests tells them anew."""


@pytest.mark.soak("simulates up to 300 seeds for each broken engine")
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    ("patch", "says", "workers"),
    [*((*one, 1) for one in BROKEN.values()), *((*one, 2) for one in (*CLUSTERS.values(), *CUTS.values()))],
    ids=[*BROKEN, *CLUSTERS, *CUTS],
)
def test_a_broken_engine_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    request: pytest.FixtureRequest,
    patch: Callable[[pytest.MonkeyPatch], None],
    says: str,
    workers: int,
) -> None:
    """Within 300 seeds, or what a rare one needs, with the words for what is wrong and the command that replays it."""
    patch(monkeypatch)
    broken = request.node.callspec.id
    seeds = MAX_SEEDS_OF.get(broken, MAX_SEEDS)
    found = _first_found(workers, (FOUND_BY.get(broken, 0), *range(seeds)))
    assert found is not None, f"{seeds} seeds have not found it."
    seed, words = found
    assert re.search(says, words), words
    assert f"--seed {seed}" in words
    record_property("summary", f"simulation: seed {seed} of {seeds} found that {broken}")


def test_the_seeds_that_are_tried_first_are_among_the_others() -> None:
    """And belong to engines that there are."""
    assert {*FOUND_BY, *MAX_SEEDS_OF} <= {*BROKEN, *CLUSTERS, *CUTS}
    assert all(seed < MAX_SEEDS_OF.get(broken, MAX_SEEDS) for broken, seed in FOUND_BY.items())


def _first_found(workers: int, seeds: Iterable[int]) -> tuple[int, str] | None:
    for seed in seeds:
        try:
            simulate(seed, workers=workers)
        except Broken as broken:
            return seed, str(broken)
    return None
