"""Killing what dispatches, again and again, and keeping account of what each kill cut off."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import attrs

from outreach import EngineConfig
from tests.process.place import Place
from tests.process.server import EngineProcess
from tests.process.waiting import wait_for

P = TypeVar("P", bound=EngineProcess)

MAX_UNKNOWN: Final = EngineConfig().max_queued_intents + EngineConfig().max_requests_in_flight
"""Intents without an outcome that one process may have at a time: what one kill can leave unknown."""

_SEED: Final = "OUTREACH_TEST_SEED"

AT_ONCE: Final = {
    "reconcile_delay_seconds": 0.001,
    "reconcile_retry_seconds": 1.0,
    "provider_timeout_seconds": 2.0,
    "lease_seconds": 5.0,
}
"""Settings of an engine that looks unknown ones up at once, and for which no request of a killed one is on its way any
more after some seconds: only then is "not found" believed."""


def fresh_seed() -> int:
    """Return another seed each time, or the one that `OUTREACH_TEST_SEED` says is to be tried again."""
    return int(os.environ.get(_SEED) or random.SystemRandom().randrange(2**32))


@contextmanager
def replay(seed: int, told: Sequence[str]) -> Iterator[None]:
    """Add to a failure what has happened, and how to try it again."""
    try:
        yield
    except BaseException as error:
        error.add_note("\n".join([f"Try it again with {_SEED}={seed}. What happened:", *told]))
        raise


@attrs.define(kw_only=True)
class Kills:
    """The kills of one test.

    Attributes:
        place: Where it happens.
        seed: Decides the moments; processes have a will of their own, so that it gives a course like the first one.
        cut_off: The dispatches that were left without an outcome, by all kills.
    """

    place: Place
    seed: int = attrs.field(factory=fresh_seed)
    cut_off: set[str] = attrs.field(factory=set)
    _count: int = 0
    _latest: set[str] = attrs.field(factory=set)

    def told(self, what: str) -> str:
        """Return words for what is checked or waited for, with what is needed to try it again."""
        return f"{what} ({_SEED}={self.seed}, kill {self._count})"

    def started(self, start: Callable[[], P]) -> P:
        """Start a process and wait until it has said of all that the last kill cut off that it is unknown.

        It looks soon enough: an unknown dispatch is looked up a minute after its intent.
        """
        process = start()
        wait_for(
            self.told("what was cut off to be unknown"), lambda: self._latest <= self.place.books.dispatches("unknown")
        )
        return process

    def kill(self, process: EngineProcess) -> None:
        """Kill a process, and note what it leaves; that is bounded, whenever the kill comes."""
        process.kill()
        self._latest = self.place.books.dispatches("dispatching")
        assert len(self._latest) <= MAX_UNKNOWN, self.told("more cut off than may be on its way")
        self.cut_off |= self._latest
        self._count += 1

    def check_listed(self) -> None:
        """Check that the command line lists what was cut off, but for what evidence has settled meanwhile."""
        books = self.place.books
        listed = self.place.command("dispatches", "unknown", self.place.workspace_id, "--limit", "100000")
        unknown = {item["id"] for item in listed}
        assert unknown == books.dispatches("unknown"), self.told("listed")
        assert {item["reason"] for item in listed} <= {"worker_lost"}, self.told("listed")
        assert unknown <= self.cut_off, self.told("unknown, and nothing cut it off")
        assert self.cut_off - unknown <= books.dispatches("accepted") | books.dispatches("not_sent"), self.told("lost")

    def check_settled(self) -> None:
        """Check that all that was cut off is settled: accepted where it was heard, else asked for once more."""
        heard = {entry.dispatch_id for entry in self.place.books.accepted()}
        assert self.cut_off & heard <= self.place.books.dispatches("accepted"), self.told("heard")
        assert self.cut_off - heard == self.place.books.dispatches("not_sent"), self.told("never heard")
