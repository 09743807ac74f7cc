"""The whole engine under a seed: providers that fail, operators that meddle, a process that is killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from outreach.models.campaign import Counters
from outreach.operations import recipient_outcomes, waves
from outreach.operations.recipients import put_recipient
from outreach.protocols.storage import Transaction
from outreach.testing.simulation.driver import StorageKind, simulate
from outreach.testing.simulation.invariants import Broken

SEEDS = (1, 2, 3, 5, 8, 13, 21, 34)


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
def test_nobody_is_contacted_too_often_and_everything_ends(storage: StorageKind) -> None:
    """Design, section 5: on each storage, over a fixed list of seeds; the faults that make it hard did happen."""
    faults: Counter[str] = Counter()
    for seed in SEEDS if storage == "memory" else SEEDS[:4]:
        result = simulate(seed, storage=storage)
        assert result.checks > 100
        assert result.reached > 0
        faults.update(result.faults)
    kills = faults["kill_before_commit"] + faults["kill_after_commit"] + faults["kill_in_request"]
    assert kills >= 4
    for fault in ("pause", "opt_out", "suspend", "dropped_after_acceptance", "receipt_twice", "not_sent"):
        assert faults[fault] > 0, fault


def test_one_seed_has_one_course() -> None:
    """Every request at the same moment, both times, and on both storages alike."""
    first, second = simulate(4), simulate(4)
    assert first == second


def test_a_counter_that_is_not_moved_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation can fail: an engine that forgets to move its counters does not get through."""

    def forget(tx: Transaction, *args: Any, **given: Any) -> Counters:
        put_recipient(tx, *args, **given)
        return Counters()

    monkeypatch.setattr(recipient_outcomes, "put_recipient", forget)
    with pytest.raises(Broken, match=r"recount[\s\S]*--seed"):
        _simulate_all(SEEDS)


def test_an_opt_out_that_is_heard_too_late_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation can fail: an engine that asks the register only when a campaign is created is caught."""

    class Deaf:
        def __init__(self, tx: object) -> None:
            self._tx = tx

        def __getattr__(self, name: str) -> object:
            return _NoRegister() if name == "register" else getattr(self._tx, name)

    class _NoRegister:
        def stopped(self, *_: object) -> frozenset[str]:
            return frozenset()

    real = waves.commit_wave
    monkeypatch.setattr(waves, "commit_wave", lambda tx, wave, **given: real(Deaf(tx), wave, **given))  # type: ignore[arg-type]
    with pytest.raises(Broken, match="register"):
        _simulate_all(range(40))


def _simulate_all(seeds: Iterable[int]) -> None:
    for seed in seeds:
        simulate(seed)
