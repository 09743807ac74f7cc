"""What endpoints that take nothing cost those that take everything, and the messages."""

from __future__ import annotations

import socket
from functools import partial
from typing import Final

from benchmarks.processes import run_side, serve_side
from benchmarks.results import Results, Sample, at_least
from benchmarks.rounds import alternate
from benchmarks.rows.sending import RATE
from benchmarks.settings import Settings

_HANGS_MS: Final = 600_000


def measure(settings: Settings) -> Results:
    """Measure it: two endpoints that answer at once, with a dead and a hanging one beside them, and without."""
    results = Results()
    campaigns, recipients = settings.sized((200, 40), (5, 10))
    case = f"{campaigns * recipients:,} messages"
    settings.say(f"webhooks: {case}")
    with (
        serve_side("slow_provider", {"latency_ms": 0}) as first,
        serve_side("slow_provider", {"latency_ms": 0}) as second,
        serve_side("slow_provider", {"latency_ms": _HANGS_MS}) as hanging,
        socket.create_server(("127.0.0.1", 0), backlog=1) as closed,
    ):
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
        closed.close()

        def once(*bad: str) -> Sample:
            with settings.scratch("delivering") as directory:
                return run_side(
                    "delivering",
                    {
                        "database": str(directory / "outreach.db"),
                        "campaigns": campaigns,
                        "recipients": recipients,
                        "rate": RATE,
                        "good": [first.url, second.url],
                        "bad": bad,
                        "most_seconds": settings.sized(120.0, 20.0),
                    },
                )

        sides = {"outreach": partial(once, dead, hanging.url), "without them": partial(once)}
        samples = alternate(sides, settings.rounds)
    for unit in ("messages a second", "deliveries a second"):
        results.compare(samples, "without them", row="webhooks", case=case, unit=unit, wanted=at_least(0.97))
    return results
