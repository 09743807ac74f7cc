"""Handles only the first Ctrl-C, as a second one would interrupt the clean end; what ends a command like Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

EXIT_INTERRUPTED: Final = 130
"""The exit status after Ctrl-C: 128 and the number of the signal."""

AGAIN_SECONDS: Final = 1.0
"""A command that has not begun to end within this lost its first Ctrl-C where Python drops exceptions."""


def ignore_sigint(_number: int, _frame: FrameType | None) -> None:
    """Handle a SIGINT by doing nothing."""


class _InterruptHandler:
    """Raises KeyboardInterrupt at a SIGINT, but not at those that follow immediately.

    One that Python drops, for example in a finaliser, is raised again, by a timer or by another Ctrl-C.
    """

    def __init__(self) -> None:
        self._interrupted_at: float | None = None

    @property
    def was_interrupted(self) -> bool:
        """Whether a SIGINT has arrived."""
        return self._interrupted_at is not None

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        """Handle one SIGINT."""
        now = time.monotonic()
        if self._interrupted_at is not None and now - self._interrupted_at < AGAIN_SECONDS:
            return
        self._interrupted_at = now
        if hasattr(signal, "setitimer"):  # Windows has none
            signal.signal(signal.SIGALRM, _again)
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS * 1.1)
        raise KeyboardInterrupt


def _again(_number: int, frame: FrameType | None) -> None:
    # The current handler, which a command may have replaced since.
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


@contextmanager
def single_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGINT within a block, and not at those that follow while it ends.

    Without a SIGINT, the previous handler is restored after the block; after one, the process has only to exit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = _InterruptHandler()
    before = signal.signal(signal.SIGINT, handler.handle)
    try:
        yield
    except BaseException:  # click replaces KeyboardInterrupt by its own error
        if handler.was_interrupted:
            signal.signal(signal.SIGINT, ignore_sigint)
        raise
    finally:
        if handler.was_interrupted and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        if signal.getsignal(signal.SIGINT) == handler.handle:
            signal.signal(signal.SIGINT, before)


def block_sigint() -> None:
    """Block SIGINT while the interpreter exits."""
    if signal.getsignal(signal.SIGINT) is ignore_sigint:
        if hasattr(signal, "pthread_sigmask"):  # Windows has none
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def stop_signals() -> Sequence[signal.Signals]:
    """Return the signals that stop a server in order: Ctrl-C, SIGTERM, and the end of its terminal.

    Under `nohup` the end of the terminal is ignored, and stays so. Windows has no such signal.
    """
    if sys.platform == "win32" or signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return signal.SIGINT, signal.SIGTERM
    return signal.SIGINT, signal.SIGTERM, signal.SIGHUP


@contextmanager
def handling(numbers: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Handle signals by a function during the block."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let every one of `stop_signals` end the block like Ctrl-C, so that it is cleaned up."""

    def as_ctrl_c(number: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(number, frame)

    with handling([number for number in stop_signals() if number != signal.SIGINT], as_ctrl_c):
        yield
