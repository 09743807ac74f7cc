"""Whether a request may still start: asked once more when its connection is there, before its first byte.

Waiting for a connection takes time: stops are committed meanwhile, and the process may stand still
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
def last_moment(may_start: MayStart) -> Iterator[None]:
    """Have requests of this task asked for the last time by this function."""
    token = _present.set(may_start)
    try:
        yield
    finally:
        _present.reset(token)


def present() -> MayStart | None:
    """Return what decides for this task; None if nothing does."""
    return _present.get()
