"""Engines that go wrong where a process is cut off from its database; each broken on purpose in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from outreach.dispatch.outbox import Outbox
from outreach.dispatch.worker import Worker
from outreach.models.dispatch import Dispatch, DispatchOutcome


def forget_what_is_in_doubt(patch: pytest.MonkeyPatch) -> None:
    """Go on under the same lease after a commit of intents that may have been done."""
    patch.setattr(Worker, "doubt", lambda _: None)


def record_once(patch: pytest.MonkeyPatch) -> None:
    """Try once to record an outcome."""

    async def once(self: Outbox, dispatch: Dispatch, outcome: DispatchOutcome) -> DispatchOutcome:
        try:
            return await self._worker.settle(dispatch, outcome)
        except Exception:
            return outcome

    patch.setattr(Outbox, "_record_with_retry", once)


CUTS: Mapping[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    # A worker that knows nothing of its intent also gives the campaign away while that waits.
    "intents in doubt are forgotten": (forget_what_is_in_doubt, "has had no outcome|waits for its slot"),
    "an outcome that could not be written is dropped": (
        record_once,
        "The answer to dispatch|has had no outcome|intents without an outcome",
    ),
}
"""What is wrong with each: the patch, and a pattern of what the simulation says when it has found out."""
