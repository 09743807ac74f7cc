"""Messages about throttled providers and queued messages and calls."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from outreach import Call, CallStatus, Message, MessageStatus, Outreach
from outreach_server.cli.durations import time_text

QUEUED: Final = frozenset({MessageStatus.QUEUED, CallStatus.QUEUED})
"""Queued, or postponed by a throttle."""


def throttle_text(workspace_id: str, provider: str, until: datetime) -> str:
    """Return until when a provider throttles, why, and how to end that."""
    return (
        f"{provider} throttles this workspace (429 or Retry-After): sending paused until "
        f"{time_text(until)}. To end that now, connect the account again: "
        f"outreach-server accounts connect {workspace_id} {provider}"
    )


async def throttled_until(engine: Outreach, item: Message | Call) -> datetime | None:
    """Return until when a queued message or call waits for a throttled provider; else None."""
    if item.status not in QUEUED:
        return None
    return await engine.accounts.throttled_until(item.workspace_id, _provider(item))


async def why_queued(engine: Outreach, item: Message | Call) -> str | None:
    """Return why a queued message or call waits, if known."""
    until = await throttled_until(engine, item)
    if until is not None:
        return throttle_text(item.workspace_id, _provider(item), until)
    reason = item.error if isinstance(item, Call) else item.reason
    return None if reason is None else f"{_provider(item)} has not accepted it ({reason}); it is retried later."


def _provider(item: Message | Call) -> str:
    return item.provider if isinstance(item, Call) else item.carrier
