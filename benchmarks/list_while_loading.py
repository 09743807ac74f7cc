"""How long the list of campaigns takes while a large campaign is being loaded, in the real server.

One process sends a campaign of 100,000 contacts (about 18 MB) in one request; this one meanwhile asks for the list
again and again, a pause apart. Shown are the median, the 99th percentile and the longest answer. The promise is
50 ms for the 99th percentile and 150 ms for the longest, on two cores; when it is missed, the exit status is 1.

    python -m benchmarks.list_while_loading [--contacts 100000] [--seconds 120]
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import httpx
import orjson

from tests.process.place import Place, body, open_place, phones
from tests.process.server import ServerProcess

PROMISED_P99_MS: Final = 50.0
PROMISED_WORST_MS: Final = 150.0

_PAUSE_SECONDS: Final = 0.025
_CAMPAIGNS: Final = 20

_SENDER: Final = """
import pathlib, sys, httpx
answer = httpx.post(
    sys.argv[1] + "/sms-campaigns",
    content=pathlib.Path(sys.argv[3]).read_bytes(),
    headers={"Authorization": "Bearer " + sys.argv[2], "Content-Type": "application/json"},
    timeout=600,
)
assert answer.status_code == 201, answer.text
"""


def contacts(count: int) -> bytes:
    """Return the body of a campaign with so many contacts, each with all of its fields, in no order of numbers."""
    fields = body([])
    numbers = phones(count)
    random.Random(1).shuffle(numbers)
    fields["recipients"] = [
        {
            "phone_number": phone,
            "first_name": f"Ada{number}",
            "last_name": "Lovelace",
            "email": f"ada{number}@example.com",
            "company": "Analytical Engines",
            "custom_variables": {"city": "London", "visits": number},
        }
        for number, phone in enumerate(numbers)
    ]
    return orjson.dumps(fields)


def percentile(sorted_values: list[float], share: float) -> float:
    """Return the value below which a share of the values lie."""
    return sorted_values[min(int(len(sorted_values) * share), len(sorted_values) - 1)]


def show(label: str, seconds: list[float]) -> tuple[float, float]:
    """Print a line of figures and return the 99th percentile and the longest, in milliseconds."""
    found = sorted(value * 1000 for value in seconds)
    p50, p99, worst = percentile(found, 0.5), percentile(found, 0.99), found[-1]
    print(f"{label:<16} n={len(found):<5} p50 {p50:6.1f} ms   p99 {p99:6.1f} ms   worst {worst:6.1f} ms")
    return p99, worst


def measure(client: httpx.Client, until: float, sender: subprocess.Popen[bytes] | None = None) -> list[float]:
    """Ask for the list, a pause apart, until the sender is done or the time is up; return the durations."""
    taken: list[float] = []
    while time.monotonic() < until and (sender is None or sender.poll() is None):
        begun = time.perf_counter()
        answer = client.get("/sms-campaigns")
        taken.append(time.perf_counter() - begun)
        assert answer.status_code == 200, answer.text
        time.sleep(_PAUSE_SECONDS)
    return taken


def load(place: Place, server: ServerProcess, client: httpx.Client, raw: bytes, seconds: float) -> list[float]:
    """Send the large campaign from another process, and measure meanwhile."""
    file = place.directory / "body.json"
    file.write_bytes(raw)
    with subprocess.Popen([sys.executable, "-c", _SENDER, server.url, place.api_key, str(file)]) as sender:
        try:
            taken = measure(client, time.monotonic() + seconds, sender)
        finally:
            late = sender.poll() is None
            sender.kill()
    assert not late, f"not loaded within {seconds:g} s"
    assert sender.returncode == 0
    return taken


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--contacts", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=120.0, help="after so long it gives up")
    given = parser.parse_args()
    raw = contacts(given.contacts)
    with tempfile.TemporaryDirectory(prefix="outreach-bench-") as name, open_place(Path(name)) as place:
        place.create(campaigns=_CAMPAIGNS, recipients=10, start=False)
        server = place.serve()
        with place.client(server) as client:
            measure(client, time.monotonic() + 0.5)
            show("while idle", measure(client, time.monotonic() + 3))
            begun = time.monotonic()
            taken = load(place, server, client, raw, given.seconds)
            elapsed = time.monotonic() - begun
            total = client.get("/sms-campaigns", params={"page_size": 1}).json()["data"][0]["total_recipients"]
        assert total == given.contacts, total
    p99, worst = show("while loading", taken)
    print(f"loaded {total} contacts, {len(raw) / 1e6:.1f} MB, in {elapsed:.1f} s: {total / elapsed:.0f} a second")
    kept = p99 <= PROMISED_P99_MS and worst <= PROMISED_WORST_MS
    print(f"promised p99 {PROMISED_P99_MS:g} ms, worst {PROMISED_WORST_MS:g} ms: {'kept' if kept else 'MISSED'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
