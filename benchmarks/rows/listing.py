"""How many answers a second GET /sms-campaigns gives, and how long one takes."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from benchmarks.load import Client, ask_often, flood, request
from benchmarks.processes import Server, serve_outreach, serve_side
from benchmarks.results import Results, Sample, Wanted, at_least, at_most
from benchmarks.rounds import alternate
from benchmarks.settings import NO_SLOWER, ORDINARY_NEEDS, Settings, installed
from benchmarks.tenants import Tenant, kept_tenant, ordinary_tenant, tenant

_CONNECTIONS: Final = 16
_PAGE_SIZE: Final = 20
_LARGE: Final = 10_000
_BUSY: Final = 0.8
_ONE_CLIENT: Final = "ms, one client"


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    for campaigns in settings.sized((100, 100_000), (100, 300)):
        _measure(settings, results, campaigns)
    return results


def targets(campaigns: int) -> Mapping[str, str]:
    """Return what is asked for, by name."""
    last = min(500, campaigns // _PAGE_SIZE)
    return {
        "page 1": "/sms-campaigns",
        f"page {last}": f"/sms-campaigns?page={last}",
        "search": "/sms-campaigns?search=spring",
        "status": "/sms-campaigns?status=draft",
    }


def _measure(settings: Settings, results: Results, campaigns: int) -> None:
    directory = settings.place("list")
    large = campaigns >= _LARGE
    make = partial(kept_tenant, settings) if large else partial(tenant, directory)
    ours = make(campaigns=campaigns)
    with ExitStack() as stack:
        servers = {"outreach": stack.enter_context(serve_outreach(ours.database))}
        asked = targets(campaigns)
        answers = {target: _answer(servers["outreach"], ours, target) for target in asked.values()}
        servers["bare route"] = stack.enter_context(_bare(directory, answers))
        if installed(*ORDINARY_NEEDS):
            other = ordinary_tenant(directory, ours.api_key, campaigns=campaigns)
            servers["ordinary app"] = stack.enter_context(serve_side("ordinary", {"database": str(other.database)}))
            for target, answer in answers.items():
                _check_same(answer, _answer(servers["ordinary app"], other, target))
        else:
            results.notes.append("The ordinary app is not installed here, and was not measured: see `make bench`.")
        keys = dict.fromkeys(servers, ours.api_key)
        if settings.base is not None:
            make = partial(kept_tenant, settings) if large else partial(tenant, settings.place("list-base"))
            earlier = make(campaigns=campaigns, base=settings.base)
            keys[settings.base.ref] = earlier.api_key
            server = stack.enter_context(serve_outreach(earlier.database, base=settings.base))
            servers[settings.base.ref] = server
        for name, target in asked.items():
            settings.say(f"list: {campaigns} campaigns, {name}")
            requests = {side: request("GET", target, key=key) for side, key in keys.items()}
            sides = {side: partial(_once, settings, server, requests[side]) for side, server in servers.items()}
            samples = alternate(sides, settings.rounds)
            case = f"{campaigns:,} campaigns, {name}"
            _compare(results, samples, case, large=large and not name.endswith("status"), first=name == "page 1")
            if settings.base is not None:
                unit, wanted = "answers a second", at_least(NO_SLOWER)
                results.compare(samples, settings.base.ref, row="list", case=case, unit=unit, wanted=wanted)


def _compare(results: Results, samples: Mapping[str, Any], case: str, *, large: bool, first: bool) -> None:
    far: Wanted = at_least(0.15) if large and not first else at_least(0.3)
    unit = "answers a second"
    results.compare(samples, "bare route", row="list", case=case, unit=unit, wanted=far)
    results.compare(samples, "ordinary app", row="list", case=case, unit=unit, wanted=at_least(10))
    results.figure(samples["outreach"], _ONE_CLIENT, row="list", case=case, wanted=at_most(1))
    busiest = max(sample["computing of the client"] for sample in samples["bare route"])
    if busiest > _BUSY:
        results.notes.append(
            f"list, {case}: the client used up to {busiest:.0%} of a core, so that the bare route may be faster still."
        )


def _once(settings: Settings, server: Server, raw: bytes) -> Sample:
    seconds = settings.sized(2.0, 0.1)
    taken = ask_often(server.address, [raw] * settings.sized(200, 10), expect=200)
    found = flood(server.address, itertools.repeat(raw), connections=_CONNECTIONS, seconds=seconds, expect=200)
    return {
        "answers a second": found.a_second,
        "computing of the client": found.computing,
        _ONE_CLIENT: statistics.median(taken) * 1000,
    }


def _answer(server: Server, whose: Tenant, target: str) -> bytes:
    with Client(server.address) as client:
        return client.ask(request("GET", target, key=whose.api_key), expect=200).body


def _check_same(ours: bytes, other: bytes) -> None:
    """Check that two answers list the same campaigns."""
    one, two = orjson.loads(ours), orjson.loads(other)
    assert one["pagination"] == two["pagination"], (one["pagination"], two["pagination"])
    assert one["data"], "an empty page"
    assert len(one["data"]) == len(two["data"])


def _bare(directory: Path, answers: Mapping[str, bytes]) -> Server:
    files = {}
    for number, (target, answer) in enumerate(answers.items()):
        file = directory / f"answer-{number}.json"
        file.write_bytes(answer)
        files[target] = str(file)
    return serve_side("bare", {"answers": files})
