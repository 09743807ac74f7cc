"""Numbers that a provider has reported as ones that cannot be reached."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.models.base import Channel


@attrs.frozen(kw_only=True)
class UnreachableNumber:
    """A number that takes no messages or no calls, as a provider reported: a landline, or not in service.

    With `skip_unreachable` of the workspace, campaigns of the channel leave it out.

    Attributes:
        phone: E.164.
        channel: `sms` for a number that takes no messages, `call` for one that takes no calls.
        provider: Who reported it last.
        error_code: The provider's own code; None if there was none.
        reported_at: When it was reported last.
    """

    workspace_id: str
    phone: str
    channel: Channel
    provider: str
    error_code: str | None
    reported_at: datetime
