"""What metrics cost that are read each second while campaigns send, beside the same without metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from benchmarks.results import Results, Sample, at_least, at_most
from benchmarks.rounds import alternate
from benchmarks.rows.sending import Load
from benchmarks.settings import Settings

_CASES: Final = {"as fast as it can": 0, "at their pace": 300}
"""The carrier's milliseconds: with none the engine computes all the time, with some the campaigns keep their pace."""


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    campaigns, recipients = settings.sized((1000, 30), (5, 4))
    for words, latency_ms in _CASES.items():
        plain = Load(settings=settings, campaigns=campaigns, recipients=recipients, latency_ms=latency_ms)
        scraped = attrs.evolve(plain, scraped=True)
        case = f"{campaigns:,} campaigns, {words}"
        settings.say(f"scraping: {case}")
        sides: dict[str, Callable[[], Sample]] = {"outreach": scraped.engine, "without metrics": plain.engine}
        samples = alternate(sides, settings.rounds)
        for unit, wanted in (("messages a second", at_least(0.99)), ("CPU ms a message", at_most(1.01))):
            results.compare(samples, "without metrics", row="scraping", case=case, unit=unit, wanted=wanted)
        results.figure(samples["outreach"], "ms a scrape", row="scraping", case=case)
        results.figure(samples["outreach"], "scrapes", row="scraping", case=case)
    return results
