"""Run simulations: one seed to replay it, or many, on memory and on SQLite in turn."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from outreach.testing.simulation.driver import StorageKind, simulate
from outreach.testing.simulation.faults import Fault
from outreach.testing.simulation.invariants import Broken


def main() -> int:
    """Run the simulations that the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m outreach.testing.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many, counting up from the first")
    parser.add_argument("--storage", choices=("memory", "sqlite"), help="one storage; by default they take turns")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that work at a time")
    given = parser.parse_args()
    counts: Counter[Fault] = Counter()
    broken = 0
    began = time.monotonic()
    seeds = range(given.seed, given.seed + given.seeds)
    with ProcessPoolExecutor(max_workers=max(1, min(given.jobs, given.seeds))) as workers:
        for outcome in workers.map(partial(_one, storage=given.storage), seeds, chunksize=4):
            if isinstance(outcome, str):
                broken += 1
                print(outcome, file=sys.stderr)  # noqa: T201 - a command
            else:
                counts += outcome
    print(f"{given.seeds} seeds in {time.monotonic() - began:.0f} s, {broken} broken; faults that happened:")  # noqa: T201
    for fault, count in sorted(counts.items()):
        print(f"  {fault:28} {count}")  # noqa: T201
    return 1 if broken else 0


def _one(seed: int, *, storage: StorageKind | None) -> Counter[Fault] | str:
    try:
        return simulate(seed, storage=storage or ("memory" if seed % 2 == 0 else "sqlite")).faults
    except Broken as broken:
        return f"seed {seed}: {broken}"


if __name__ == "__main__":
    sys.exit(main())
