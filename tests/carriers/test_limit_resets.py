from __future__ import annotations

import importlib
from datetime import UTC, datetime

import pytest

from outreach.providers.carriers.base import seconds_to_reset

HOUR = 3600.0


@pytest.mark.parametrize(
    ("now", "hours"),
    [
        (datetime(2026, 1, 15, 8, tzinfo=UTC), 24),
        (datetime(2026, 1, 15, 7, 30, tzinfo=UTC), 0.5),
        (datetime(2026, 7, 15, 7, tzinfo=UTC), 24),
        # Summer time begins on 8 March and ends on 1 November.
        (datetime(2026, 3, 8, 8, tzinfo=UTC), 23),
        (datetime(2026, 11, 1, 7, tzinfo=UTC), 25),
    ],
)
def test_a_daily_limit_of_us_networks_ends_at_midnight_in_los_angeles(now: datetime, hours: float) -> None:
    """Over a change of summer time too."""
    assert seconds_to_reset({"1": "pacific_midnight"}, "1", now) == hours * HOUR


@pytest.mark.parametrize("name", ["telnyx", "twilio", "vonage"])
def test_every_code_with_a_reset_is_a_limit(name: str) -> None:
    """A code that is refused for another reason throttles nobody."""
    errors = importlib.import_module(f"outreach.providers.carriers.{name}.errors")
    assert {errors.FAILURES[code] for code in errors.LIMIT_RESETS} == {"rate_limited"}
