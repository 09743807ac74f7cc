"""The unsubscribe register."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import attrs

from outreach.models.carriers import Channel

UnsubscribeScope = Literal["all", "sms", "call"]


@attrs.frozen(kw_only=True)
class Unsubscribe:
    """A number that must not be contacted.

    Attributes:
        phone: E.164.
        scope: Which channels it stops.
        source: What put it there: `operator`, `import`, `api`; keywords and carriers come later.
        evidence: Free text that shows why; None when there is none.
    """

    workspace_id: str
    phone: str
    scope: UnsubscribeScope
    source: str
    evidence: str | None
    created_at: datetime

    def stops(self, channel: Channel) -> bool:
        """Whether it forbids this channel."""
        return self.scope in {"all", channel}
