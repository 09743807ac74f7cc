from __future__ import annotations

from datetime import UTC, datetime, timedelta

from outreach.rules.receipts import FEWEST, LOOK_BACK, NOTED_EVERY, SILENCE, is_silent, time_without_receipts

NOW = datetime(2026, 11, 3, 12, tzinfo=UTC)


def test_an_account_that_has_never_reported_is_not_waited_for() -> None:
    """Some carriers and adapters send no receipts."""
    assert time_without_receipts(None, NOW) is None


def test_what_was_accepted_since_the_last_report_counts_after_an_hour() -> None:
    """A report stands for all that came within the minutes after it, since it is noted only so often."""
    last = NOW - timedelta(hours=5)
    assert time_without_receipts(last, NOW) == (last + NOTED_EVERY, NOW - SILENCE)
    assert time_without_receipts(NOW - SILENCE - NOTED_EVERY, NOW) is None
    assert time_without_receipts(NOW + SILENCE, NOW) is None


def test_messages_of_more_than_a_day_ago_do_not_count() -> None:
    """So that an account that sends nothing more is not reported for ever."""
    assert time_without_receipts(NOW - timedelta(days=90), NOW) == (NOW - LOOK_BACK, NOW - SILENCE)


def test_a_few_messages_without_a_receipt_are_none_to_speak_of() -> None:
    """They may all have gone to networks that report nothing."""
    assert not is_silent(FEWEST - 1)
    assert is_silent(FEWEST)
