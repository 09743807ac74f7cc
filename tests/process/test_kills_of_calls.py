from __future__ import annotations

import random
import time
from datetime import timedelta

from tests.process.killing import AT_ONCE, Kills
from tests.process.place import Place
from tests.process.server import EngineProcess
from tests.process.waiting import PATIENCE, wait_for

CAMPAIGNS, RECIPIENTS, CONCURRENCY = 3, 60, 4
KILLS = 4
NEVER = 3600.0
RINGS_SECONDS = 0.3
"""How long a simulated call rings before it is answered."""


def test_kills_during_a_calling_campaign_call_nobody_twice(place: Place) -> None:
    """Killed while calls ring and run, the engine keeps to its places, calls each once, and lists what is unknown."""
    kills = Kills(place=place)
    rng = random.Random(kills.seed)
    place.latency_ms, place.call_seconds = 200, 0.2
    place.create_calls(campaigns=CAMPAIGNS, recipients=RECIPIENTS, concurrency=CONCURRENCY)

    def patient() -> EngineProcess:
        # How the calls of the killed process have ended is asked for at once, and nothing unknown is looked up.
        return place.dispatch(reconcile_delay_seconds=NEVER, call_poll_seconds=0.2)

    def stuck() -> bool:
        # A place of which nobody knows whether it rings stays taken: when all are, no further call comes.
        return place.books.recipients()["unknown"] == CAMPAIGNS * CONCURRENCY

    for _ in range(KILLS):
        engine = kills.started(patient)
        more = rng.randrange(8)
        enough = place.books.more_sent(more)
        wait_for(kills.told(f"{more} calls"), lambda enough=enough: enough() or stuck())  # type: ignore[misc]
        time.sleep(rng.uniform(0, 0.3))  # the moment of the kill, not a wait for anything
        kills.kill(engine)
    place.latency_ms = 5000
    engine = kills.started(patient)
    wait_for(kills.told("a request on its way"), lambda: place.books.dispatches("dispatching") or stuck())
    kills.kill(engine)
    assert kills.cut_off, kills.told("no kill came while a request was on its way")
    engine = kills.started(patient)
    kills.check_listed()
    kills.kill(engine)
    place.latency_ms = 5
    place.dispatch(**AT_ONCE, call_poll_seconds=0.2)
    everybody = CAMPAIGNS * RECIPIENTS
    wait_for(
        kills.told("everybody to be called"),
        lambda: place.books.recipients() == {"completed": everybody},
        seconds=2 * PATIENCE,
    )
    place.books.check()
    assert place.books.sent() == everybody, kills.told("called")
    kills.check_settled()
    # A call that was taken has its place to itself at least until it is over.
    lasts = timedelta(seconds=RINGS_SECONDS + place.call_seconds)
    for moments in place.books.starts().values():
        for first, beyond in zip(moments, moments[CONCURRENCY:], strict=False):
            assert beyond - first >= lasts, kills.told(f"more than {CONCURRENCY} calls at a time")
