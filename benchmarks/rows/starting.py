"""How soon things are there: the package, the command line, a server's first answer."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from benchmarks.load import json_of, request
from benchmarks.processes import Server, serve_outreach, serve_side
from benchmarks.results import Results, Sample, Wanted, at_most
from benchmarks.rounds import alternate
from benchmarks.settings import NO_LONGER, ROOT, Base, Settings
from benchmarks.tenants import Tenant, kept_tenant, tenant

_SECONDS: Final = "s"
_NO_CONSOLE: Final = {"OUTREACH_CONSOLE": "off"}
_REPEATS: Final = 5


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    _command(settings, results, "import outreach", ["-c", "import outreach"], at_most(0.15))
    _command(settings, results, "from outreach import Outreach", ["-c", "from outreach import Outreach"], at_most(0.15))
    _command(settings, results, "import outreach_server", ["-c", "import outreach_server"], at_most(0.15))
    _command(settings, results, "outreach-server --help", ["-m", "outreach_server", "--help"], at_most(0.25))
    small = tenant(settings.place("start"), campaigns=3)
    listing = ["-m", "outreach_server", "--database", small.url, "campaigns", "list", small.workspace_id]
    _command(settings, results, "outreach-server campaigns list", listing, at_most(0.35), computing=True)
    recipients = settings.sized(1_000_000, 1000)
    full = (
        tenant(settings.place("start"), contacts=recipients)
        if settings.quick
        else kept_tenant(settings, contacts=recipients)
    )
    empty = tenant(settings.place("start"))
    earlier = tenant(settings.place("start-base"), base=settings.base) if settings.base is not None else None
    _answer(settings, results, "first answer, empty database", empty, at_most(0.8), earlier)
    _answer(settings, results, "first answer, no console", empty, at_most(0.8), earlier, _NO_CONSOLE)
    _answer(settings, results, f"first answer, {recipients:,} recipients", full, at_most(1.5))
    return results


def _command(
    settings: Settings,
    results: Results,
    case: str,
    arguments: Sequence[str],
    wanted: Wanted,
    *,
    computing: bool = False,
) -> None:
    """Measure a command: its time, or its computing, which other programs slow down less."""
    settings.say(f"start: {case}")
    clock = _children_computed if computing else time.perf_counter
    sides = {
        "outreach": partial(_ran, settings, arguments, clock),
        "bare Python": partial(_ran, settings, ["-c", "pass"], clock),
    }
    # A command that opens a database would move the earlier version's file to today's schema.
    if settings.base is not None and not computing:
        sides[settings.base.ref] = partial(_ran, settings, arguments, clock, settings.base)
    _enter(settings, results, alternate(sides, settings.rounds), "bare Python", case, wanted)


def _enter(
    settings: Settings,
    results: Results,
    samples: Mapping[str, Sequence[Sample]],
    bare: str,
    case: str,
    wanted: Wanted,
) -> None:
    results.compare(samples, bare, row="start", case=case, unit=_SECONDS)
    if settings.base is not None:
        ref = settings.base.ref
        results.compare(samples, ref, row="start", case=case, unit=_SECONDS, wanted=at_most(NO_LONGER))
    results.figure(samples["outreach"], _SECONDS, row="start", case=case, wanted=wanted)


def _ran(settings: Settings, arguments: Sequence[str], clock: Callable[[], float], base: Base | None = None) -> Sample:
    """Run Python some times; the quickest counts, for what makes one slower is the machine's."""
    command = [str(base.python) if base else sys.executable, *arguments]
    taken = []
    for _ in range(settings.sized(_REPEATS, 1)):
        begun = clock()
        subprocess.run(command, cwd=base.root if base else ROOT, check=True, stdout=subprocess.DEVNULL)
        taken.append(clock() - begun)
    return {_SECONDS: min(taken)}


def _children_computed() -> float:
    """Return the processor seconds of the processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _answer(
    settings: Settings,
    results: Results,
    case: str,
    whose: Tenant,
    wanted: Wanted,
    earlier: Tenant | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Measure a server's first answer; `earlier` is a database of the base, `environment` is of our server alone."""
    settings.say(f"start: {case}")
    raw = request("GET", "/sms-campaigns", key=whose.api_key)
    file = settings.place("start") / "answer.json"
    file.write_bytes(b"{}")
    sides = {
        "outreach": partial(_answered, lambda: serve_outreach(whose.database, environment=environment), raw),
        "bare route": partial(_answered, lambda: serve_side("bare", {"answers": {"/sms-campaigns": str(file)}}), raw),
    }
    if settings.base is not None and earlier is not None:
        base, database = settings.base, earlier.database
        theirs = request("GET", "/sms-campaigns", key=earlier.api_key)
        sides[base.ref] = partial(_answered, lambda: serve_outreach(database, base=base), theirs)
    _enter(settings, results, alternate(sides, settings.rounds), "bare route", case, wanted)


def _answered(start: Callable[[], Server], raw: bytes) -> Sample:
    with start() as server:
        json_of(server.address, raw)
        return {_SECONDS: time.perf_counter() - server.started_at}
