"""How long POST /sms-campaigns takes, by the number of contacts; one in a hundred is on a register of 50,000."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.ledger import copy, most_grown
from benchmarks.load import Client, ask_often, json_of, request
from benchmarks.people import body, excluded
from benchmarks.processes import Server, run_side, serve_outreach, serve_side
from benchmarks.results import Results, Sample, Wanted, at_most, percentile
from benchmarks.rounds import alternate
from benchmarks.settings import NO_LONGER, ORDINARY_NEEDS, Settings, installed
from benchmarks.tenants import Tenant, ordinary_tenant, tenant

_REPEATS: Final = {1: 50, 100: 30, 10_000: 3, 100_000: 1}
_QUICK_REPEATS: Final = {1: 5, 100: 2}
_SAMPLE: Final = 100
_PAUSE_SECONDS: Final = 0.01

_WANTED_MS: Final[Mapping[int, Wanted]] = {1: at_most(4), 100: at_most(8), 10_000: at_most(250)}
_WANTED_FLOOR: Final[Mapping[int, Wanted]] = {100_000: at_most(2.5)}
_WANTED_ORDINARY: Final[Mapping[int, Wanted]] = {100_000: at_most(1 / 2.5)}


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    directory = settings.place("create")
    ours = tenant(directory, register=True)
    with ExitStack() as stack:
        servers = {"outreach": stack.enter_context(serve_outreach(ours.database))}
        keys = dict.fromkeys(("outreach", "ordinary app"), ours.api_key)
        if settings.base is not None:
            earlier = tenant(settings.place("create-base"), register=True, base=settings.base)
            keys[settings.base.ref] = earlier.api_key
            server = stack.enter_context(serve_outreach(earlier.database, base=settings.base))
            servers[settings.base.ref] = server
        if installed(*ORDINARY_NEEDS):
            other = ordinary_tenant(directory, ours.api_key, register=True)
            servers["ordinary app"] = stack.enter_context(serve_side("ordinary", {"database": str(other.database)}))
        else:
            results.notes.append("The ordinary app is not installed here, and was not measured: see `make bench`.")
        table = _written(ours, servers["outreach"], directory, _SAMPLE)[2]
        repeats = settings.sized(_REPEATS, _QUICK_REPEATS)
        for contacts, count in repeats.items():
            _measure(settings, results, ours, servers, keys, directory, contacts=contacts, count=count, table=table)
        _list_meanwhile(settings, results, ours, servers["outreach"], max(repeats))
    return results


def _measure(
    settings: Settings,
    results: Results,
    ours: Tenant,
    servers: Mapping[str, Server],
    keys: Mapping[str, str],
    directory: Path,
    *,
    contacts: int,
    count: int,
    table: str,
) -> None:
    settings.say(f"create: {contacts} contacts")
    before, after, _ = _written(ours, servers["outreach"], directory, contacts)
    raw = body(contacts)
    file = directory / "body.json"
    file.write_bytes(raw)

    def served(name: str) -> Sample:
        server, asked = servers[name], request("POST", "/sms-campaigns", key=keys[name], body=raw)
        return {"ms": statistics.median(ask_often(server.address, [asked] * count, expect=201)) * 1000}

    def floor() -> Sample:
        places = {"body": str(file), "before": str(before), "after": str(after)}
        return run_side("create_floor", {**places, "table": table, "repeats": count})

    sides = {name: partial(served, name) for name in servers} | {"floor": floor}
    samples = alternate(sides, settings.rounds)
    row, case = "create", f"{contacts:,} contact{'' if contacts == 1 else 's'}"
    results.compare(samples, "floor", row=row, case=case, unit="ms", wanted=_WANTED_FLOOR.get(contacts))
    results.compare(samples, "ordinary app", row=row, case=case, unit="ms", wanted=_WANTED_ORDINARY.get(contacts))
    if settings.base is not None:
        results.compare(samples, settings.base.ref, row=row, case=case, unit="ms", wanted=at_most(NO_LONGER))
    results.figure(samples["outreach"], "ms", row=row, case=case, wanted=_WANTED_MS.get(contacts))


def _written(ours: Tenant, server: Server, directory: Path, contacts: int) -> tuple[Path, Path, str]:
    """Create a campaign; return copies of the file before and after, and the table that its contacts are in."""
    before = copy(ours.database, directory / "create.before")
    asked = request("POST", "/sms-campaigns", key=ours.api_key, body=body(contacts))
    answer: Any = json_of(server.address, asked, expect=201)
    assert answer["sms_opted_out_excluded"] == excluded(contacts), answer
    assert answer["total_recipients"] == contacts - excluded(contacts), answer
    after = copy(ours.database, directory / "create.after")
    return before, after, most_grown(before, after)


def _list_meanwhile(settings: Settings, results: Results, ours: Tenant, server: Server, contacts: int) -> None:
    """Measure how long the list takes while a large campaign is created."""
    settings.say(f"create: the list while {contacts} contacts are loaded")
    asked = request("POST", "/sms-campaigns", key=ours.api_key, body=body(contacts))

    def once() -> Sample:
        sender = threading.Thread(target=lambda: json_of(server.address, asked, expect=201))
        return {"list p99 ms meanwhile": percentile(_listed(ours, server, sender), 0.99) * 1000}

    samples = [once() for _ in range(settings.rounds)]
    results.figure(samples, "list p99 ms meanwhile", row="create", case=f"{contacts:,} contacts", wanted=at_most(50))


def _listed(ours: Tenant, server: Server, sender: threading.Thread) -> list[float]:
    asked = request("GET", "/sms-campaigns", key=ours.api_key)
    taken: list[float] = []
    with Client(server.address) as client:
        client.ask(asked, expect=200)
        sender.start()
        while sender.is_alive() or not taken:
            taken.append(client.ask(asked, expect=200).seconds)
            time.sleep(_PAUSE_SECONDS)
    sender.join()
    return taken
