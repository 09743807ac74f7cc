"""The slots that messages take: one spacing apart for a campaign and for a number with a rate (docs/rules.md#pace)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from tests.simulation.invariants.bounds import Bounds
from tests.simulation.invariants.ledger import Broken
from tests.simulation.invariants.numbers import NumberRates

_MINUTE: Final = timedelta(seconds=60)


class SlotChecks:
    """Checks the slot of each new intent.

    Args:
        bounds: The bounds that hold.

    Attributes:
        numbers: The rates of sending numbers.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._taken: dict[str, datetime] = {}
        self.numbers = NumberRates()

    def after_step(self, step: timedelta) -> None:
        """Take in that the wall clock was set: back, and slots begin anew; requests are spaced still (`requests`)."""
        if step < timedelta():
            self._taken.clear()

    def check(self, intent: Dispatch, campaign: Campaign | None, now: datetime) -> None:
        """Check one slot.

        Raises:
            Broken: It lies too close to the one before, too far ahead, behind its commit, or its intent lives too long.
        """
        ahead = self._bounds.look_ahead if campaign is not None else self._bounds.single_look_ahead
        if not now <= intent.slot_at <= now + ahead:
            raise Broken(f"Intent {intent.id} has its slot at {intent.slot_at}; it was committed at {now}.")
        if not intent.slot_at <= intent.valid_until <= now + self._bounds.lifetime:
            raise Broken(f"Intent {intent.id}, committed at {now}, lives until {intent.valid_until}.")
        expires = campaign.scheduled_expires_at if campaign is not None else None
        if expires is not None and intent.valid_until > expires:
            raise Broken(f"Intent {intent.id} lives until {intent.valid_until}, beyond the expiry of its campaign.")
        if expires is not None and intent.slot_at >= expires:
            raise Broken(f"Intent {intent.id} has its slot at {intent.slot_at}, when its campaign has expired.")
        if intent.channel == "sms":
            if campaign is not None:
                self._take(campaign.id, campaign.rate_per_minute, intent)
            self._take(self.numbers.key(intent.from_number), self.numbers.rate(intent.from_number), intent)

    def _take(self, key: str, rate: int | None, intent: Dispatch) -> None:
        last = self._taken.get(key)
        if rate is not None and last is not None and intent.slot_at < last + _MINUTE / rate:
            raise Broken(f"Intent {intent.id} of {key} has its slot at {intent.slot_at}, the one before at {last}.")
        self._taken[key] = intent.slot_at
