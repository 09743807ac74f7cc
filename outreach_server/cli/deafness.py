"""Ctrl-C is heard once: what a second one would break into is the end that the first has begun."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

AGAIN_SECONDS: Final = 1.0
"""The end of a command begins within this; else the first Ctrl-C came where Python drops an exception."""


def ignore_sigint(_number: int, _frame: FrameType | None) -> None:
    """Handle a SIGINT by doing nothing."""


class _Ear:
    """Raises KeyboardInterrupt at a SIGINT, and not at those that come right after it.

    One that is raised where nothing can be raised, such as while something is finalised, is lost: then it is raised
    once more, by a timer, or by another Ctrl-C.
    """

    def __init__(self) -> None:
        self._heard_at: float | None = None

    @property
    def has_heard(self) -> bool:
        """Whether there was any."""
        return self._heard_at is not None

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        """Handle one SIGINT."""
        now = time.monotonic()
        if self._heard_at is not None and now - self._heard_at < AGAIN_SECONDS:
            return
        self._heard_at = now
        if hasattr(signal, "setitimer"):  # Windows has none
            signal.signal(signal.SIGALRM, _again)
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS * 1.1)
        raise KeyboardInterrupt


def _again(_number: int, frame: FrameType | None) -> None:
    # Whoever listens to SIGINT now: also what a command has begun since.
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


@contextmanager
def single_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGINT within a block, and not at those that follow while it ends.

    Where none came, SIGINT is handled as before once the block is over; else nothing is left to do but to exit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ear = _Ear()
    before = signal.signal(signal.SIGINT, ear.hear)
    try:
        yield
    except BaseException:  # click makes an error of its own of KeyboardInterrupt
        if ear.has_heard:
            signal.signal(signal.SIGINT, ignore_sigint)
        raise
    finally:
        if ear.has_heard and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        if signal.getsignal(signal.SIGINT) == ear.hear:
            signal.signal(signal.SIGINT, before)


def block_sigint() -> None:
    """Let no SIGINT end the interpreter in the midst of its own end; only for who is deaf already."""
    if signal.getsignal(signal.SIGINT) is ignore_sigint:
        if hasattr(signal, "pthread_sigmask"):  # Windows has none
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.SIG_IGN)
