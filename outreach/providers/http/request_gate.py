"""The last check whether a request may start, made when it has a connection and before its first byte.

A request may wait long for a connection. A stop may be committed meanwhile, or the process may be suspended
(docs/delivery-contract.md#rule-4).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

MayStart = Callable[[], Awaitable[bool]]
"""Returns whether a request may start now."""

_present: Final[ContextVar[MayStart | None]] = ContextVar("may_start", default=None)


@contextmanager
def request_gate(may_start: MayStart) -> Iterator[None]:
    """Make each request of this task call `may_start` before its first byte."""
    token = _present.set(may_start)
    try:
        yield
    finally:
        _present.reset(token)


def current_gate() -> MayStart | None:
    """Return the `may_start` of this task; None if it has none."""
    return _present.get()
