"""How long everything with one number takes."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Final

import attrs

from benchmarks.load import ask_often, request
from benchmarks.processes import serve_outreach
from benchmarks.results import Results, Sample, at_most
from benchmarks.rounds import alternate
from benchmarks.settings import Settings
from benchmarks.tenants import Tenant, kept_tenant, tenant
from outreach import Outreach

_LIBRARY: Final = "ms, library"
_HTTP: Final = "ms, /manage"
_CAMPAIGNS: Final = 100
_LARGE: Final = 10_000

_SENT: Final = (
    """
    INSERT INTO recipients (
        campaign_number, position, phone_number, phone, first_name, status, attempts, dispatched, successful, ended_at
    )
    SELECT
        campaigns.number, people.position + 1, people.phone_number, people.phone, people.first_name, 'completed', 1, 1,
        1, :at
    FROM campaigns
    CROSS JOIN recipients AS people
    WHERE people.campaign_number = :everybody AND campaigns.number <> :everybody
    ORDER BY campaigns.number, people.position
    """,
    """
    INSERT INTO dispatches (
        id, workspace_id, channel, campaign_number, position, step, attempt, leg, try_number, provider, from_number,
        to_number, body, segments, state, provider_id, report, slot_at, valid_until, epoch, created_at, settled_at
    )
    SELECT
        printf('019a9f6e-7c3b-7d1e-%04x-%012d', campaign_number, position), :workspace_id, 'sms', campaign_number,
        position, 0, 1, 1, 1, 'twilio', '+14155550199', phone, 'Hi ' || first_name || ', the plan has come to London.',
        1, 'accepted', printf('SM%08d%024d', campaign_number, position), 'delivered', :at, :at, 1,
        strftime('%Y-%m-%dT%H:%M:%S.000000Z', 1780000000 + campaign_number * 86400, 'unixepoch'), :at
    FROM recipients
    WHERE campaign_number <> :everybody AND position > 0
    """,
)
"""A message to each contact from each of the campaigns."""

_INDEXES: Final = """
    SELECT name, sql FROM sqlite_master
    WHERE type = 'index' AND tbl_name IN ('recipients', 'dispatches') AND sql NOT NULL
"""
_QUICKLY: Final = ("journal_mode = OFF", "synchronous = OFF", "cache_size = -1000000")

_EVERYBODY: Final = """
    SELECT phone FROM recipients
    WHERE campaign_number = (SELECT number FROM campaigns WHERE name = 'Everybody')
    ORDER BY position
"""


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    contacts = settings.sized(100_000, 100)
    large, small = _sent(settings, contacts), _sent(settings, contacts // 100)
    rows = contacts * _CAMPAIGNS
    settings.say(f"history: {rows} rows in the ledger")
    asked = settings.sized(200, 5)
    sides = {"outreach": partial(_ask, large, asked), "a hundredth": partial(_ask, small, asked)}
    samples = alternate(sides, settings.rounds)
    case = f"one of {rows:,} rows in the ledger"
    for unit in (_LIBRARY, _HTTP):
        results.compare(samples, "a hundredth", row="history", case=case, unit=unit)
        results.figure(samples["outreach"], unit, row="history", case=case, wanted=at_most(20))
    return results


def _sent(settings: Settings, contacts: int) -> Tenant:
    """Return a database in which each contact got a message of each campaign."""
    of = (
        kept_tenant(settings, campaigns=_CAMPAIGNS, contacts=contacts)
        if contacts >= _LARGE
        else tenant(settings.place("history"), campaigns=_CAMPAIGNS, contacts=contacts)
    )
    with closing(sqlite3.connect(of.database)) as connection:
        for setting in _QUICKLY:
            connection.execute(f"PRAGMA {setting}")
        [everybody] = connection.execute("SELECT number FROM campaigns WHERE name = 'Everybody'").fetchone()
        given = {"at": "2026-11-01T12:00:00.000000Z", "workspace_id": of.workspace_id, "everybody": everybody}
        # Made anew, which takes a third of the time of adding each row to them.
        indexes = connection.execute(_INDEXES).fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}")
        for statement in _SENT:
            connection.execute(statement, given)
        for _, statement in indexes:
            connection.execute(statement)
        connection.execute("ANALYZE")
        connection.commit()
    return attrs.evolve(of, api_key=asyncio.run(_new_reader(of)))


async def _new_reader(of: Tenant) -> str:
    async with Outreach.open(of.url) as engine:
        return (await engine.api_keys.create(of.workspace_id, scopes=["read"])).api_key


def _ask(of: Tenant, times: int) -> Sample:
    """Return what a first page takes in the middle, each time of another number."""
    with closing(sqlite3.connect(of.database)) as connection:
        found = [phone for (phone,) in connection.execute(_EVERYBODY)]
    step = max(len(found) // times, 1)
    # Each number once, so that neither way finds what the other one has read.
    library, http = found[::step], found[step // 2 :: step]
    taken = asyncio.run(_ask_library(of, library))
    with serve_outreach(of.database, "--no-dispatch") as server:
        asked = [request("GET", f"/manage/contacts/{phone}/history", key=of.api_key) for phone in http]
        answered = ask_often(server.address, asked, expect=200)
    return {_LIBRARY: statistics.median(taken) * 1000, _HTTP: statistics.median(answered) * 1000}


async def _ask_library(of: Tenant, phones: Sequence[str]) -> Sequence[float]:
    taken = []
    async with Outreach.open(of.url) as engine:
        for phone in phones:
            begun = time.perf_counter()
            page = await engine.contacts.list_history(of.workspace_id, phone)
            taken.append(time.perf_counter() - begun)
            assert len(page) == _CAMPAIGNS, page
            assert page.next is not None
    return taken
