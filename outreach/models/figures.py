"""What is open in a whole database, in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import attrs

from outreach.models.dispatch import UnknownDispatchCount
from outreach.models.status import DispatchOverview


class CampaignGroup(NamedTuple):
    """The campaigns in one status.

    Attributes:
        status: `active`, `scheduled` or `paused`.
        pause_reason: Why they were paused; else None.
        campaigns: How many there are.
        pending: Their recipients that were never attempted.
        open: Their recipients that have not ended, the pending ones included.
    """

    status: str
    pause_reason: str | None
    campaigns: int
    pending: int
    open: int


@attrs.frozen(kw_only=True)
class EngineFigures:
    """What is open in the database, in numbers; reading them costs the same however much was sent before.

    Attributes:
        at: The time.
        dispatching: Who dispatches.
        campaigns: Campaigns that are active, scheduled or paused.
        waiting: Recipients of active campaigns that wait, by reason; at most `MAX_WAITING_COUNTED` are counted.
        unknown: Dispatches with an unknown outcome; at most `MAX_COUNTED` are counted.
        throttles: Accounts that their providers throttle now, by provider.
        held: Numbers under review; at most a hundred are counted.
        opt_outs: Numbers that came onto the register after `since`, by the source of the entry.
        until: The position in the decision trail: `since` of the next call.
    """

    at: datetime
    dispatching: DispatchOverview
    campaigns: Sequence[CampaignGroup]
    waiting: Mapping[str, int]
    unknown: Sequence[UnknownDispatchCount]
    throttles: Mapping[str, int]
    held: int
    opt_outs: Mapping[str, int]
    until: int
