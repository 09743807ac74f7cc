"""Holding the moments at which requests were noted against the pace that they were to keep."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta


def assert_pace(noted: Sequence[datetime], spacing: timedelta) -> None:
    """Check that starts of one pace, in order, are so far apart, whatever the processor did meanwhile.

    A request is noted a little after its turn: much later where its process lost the processor in between. But then
    every later turn of that process, or of its successor, is after that. So from one that is noted to the second
    next there is at least a spacing, to the third two, and so on; the next one alone may look closer than it was.
    """
    for first, moment in enumerate(noted):
        for beyond in range(first + 2, len(noted)):
            assert noted[beyond] - moment >= (beyond - first - 1) * spacing, (first, beyond)
