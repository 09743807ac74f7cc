from __future__ import annotations

from datetime import UTC, datetime, timedelta

from outreach.rules.receipts import FEWEST, LOOK_BACK, NOTED_EVERY, SILENCE, is_silent, time_without_receipts

NOW = datetime(2026, 11, 3, 12, tzinfo=UTC)


def period(
    last: datetime | None, *, connected_at: datetime = NOW - timedelta(days=400), always_reports: bool = True
) -> tuple[datetime, datetime] | None:
    """Return the period of an account that was connected long ago."""
    return time_without_receipts(last, NOW, connected_at=connected_at, always_reports=always_reports)


def test_an_account_that_has_never_reported_is_waited_for_if_its_provider_reports_always() -> None:
    """From its connection on; some carriers of adapters of one's own send no receipts."""
    connected = NOW - timedelta(hours=5)
    assert period(None, connected_at=connected) == (connected, NOW - SILENCE)
    assert period(None, connected_at=NOW - SILENCE) is None
    assert period(None, always_reports=False) is None


def test_what_was_accepted_since_the_last_report_counts_after_an_hour() -> None:
    """A report stands for all that came within the minutes after it, since it is noted only so often."""
    last = NOW - timedelta(hours=5)
    for always in (True, False):
        assert period(last, always_reports=always) == (last + NOTED_EVERY, NOW - SILENCE)
    assert period(NOW - SILENCE - NOTED_EVERY) is None
    assert period(NOW + SILENCE) is None


def test_messages_of_more_than_a_day_ago_do_not_count() -> None:
    """So that an account that sends nothing more is not reported for ever."""
    assert period(NOW - timedelta(days=90)) == (NOW - LOOK_BACK, NOW - SILENCE)
    assert period(None) == (NOW - LOOK_BACK, NOW - SILENCE)


def test_a_few_messages_without_a_receipt_are_none_to_speak_of() -> None:
    """They may all have gone to networks that report nothing."""
    assert not is_silent(FEWEST - 1)
    assert is_silent(FEWEST)
