"""A carrier that serves some sending numbers well and others badly."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

import anyio

from outreach.clock import Clock
from outreach.models.dispatch import Outcome
from outreach.models.states import DispatchState
from outreach.protocols.carrier import CarrierCapabilities, LookUp, OutboundMessage

Kind = Literal["well", "throttled", "sharing", "failing", "silent", "night"]
"""What is with a campaign.

`well`: nothing. `throttled`: the carrier is too busy, always. `sharing`: nothing, but its account is that of those that
are throttled. `failing`: the numbers of its contacts are refused. `silent`: the carrier does not answer. `night`: it is
closed by its business hours, and not sent at all.
"""

_LATENCY_SECONDS: Final = 0.020
_AGAIN_SECONDS: Final = 2.0


class TroubledCarrier:
    """Answers by the number that a message is sent from.

    Args:
        clock: Where the time comes from.
        kinds: What is with the campaign of each sending number.

    Attributes:
        starts: When it was asked, in order, by sending number.
        accepted: How many messages it accepted of each kind of campaign.
    """

    def __init__(self, *, clock: Clock, kinds: Mapping[str, Kind]) -> None:
        self._clock = clock
        self._kinds = kinds
        self._ids = itertools.count(1)
        self.starts: dict[str, list[datetime]] = defaultdict(list)
        self.accepted: Counter[Kind] = Counter()

    @property
    def name(self) -> str:
        """The name under which it is logged."""
        return "troubled"

    @property
    def capabilities(self) -> CarrierCapabilities:
        """It knows nothing of what it was asked before."""
        return CarrierCapabilities(look_up="none", carries_not_after=False)

    async def send(self, message: OutboundMessage) -> Outcome:
        """Note the moment, and answer as is usual for this number."""
        sender = message.sender or ""
        self.starts[sender].append(self._clock.now())
        kind = self._kinds[sender]
        match kind:
            case "throttled":
                await anyio.sleep(_LATENCY_SECONDS)
                return Outcome(state=DispatchState.DEFERRED, reason="rate_limited", retry_after_seconds=_AGAIN_SECONDS)
            case "failing":
                await anyio.sleep(_LATENCY_SECONDS)
                return Outcome(state=DispatchState.REFUSED, reason="invalid_number")
            case "silent":
                await anyio.sleep_forever()
        await anyio.sleep(_LATENCY_SECONDS)
        self.accepted[kind] += 1
        return Outcome(state=DispatchState.ACCEPTED, provider_id=f"troubled-{next(self._ids)}")

    async def look_up(self, question: LookUp) -> Outcome | None:
        """Tell nothing."""
        return None
