"""What metrics compute while campaigns send, by its parts: so little cannot be seen by comparing two runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from outreach import Outreach
from outreach.core.log_throttle import LogThrottle
from outreach.integrations.prometheus import EngineMetrics
from outreach.integrations.prometheus.engine_metrics import REFRESH_SECONDS
from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.protocols import Instrumentation, SystemClock
from outreach.protocols.instrumentation import Instruments
from outreach.testing.builders import make_dispatch

_MESSAGES: Final = 5_000
_TIMES: Final = 7


def seconds_a_message() -> float:
    """Return by how much computing metrics make one message dearer."""
    dispatch = make_dispatch(message_id="0" * 36)
    outcome = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id="1")

    def telling(instrumentation: list[Instrumentation]) -> Callable[[], None]:
        tell = Instruments(instrumentation, LogThrottle(SystemClock()))

        def run() -> None:
            for _ in range(_MESSAGES):
                tell.intent_committed(dispatch)
                tell.request_started(dispatch, late_seconds=0.01)
                tell.request_ended(dispatch, outcome, seconds=0.3)

        return run

    return (_least(telling([EngineMetrics()])) - _least(telling([]))) / _MESSAGES


async def seconds_a_look(url: str) -> float:
    """Return how much computing it takes to read the figures of a database, while nobody sends from it."""
    took = []
    async with Outreach.open(url) as engine:
        for _ in range(_TIMES):
            begun = time.process_time()
            await engine.figures(0)
            took.append(time.process_time() - begun)
    return min(took)


def share(
    without: Mapping[str, float], *, a_message: float, a_look: float, a_scrape: float, scrapes_a_second: float
) -> float:
    """Return how much computing metrics add, in percent of that of an engine that has none.

    Args:
        without: Its pace, and its computing for a message.
        a_message: Seconds that a message is dearer.
        a_look: Seconds that reading the figures takes.
        a_scrape: Seconds that answering Prometheus takes.
        scrapes_a_second: How often it asks.
    """
    pace = without["messages a second"]
    spent = pace * a_message + a_look / REFRESH_SECONDS + a_scrape * scrapes_a_second
    return 100 * spent / (pace * without["CPU ms a message"] / 1000)


def _least(run: Callable[[], None]) -> float:
    """Return the least computing that something takes of several times."""
    took = []
    for _ in range(_TIMES):
        begun = time.thread_time()
        run()
        took.append(time.thread_time() - begun)
    return min(took)
