"""Whether trouble of some campaigns delays the others: 1,000 active at once, 10 recipients each, at 6 a minute.

One engine on SQLite sends all of them, twice. First all campaigns are well. Then a fifth of them are not: their
carrier throttles them (`rate_limited`, try again in 2 s), or does not answer at all, or it is night by their business
hours, or the numbers of their contacts are refused. Closed and failing campaigns share the account of those that are
well. Some others are well themselves and share the account that is throttled: they wait for it, rightly, and nothing
is promised of them. Campaigns are started one after the other over one spacing, so that not all of them want to send
in the same moment. Shown is, for each kind of campaign, how late messages started. A message is due when its
campaign's pace allows it, one spacing after the message before; the first one is due when the campaign was started.

Promised is that the campaigns that are well notice nothing: their median lag and their 99th percentile stay below a
tenth of the spacing, and beside trouble at most half as much again, but for 20 ms, as without; and each is completed.

    python -m benchmarks.many_campaigns [--campaigns 1000] [--recipients 10] [--rate 6] [--each]
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import anyio
import attrs
import psutil

from benchmarks.troubled_carrier import Kind, TroubledCarrier
from outreach import BusinessHours, EngineConfig, NewRecipient, NewSmsCampaign, Outreach, SystemClock, Window
from outreach.models.business_hours import DAYS
from outreach.models.campaign import Campaign
from outreach.models.carriers import CarrierName
from outreach.storage.sqlite import SqliteStorage
from tests.process.place import phones

_TROUBLED_SHARE: Final = 0.2
_TROUBLES: Final[tuple[Kind, ...]] = ("throttled", "sharing", "failing", "silent", "night")
_CARRIERS: Final[Mapping[Kind, CarrierName]] = {
    "well": "twilio",
    "throttled": "telnyx",
    "sharing": "telnyx",
    "failing": "twilio",
    "silent": "vonage",
    "night": "twilio",
}
_MOST_RATIO: Final = 1.5
_NOISE_SECONDS: Final = 0.020
_MOST_OF_SPACING: Final = 0.1
_PATIENCE: Final = 120.0


@attrs.frozen(kw_only=True)
class Run:
    """What one run has shown.

    Attributes:
        lags: By kind, then by campaign: how late each message started, in seconds.
        unfinished: Campaigns that are well and were not completed.
        computing: Share of a core that the process used while it sent.
        seconds: How long it sent.
    """

    lags: Mapping[Kind, Mapping[str, Sequence[float]]]
    unfinished: int
    computing: float
    seconds: float


def kind_of(number: int, *, troubled: bool) -> Kind:
    """Return what is with a campaign: a fifth of them, one after the other all over the list, have their troubles."""
    every = round(1 / _TROUBLED_SHARE)
    if not troubled or number % every:
        return "well"
    return _TROUBLES[number // every % len(_TROUBLES)]


def night() -> BusinessHours:
    """Return hours that are closed for days."""
    day = DAYS[(datetime.now(UTC) + timedelta(days=3)).weekday()]
    schedule = {day: (Window(start_minute=9 * 60, end_minute=17 * 60),)}
    return BusinessHours(enabled=True, timezone="UTC", schedule=schedule, batch_concurrency=10)


async def create(engine: Outreach, kinds: Sequence[Kind], recipients: int, rate: int) -> list[Campaign]:
    """Create the campaigns, each with recipients and a sending number of its own."""
    workspace = await engine.workspaces.create("Acme", default_region="US")
    numbers = iter(phones(len(kinds) * recipients))
    made = []
    for number, kind in enumerate(kinds):
        new = NewSmsCampaign(
            name=f"Campaign {number}",
            message_body="Hi!",
            sms_carrier=_CARRIERS[kind],
            sms_from_number=f"+1415556{number:04d}",
            sms_rate_per_minute=rate,
            business_hours=night() if kind == "night" else None,
        )
        people = [NewRecipient(phone_number=next(numbers)) for _ in range(recipients)]
        made.append((await engine.create_campaign.sms(workspace.id, new, people)).campaign)
    return made


async def run(path: Path, kinds: Sequence[Kind], recipients: int, rate: int) -> Run:
    """Send all campaigns over a new database, until those that are well are completed."""
    clock = SystemClock()
    carrier = TroubledCarrier(clock=clock, kinds={f"+1415556{number:04d}": kind for number, kind in enumerate(kinds)})
    engine = Outreach(
        SqliteStorage(path, clock=clock), dispatch=True, clock=clock, config=EngineConfig(), sandbox_carrier=carrier
    )
    async with engine:
        campaigns = await create(engine, kinds, recipients, rate)
        process, begun = psutil.Process(), time.monotonic()
        before = sum(process.cpu_times()[:2])
        started = {}
        for number, campaign in enumerate(campaigns):
            await anyio.sleep(max(begun + number * 60 / rate / len(campaigns) - time.monotonic(), 0.0))
            started[campaign.id] = (await engine.campaigns.start(campaign.workspace_id, campaign.id)).started_at
        well = [campaign for campaign, kind in zip(campaigns, kinds, strict=True) if kind == "well"]
        expected = len(well) * recipients
        with anyio.move_on_after(recipients * 60 / rate + _PATIENCE):
            while carrier.accepted["well"] < expected:  # noqa: ASYNC110 - counted by the carrier
                await anyio.sleep(0.2)
        seconds = time.monotonic() - begun
        used = sum(process.cpu_times()[:2]) - before
        await anyio.sleep(0.5)
        states = [(await engine.campaigns.get(one.workspace_id, one.id)).status for one in well]
    lags: dict[Kind, dict[str, Sequence[float]]] = defaultdict(dict)
    spacing = 60 / rate
    for campaign, kind in zip(campaigns, kinds, strict=True):
        moments = carrier.starts.get(campaign.sms_from_number or "", [])
        begin = started[campaign.id]
        assert begin is not None
        due = [begin, *(moment + timedelta(seconds=spacing) for moment in moments)]
        lags[kind][campaign.name] = [
            (moment - expected).total_seconds() for moment, expected in zip(moments, due, strict=False)
        ]
    return Run(
        lags=lags,
        unfinished=sum(status != "completed" for status in states),
        computing=used / seconds,
        seconds=seconds,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lie."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def milliseconds(values: Sequence[float]) -> str:
    """Return median, 99th percentile and worst for people."""
    figures = (statistics.median(values), percentile(values, 0.99), max(values))
    return "   ".join(
        f"{name} {value * 1000:7.1f} ms" for name, value in zip(("p50", "p99", "worst"), figures, strict=True)
    )


def show(title: str, found: Run, *, each: bool) -> None:
    """Print a run: a line for each kind, and one for each campaign where that is asked for."""
    print(f"{title}: {found.seconds:.0f} s, {found.computing:.0%} of a core")
    for kind in ("well", *_TROUBLES):
        campaigns = found.lags.get(kind, {})
        lags = [lag for of in campaigns.values() for lag in of]
        if campaigns:
            figures = milliseconds(lags) if lags else "nothing was sent"
            print(f"  {kind:<10} {len(campaigns):5} campaigns {len(lags):6} messages   {figures}")
        if kind == "well":
            medians = [statistics.median(of) for of in campaigns.values() if of]
            worst = [max(of) for of in campaigns.values() if of]
            print(f"  each of them: medians {milliseconds(medians)}")
            print(f"                worsts  {milliseconds(worst)}")
        for name, of in campaigns.items() if each else ():
            print(f"    {name:<15} {milliseconds(of) if of else 'nothing was sent'}")


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--recipients", type=int, default=10)
    parser.add_argument("--rate", type=int, default=6, help="messages a minute of each campaign")
    parser.add_argument("--each", action="store_true", help="print each campaign's lag")
    given = parser.parse_args()
    logging.disable(logging.ERROR)  # an engine whose carriers fail says so, a thousand times
    spacing = 60 / given.rate
    print(f"{given.campaigns} campaigns of {given.recipients}, a message each {spacing:g} s")
    found = {}
    for troubled in (False, True):
        kinds = [kind_of(number, troubled=troubled) for number in range(given.campaigns)]
        with tempfile.TemporaryDirectory(prefix="outreach-bench-") as name:
            found[troubled] = anyio.run(run, Path(name) / "engine.db", kinds, given.recipients, given.rate)
        show("a fifth in trouble" if troubled else "all of them well", found[troubled], each=given.each)
    kept = not any(one.unfinished for one in found.values())
    names = list(found[True].lags["well"])
    for what, share in (("median", 0.5), ("99th percentile", 0.99)):
        alone, beside = (
            percentile([lag for name in names for lag in found[troubled].lags["well"][name]], share)
            for troubled in (False, True)
        )
        ratio = beside / alone
        print(f"{what} of those that are well, beside trouble and without: {ratio:.2f}")
        kept = kept and beside <= alone * _MOST_RATIO + _NOISE_SECONDS and beside <= spacing * _MOST_OF_SPACING
    print(f"campaigns that are well notice nothing: {'kept' if kept else 'MISSED'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
