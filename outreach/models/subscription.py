"""Named subscriptions to events: how far each has come, and who reads it."""

from __future__ import annotations

from datetime import datetime

import attrs


@attrs.frozen(kw_only=True)
class StoredSubscription:
    """A named subscription as the database holds it.

    Attributes:
        position: Everything up to this number has been acknowledged, or was not asked for.
        gap_until: Up to this number it is acknowledged that events were purged before they were read.
        holder: The stream that reads it now, in whatever process; None when none does.
        held_until: The holder's lease ends then, unless it is renewed.
    """

    name: str
    workspace_id: str | None
    position: int
    gap_until: int
    holder: str | None = None
    held_until: datetime | None = None
    created_at: datetime
    updated_at: datetime


@attrs.frozen(kw_only=True)
class Subscription:
    """A named subscription, as its operator sees it.

    Attributes:
        name: Its name.
        workspace_id: The workspace whose events it gets; None for all.
        position: Everything up to this number has been acknowledged, or was not asked for.
        behind: How many numbers there are after that; not each is an event that it asks for.
        active: Whether a process reads it now.
        created_at: When it was first entered.
        updated_at: When its position was last stored.
    """

    name: str
    workspace_id: str | None
    position: int
    behind: int
    active: bool
    created_at: datetime
    updated_at: datetime


@attrs.frozen(kw_only=True)
class EventGap:
    """A notice in place of events: some were purged from the database before a named subscription had read them.

    Attributes:
        first: The first number that may be missing.
        last: The last one; what is left between them is delivered all the same, after this notice.
    """

    first: int
    last: int
