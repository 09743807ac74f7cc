"""Turns of campaigns at a shared sending number with a rate of its own."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import attrs

_TURN_GRACE_SECONDS: Final = 2.0
"""How much later than announced a campaign may return before others go first."""


@attrs.define
class _Number:
    """The state of one number: until when each campaign waits, and when each was served."""

    waits_until: dict[str, float] = attrs.field(factory=dict)
    served: dict[str, int] = attrs.field(factory=dict)
    count: int = 0

    def rank(self, campaign_id: str) -> tuple[int, str]:
        """Return the sort key of campaigns: the least recently served first."""
        return self.served.get(campaign_id, 0), campaign_id


class SenderRotation:
    """Lets campaigns take turns, so that none takes every slot of a shared number.

    The least recently served goes first. Only campaigns that wait for the number itself count; one that does not return
    in time is skipped.
    """

    def __init__(self) -> None:
        self._numbers: defaultdict[str, _Number] = defaultdict(_Number)

    def request_turn(self, key: str, campaign_id: str, *, now: float, back_in: float) -> int:
        """Ask for a number's next slot; return how many others are before.

        `now` is on the monotonic clock; the campaign asks again within `back_in` seconds unless it sends before.
        """
        number = self._numbers[key]
        number.waits_until[campaign_id] = now + back_in + _TURN_GRACE_SECONDS
        own = number.rank(campaign_id)
        return sum(until >= now and number.rank(other) < own for other, until in number.waits_until.items())

    def record_turn(self, key: str, campaign_id: str) -> None:
        """Record that a campaign took slots of a number, which puts it behind the others."""
        number = self._numbers[key]
        number.waits_until.pop(campaign_id, None)
        number.count += 1
        number.served[campaign_id] = number.count

    def leave(self, key: str, campaign_id: str) -> None:
        """Record that a campaign does not wait for a number now."""
        number = self._numbers.get(key)
        if number is not None:
            number.waits_until.pop(campaign_id, None)

    def forget(self, key: str, campaign_id: str) -> None:
        """Forget a campaign that has nothing to send from a number."""
        number = self._numbers.get(key)
        if number is not None:
            number.waits_until.pop(campaign_id, None)
            number.served.pop(campaign_id, None)
            if not number.waits_until and not number.served:
                del self._numbers[key]
