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
from benchmarks.settings import NO_LONGER, Base, Settings
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
    earlier: Callable[[], Sample] | None,
) -> None:
    """Compare the large side with the small one, and with what the earlier version takes for the large one."""
    settings.say(f"growth: {case}")
    sides = {"outreach": large, "a hundredth": small}
    if settings.base is not None and earlier is not None:
        sides[settings.base.ref] = earlier
    samples = alternate(sides, settings.rounds)
    results.compare(samples, "a hundredth", row="growth", case=case, unit=unit, wanted=at_most(_MORE))
    if settings.base is not None:
        results.compare(samples, settings.base.ref, row="growth", case=case, unit=unit, wanted=at_most(NO_LONGER))


def _contacts(settings: Settings, results: Results) -> None:
    """Measure creating: what a contact costs in a larger body."""
    size = settings.sized(1000, 10)
    with ExitStack() as stack:

        def served(name: str, base: Base | None = None) -> Callable[[int], Sample]:
            of = tenant(settings.place(name), base=base)
            create = partial(_create, stack.enter_context(serve_outreach(of.database, base=base)), of)
            create(1)
            return create

        create = served("growth")
        earlier = partial(served("growth-base", settings.base), size * _TIMES) if settings.base is not None else None
        case = f"create, {size:,} to {size * _TIMES:,} contacts"
        large = partial(create, size * _TIMES)
        _compare(settings, results, case, "ms a contact", partial(create, size), large, earlier)


def _create(server: Server, whose: Tenant, contacts: int) -> Sample:
    raw = request("POST", "/sms-campaigns", key=whose.api_key, body=body(contacts))
    return {"ms a contact": statistics.median(ask_often(server.address, [raw], expect=201)) / contacts * 1000}


def _campaigns(settings: Settings, results: Results) -> None:
    """Measure the list: what an answer costs among more campaigns."""
    size = settings.sized(1000, 3)
    many = size * _TIMES
    with ExitStack() as stack:

        def served(of: Tenant, base: Base | None = None) -> tuple[Tenant, Server]:
            return of, stack.enter_context(serve_outreach(of.database, base=base))

        def with_many(name: str, base: Base | None = None) -> tuple[Tenant, Server]:
            make = partial(tenant, settings.place(name)) if settings.quick else partial(kept_tenant, settings)
            return served(make(campaigns=many, base=base), base)

        small, large = served(tenant(settings.place("growth"), campaigns=size)), with_many("growth")
        earlier = with_many("growth-base", settings.base) if settings.base is not None else None
        for target in ("/sms-campaigns?page_size=5", "/sms-campaigns?search=spring&page_size=5"):

            def ask(whose: Tenant, server: Server, target: str = target) -> Sample:
                raw = request("GET", target, key=whose.api_key)
                taken = ask_often(server.address, [raw] * settings.sized(300, 5), expect=200)
                return {"ms an answer": statistics.median(taken) * 1000}

            what = "search" if "search" in target else "list"
            case = f"{what}, {size:,} to {many:,} campaigns"
            before = partial(ask, *earlier) if earlier is not None else None
            _compare(settings, results, case, "ms an answer", partial(ask, *small), partial(ask, *large), before)


def _others(settings: Settings, results: Results) -> None:
    """Measure sending: what a message costs beside more contacts who are not sent to."""
    size = settings.sized(1000, 10)
    campaigns, recipients = settings.sized((100, 20), (3, 2))
    small, large = (
        Load(settings=settings, campaigns=campaigns, recipients=recipients, ballast=ballast)
        for ballast in (size, size * _TIMES)
    )
    case = f"dispatch, beside {size:,} to {size * _TIMES:,} contacts"
    _compare(settings, results, case, "CPU ms a message", small.engine, large.engine, large.base)
