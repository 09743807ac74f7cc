"""Ids."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime

from outreach.core.clock import UuidV7Source
from outreach.testing.clock import ManualClock


def test_an_id_is_a_uuid_of_version_7_that_tells_its_time() -> None:
    """RFC 9562, section 5.7, in the form that everybody writes; ids of one millisecond count up."""
    clock = ManualClock(datetime(2026, 11, 20, 16, 10, tzinfo=UTC))
    make = UuidV7Source(clock=clock, rng=random.Random(1))
    made = [make() for _ in range(5_000)]
    for text in made:
        read = uuid.UUID(text)
        assert str(read) == text
        assert (read.version, read.variant) == (7, uuid.RFC_4122)
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert uuid.UUID(made[0]).int >> 80 == int(clock.now().timestamp() * 1000)
