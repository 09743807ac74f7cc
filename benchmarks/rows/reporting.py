"""How long the report of a large campaign takes, and how much memory its export holds."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from functools import partial
from typing import Final

import psutil

from benchmarks.results import Results, Sample, at_most
from benchmarks.rounds import alternate
from benchmarks.settings import ROOT, Settings
from benchmarks.tenants import Tenant, kept_tenant, tenant
from outreach import Outreach

_LOOK_AGAIN_SECONDS: Final = 0.01
_SECONDS: Final = "s"
_MORE: Final = "MB more"
_EXPORT: Final = "MB at most"
_LARGE: Final = 10_000

_ENDED: Final = (
    """
    UPDATE recipients SET
        status = CASE WHEN position % 20 = 0 THEN 'failed' ELSE 'completed' END,
        reason = CASE WHEN position % 20 = 0 THEN 'unreachable' END,
        attempts = 1,
        dispatched = 1,
        successful = position % 20 <> 0,
        ended_at = :at
    """,
    """
    INSERT INTO dispatches (
        id, workspace_id, channel, campaign_number, position, step, attempt, leg, try_number, provider, from_number,
        to_number, body, segments, state, provider_id, report, reason, slot_at, valid_until, epoch, created_at,
        settled_at
    )
    SELECT
        printf('019a9f6e-7c3b-7d1e-8f00-%012d', position), :workspace_id, 'sms', campaign_number, position, 0, 1, 1, 1,
        'twilio', '+14155550199', phone, 'Hi ' || first_name || ', the basic plan has come to London.', 1, 'accepted',
        printf('SM%032d', position), CASE WHEN position % 20 = 0 THEN 'failed' ELSE 'delivered' END,
        CASE WHEN position % 20 = 0 THEN 'unreachable' END, :at, :at, 1,
        strftime('%Y-%m-%dT%H:%M:%S.000000Z', 1780000000 + position / 10, 'unixepoch'), :at
    FROM recipients
    """,
    """
    UPDATE campaigns SET
        status = 'completed',
        started_at = :at,
        completed_at = :at,
        recipients_pending = 0,
        recipients_open = 0,
        recipients_completed = recipients_total,
        recipients_failed = (SELECT COUNT(*) FROM recipients WHERE status = 'failed'),
        recipients_successful = (SELECT COUNT(*) FROM recipients WHERE successful = 1)
    """,
)
"""One message to each contact, of whom one in twenty was not reached."""


def measure(settings: Settings) -> Results:
    """Measure it."""
    results = Results()
    contacts = settings.sized(1_000_000, 1000)
    large, small = _ended(settings, contacts), _ended(settings, max(contacts // 100, 10))
    settings.say(f"reports: {contacts} recipients")
    samples = alternate({"outreach": partial(_report, large, contacts)}, settings.rounds)
    case = f"report of {contacts:,} recipients"
    results.figure(samples["outreach"], _SECONDS, row="reports", case=case, wanted=at_most(1))
    settings.say(f"reports: exporting {contacts} recipients")
    sides = {"outreach": partial(_export, large), "a hundredth": partial(_export, small)}
    exports = alternate(sides, settings.rounds)
    case = f"export of {contacts:,} recipients"
    results.compare(exports, "a hundredth", row="reports", case=case, unit=_EXPORT)
    results.figure(exports["outreach"], _MORE, row="reports", case=case, wanted=at_most(100))
    results.figure(exports["outreach"], _SECONDS, row="reports", case=case)
    return results


def _ended(settings: Settings, contacts: int) -> Tenant:
    """Return a database with one campaign that has ended."""
    of = (
        kept_tenant(settings, contacts=contacts)
        if contacts >= _LARGE
        else tenant(settings.place("reports"), contacts=contacts)
    )
    at = "2026-05-30T12:00:00.000000Z"
    with closing(sqlite3.connect(of.database)) as connection, connection:
        for statement in _ENDED:
            connection.execute(statement, {"at": at, "workspace_id": of.workspace_id})
    return of


def _report(of: Tenant, contacts: int) -> Sample:
    async def make() -> float:
        async with Outreach.open(of.url) as engine:
            [campaign] = (await engine.campaigns.list(of.workspace_id)).items
            # The first one reads the file, which was just copied, from the disk.
            await engine.campaigns.report(of.workspace_id, campaign.id)
            begun = time.perf_counter()
            report = await engine.campaigns.report(of.workspace_id, campaign.id)
            took = time.perf_counter() - begun
        assert report.messages is not None
        assert report.messages.segments == report.contacted == contacts, report
        return took

    return {_SECONDS: asyncio.run(make())}


def _export(of: Tenant) -> Sample:
    """Return the most that the command holds, and how much more than a command that exports nothing."""
    command = [sys.executable, "-m", "outreach_server", "--database", of.url, "campaigns"]
    idle, _ = _most([*command, "list", of.workspace_id])
    most, took = _most([*command, "export", "Everybody", "--format", "csv"])
    return {_EXPORT: most / 1e6, _MORE: max(most - idle, 1) / 1e6, _SECONDS: took}


def _most(command: list[str]) -> tuple[int, float]:
    begun = time.perf_counter()
    most = 0
    with (
        open(os.devnull, "wb") as nowhere,
        subprocess.Popen(command, cwd=ROOT, stdout=nowhere, stderr=subprocess.DEVNULL) as process,
    ):
        while process.poll() is None:
            with suppress(psutil.Error):
                most = max(most, psutil.Process(process.pid).memory_info().rss)
            time.sleep(_LOOK_AGAIN_SECONDS)
    assert process.returncode == 0, command
    return most, time.perf_counter() - begun
