"""Loading contacts and listing campaigns over HTTP, on PostgreSQL beside SQLite: two databases with the same rows."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

from benchmarks.load import ask_often, flood, request
from benchmarks.people import body
from benchmarks.postgres import serving
from benchmarks.processes import Server, serve_outreach
from benchmarks.results import Results, Sample, at_most
from benchmarks.rounds import alternate
from benchmarks.rows.listing import targets
from benchmarks.settings import Settings
from benchmarks.tenants import Tenant, tenant
from outreach.database import copy_database

_CONNECTIONS: Final = 16
_ONE_CLIENT: Final = "ms, one client"


def measure_loading(settings: Settings) -> Results:
    """Measure how long POST /sms-campaigns takes; one contact in a hundred is on a register of 50,000."""
    results = Results()
    ours = tenant(settings.place("postgres-load"), register=True)
    with _both(ours) as servers:
        for contacts, count in settings.sized({100: 20, 100_000: 1}, {100: 2}).items():
            settings.say(f"postgres-load: {contacts} contacts")
            asked = request("POST", "/sms-campaigns", key=ours.api_key, body=body(contacts))
            sides = {name: partial(_loaded, server, asked, count) for name, server in servers.items()}
            samples = alternate(sides, settings.rounds)
            row, case = "postgres-load", f"{contacts:,} contacts"
            # As fast as on SQLite: large loads are what somebody waits for.
            wanted = at_most(1) if count == 1 else None
            results.compare(samples, "SQLite", row=row, case=case, unit="ms", wanted=wanted, ours="PostgreSQL")
            results.figure(samples["PostgreSQL"], "ms", row=row, case=case)
    return results


def measure_listing(settings: Settings) -> Results:
    """Measure how long GET /sms-campaigns takes, and how many answers a second it gives."""
    results = Results()
    campaigns = settings.sized(10_000, 60)
    settings.say(f"postgres-list: making {campaigns} campaigns")
    ours = tenant(settings.place("postgres-list"), campaigns=campaigns)
    with _both(ours) as servers:
        for name, target in targets(campaigns).items():
            settings.say(f"postgres-list: {name}")
            raw = request("GET", target, key=ours.api_key)
            sides = {side: partial(_listed, settings, server, raw) for side, server in servers.items()}
            samples = alternate(sides, settings.rounds)
            row, case = "postgres-list", f"{campaigns:,} campaigns, {name}"
            results.compare(
                samples, "SQLite", row=row, case=case, unit=_ONE_CLIENT, wanted=at_most(2), ours="PostgreSQL"
            )
            results.compare(samples, "SQLite", row=row, case=case, unit="answers a second", ours="PostgreSQL")
            results.figure(samples["PostgreSQL"], _ONE_CLIENT, row=row, case=case)
    return results


@contextmanager
def _both(ours: Tenant) -> Iterator[Mapping[str, Server]]:
    """Serve a file, and a copy of it in PostgreSQL."""
    with serving() as server, server.database() as name:
        url = server.url(name)
        copy_database(ours.url, url)
        # As autovacuum does in time.
        server.execute("VACUUM ANALYZE", name)
        with serve_outreach(ours.database) as here, serve_outreach(url) as there:
            yield {"PostgreSQL": there, "SQLite": here}


def _loaded(server: Server, asked: bytes, count: int) -> Sample:
    return {"ms": statistics.median(ask_often(server.address, [asked] * count, expect=201)) * 1000}


def _listed(settings: Settings, server: Server, raw: bytes) -> Sample:
    taken = ask_often(server.address, [raw] * settings.sized(300, 10), expect=200)
    seconds = settings.sized(2.0, 0.1)
    found = flood(server.address, itertools.repeat(raw), connections=_CONNECTIONS, seconds=seconds, expect=200)
    return {"answers a second": found.a_second, _ONE_CLIENT: statistics.median(taken) * 1000}
