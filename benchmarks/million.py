"""A campaign of a million recipients: its import, its memory, and a server that is killed when half of it is sent.

The real command loads a CSV file into SQLite, the real server sends. Shown are

- the most memory that the import holds, against an import of one row;
- the most memory that the server holds while it starts, sends and pauses the campaign, against a server that is idle
  on an empty database; and how long start, pause and resume take, called beside it;
- after SIGKILL with half of it sent: the time from the start of a process to its first /healthz, to the first list of
  campaigns, and to its first message; and the computing up to the list, which a busy machine changes little.

At 600 messages a minute, the most that a campaign may have, half a million messages would take 14 hours. So what the
server has sent by then is real, and the rest of the first half is written into the file: copies of a dispatch that was
really sent, one for each recipient, and what its recipient became. The counters are a recount.

Promised are 100 MB over idle, and 2 s to answer.

    python -m benchmarks.million [--rows 1000000] [--seconds 5] [--kills 3]
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import attrs
import psutil

from benchmarks.half_sent import make_half_sent
from outreach import Outreach
from tests.process.place import SENDER, Place, open_place, phones
from tests.process.server import ServerProcess
from tests.process.waiting import wait_for

_LOOK_AGAIN_SECONDS: Final = 0.02
_MOST_SECONDS: Final = 600.0
_MOST_GROWTH: Final = 100_000_000
_MOST_TO_ANSWER: Final = 2.0
_SENT_BEFORE_KILL: Final = 20


def write_rows(file: Path, rows: int) -> None:
    """Write a CSV file of contacts."""
    with file.open("w", encoding="utf-8") as out:
        out.write("phone,first_name,last_name,email,company,city\n")
        for number, phone in enumerate(phones(rows)):
            out.write(f"{phone},Ada{number},Lovelace,ada{number}@example.com,Analytical Engines,London\n")


def imported(place: Place, rows: int) -> tuple[dict[str, Any], int, float]:
    """Import so many rows; return what the command printed, the most memory that it held, and how long it took."""
    file = place.directory / "contacts.csv"
    write_rows(file, rows)
    command = [sys.executable, "-m", "outreach_server", "--json", "--database", place.url, "campaigns", "import"]
    options = ["--name", "Import", "--message", "Hi {{first_name}}!", "--from", SENDER, "--carrier", "twilio"]
    begun, most = time.monotonic(), 0
    with subprocess.Popen(
        [*command, place.workspace_id, str(file), *options, "--rate", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **place.environment},
    ) as process:
        try:
            while process.poll() is None and time.monotonic() < begun + _MOST_SECONDS:
                with suppress(psutil.Error):
                    most = max(most, psutil.Process(process.pid).memory_info().rss)
                time.sleep(_LOOK_AGAIN_SECONDS)
        finally:
            process.kill()
        assert process.stdout is not None
        document = json.loads(process.stdout.read())
    return document, most, time.monotonic() - begun


def moved(place: Place, campaign: str) -> dict[str, float]:
    """Move a campaign by library calls, beside the server; return how long each took, opening the file not counted."""

    async def work(engine: Outreach) -> dict[str, float]:
        taken = {}
        for name, move in (
            ("pause", engine.campaigns.pause),
            ("resume", engine.campaigns.resume),
            ("pause again", engine.campaigns.pause),
        ):
            begun = time.monotonic()
            await move(place.workspace_id, campaign)
            taken[name] = time.monotonic() - begun
        return taken

    return place.with_engine(work)


def started(place: Place, campaign: str) -> float:
    """Start a campaign by a library call; return how long it took."""

    async def work(engine: Outreach) -> float:
        begun = time.monotonic()
        await engine.campaigns.start(place.workspace_id, campaign)
        return time.monotonic() - begun

    return place.with_engine(work)


def most_resident(server: ServerProcess, until: Callable[[], bool]) -> int:
    """Return the most memory that a server and its helpers hold until something is so."""
    most = 0
    while not until():
        most = max(most, server.resident_bytes())
        time.sleep(_LOOK_AGAIN_SECONDS)
    return most


def run(place: Place, server: ServerProcess, campaign: str, idle: int, seconds: float) -> int:
    """Start, send and pause the campaign; return the most memory that the server held, and print what was measured."""
    taken = {"start": started(place, campaign)}
    ends = time.monotonic() + seconds
    most = most_resident(server, lambda: time.monotonic() > ends)
    assert place.books.sent() > 0, "nothing was sent"
    taken |= moved(place, campaign)
    ends = time.monotonic() + 1
    most = max(most, most_resident(server, lambda: time.monotonic() > ends))
    print(f"server, idle on nothing   {idle / 1e6:6.0f} MB")
    print(f"server, with the campaign {most / 1e6:6.0f} MB: {(most - idle) / 1e6:+.0f} MB, {place.books.sent()} sent")
    print("calls beside it           " + ", ".join(f"{name} {took * 1000:.0f} ms" for name, took in taken.items()))
    return most


@attrs.frozen(kw_only=True)
class Start:
    """How soon a server was there, in seconds since its process was started.

    Attributes:
        answered: Its first answer at /healthz.
        listed: Its first list of campaigns.
        computing: Computing time up to then.
        sent: Its first message.
    """

    answered: float
    listed: float
    computing: float
    sent: float

    def __str__(self) -> str:
        """Return a line of figures."""
        return (
            f"healthz {self.answered:5.2f} s   list {self.listed:5.2f} s ({self.computing:.2f} s of computing)   "
            f"message {self.sent:5.2f} s"
        )


def back(place: Place) -> tuple[Start, ServerProcess]:
    """Start a server and wait until it has sent some messages; return how soon it was there, and itself."""
    before = place.books.sent()
    server = place.serve()
    server.health()
    answered = time.monotonic() - server.started_at
    with place.client(server) as client:
        (listed,) = client.get("/sms-campaigns", params={"page_size": 1}).json()["data"]
    assert listed["name"] == "Import"
    seconds, computing = time.monotonic() - server.started_at, server.cpu_seconds()
    wait_for("the first message", lambda: place.books.sent() > before)
    sent = time.monotonic() - server.started_at
    wait_for("some more", lambda: place.books.sent() >= before + _SENT_BEFORE_KILL)
    return Start(answered=answered, listed=seconds, computing=computing, sent=sent), server


def killed(place: Place, campaign: str, kills: int) -> tuple[float, int]:
    """Kill a server that sends the second half, and start it again; return the longest time to a list, and memory."""
    with closing(sqlite3.connect(place.database)) as connection:
        half = make_half_sent(connection)
    print(f"half sent                 {half} recipients; {place.database.stat().st_size / 1e6:.0f} MB")
    place.command("campaigns", "resume", campaign)
    _, server = back(place)
    longest, most = 0.0, 0
    for number in range(kills):
        server.kill()
        cut_off = len(place.books.dispatches("dispatching"))
        wal = Path(f"{place.database}-wal").stat().st_size
        start, server = back(place)
        longest, most = max(longest, start.listed), max(most, server.resident_bytes())
        print(f"after kill {number + 1}              {start}   {cut_off} cut off, {wal / 1e6:.1f} MB of log")
    server.kill()
    reached = [entry.to for entry in place.books.accepted()]
    assert len(reached) == len(set(reached)), "reached twice"
    return longest, most


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the server sends before it is paused")
    parser.add_argument("--kills", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outreach-bench-") as name, open_place(Path(name)) as place:
        server = place.serve()
        server.health()
        empty, idle = time.monotonic() - server.started_at, server.resident_bytes()
        print(f"empty database            healthz {empty:5.2f} s ({server.cpu_seconds():.2f} s of computing)")
        _, little, _ = imported(place, 1)
        document, import_most, elapsed = imported(place, given.rows)
        print(f"import of 1 row           {little / 1e6:6.0f} MB")
        print(
            f"import of {given.rows:<15} {import_most / 1e6:6.0f} MB: {(import_most - little) / 1e6:+.0f} MB, "
            f"in {elapsed:.0f} s"
        )
        most = run(place, server, document["id"], idle, given.seconds)
        assert server.stop() == 0
        longest, after = killed(place, document["id"], given.kills)
    growth = max(most, after) - idle
    small, quick = max(growth, import_most - little) <= _MOST_GROWTH, longest <= _MOST_TO_ANSWER
    print(f"at most {_MOST_GROWTH / 1e6:.0f} MB over idle, import and server: {'kept' if small else 'MISSED'}")
    print(f"at most {_MOST_TO_ANSWER:g} s to answer after a kill: {'kept' if quick else 'MISSED'}")
    return 0 if small and quick else 1


if __name__ == "__main__":
    sys.exit(main())
