"""What goes wrong, how often, and how often it did."""

from __future__ import annotations

import random
from collections import Counter
from typing import Final, Literal, get_args

Fault = Literal[
    "kill_before_commit",
    "kill_after_commit",
    "kill_in_request",
    "kill_in_look_up",
    "cut_before_commit",
    "commit_answer_lost",
    "database_away",
    "moved",
    "lease_lost",
    "late_timer",
    "slow_storage",
    "refused_for_good",
    "refused_for_now",
    "too_busy",
    "not_sent",
    "dropped_unheard",
    "dropped_after_acceptance",
    "taken_and_denied",
    "silence",
    "late_arrival",
    "late_answer",
    "answered_twice",
    "outage",
    "receipt_failed",
    "receipt_blames_us",
    "receipt_twice",
    "receipt_before_answer",
    "receipts_out_of_order",
    "receipt_lost",
    "receipts_all_lost",
    "unanswered_call",
    "call_followed_by_silence",
    "look_up_failed",
    "look_up_lied",
    "slow_look_up",
    "later_turn",
    "two_workspaces",
    "clock_set_back",
    "clock_set_forth",
    "pause",
    "resume",
    "cancel",
    "start",
    "unschedule",
    "update",
    "opt_out",
    "opt_in",
    "suspend",
    "settings",
    "rules",
    "operator_retry",
    "assume_sent",
    "reply",
    "stop",
    "start_again",
    "single_message",
    "single_call",
    "expired",
    "paused_by_engine",
    "stale",
    "held_by_hours",
    "held_by_cap",
    "taken_over",
    "handed_over",
    "waited_at_fence",
    "beside_others",
    "between_statements",
    "fence_lost",
]
"""What can happen. The last ones are what the engine does about it: it shows that its rules were tried."""

OF_CLUSTERS: Final[tuple[Fault, ...]] = (
    "handed_over",
    "waited_at_fence",
    "beside_others",
    "between_statements",
    "fence_lost",
)
"""What needs several workers that live."""

ALL: Final[tuple[Fault, ...]] = tuple(fault for fault in get_args(Fault) if fault not in OF_CLUSTERS)

RATES: Final[dict[Fault, float]] = {
    "kill_before_commit": 0.006,
    "kill_after_commit": 0.006,
    "kill_in_request": 0.03,
    "kill_in_look_up": 0.03,
    "cut_before_commit": 0.02,
    "commit_answer_lost": 0.02,
    "database_away": 0.005,
    "moved": 0.05,
    "late_timer": 0.002,
    "slow_storage": 0.05,
    "refused_for_good": 0.03,
    "refused_for_now": 0.06,
    "too_busy": 0.05,
    "not_sent": 0.04,
    "dropped_unheard": 0.03,
    "dropped_after_acceptance": 0.06,
    "taken_and_denied": 0.04,
    "silence": 0.05,
    "late_arrival": 0.06,
    "late_answer": 0.2,
    "answered_twice": 0.1,
    "receipt_failed": 0.12,
    "receipt_blames_us": 0.2,
    "receipt_twice": 0.2,
    "receipt_before_answer": 0.1,
    "receipt_lost": 0.1,
    "receipts_all_lost": 0.2,
    "unanswered_call": 0.4,
    "call_followed_by_silence": 0.03,
    "look_up_failed": 0.3,
    "look_up_lied": 0.5,
    "slow_look_up": 0.5,
}
"""How likely each is, each time that it could happen; the others are drawn, or seen, by who watches for them."""


FREQUENT: Final[tuple[Fault, ...]] = (
    "kill_before_commit",
    "kill_after_commit",
    "kill_in_request",
    "lease_lost",
    "slow_storage",
    "too_busy",
    "not_sent",
    "dropped_unheard",
    "dropped_after_acceptance",
    "late_answer",
    "answered_twice",
    "outage",
    "receipt_failed",
    "receipt_twice",
    "receipts_out_of_order",
    "look_up_failed",
    "pause",
    "resume",
    "opt_out",
    "suspend",
)
"""What happens so often that a run of `SOME_SEEDS` without one of them has gone wrong."""

SOME_SEEDS: Final = 20
ENOUGH_SEEDS: Final = 200
"""A run of so many seeds in which some kind of fault did not happen at all has not tried what it is there to try."""


class Faults:
    """Draws faults from one source of randomness and counts those that happened.

    Attributes:
        on: Whether anything goes wrong.
        counts: How often what has.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.counts: Counter[Fault] = Counter()
        self.on = True

    def draw(self, fault: Fault) -> bool:
        """Return whether a fault happens now."""
        # Drawn also while faults are off, so that switching them off changes nothing before.
        happens = self._rng.random() < RATES[fault] and self.on
        if happens:
            self.counts[fault] += 1
        return happens

    def note(self, fault: Fault) -> None:
        """Count something that was not drawn here."""
        self.counts[fault] += 1


class Turns:
    """Decides which turns of tasks come later than others that are ready.

    In half of the simulations none does, in the others more or fewer: what needs one rare turn is found where few
    are moved, what needs several of them where many are.
    """

    def __init__(self, rng: random.Random, faults: Faults) -> None:
        self._rng = rng
        self._faults = faults
        self._rate = rng.choice((0.0, 0.0, 0.01, 0.2))

    def gives_way(self) -> bool:
        """Return whether this turn lets others go first."""
        late = self._rate > 0.0 and self._faults.on and self._rng.random() < self._rate
        if late:
            self._faults.note("later_turn")
        return late


def missing(counts: Counter[Fault], seeds: int) -> list[Fault]:
    """Return what never happened in a run of so many seeds and ought to have, in the order of `ALL`.

    A few seeds prove nothing by it; some need not have tried what is rare; many must have tried everything.
    """
    expected = ALL if seeds >= ENOUGH_SEEDS else FREQUENT if seeds >= SOME_SEEDS else ()
    return [fault for fault in expected if not counts[fault]]
