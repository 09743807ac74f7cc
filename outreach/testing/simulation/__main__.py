"""Run simulations: one seed to replay it, or many."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from outreach.testing.simulation.driver import simulate
from outreach.testing.simulation.faults import Fault
from outreach.testing.simulation.invariants import Broken


def main() -> int:
    """Run the simulations that the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m outreach.testing.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many, counting up from the first")
    parser.add_argument("--storage", choices=("memory", "sqlite"), default="memory")
    given = parser.parse_args()
    counts: Counter[Fault] = Counter()
    began = time.monotonic()
    broken = 0
    for seed in range(given.seed, given.seed + given.seeds):
        try:
            counts += simulate(seed, storage=given.storage).faults
        except Broken as error:
            broken += 1
            print(f"seed {seed}: {error}", file=sys.stderr)  # noqa: T201 - a command
    print(f"{given.seeds} seeds on {given.storage} in {time.monotonic() - began:.1f} s, {broken} broken")  # noqa: T201
    for fault, count in sorted(counts.items()):
        print(f"  {fault:28} {count}")  # noqa: T201
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
