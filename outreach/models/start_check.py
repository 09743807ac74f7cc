"""What a start of a campaign would come to."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen(kw_only=True)
class StartCheck:
    """What a look at a campaign's contacts tells before it starts.

    Attributes:
        contacts: Contacts that would be reached: those that are neither left out nor skipped already.
        looked_at: How many of them were looked at, from the first on.
        will_fail: Of these, how many will fail, by reason: `over_segment_cap` or `empty_message`.
    """

    contacts: int
    looked_at: int
    will_fail: Mapping[str, int]

    @property
    def failing(self) -> int:
        """How many of those that were looked at will fail."""
        return sum(self.will_fail.values())
