"""What every service works with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from outreach.clock import Clock
from outreach.config import EngineConfig
from outreach.ids import IdSource
from outreach.models.work import Unit
from outreach.notices import Notices
from outreach.protocols.storage import Storage


@attrs.frozen(kw_only=True)
class ServiceContext:
    """The collaborators that the engine hands to its services.

    Attributes:
        wake: Tells the dispatcher of this process that a unit has changed; does nothing where none runs.
        dispatching: Whether this process dispatches at this moment.
        notices: What is told in the log.
    """

    storage: Storage
    clock: Clock
    ids: IdSource
    config: EngineConfig
    wake: Callable[[Unit], None]
    dispatching: Callable[[], bool]
    notices: Notices

    def now(self) -> datetime:
        """Return the present moment."""
        return self.clock.now()
