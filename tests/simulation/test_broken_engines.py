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

FIRST_SEEDS = range(20)
MAX_SEEDS = 300

MAX_SEEDS_OF: Final[Mapping[str, int]] = {
    # A request of a lost worker and a leap of the clock must meet: in about one seed of four hundred.
    "that time which a clock has jumped over counts as passed": 1_000,
    # A worker must be replaced while it waits for answers: in about one seed of three hundred.
    "the answers of a worker that was replaced are lost": 1_000,
    # A connection must break behind the commit of an intent whose campaign then waits.
    "intents in doubt are forgotten": 1_000,
}
"""More for what few seeds can find."""

FOUND_BY: Final[Mapping[str, int]] = {
    "what living workers do is taken for abandoned": 1,
    "a stop is counted in another workspace": 2,
    "that time which a clock has jumped over counts as passed": 101,
    "change numbers are drawn early": 45,
    "a slot recedes after the clock was set back": 52,
    "intents in doubt are forgotten": 25,
    "a cap does not count what is committed with it": 71,
    "permits are not given back": 59,
    "a single message counts as accepted that was not": 18,
    "a slot of a wrong clock is waited for": 42,
    "a look-up that finds nothing proves that nothing was sent": 34,
    "what was stopped meanwhile is committed all the same": 35,
    "a campaign in trouble goes on": 35,
    "that nothing has arrived is believed too early": 68,
    "a database that was moved goes on sending": 39,
    "a due time of a wrong clock is waited for": 19,
    "an opt-out is confirmed again and again": 30,
    "an outcome that could not be written is dropped": 41,
    "two campaigns take one slot of a number": 33,
    "others go on without credentials or funds": 23,
    "a pace begins anew at a handover": 33,
    "the answers of a worker that was replaced are lost": 272,
    "the pace is kept in memory only": 14,
    "the stops are counted too early": 54,
    "a contact of a pool gets another number": 20,
    "no transaction takes the fence": 1,
    "the epoch is not checked": 20,
    "a contact has failed who had attempts left": 7,
    "another attempt is made without a delay": 6,
    "one number of a group makes all calls": 2,
    "nobody is told what is free": 1,
    "what a look-up has found is thrown away": 2,
    "transactions take the fence of another workspace": 1,
    "a scheduled campaign starts too early": 15,
    "the turns at a number are kept in memory": 1,
    "a report of a group is left out": 28,
    "what a receipt says of the account is not heard": 48,
}
"""For each broken engine a seed that finds it, by default 0. `make nightly` prints the first one of each anew."""

BROKEN_ENGINES = pytest.mark.parametrize(
    ("patch", "says", "workers"),
    [*((*one, 1) for one in BROKEN.values()), *((*one, 2) for one in (*CLUSTERS.values(), *CUTS.values()))],
    ids=[*BROKEN, *CLUSTERS, *CUTS],
)


@pytest.mark.soak("simulates each broken engine")
@BROKEN_ENGINES
def test_the_known_seed_finds_a_broken_engine(
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    patch: Callable[[pytest.MonkeyPatch], None],
    says: str,
    workers: int,
) -> None:
    """Or one of the first, where a change of the engine has changed the course of that seed."""
    patch(monkeypatch)
    broken = request.node.callspec.id
    found = first_found(says, workers, (FOUND_BY.get(broken, 0), *FIRST_SEEDS))
    search = request.node.nodeid.replace("the_known_seed_finds", "some_of_many_seeds_find")
    assert found is not None, f"No known seed finds that {broken}. Search another one for FOUND_BY: pytest '{search}'"


@pytest.mark.nightly("broken engines, whatever finds them")
@pytest.mark.timeout(1_200)
@BROKEN_ENGINES
def test_some_of_many_seeds_find_a_broken_engine(
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    request: pytest.FixtureRequest,
    patch: Callable[[pytest.MonkeyPatch], None],
    says: str,
    workers: int,
) -> None:
    """Within 300 seeds, or what a rare one needs."""
    patch(monkeypatch)
    broken = request.node.callspec.id
    seeds = MAX_SEEDS_OF.get(broken, MAX_SEEDS)
    seed = first_found(says, workers, range(seeds))
    assert seed is not None, f"{seeds} seeds have not found it."
    record_property("summary", f"simulation: seed {seed} of {seeds} found that {broken}")


def test_known_seeds_are_of_broken_engines_that_exist() -> None:
    """A search would come to them, too."""
    assert {*FOUND_BY, *MAX_SEEDS_OF} <= {*BROKEN, *CLUSTERS, *CUTS}
    assert all(seed < MAX_SEEDS_OF.get(broken, MAX_SEEDS) for broken, seed in FOUND_BY.items())


def first_found(says: str, workers: int, seeds: Iterable[int]) -> int | None:
    """Return the first seed that finds an engine broken, with the words for it and the command that replays it."""
    for seed in seeds:
        try:
            simulate(seed, workers=workers)
        except Broken as broken:
            words = str(broken)
        else:
            continue
        assert re.search(says, words), words
        assert f"--seed {seed}" in words
        return seed
    return None
