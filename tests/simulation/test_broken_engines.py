"""An engine that is broken does not get through: what is wrong with it is found, and soon."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from outreach.testing.simulation.driver import simulate
from outreach.testing.simulation.ledger import Broken
from tests.simulation.broken_clusters import CLUSTERS
from tests.simulation.broken_engines import BROKEN

MAX_SEEDS = 300


@pytest.mark.soak("simulates up to 300 seeds for each broken engine")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("patch", "says", "workers"),
    [*((*one, 1) for one in BROKEN.values()), *((*one, 2) for one in CLUSTERS.values())],
    ids=[*BROKEN, *CLUSTERS],
)
def test_a_broken_engine_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    request: pytest.FixtureRequest,
    patch: Callable[[pytest.MonkeyPatch], None],
    says: str,
    workers: int,
) -> None:
    """Within 300 seeds, with the words for what is wrong and the command that replays it."""
    patch(monkeypatch)
    found = _first_found(workers)
    assert found is not None, f"{MAX_SEEDS} seeds have not found it."
    seed, words = found
    assert re.search(says, words), words
    assert f"--seed {seed}" in words
    record_property("summary", f"simulation: found after {seed + 1} seeds that {request.node.callspec.id}")


def _first_found(workers: int) -> tuple[int, str] | None:
    for seed in range(MAX_SEEDS):
        try:
            simulate(seed, workers=workers)
        except Broken as broken:
            return seed, str(broken)
    return None
