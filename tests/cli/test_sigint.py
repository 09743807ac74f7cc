from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from outreach_server.cli.sigint import AGAIN_SECONDS, single_interrupt

PATIENCE_SECONDS = 30.0


class Swallowing:
    """Takes an interruption while it is finalised, where Python drops whatever is raised."""

    def __del__(self) -> None:
        """Interrupt itself."""
        os.kill(os.getpid(), signal.SIGINT)
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            pass


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Leave the signals of the tests alone."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_burst_is_one_interruption() -> None:
    """What the second one finds is the end that the first has begun."""
    ended: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        _end_in_a_burst(ended)
    assert ended == ["in order"]
    os.kill(os.getpid(), signal.SIGINT)


def _end_in_a_burst(ended: list[str]) -> None:
    with single_interrupt():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(PATIENCE_SECONDS)
        finally:
            for _ in range(20):
                os.kill(os.getpid(), signal.SIGINT)
            ended.append("in order")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_that_was_lost_is_raised_again() -> None:
    """By itself: nobody has to try once more, and nothing waits for ever."""
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        _lose_one()
    assert AGAIN_SECONDS < time.monotonic() - begun < PATIENCE_SECONDS


def _lose_one() -> None:
    with single_interrupt():
        thing = Swallowing()
        del thing
        time.sleep(PATIENCE_SECONDS)


def test_without_an_interruption_all_is_as_before() -> None:
    """Also where the block fails."""
    before = signal.getsignal(signal.SIGINT)
    with single_interrupt():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(ValueError, match="x"), single_interrupt():
        raise ValueError("x")
    assert signal.getsignal(signal.SIGINT) is before
