"""How many calls a second POST /calls places, and how long one takes; the provider answers at once."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Final

import orjson

from benchmarks.load import ask_often, flood, json_of, request
from benchmarks.people import call_bodies
from benchmarks.processes import Server, serve_outreach, serve_side
from benchmarks.results import Results, Sample, at_least, at_most
from benchmarks.rounds import alternate
from benchmarks.settings import NO_LONGER, NO_SLOWER, ORDINARY_NEEDS, Settings, installed
from benchmarks.tenants import Tenant, ordinary_tenant, tenant

_CONNECTIONS: Final = 16
_STRETCH: Final = 1000
_AT_ONCE: Final = {"OUTREACH_SIMULATOR_CALL_SECONDS": "0"}


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    directory = settings.place("call")
    ours = tenant(directory)
    numbers = itertools.count()
    with ExitStack() as stack:
        server = stack.enter_context(serve_outreach(ours.database, environment=_AT_ONCE))
        sides = {"outreach": partial(_once, settings, server, _requests(ours, numbers))}
        answer = json_of(server.address, next(_requests(ours, numbers)), expect=201)
        assert isinstance(answer, dict)
        assert answer["callId"], answer
        file = directory / "answer.json"
        file.write_bytes(orjson.dumps(answer))
        bare = stack.enter_context(serve_side("bare", {"answers": {"/calls": str(file)}, "status": 201}))
        sides["bare route"] = partial(_once, settings, bare, _requests(ours, numbers))
        if settings.base is not None:
            earlier = tenant(settings.place("call-base"), base=settings.base)
            old = stack.enter_context(serve_outreach(earlier.database, environment=_AT_ONCE, base=settings.base))
            sides[settings.base.ref] = partial(_once, settings, old, _requests(earlier, numbers))
        if installed(*ORDINARY_NEEDS):
            other = ordinary_tenant(directory, ours.api_key)
            app = stack.enter_context(serve_side("ordinary", {"database": str(other.database)}))
            sides["ordinary app"] = partial(_once, settings, app, _requests(other, numbers))
        else:
            results.notes.append("The ordinary app is not installed here, and was not measured: see `make bench`.")
        settings.say("call")
        samples = alternate(sides, settings.rounds)
    cases = (
        ("calls a second", f"{_CONNECTIONS} connections", at_least(NO_SLOWER)),
        ("ms", "one client", at_most(NO_LONGER)),
    )
    for unit, case, no_worse in cases:
        for against in ("bare route", "ordinary app"):
            results.compare(samples, against, row="call", case=case, unit=unit)
        if settings.base is not None:
            results.compare(samples, settings.base.ref, row="call", case=case, unit=unit, wanted=no_worse)
    return results


def _requests(whose: Tenant, numbers: Iterator[int]) -> Iterator[bytes]:
    """Yield calls, each to a number that was never called before."""
    while True:
        start = next(numbers) * _STRETCH
        for body in call_bodies(whose.agent_id, start, _STRETCH):
            yield request("POST", "/calls", key=whose.api_key, body=body)


def _once(settings: Settings, server: Server, requests: Iterator[bytes]) -> Sample:
    some = list(itertools.islice(requests, settings.sized(100, 5)))
    taken = ask_often(server.address, some, expect=201)
    found = flood(server.address, requests, connections=_CONNECTIONS, seconds=settings.sized(3.0, 0.2), expect=201)
    return {"calls a second": found.a_second, "ms": statistics.median(taken) * 1000}
