"""What metrics cost that are read each second while campaigns send, beside the same without metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from benchmarks.results import Results, Sample, at_least, at_most
from benchmarks.rounds import alternate
from benchmarks.rows.sending import RATE, Load
from benchmarks.settings import Settings

_SHARE: Final = "% of the computing for metrics"
_AGAIN: Final = "without metrics, again"


def measure(settings: Settings) -> Results:
    """Measure it.

    As fast as it can, the engine computes all the time, and its pace is what its computing leaves. At their pace, the
    campaigns ask for half of that, as a server does that keeps up. Two runs without metrics, beside each other, show by
    how much runs differ that do the same; what metrics compute is measured within the run, and so does not.
    """
    results = Results()
    campaigns, recipients = settings.sized((1000, 30), (5, 4))
    cases = {"as fast as it can": (RATE, 0), "at their pace": (settings.sized(36, RATE), 300)}
    for words, (rate, latency_ms) in cases.items():
        plain = Load(settings=settings, campaigns=campaigns, recipients=recipients, rate=rate, latency_ms=latency_ms)
        scraped, again = attrs.evolve(plain, scraped=True), attrs.evolve(plain)
        case = f"{campaigns:,} campaigns, {words}"
        settings.say(f"scraping: {case}")
        sides: dict[str, Callable[[], Sample]] = {
            "without metrics": plain.engine,
            "outreach": scraped.engine,
            _AGAIN: again.engine,
        }
        samples = alternate(sides, settings.rounds)
        for unit, wanted in (("messages a second", at_least(0.99)), ("CPU ms a message", at_most(1.01))):
            results.compare(samples, "without metrics", row="scraping", case=case, unit=unit, wanted=wanted)
            results.compare(
                samples,
                "without metrics",
                row="scraping",
                case=f"{case}, twice without metrics",
                unit=unit,
                ours=_AGAIN,
            )
        results.figure(samples["outreach"], _SHARE, row="scraping", case=case, wanted=at_most(1))
        results.figure(samples["outreach"], "CPU ms a scrape", row="scraping", case=case)
        results.figure(samples["outreach"], "scrapes", row="scraping", case=case)
    return results
