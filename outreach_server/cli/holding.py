"""What is told of a provider that is not asked now, and of a single message or call that waits."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from outreach import Call, CallStatus, Message, MessageStatus, Outreach

QUEUED: Final = frozenset({MessageStatus.QUEUED, CallStatus.QUEUED})
"""Nothing has taken it, or its provider has put it off."""


def throttle_text(workspace_id: str, provider: str, until: datetime) -> str:
    """Return until when a provider is left alone, why, and what ends it before."""
    return (
        f"{provider} asked to be left alone (429, or a Retry-After): nothing goes to it from this workspace until "
        f"{until:%Y-%m-%d %H:%M:%S} UTC. To end that before, connect the account again: "
        f"outreach-server accounts connect {workspace_id} {provider}"
    )


async def throttled_until(engine: Outreach, item: Message | Call) -> datetime | None:
    """Return until when a queued message or call waits for a provider that is left alone; None when it does not."""
    if item.status not in QUEUED:
        return None
    return await engine.accounts.throttled_until(item.workspace_id, _provider(item))


async def why_queued(engine: Outreach, item: Message | Call) -> str | None:
    """Return why a queued message or call waits, as far as the ledger tells; None while nothing is known."""
    until = await throttled_until(engine, item)
    if until is not None:
        return throttle_text(item.workspace_id, _provider(item), until)
    reason = item.error if isinstance(item, Call) else item.reason
    return None if reason is None else f"{_provider(item)} has not taken it ({reason}); it is tried again later."


def _provider(item: Message | Call) -> str:
    return item.provider if isinstance(item, Call) else item.carrier
