"""Reads `/metrics` of a server once for each line that it is told, as Prometheus does at each interval.

Told: `port`. It answers each line with one.
"""

from __future__ import annotations

import sys

from benchmarks.load import Client, request
from benchmarks.sides.telling import tell, told

if __name__ == "__main__":
    address = ("127.0.0.1", told()["port"])
    raw = request("GET", "/metrics", headers={"Accept": "text/plain"})
    for _ in sys.stdin.buffer:
        with Client(address) as client:
            answer = client.ask(raw, expect=200)
        assert b"outreach_dispatches_total" in answer.body
        tell({"bytes": len(answer.body)})
