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
from outreach.services.home import Home, HomeStorage


@attrs.frozen(kw_only=True)
class ServiceContext:
    """The collaborators that the engine hands to its services.

    Attributes:
        home: Where the engine was opened.
        storage: Its storage, which refuses to be used from elsewhere.
        wake: Tells the dispatcher of this process that a unit has changed; does nothing where none runs.
        dispatching: Whether this process dispatches at this moment.
        notices: What is told in the log.
    """

    home: Home
    storage: HomeStorage
    clock: Clock
    ids: IdSource
    config: EngineConfig
    wake: Callable[[Unit], None]
    dispatching: Callable[[], bool]
    notices: Notices

    def now(self) -> datetime:
        """Return the present moment."""
        return self.clock.now()
