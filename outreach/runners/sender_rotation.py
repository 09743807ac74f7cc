"""Whose turn it is at a sending number with a rate of its own, where several campaigns send from it."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import attrs

_TURN_GRACE_SECONDS: Final = 2.0
"""How much later than it meant to one may come back before others go without it."""


@attrs.define
class _Number:
    """What is known of one number: who asks, until when that counts, and who was served when."""

    asking: dict[str, float] = attrs.field(factory=dict)
    served: dict[str, int] = attrs.field(factory=dict)
    count: int = 0

    def rank(self, campaign_id: str) -> tuple[int, str]:
        """Return by what campaigns go: the least recently served first."""
        return self.served.get(campaign_id, 0), campaign_id


class SenderRotation:
    """Campaigns take turns, so that one does not take every slot of a number that others are waiting for.

    Who has been served least recently goes first. Only those count that wait for the number itself: who waits for a
    slot of its own lets the others go. One that asked and has not come back is not waited for.
    """

    def __init__(self) -> None:
        self._numbers: defaultdict[str, _Number] = defaultdict(_Number)

    def request_turn(self, key: str, campaign_id: str, *, now: float, back_in: float) -> int:
        """Ask for the next slot of a number; return how many others have a right to one before.

        Args:
            key: The number.
            campaign_id: Who asks.
            now: On the monotonic clock, in seconds.
            back_in: In how many seconds it asks again at the latest, if it does not send before.
        """
        number = self._numbers[key]
        number.asking[campaign_id] = now + back_in + _TURN_GRACE_SECONDS
        own = number.rank(campaign_id)
        return sum(until >= now and number.rank(other) < own for other, until in number.asking.items())

    def record_turn(self, key: str, campaign_id: str) -> None:
        """Note that a campaign has taken slots of a number: it goes behind the others."""
        number = self._numbers[key]
        number.asking.pop(campaign_id, None)
        number.count += 1
        number.served[campaign_id] = number.count

    def leave(self, key: str, campaign_id: str) -> None:
        """Note that a campaign does not wait for a number now."""
        number = self._numbers.get(key)
        if number is not None:
            number.asking.pop(campaign_id, None)

    def forget(self, key: str, campaign_id: str) -> None:
        """Note that a campaign has nothing to send from a number; one that comes back begins anew."""
        number = self._numbers.get(key)
        if number is not None:
            number.asking.pop(campaign_id, None)
            number.served.pop(campaign_id, None)
            if not number.asking and not number.served:
                del self._numbers[key]
