"""Living processes that are cut off from the database: before a commit, at one, or for a while."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from outreach.errors import StorageUnreachable
from outreach.storage.base.writer import CommitUnknown
from tests.simulation.faults import RATES, Fault, Faults

_PRONE: Final = 1 / 3
"""How many simulations have a database that processes are cut off from: in the others answers can be relied on."""

_LONGEST_AWAY_SECONDS: Final = 30.0
"""Longer than a lease."""

_FINDS_OUT_SECONDS: Final = 2.0
"""How long a process waits at the most before it takes the database for away."""


class Cuts:
    """Decides when one process is cut off from the database, and for how long.

    Args:
        rng: Decides all of it.
        faults: Counts what happens; nothing does while they are off.
        prone: Whether anything ever does.

    Attributes:
        back_at: When the process was last cut off, or has had the database again since, by the loop's time.
    """

    def __init__(self, rng: random.Random, faults: Faults, *, prone: bool) -> None:
        self._rng = rng
        self._faults = faults
        self._prone = prone
        self._away_until = 0.0
        self.back_at = 0.0

    @property
    def is_away(self) -> bool:
        """Whether nothing of this process reaches the database now."""
        return self._faults.on and self._now() < self._away_until

    async def reach(self) -> None:
        """Reach the database, before a transaction.

        Raises:
            StorageUnreachable: It is away.
        """
        if not self.is_away and self._draw("database_away"):
            longest = self._rng.choice((2.0, _LONGEST_AWAY_SECONDS))
            self.back_at = self._away_until = self._now() + self._rng.random() * longest
        if self.is_away:
            await asyncio.sleep(self._rng.random() * _FINDS_OUT_SECONDS)
            raise StorageUnreachable("The simulated database is away.")

    def begin_commit(self) -> None:
        """Come to a commit.

        Raises:
            StorageUnreachable: The connection is cut, and nothing is written.
            CommitUnknown: Nothing is written either, and nobody can tell.
        """
        if self._draw("cut_before_commit"):
            if self._rng.random() < 0.5:
                raise CommitUnknown("The simulated connection was cut at a commit that did not happen.")
            raise StorageUnreachable("The simulated connection was cut before a commit.")

    def end_commit(self) -> None:
        """Take the answer to a commit that has happened.

        Raises:
            CommitUnknown: It is lost, and nobody can tell.
        """
        if self._draw("commit_answer_lost"):
            raise CommitUnknown("The simulated connection was cut between a commit and its answer.")

    def _draw(self, fault: Fault) -> bool:
        if not self._prone or not self._faults.on or self._rng.random() >= RATES[fault]:
            return False
        self._faults.note(fault)
        self.back_at = self._now()
        return True

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def cuts_of(seed: int, faults: Faults) -> Callable[[], Cuts]:
    """Return what makes the cuts of each process of a simulation."""
    # From a source of its own: the other simulations go as they would without.
    rng = random.Random(f"database of {seed}")
    prone = rng.random() < _PRONE
    return lambda: Cuts(random.Random(rng.random()), faults, prone=prone)
