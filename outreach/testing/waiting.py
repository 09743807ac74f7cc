"""Waiting for what an engine does: a condition, the end of a campaign, the end of a call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, TypeVar

import anyio

from outreach.engine import Outreach
from outreach.models.call import Call
from outreach.models.campaign import Campaign
from outreach.testing.virtual_time import VirtualTimeLoop

__all__ = ["call_ended", "campaign_ended", "until"]

T = TypeVar("T")

MAX_SECONDS: Final = 30 * 86_400.0
"""How long is waited in virtual time, unless a test says otherwise: 30 days."""

MAX_REAL_SECONDS: Final = 30.0
"""The same on a loop without virtual time."""

_VIRTUAL_STEP_SECONDS: Final = 60.0
_REAL_STEP_SECONDS: Final = 0.02


async def until(condition: Callable[[], Awaitable[T]], *, timeout_seconds: float | None = None) -> T:
    """Return what a condition returns as soon as that is true; ask it again every minute of virtual time.

    Args:
        condition: An async function.
        timeout_seconds: How long to wait; 30 days by default, and 30 seconds where time is real.

    Raises:
        TimeoutError: It has not come true.
    """
    virtual = isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    step = _VIRTUAL_STEP_SECONDS if virtual else _REAL_STEP_SECONDS
    seconds = timeout_seconds if timeout_seconds is not None else (MAX_SECONDS if virtual else MAX_REAL_SECONDS)
    ends = anyio.current_time() + seconds
    while not (result := await condition()):
        left = ends - anyio.current_time()
        if left <= 0:
            raise TimeoutError(f"The condition has not come true within {timedelta(seconds=seconds)}.")
        await anyio.sleep(min(step, left))
    return result


async def campaign_ended(engine: Outreach, campaign: Campaign, *, timeout_seconds: float | None = None) -> Campaign:
    """Return a campaign once it is completed, cancelled or expired.

    Raises:
        TimeoutError: It has not ended; the message has its status.
        NotFound: There is no such campaign.
    """
    found = campaign

    async def ended() -> bool:
        nonlocal found
        found = await engine.campaigns.get(campaign.workspace_id, campaign.id)
        return found.is_terminal

    try:
        await until(ended, timeout_seconds=timeout_seconds)
    except TimeoutError as error:
        raise TimeoutError(f"The campaign has not ended, it is {found.status}, with {found.counters}.") from error
    return found


async def call_ended(engine: Outreach, call: Call, *, timeout_seconds: float | None = None) -> Call:
    """Return a call once it has ended, however it went.

    Raises:
        TimeoutError: It has not ended; the message has its status.
        NotFound: There is no such call.
    """
    found = call

    async def ended() -> bool:
        nonlocal found
        found = await engine.calls.get(call.workspace_id, call.id)
        return not found.is_open

    try:
        await until(ended, timeout_seconds=timeout_seconds)
    except TimeoutError as error:
        raise TimeoutError(f"The call has not ended, it is {found.status}.") from error
    return found
