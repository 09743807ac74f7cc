"""Ctrl-C is heard once: what a second one would break into is the end that the first has begun."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def deaf(_number: int, _frame: FrameType | None) -> None:
    """Handle a SIGINT by doing nothing."""


def _hear(_number: int, _frame: FrameType | None) -> None:
    # Not `SIG_IGN`: Python complains of a signal whose handler is taken away before it comes to it.
    signal.signal(signal.SIGINT, deaf)
    raise KeyboardInterrupt


@contextmanager
def heard_once() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGINT within a block, and never again.

    Where none came, SIGINT is handled as before once the block is over; else nothing is left to do but to exit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _hear)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _hear:
            signal.signal(signal.SIGINT, before)


def stay_deaf() -> None:
    """Let no SIGINT end the interpreter in the midst of its own end; only for who is deaf already."""
    if signal.getsignal(signal.SIGINT) is deaf:
        if hasattr(signal, "pthread_sigmask"):  # Windows has none
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.SIG_IGN)
