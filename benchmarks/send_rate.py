"""What sending costs: 20 campaigns of 100 recipients each, all at 600 a minute, in the real server.

At that pace a campaign takes 9.9 s, since its messages start a tenth of a second apart; all of them together are
200 messages a second. Shown are the time from the first message to the last against that nominal time, the
server's computing time for a message, and whether any two messages of a campaign started closer than their pace.

    python -m benchmarks.send_rate [--campaigns 20] [--recipients 100]
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.process.place import open_place
from tests.process.waiting import wait_for

_RATE: Final = 600
_SPACING_SECONDS: Final = 60 / _RATE
_TOLERANCE_SECONDS: Final = 0.001
_MOST_SECONDS: Final = 120.0


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--campaigns", type=int, default=20)
    parser.add_argument("--recipients", type=int, default=100)
    given = parser.parse_args()
    messages = given.campaigns * given.recipients
    nominal = (given.recipients - 1) * _SPACING_SECONDS
    with tempfile.TemporaryDirectory(prefix="outreach-bench-") as name, open_place(Path(name)) as place:
        server = place.serve()
        idle_before = server.cpu_seconds()
        time.sleep(2)
        idle = (server.cpu_seconds() - idle_before) / 2
        place.create(campaigns=given.campaigns, recipients=given.recipients, rate=_RATE)
        before, begun = server.cpu_seconds(), time.monotonic()
        wait_for("all messages", lambda: place.books.sent() >= messages, seconds=nominal + _MOST_SECONDS)
        wait_for("all outcomes", lambda: not place.books.unfinished())
        used, elapsed = server.cpu_seconds() - before, time.monotonic() - begun
        place.books.check()
        starts = place.books.starts()
    moments = sorted(itertools.chain(*starts.values()))
    spread = (moments[-1] - moments[0]).total_seconds()
    closest = min(
        ((later - earlier).total_seconds() for of in starts.values() for earlier, later in itertools.pairwise(of)),
        default=_SPACING_SECONDS,
    )
    slowest = max((of[-1] - of[0]).total_seconds() for of in starts.values())
    print(f"messages        {messages} of {given.campaigns} campaigns, each once")
    print(f"nominal         {nominal:.1f} s a campaign, {given.campaigns / _SPACING_SECONDS:.0f} a second in all")
    print(f"first to last   {spread:.1f} s: {spread / nominal:.2f} of nominal, {messages / spread:.0f} a second")
    print(f"slowest         {slowest:.1f} s: {slowest / nominal:.2f} of nominal")
    print(f"closest starts  {closest * 1000:.1f} ms of one campaign; the pace allows {_SPACING_SECONDS * 1000:.0f} ms")
    print(f"computing       {used / messages * 1000:.1f} ms a message, {used / elapsed:.0%} of a core; {idle:.1%} idle")
    kept = closest >= _SPACING_SECONDS - _TOLERANCE_SECONDS
    print(f"pace            {'kept' if kept else 'BROKEN'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
