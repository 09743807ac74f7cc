"""What every service works with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from outreach.clock import Clock
from outreach.config import EngineConfig
from outreach.ids import IdSource
from outreach.models.work import Unit
from outreach.protocols.storage import Storage


@attrs.frozen(kw_only=True)
class ServiceContext:
    """The collaborators that the engine hands to its services.

    Attributes:
        wake: Tells the dispatcher of this process that a unit has changed; does nothing where none runs.
        dispatching: Whether this process dispatches at this moment.
    """

    storage: Storage
    clock: Clock
    ids: IdSource
    config: EngineConfig
    wake: Callable[[Unit], None]
    dispatching: Callable[[], bool]

    def now(self) -> datetime:
        """Return the present moment."""
        return self.clock.now()
