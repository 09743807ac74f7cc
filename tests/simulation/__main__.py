"""Run simulations: one seed to replay it, or many; each on a database of its own."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.driver import Result, simulate
from tests.simulation.faults import Fault, missing
from tests.simulation.invariants.ledger import Broken


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the simulations that the command line asks for.

    Args:
        arguments: What stands behind the command; what the process was given by default.

    Returns:
        The exit code: 1 when an invariant was broken, or when a run did not try what its many seeds ought to.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many, counting up from the first")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that work at a time")
    parser.add_argument("--workers", type=int, default=1, help="processes that dispatch at a time in each simulation")
    given = parser.parse_args(arguments)
    results: list[Result] = []
    broken: list[str] = []
    began, worked = time.monotonic(), 0.0
    for outcome, seconds in _all(range(given.seed, given.seed + given.seeds), given.jobs, given.workers):
        worked += seconds
        if isinstance(outcome, str):
            broken.append(outcome)
            print(outcome, file=sys.stderr)
        else:
            results.append(outcome)
    print(
        f"{given.seeds} seeds in {time.monotonic() - began:.0f} s ({worked / max(given.seeds, 1):.2f} s of work each), "
        f"{len(broken)} broken; {sum(result.checks for result in results)} commits checked, "
        f"{sum(result.reached for result in results)} contacts reached. What happened:"
    )
    counts: Counter[Fault] = sum((result.faults for result in results), Counter())
    for fault, count in sorted(counts.items()):
        print(f"  {fault:28} {count}")
    never = missing(counts, given.seeds)
    if never:
        print(f"In {given.seeds} seeds it never happened: {', '.join(never)}.", file=sys.stderr)
    if given.seeds == 1 and results:
        print(f"Trace: {results[0].trace}")
    return 1 if broken or never else 0


def _all(seeds: Sequence[int], jobs: int, workers: int) -> Iterator[tuple[Result | str, float]]:
    """Yield what came of each seed, or how it broke, with the seconds of work that it took."""
    if min(jobs, len(seeds)) <= 1:
        yield from map(partial(_one, workers), seeds)
        return
    with ProcessPoolExecutor(max_workers=min(jobs, len(seeds))) as pool:
        yield from pool.map(partial(_one, workers), seeds, chunksize=4)


def _one(workers: int, seed: int) -> tuple[Result | str, float]:
    began = time.process_time()
    outcome: Result | str
    try:
        outcome = simulate(seed, workers=workers)
    except Broken as broken:
        outcome = f"seed {seed}: {broken}"
    return outcome, time.process_time() - began


def _quiet_when_nobody_reads() -> int:
    """Run; a reader that went away, such as `head`, is no error to tell of."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still to be written at the end goes nowhere, so that the interpreter does not complain of it either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


if __name__ == "__main__":
    sys.exit(_quiet_when_nobody_reads())
