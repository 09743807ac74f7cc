"""How many messages a second are sent, and what one costs: campaigns at 600 a minute, all started at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from benchmarks.results import Results, Sample, at_least, at_most
from benchmarks.rounds import alternate
from benchmarks.rows.sending import Load
from benchmarks.settings import HUEY_NEEDS, NO_SLOWER, Settings, installed

_SECOND: Final = "messages a second"
_WORKERS: Final = {0: 2, 300: 256}
"""Threads of Huey's consumer, by the carrier's milliseconds: what did best of 1, 2, 4, 16, 64, 128 and 256."""


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    for campaigns, recipients in settings.sized(((200, 50), (1000, 20)), ((5, 4),)):
        for latency_ms in _WORKERS:
            load = Load(settings=settings, campaigns=campaigns, recipients=recipients, latency_ms=latency_ms)
            _measure(settings, results, load)
    return results


def _measure(settings: Settings, results: Results, load: Load) -> None:
    case = f"{load.campaigns:,} campaigns, carrier {load.latency_ms:g} ms"
    settings.say(f"dispatch: {case}: counting statements")
    counted = load.counted()
    load.engine()  # the rows that the other sides write in the first round
    sides: dict[str, Callable[[], Sample]] = {
        "outreach": load.engine,
        "ledger floor": load.floor,
        "ledger floor with intents": load.floor_with_intents,
    }
    if installed(*HUEY_NEEDS):
        sides["Huey"] = partial(load.huey, _WORKERS[int(load.latency_ms)])
    else:
        results.notes.append("Huey is not installed here, and was not measured: see `make bench`.")
    if settings.base is not None:
        sides[settings.base.ref] = load.base
    settings.say(f"dispatch: {case}: {', '.join(sides)}")
    samples = alternate(sides, settings.rounds)
    at_once = load.latency_ms == 0
    row = "dispatch"
    results.compare(
        samples, "ledger floor", row=row, case=case, unit=_SECOND, wanted=at_least(0.4) if at_once else None
    )
    results.compare(samples, "ledger floor with intents", row=row, case=case, unit=_SECOND)
    results.compare(samples, "Huey", row=row, case=case, unit=_SECOND, wanted=at_least(3) if at_once else None)
    if settings.base is not None:
        results.compare(samples, settings.base.ref, row=row, case=case, unit=_SECOND, wanted=at_least(NO_SLOWER))
    ours = samples["outreach"]
    results.figure(ours, _SECOND, row=row, case=case, wanted=None if at_once else at_least(1000))
    results.figure(ours, "share of the nominal pace", row=row, case=case)
    results.figure(ours, "CPU ms a message", row=row, case=case, wanted=at_most(0.5))
    results.figure([counted], "statements a message", row=row, case=case, wanted=at_most(3))
    results.figure([counted], "statement runs a message", row=row, case=case)
    results.figure([counted], "commits a message", row=row, case=case)
    results.figure(ours, "MB at most", row=row, case=case)
