"""What a request to a provider over HTTP costs beside the engine's own work."""

from __future__ import annotations

from functools import partial
from typing import Final

from benchmarks.processes import run_side, serve_side
from benchmarks.results import Results, Sample, at_least, at_most
from benchmarks.rounds import alternate
from benchmarks.settings import Settings

_CONNECTIONS: Final = 100
"""Those of `outreach.providers.pool`."""


def measure(settings: Settings) -> Results:
    """Measure it, with as many connections on both sides."""
    results = Results()
    requests, at_once, latency_ms = settings.sized((2000, 500, 300), (40, 20, 5))
    case = f"{at_once} at once, provider {latency_ms} ms"
    settings.say(f"requests: {case}")
    with serve_side("slow_provider", {"latency_ms": latency_ms}) as provider:
        asked = {"url": provider.url, "requests": requests, "at_once": at_once, "connections": _CONNECTIONS}

        def once(*, shared: bool) -> Sample:
            return run_side("asked_provider", {**asked, "shared": shared})

        sides = {"outreach": partial(once, shared=True), "one pool": partial(once, shared=False)}
        samples = alternate(sides, settings.rounds)
    for unit, wanted in (("requests a second", at_least(2)), ("CPU ms a request", at_most(0.5))):
        results.compare(samples, "one pool", row="requests", case=case, unit=unit, wanted=wanted)
    return results
