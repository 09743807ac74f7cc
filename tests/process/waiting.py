"""Waiting for a condition, with a deadline and words for what did not come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

PATIENCE: Final = 30.0
"""Longer than anything here takes on a busy machine: a test that waits so long has failed."""

_LOOK_AGAIN_SECONDS: Final = 0.02


def wait_for(what: str, look: Callable[[], T | None], *, seconds: float = PATIENCE) -> T:
    """Return what `look` finds once that is true; it is called again and again until then.

    Raises:
        AssertionError: It found nothing for so long.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"Waited {seconds:g} s in vain: {what}; found {found!r}.")
        time.sleep(_LOOK_AGAIN_SECONDS)
