"""The ids of the request and of the dispatch that a line of the log belongs to."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from outreach import Dispatch
from outreach.protocols import Instrumentation

REQUEST_ID: Final[ContextVar[str | None]] = ContextVar("outreach_request_id", default=None)
DISPATCH_ID: Final[ContextVar[str | None]] = ContextVar("outreach_dispatch_id", default=None)


class LogContext(Instrumentation):
    """Gives the lines of a dispatch its id, those of the libraries under it included."""

    def intent_committed(self, dispatch: Dispatch) -> None:
        """Set the id for the rest of the dispatch's task."""
        DISPATCH_ID.set(dispatch.id)
