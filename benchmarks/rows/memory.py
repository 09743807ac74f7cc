"""How much more memory a server holds at most, helpers included, while it takes a large campaign in."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from benchmarks.load import json_of, request
from benchmarks.people import body
from benchmarks.processes import Server, serve_outreach, serve_side
from benchmarks.results import Results, Sample, at_most
from benchmarks.rounds import alternate
from benchmarks.settings import ORDINARY_NEEDS, Settings, installed
from benchmarks.tenants import ordinary_tenant, tenant

_LOOK_AGAIN_SECONDS: Final = 0.005
_MORE: Final = "MB more"


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    contacts = settings.sized(100_000, 1000)
    raw = body(contacts)
    settings.say(f"memory: creating {contacts} contacts")

    def ours() -> Sample:
        of = tenant(settings.place("memory"))
        return _creating(lambda: serve_outreach(of.database), of.api_key, raw)

    def ordinary() -> Sample:
        of = ordinary_tenant(settings.place("memory"), "key")
        return _creating(lambda: serve_side("ordinary", {"database": str(of.database)}), of.api_key, raw)

    sides: dict[str, Callable[[], Sample]] = {"outreach": ours}
    if installed(*ORDINARY_NEEDS):
        sides["ordinary app"] = ordinary
    else:
        results.notes.append("The ordinary app is not installed here, and was not measured: see `make bench`.")
    samples = alternate(sides, settings.rounds)
    row, case = "memory", f"creating {contacts:,} contacts"
    results.compare(samples, "ordinary app", row=row, case=case, unit=_MORE)
    results.figure(samples["outreach"], _MORE, row=row, case=case, wanted=at_most(250))
    results.figure(samples["outreach"], "MB idle", row=row, case=case)
    return results


def _creating(start: Callable[[], Server], api_key: str, raw: bytes) -> Sample:
    with start() as server:
        json_of(server.address, request("GET", "/sms-campaigns", key=api_key))
        idle = most = server.resident_bytes()
        asked = request("POST", "/sms-campaigns", key=api_key, body=raw)
        sender = threading.Thread(target=lambda: json_of(server.address, asked, expect=201))
        sender.start()
        while sender.is_alive():
            most = max(most, server.resident_bytes())
            time.sleep(_LOOK_AGAIN_SECONDS)
        sender.join()
    return {_MORE: max(most - idle, 1) / 1e6, "MB idle": idle / 1e6}
