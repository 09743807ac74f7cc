"""The rules of retries, of endpoints that are down, and of disabling."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from outreach.rules.webhooks import (
    STEPS,
    Pace,
    disabling_reason,
    is_down,
    is_given_up,
    message_id,
    next_wait,
    retry_after_seconds,
)

NOW = datetime(2026, 3, 2, 15, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_the_steps_last_75_hours() -> None:
    """The steps last 75 hours."""
    assert 75 * HOUR <= sum(STEPS, timedelta()) < 76 * HOUR


@pytest.mark.parametrize(("failures", "step"), [*enumerate(STEPS, 1), (10, STEPS[-1]), (500, STEPS[-1]), (0, STEPS[0])])
def test_a_wait_is_its_step_give_or_take_a_fifth(failures: int, step: timedelta) -> None:
    """A wait is its step give or take a fifth."""
    assert next_wait(failures, draw=0.0) == step * 0.8
    assert next_wait(failures, draw=0.5) == step
    assert next_wait(failures, draw=1.0) == step * 1.2


@pytest.mark.parametrize(("given", "waits"), [(0.0, 300), (100.0, 300), (450.0, 450), (600.0, 600), (1e12, 600)])
def test_retry_after_counts_between_one_and_two_steps(given: float, waits: float) -> None:
    """Retry after counts between one and two steps."""
    assert next_wait(2, draw=0.0, retry_after=given) == timedelta(seconds=waits)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("-5", None),
        ("1.5", None),
        ("9" * 400, 999999999999.0),
        ("soon", None),
        ("Mon, 02 Mar 2026 15:02:00 GMT", 120.0),
        ("Mon, 02 Mar 2026 14:00:00 GMT", 0.0),
        ("Mon, 02 Mar 2026 15:02:00 -0000", None),
        ("Mon, 99 Mar 2026 15:02:00 GMT", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    """Retry after is read as seconds or a date."""
    assert retry_after_seconds(header, NOW) == seconds


def test_five_failures_over_different_keys_mean_that_the_endpoint_is_down() -> None:
    """Five failures over different keys mean that the endpoint is down."""
    assert [is_down(keys) for keys in (0, 1, 4, 5, 6)] == [False, False, False, True, True]


def test_an_event_is_given_up_after_75_hours_while_others_are_taken() -> None:
    """Not where nothing was taken since it was refused first."""
    first = NOW - 75 * HOUR

    assert is_given_up(first, None, NOW)
    assert is_given_up(first, NOW - HOUR, NOW)
    assert not is_given_up(first + timedelta(seconds=1), None, NOW)
    assert not is_given_up(first, first, NOW)
    assert not is_given_up(first, first - HOUR, NOW)


def test_410_disables_at_once_and_three_days_of_failures_do() -> None:
    """410 disables at once and three days of failures do."""
    assert disabling_reason(410, NOW, NOW) == "gone"
    assert disabling_reason(500, NOW - timedelta(days=3), NOW) == "failing"
    assert disabling_reason(None, NOW - timedelta(days=3), NOW) == "failing"
    assert disabling_reason(500, NOW - timedelta(days=3) + timedelta(seconds=1), NOW) is None
    assert disabling_reason(404, None, NOW) is None


def test_the_id_of_a_delivery_parts_an_event_from_one_of_the_same_number() -> None:
    """The id of a delivery parts an event from one of the same number."""
    assert message_id("ws1", 17, NOW) == f"evt_ws1_17_{int(NOW.timestamp()) * 1000}"
    assert message_id("ws1", 17, NOW) != message_id("ws1", 17, NOW + timedelta(milliseconds=1))
    assert "." not in message_id("ws1", 17, NOW + timedelta(microseconds=1500))


def test_a_pace_saves_nothing_up() -> None:
    """After a time without deliveries the next ones are as far apart as before."""
    pace = Pace(50)

    assert pace.wait(100.0) == 0.0
    assert [round(pace.wait(100.0), 3) for _ in range(3)] == [0.02, 0.04, 0.06]
    assert round(pace.wait(100.07), 3) == 0.01
    assert pace.wait(200.0) == 0.0
    assert sum(1 for _ in range(100) if pace.wait(200.0) < 0.999) == 49
