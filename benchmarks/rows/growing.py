"""What a unit costs at a hundred times the size, in units of what it costs at the size."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Final

from benchmarks.load import ask_often, request
from benchmarks.people import body
from benchmarks.processes import Server, serve_outreach
from benchmarks.results import Results, Sample, at_most
from benchmarks.rounds import alternate
from benchmarks.rows.sending import Load
from benchmarks.settings import Settings
from benchmarks.tenants import Tenant, kept_tenant, tenant

_MORE: Final = 1.2
_TIMES: Final = 100


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    _contacts(settings, results)
    _campaigns(settings, results)
    _others(settings, results)
    return results


def _compare(
    settings: Settings,
    results: Results,
    case: str,
    unit: str,
    small: Callable[[], Sample],
    large: Callable[[], Sample],
) -> None:
    settings.say(f"growth: {case}")
    samples = alternate({"outreach": large, "a hundredth": small}, settings.rounds)
    results.compare(samples, "a hundredth", row="growth", case=case, unit=unit, wanted=at_most(_MORE))


def _contacts(settings: Settings, results: Results) -> None:
    """Measure creating: what a contact costs in a larger body."""
    size = settings.sized(1000, 10)
    ours = tenant(settings.place("growth"))
    with serve_outreach(ours.database) as server:

        def create(contacts: int) -> Sample:
            raw = request("POST", "/sms-campaigns", key=ours.api_key, body=body(contacts))
            return {"ms a contact": statistics.median(ask_often(server.address, [raw], expect=201)) / contacts * 1000}

        create(1)
        case = f"create, {size:,} to {size * _TIMES:,} contacts"
        _compare(settings, results, case, "ms a contact", partial(create, size), partial(create, size * _TIMES))


def _campaigns(settings: Settings, results: Results) -> None:
    """Measure the list: what an answer costs among more campaigns."""
    size = settings.sized(1000, 3)
    small = tenant(settings.place("growth"), campaigns=size)
    many = size * _TIMES
    large = (
        tenant(settings.place("growth"), campaigns=many) if settings.quick else kept_tenant(settings, campaigns=many)
    )
    with ExitStack() as stack:
        sides = [(one, stack.enter_context(serve_outreach(one.database))) for one in (small, large)]
        for target in ("/sms-campaigns?page_size=5", "/sms-campaigns?search=spring&page_size=5"):

            def ask(whose: Tenant, server: Server, target: str = target) -> Sample:
                raw = request("GET", target, key=whose.api_key)
                taken = ask_often(server.address, [raw] * settings.sized(300, 5), expect=200)
                return {"ms an answer": statistics.median(taken) * 1000}

            what = "search" if "search" in target else "list"
            measured = [partial(ask, *side) for side in sides]
            _compare(settings, results, f"{what}, {size:,} to {many:,} campaigns", "ms an answer", *measured)


def _others(settings: Settings, results: Results) -> None:
    """Measure sending: what a message costs beside more contacts who are not sent to."""
    size = settings.sized(1000, 10)
    campaigns, recipients = settings.sized((100, 20), (3, 2))
    loads = [
        Load(settings=settings, campaigns=campaigns, recipients=recipients, ballast=ballast)
        for ballast in (size, size * _TIMES)
    ]
    case = f"dispatch, beside {size:,} to {size * _TIMES:,} contacts"
    _compare(settings, results, case, "CPU ms a message", loads[0].engine, loads[1].engine)
