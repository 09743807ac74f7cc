"""Reading small bodies into models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from anyio import to_thread

from outreach.http import parse_json
from outreach_server.bodies.body import Body

T = TypeVar("T")

_MAX_INLINE: Final = 64 * 1024
"""The largest body to parse on the event loop, in a millisecond or two."""


async def read_model(body: Body, read: Callable[[Any], T]) -> T:
    """Return the model of a small body; a larger one is parsed in a thread.

    Raises:
        InvalidRequest: The body breaks a rule; the details name each place.
    """
    raw = body.raw
    if len(raw) <= _MAX_INLINE:
        return read(parse_json(raw))
    return await to_thread.run_sync(lambda: read(parse_json(raw)))
