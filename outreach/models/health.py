"""How dispatching is in one process."""

from __future__ import annotations

from typing import Literal

import attrs

DispatcherState = Literal[
    "off", "starting", "checking", "dispatching", "lease_expired", "standing_by", "refused", "stopping"
]
"""The state of a dispatcher.

off: not asked to dispatch
starting: requesting a lease
checking: checking the database after a crash, before anything is sent
dispatching: sending what is due
lease_expired: the lease has run out because no heartbeat could be written, and nothing is sent until one is; not ready
standing_by: as many processes as allowed (`max_workers`) dispatch, and this one does when one of them ends
refused: dispatch is disabled for this database here; not ready
stopping: being stopped
"""


@attrs.frozen(kw_only=True)
class DispatcherHealth:
    """The health of a dispatcher.

    Attributes:
        state: Its state.
        dispatching: Whether it holds a lease that has not run out.
        epoch: The epoch of the lease; each new lease raises it; None without one.
        active_units: Campaigns, messages and calls in work now.
        failures: Slices that ended in an unexpected error since the start; each is in the log.
        last_error: Class name and time of the latest of those, if any.
        refused: Why dispatch is disabled here, in words; else None.
        refused_reason: The same in one word (`errors.DispatchRefused`; `ended` where a dispatcher of an application's
            own has ended by itself).
        lease_seconds_left: How long the lease lasts without another heartbeat, by default up to 15 s; None without one.
        heartbeat_seconds_ago: The age of the last heartbeat, normally up to 2 s; None without the lease.
    """

    state: DispatcherState = "off"
    dispatching: bool
    epoch: int | None
    active_units: int
    failures: int
    last_error: str | None
    refused: str | None = None
    refused_reason: str | None = None
    lease_seconds_left: float | None = None
    heartbeat_seconds_ago: float | None = None
