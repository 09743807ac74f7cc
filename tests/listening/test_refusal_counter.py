from __future__ import annotations

import logging

import pytest

from outreach_server.listening.refusal_counter import EVERY_SECONDS, RefusalCounter


def test_many_like_events_are_one_line_and_then_a_count(caplog: pytest.LogCaptureFixture) -> None:
    """Strangers who knock do not fill a log. After a quiet minute the next event is logged at once again."""
    now = 0.0
    tally = RefusalCounter(logging.getLogger("test.tally"), "knocked", "Somebody knocked.", now=lambda: now)
    tally.look()
    for _ in range(1000):
        tally.add()
        tally.look()
    assert caplog.messages == ["Somebody knocked."]
    now += EVERY_SECONDS
    tally.look()
    assert caplog.messages[1:] == ["Somebody knocked. (999 times in the last 60 s)"]
    now += EVERY_SECONDS
    tally.look()
    tally.add()
    assert caplog.messages[2:] == ["Somebody knocked."]
    tally.add()
    now += EVERY_SECONDS
    tally.add()
    assert caplog.messages[3:] == ["Somebody knocked. (2 times in the last 60 s)"]
    assert caplog.records[1].__dict__["count"] == 999


def test_a_count_says_how_long_ago_it_began(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody looks at some tallies, and their next event may come a day later."""
    now = 0.0
    tally = RefusalCounter(logging.getLogger("test.tally"), "knocked", "Somebody knocked.", now=lambda: now)
    for _ in range(3):
        tally.add()
    now += 86_400
    tally.add()
    assert caplog.messages[1:] == ["Somebody knocked. (3 times in the last 86,400 s)"]
