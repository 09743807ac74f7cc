"""How much memory a long list takes: `campaigns import` of 200,000 rows, and the server that then sends it.

Shown is what each process holds at its most, against what it holds when it has little to do: the command with a
file of one row, the server before the campaign is started. Neither should grow with the length of the list.

    python -m benchmarks.memory_import [--rows 200000] [--seconds 5]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil

from tests.process.place import SENDER, Place, open_place, phones

_LOOK_AGAIN_SECONDS: Final = 0.02
_MOST_SECONDS: Final = 300.0
_MOST_GROWTH: Final = 100_000_000


def write_rows(file: Path, rows: int) -> None:
    """Write a CSV file of contacts."""
    with file.open("w", encoding="utf-8") as out:
        out.write("phone,first_name,last_name,email,company,city\n")
        for number, phone in enumerate(phones(rows)):
            out.write(f"{phone},Ada{number},Lovelace,ada{number}@example.com,Analytical Engines,London\n")


def imported(place: Place, file: Path) -> tuple[dict[str, Any], int, float]:
    """Import a file; return what the command printed, the most memory that it held, and how long it took."""
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


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the server sends")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outreach-bench-") as name, open_place(Path(name)) as place:
        one, many = place.directory / "one.csv", place.directory / "many.csv"
        write_rows(one, 1)
        write_rows(many, given.rows)
        _, little, _ = imported(place, one)
        document, most, elapsed = imported(place, many)
        print(f"import of 1 row        {little / 1e6:6.0f} MB")
        print(f"import of {given.rows} rows  {most / 1e6:6.0f} MB: {(most - little) / 1e6:+.0f} MB, in {elapsed:.1f} s")
        server = place.serve()
        server.health()
        idle = server.resident_bytes()
        place.command("campaigns", "start", document["id"])
        until, sending = time.monotonic() + given.seconds, 0
        while time.monotonic() < until:
            sending = max(sending, server.resident_bytes())
            time.sleep(_LOOK_AGAIN_SECONDS)
        assert place.books.sent() > 0, "nothing was sent"
        print(f"server, idle           {idle / 1e6:6.0f} MB")
        print(f"server, sending        {sending / 1e6:6.0f} MB: {(sending - idle) / 1e6:+.0f} MB")
    kept = max(most - little, sending - idle) <= _MOST_GROWTH
    print(f"growth of at most {_MOST_GROWTH / 1e6:.0f} MB: {'kept' if kept else 'MISSED'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
