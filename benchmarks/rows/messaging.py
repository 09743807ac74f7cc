"""What a whole message costs: from the start of all campaigns to the delivered receipt of each message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from benchmarks.postgres import serving
from benchmarks.results import Results, Sample, Wanted, at_least, at_most
from benchmarks.rounds import alternate
from benchmarks.rows.postgres import Cluster
from benchmarks.rows.sending import Load
from benchmarks.settings import HUEY_NEEDS, NO_SLOWER, PROCRASTINATE_NEEDS, Settings, installed

_SECOND: Final = "messages a second"
_COMPUTING: Final = "CPU ms a message"
_HUEY_WORKERS: Final = 2

_WANTED: Final = {"server": (at_least(3), at_most(0.30)), "embedded": (at_least(2), at_most(0.45))}
"""Of each way to run the engine: messages a second in units of Huey's, and the CPU time of a message."""


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    for campaigns, recipients in settings.sized(((200, 50), (1000, 20)), ((5, 4),)):
        _measure(settings, results, Load(settings=settings, campaigns=campaigns, recipients=recipients, receipts=True))
    return results


def _measure(settings: Settings, results: Results, load: Load) -> None:
    case = f"{load.campaigns:,} campaigns"
    sides: dict[str, Callable[[], Sample]] = {
        way: partial(load.delivered, embedded=way == "embedded") for way in _WANTED
    }
    if installed(*HUEY_NEEDS):
        settings.say(f"message: {case}: the rows that Huey's tasks write")
        load.engine()
        sides["Huey"] = partial(load.huey, _HUEY_WORKERS)
    else:
        results.notes.append("Huey is not installed here, and was not measured: see `make bench`.")
    if settings.base is not None:
        for way in _WANTED:
            base = partial(load.delivered, embedded=way == "embedded", base=settings.base)
            sides[_of_base(settings, way)] = base
    settings.say(f"message: {case}: {', '.join(sides)}")
    samples = alternate(sides, settings.rounds)
    for way, (faster, cheaper) in _WANTED.items():
        _compare(results, samples, way, case, "Huey", _SECOND, faster)
        if settings.base is not None:
            _compare(results, samples, way, case, _of_base(settings, way), _SECOND, at_least(NO_SLOWER))
        results.figure(samples[way], _SECOND, row="message", case=f"{case}, {way}")
        results.figure(samples[way], _COMPUTING, row="message", case=f"{case}, {way}", wanted=cheaper)
    # What tuning and uvloop save.
    _compare(results, samples, "embedded", case, "server", _COMPUTING, None)
    _measure_postgres(settings, results, load)


def _measure_postgres(settings: Settings, results: Results, load: Load) -> None:
    case = f"{load.campaigns:,} campaigns, PostgreSQL"
    with serving() as server, server.database() as furnished:

        def ours() -> Sample:
            with server.database() as name:
                return load.delivered(embedded=False, url=server.url(name))

        sides: dict[str, Callable[[], Sample]] = {"server": ours}
        cluster = Cluster(settings=settings, server=server, load=load, furnished=furnished)
        if installed(*PROCRASTINATE_NEEDS):
            settings.say(f"message: {case}: the rows that Procrastinate's jobs write")
            cluster.furnish()
            cluster.keep()
            cluster.receive()
            sides["Procrastinate"] = cluster.procrastinate
        else:
            results.notes.append("Procrastinate is not installed here, and was not measured: see `make bench`.")
        settings.say(f"message: {case}: {', '.join(sides)}")
        samples = alternate(sides, settings.rounds)
        cluster.forget()
    results.compare(samples, "Procrastinate", row="message", case=case, unit=_SECOND, wanted=None, ours="server")
    results.figure(samples["server"], _SECOND, row="message", case=case)


def _compare(
    results: Results,
    samples: Mapping[str, Sequence[Sample]],
    way: str,
    case: str,
    against: str,
    unit: str,
    wanted: Wanted | None,
) -> None:
    results.compare(samples, against, row="message", case=f"{case}, {way}", unit=unit, wanted=wanted, ours=way)


def _of_base(settings: Settings, way: str) -> str:
    assert settings.base is not None
    return f"{settings.base.ref}, {way}"
