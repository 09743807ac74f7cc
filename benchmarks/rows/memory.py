"""How much memory a server holds at most while a large campaign comes in, helpers included, and a command."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import psutil

from benchmarks.load import json_of, request
from benchmarks.people import SENDER, body, phone
from benchmarks.processes import Server, serve_outreach, serve_side
from benchmarks.results import Results, Sample, at_most
from benchmarks.rounds import alternate
from benchmarks.settings import NO_LONGER, ORDINARY_NEEDS, ROOT, Base, Settings, installed
from benchmarks.tenants import Tenant, ordinary_tenant, tenant

_LOOK_AGAIN_SECONDS: Final = 0.005
_MORE: Final = "MB more"
_MOST: Final = "MB at most"


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    _server(settings, results)
    _command(settings, results)
    return results


def _server(settings: Settings, results: Results) -> None:
    contacts = settings.sized(100_000, 1000)
    raw = body(contacts)
    settings.say(f"memory: creating {contacts} contacts")

    def ours(base: Base | None = None) -> Sample:
        with settings.scratch("memory") as directory:
            of = tenant(directory, base=base)
            return _creating(lambda: serve_outreach(of.database, base=base), of.api_key, raw)

    def ordinary() -> Sample:
        with settings.scratch("memory") as directory:
            of = ordinary_tenant(directory, "key")
            return _creating(lambda: serve_side("ordinary", {"database": str(of.database)}), of.api_key, raw)

    sides: dict[str, Callable[[], Sample]] = {"outreach": ours}
    if settings.base is not None:
        sides[settings.base.ref] = partial(ours, settings.base)
    if installed(*ORDINARY_NEEDS):
        sides["ordinary app"] = ordinary
    else:
        results.notes.append("The ordinary app is not installed here, and was not measured: see `make bench`.")
    samples = alternate(sides, settings.rounds)
    row, case = "memory", f"creating {contacts:,} contacts"
    results.compare(samples, "ordinary app", row=row, case=case, unit=_MORE)
    if settings.base is not None:
        results.compare(samples, settings.base.ref, row=row, case=case, unit=_MORE, wanted=at_most(NO_LONGER))
    results.figure(samples["outreach"], _MORE, row=row, case=case, wanted=at_most(250))
    results.figure(samples["outreach"], "MB idle", row=row, case=case)


def _command(settings: Settings, results: Results) -> None:
    """Measure what `campaigns import` holds, which reads a file of any length."""
    large, small = settings.sized((300_000, 3000), (500, 5))
    settings.say(f"memory: importing {large} rows")
    samples = alternate(
        {"outreach": partial(_importing, settings, large), "a hundredth": partial(_importing, settings, small)},
        settings.rounds,
    )
    case = f"importing {small:,} to {large:,} rows"
    results.compare(samples, "a hundredth", row="memory", case=case, unit=_MOST)


def _importing(settings: Settings, rows: int) -> Sample:
    with settings.scratch("import") as directory:
        return _imported(tenant(directory), rows)


def _imported(of: Tenant, rows: int) -> Sample:
    file = of.database.with_suffix(".csv")
    with file.open("w", encoding="utf-8") as out:
        out.write("phone,first_name,last_name,email,company,city\n")
        for number in range(rows):
            out.write(f"{phone(number)},Ada{number},Lovelace,ada{number}@example.com,Analytical Engines,London\n")
    command = [sys.executable, "-m", "outreach_server", "--json", "--database", of.url, "campaigns", "import"]
    options = ["--name", "Import", "--message", "Hi {{first_name}}!", "--from", SENDER, "--carrier", "twilio"]
    most = 0
    with subprocess.Popen(
        [*command, of.workspace_id, str(file), *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            with suppress(psutil.Error):
                most = max(most, psutil.Process(process.pid).memory_info().rss)
            time.sleep(_LOOK_AGAIN_SECONDS)
        assert process.stdout is not None
        made = json.loads(process.stdout.read())
    assert process.returncode == 0, made
    assert made["total_recipients"] == rows, made
    return {_MOST: most / 1e6}


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
