"""What metrics cost that are read each second while campaigns send."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from benchmarks.processes import run_side
from benchmarks.results import Results, Sample, at_least, at_most
from benchmarks.rows.sending import RATE
from benchmarks.settings import Settings

_SHARE: Final = "% of the computing for metrics"
_FIRST: Final = "without metrics, first turns"
_SECOND: Final = "without metrics, second turns"
_FULL_TURN_SECONDS: Final = 10.0
"""At full speed messages go out in waves of several hundred: in turns of a second one wave more or less is a third."""


def measure(settings: Settings) -> Results:
    """Measure it.

    As fast as it can, the engine computes all the time, and its pace is what its computing leaves. At their pace, the
    campaigns ask for a third of that, as a server does that keeps up.

    Metrics are on and off in turns within each run (`benchmarks.sides.scraped`), and read about each second; every
    other round begins with off. At their pace a turn is as long as the time between two messages of a campaign, so that
    all turns have as many.

    The turns without metrics are compared with each other, too: what differs there is chance.
    """
    results = Results()
    campaigns = settings.sized(1000, 5)
    paced = settings.sized(36, RATE)
    cases = {
        "as fast as it can": (settings.sized(300, 20), RATE, 0, settings.sized(_FULL_TURN_SECONDS, 0.2)),
        "at their pace": (settings.sized(30, 20), paced, settings.sized(300, 20), settings.sized(60 / paced, 0.2)),
    }
    for words, (recipients, rate, latency_ms, turn_seconds) in cases.items():
        case = f"{campaigns:,} campaigns, {words}"
        settings.say(f"scraping: {case}")
        samples: dict[str, list[Sample]] = defaultdict(list)
        for number in range(settings.rounds):
            with settings.scratch("scraped") as directory:
                answer = run_side(
                    "scraped",
                    {
                        "database": str(directory / "outreach.db"),
                        "campaigns": campaigns,
                        "recipients": recipients,
                        "rate": rate,
                        "latency_ms": latency_ms,
                        "turn_seconds": turn_seconds,
                        "scrapes_a_turn": max(1, int(turn_seconds)),
                        "most_seconds": settings.sized(240.0, 15.0),
                        "off_first": number % 2 == 1,
                    },
                )
            samples["without metrics"].append(answer.pop("without"))
            samples[_FIRST].append(answer.pop("without, first"))
            samples[_SECOND].append(answer.pop("without, second"))
            samples["outreach"].append({**answer.pop("with"), **answer})
        for unit, wanted in (("messages a second", at_least(0.99)), ("CPU ms a message", at_most(1.01))):
            results.compare(samples, "without metrics", row="scraping", case=case, unit=unit, wanted=wanted)
            results.compare(samples, _SECOND, row="scraping", case=case, unit=unit, ours=_FIRST)
        results.figure(samples["outreach"], _SHARE, row="scraping", case=case, wanted=at_most(1))
        results.figure(samples["outreach"], "CPU ms a scrape", row="scraping", case=case)
        results.figure(samples["outreach"], "scrapes", row="scraping", case=case)
    return results
