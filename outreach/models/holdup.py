"""What keeps a campaign from going on although its state would let it."""

from __future__ import annotations

from datetime import datetime

import attrs


@attrs.frozen(kw_only=True)
class Holdup:
    """One thing that keeps a campaign from going on.

    Attributes:
        by: What: `workspace_suspended` (or another status of the workspace), `nobody is dispatching`, `provider_hold`,
            `business_hours` or `holidays`.
        until: Until when, as far as is known; None where somebody has to do something.
        why: The same in a sentence.
    """

    by: str
    until: datetime | None
    why: str
