"""What goes wrong, how often, and how often it did."""

from __future__ import annotations

import random
from collections import Counter
from typing import Final, Literal

Fault = Literal[
    "kill_before_commit",
    "kill_after_commit",
    "kill_in_request",
    "refused_for_good",
    "refused_for_now",
    "too_busy",
    "not_sent",
    "dropped_unheard",
    "dropped_after_acceptance",
    "silence",
    "late_answer",
    "receipt_failed",
    "receipt_twice",
    "receipt_before_answer",
    "receipt_lost",
    "unanswered_call",
    "look_up_failed",
    "pause",
    "resume",
    "cancel",
    "opt_out",
    "suspend",
    "settings",
    "operator_retry",
    "assume_sent",
]

RATES: Final[dict[Fault, float]] = {
    "kill_before_commit": 0.004,
    "kill_after_commit": 0.004,
    "kill_in_request": 0.02,
    "refused_for_good": 0.04,
    "refused_for_now": 0.05,
    "too_busy": 0.05,
    "not_sent": 0.04,
    "dropped_unheard": 0.02,
    "dropped_after_acceptance": 0.03,
    "silence": 0.02,
    "late_answer": 0.2,
    "receipt_failed": 0.1,
    "receipt_twice": 0.2,
    "receipt_before_answer": 0.1,
    "receipt_lost": 0.1,
    "unanswered_call": 0.4,
    "look_up_failed": 0.3,
}
"""How likely each is, each time that it could happen; what operators do is drawn by the driver."""


class Faults:
    """Draws faults from one source of randomness and counts those that happened."""

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
        """Count something that the driver did."""
        self.counts[fault] += 1
