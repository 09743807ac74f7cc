"""What endpoints that take nothing cost those that take everything, and the messages."""

from __future__ import annotations

import socket
from collections import defaultdict
from typing import Final

from benchmarks.processes import run_side, serve_side
from benchmarks.results import Results, Sample, at_least, at_most
from benchmarks.rows.sending import RATE
from benchmarks.settings import Settings

_HANGS_MS: Final = 600_000
_WANTED: Final = {
    "messages a second": at_least(0.97),
    "deliveries a second": at_least(0.97),
    "CPU ms a message": at_most(1.03),
}


def measure(settings: Settings) -> Results:
    """Measure it: two endpoints that answer at once, with a dead and a hanging one beside them and without, by windows.

    Each pair of windows in each run is a round of its own (`benchmarks.sides.delivering`).
    """
    results = Results()
    seconds = settings.sized(20.0, 1.0)
    campaigns, recipients = settings.sized((400, 1800), (100, 300))
    case = f"windows of {seconds:g} s"
    settings.say(f"webhooks: {case}")
    samples: dict[str, list[Sample]] = defaultdict(list)
    with (
        serve_side("slow_provider", {"latency_ms": 0}) as first,
        serve_side("slow_provider", {"latency_ms": 0}) as second,
        serve_side("slow_provider", {"latency_ms": _HANGS_MS}) as hanging,
        socket.create_server(("127.0.0.1", 0), backlog=1) as closed,
    ):
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
        closed.close()
        for _ in range(settings.rounds):
            with settings.scratch("delivering") as directory:
                answer = run_side(
                    "delivering",
                    {
                        "database": str(directory / "outreach.db"),
                        "pairs": settings.sized(6, 1),
                        "seconds": seconds,
                        "campaigns": campaigns,
                        "recipients": recipients,
                        "rate": RATE,
                        "good": [first.url, second.url],
                        "bad": [dead, hanging.url],
                    },
                )
            samples["outreach"].extend(answer["with"])
            samples["without them"].extend(answer["without"])
    for unit, wanted in _WANTED.items():
        results.compare(samples, "without them", row="webhooks", case=case, unit=unit, wanted=wanted)
    return results
