"""`python -m tests.simulation`, which `make simulate` runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.simulation import __main__ as command
from tests.simulation.driver import Result
from tests.simulation.faults import ALL, ENOUGH_SEEDS, FREQUENT, SOME_SEEDS, Fault
from tests.simulation.invariants.ledger import Broken

ROOT = Path(__file__).parents[2]


def _found(seed: int, *faults: Fault) -> Result:
    return Result(seed=seed, faults=Counter(faults), checks=10, reached=2, trace=f"trace-{seed}")


def test_one_seed_is_replayed_and_its_trace_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """What a failing seed says to run is a command that works."""
    assert command.main(["--seed", "6"]) == 0
    out = capsys.readouterr().out
    assert "1 seeds in" in out
    assert "0 broken" in out
    assert "Trace: " in out


def test_several_processes_share_the_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    """Work of many seeds is done side by side; what happened is added up."""
    assert command.main(["--seed", "10", "--seeds", "2", "--jobs", "2"]) == 0
    assert "2 seeds in" in capsys.readouterr().out


def test_a_broken_seed_is_reported_and_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others run all the same."""

    def simulated(seed: int, *, workers: int) -> Result:
        if seed == 1:
            raise Broken("Somebody was reached twice.")
        return _found(seed, "pause")

    monkeypatch.setattr(command, "simulate", simulated)
    assert command.main(["--seeds", "3", "--jobs", "1"]) == 1
    told = capsys.readouterr()
    assert told.err == "seed 1: Somebody was reached twice.\n"
    assert "3 seeds in" in told.out
    assert "1 broken; 20 commits checked, 4 contacts reached" in told.out
    assert "pause                        2" in told.out


@pytest.mark.parametrize(
    ("left_out", "seeds", "code"),
    [
        ("stale", ENOUGH_SEEDS - 1, 0),
        ("stale", ENOUGH_SEEDS, 1),
        ("kill_in_request", SOME_SEEDS - 1, 0),
        ("kill_in_request", SOME_SEEDS, 1),
        (None, ENOUGH_SEEDS, 0),
    ],
)
def test_a_run_in_which_a_kind_of_fault_never_happened_fails(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    left_out: Fault | None,
    seeds: int,
    code: int,
) -> None:
    """It has not tried what it is there to try; a shorter run may, the shorter the rarer the fault."""
    happened = [fault for fault in ALL if fault != left_out]
    monkeypatch.setattr(command, "simulate", lambda seed, workers: _found(seed, *happened))
    assert command.main(["--seeds", str(seeds), "--jobs", "1"]) == code
    told = capsys.readouterr().err
    assert told == (f"In {seeds} seeds it never happened: {left_out}.\n" if code else "")


def test_what_happens_often_is_some_of_what_can_happen() -> None:
    """Both lists speak of the same kinds."""
    assert set(FREQUENT) < set(ALL)


def test_a_closed_stdout_prints_no_error() -> None:
    """`… | head` prints what it prints."""
    read, write = os.pipe()
    os.close(read)
    try:
        command_line = [sys.executable, "-m", "tests.simulation", "--seed", "6"]
        done = subprocess.run(command_line, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, check=False, text=True)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
