"""An intent must soon have an outcome, as long as its worker lives and reaches its database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import Context
from typing import Final

from outreach.core.config import EngineConfig
from outreach.models.states import DispatchState
from tests.simulation.invariants.all_workspaces import AllWorkspaces
from tests.simulation.invariants.ledger import Broken
from tests.simulation.storage import ProcessStorage
from tests.simulation.writes import Writes

_MORE_SECONDS: Final = 30.0
"""What a worker may take beyond the life of an intent and its request: a heartbeat, the grace, a new lease, a retry."""


class OpenIntentChecks:
    """Checks each intent of a process when its time is over.

    Args:
        watch: Runs a check; what it raises breaks the simulation.
        config: The processes'.
    """

    def __init__(self, watch: Callable[[Callable[[AllWorkspaces], None]], None], config: EngineConfig) -> None:
        self._watch = watch
        self._seconds = config.max_intent_age_seconds + config.provider_timeout_seconds + _MORE_SECONDS
        self._noted: set[str] = set()

    def note(self, writes: Mapping[str, Writes], by: ProcessStorage) -> None:
        """Take in what a process has written."""
        for written in writes.values():
            for dispatch in written.dispatches.values():
                if dispatch.state is DispatchState.DISPATCHING and dispatch.id not in self._noted:
                    self._noted.add(dispatch.id)
                    self._look_later(dispatch.id, by)

    def _look_later(self, dispatch_id: str, by: ProcessStorage) -> None:
        # In no process's context: time passes also where a process stands still.
        asyncio.get_running_loop().call_later(self._seconds, self._look, dispatch_id, by, context=Context())

    def _look(self, dispatch_id: str, by: ProcessStorage) -> None:
        if by.dead:
            return
        since = by.at_work_since()
        if since is None or asyncio.get_running_loop().time() < since + self._seconds:
            self._look_later(dispatch_id, by)
        else:
            self._watch(lambda workspaces: self._require_outcome(workspaces, dispatch_id))

    def _require_outcome(self, workspaces: AllWorkspaces, dispatch_id: str) -> None:
        if workspaces.state_of(dispatch_id) is DispatchState.DISPATCHING:
            raise Broken(
                f"Dispatch {dispatch_id} has had no outcome for {self._seconds:g} s, and its worker has its database."
            )
