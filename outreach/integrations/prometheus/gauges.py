"""The gauges of a dispatcher, of what is open in the database, and of its files."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final, get_args

from outreach.integrations.prometheus import families
from outreach.integrations.prometheus.tallies import BoundedNames, Counts, Labels, Metric, gauge
from outreach.models.database import EngineFigures
from outreach.models.health import DispatcherHealth, DispatcherState

_FILES: Final = {"main": "", "wal": "-wal"}
"""The suffix of each of the database's files."""


def of_dispatcher(health: DispatcherHealth) -> Iterator[Metric]:
    """Yield what a process does about sending."""
    yield gauge(families.STATE, {(state,): state == health.state for state in get_args(DispatcherState)})
    yield gauge(families.UNITS, {(): health.active_units})
    errors = Counts(families.ERRORS)
    errors.add(amount=health.failures)
    yield errors.metric()
    for family, value in (
        (families.LEASE, health.lease_seconds_left),
        (families.HEARTBEAT, health.heartbeat_seconds_ago),
        (families.EPOCH, health.epoch),
    ):
        yield gauge(family, {} if value is None else {(): value})


def of_figures(
    figures: EngineFigures, now: datetime, *, reasons: BoundedNames, providers: BoundedNames
) -> Iterator[Metric]:
    """Yield what is open in the database.

    Args:
        figures: The figures that were read from it.
        now: The present moment, by the wall clock as the moments in the database are.
        reasons: The bound of the reasons of waits.
        providers: The bound of the providers.
    """
    statuses, paused = Counter({"active": 0, "scheduled": 0, "paused": 0}), Counter[str]()
    for group in figures.campaigns:
        statuses[group.status] += group.campaigns
        if group.status == "paused":
            paused[group.pause_reason or "operator"] += group.campaigns
    active = [group for group in figures.campaigns if group.status == "active"]
    waiting, throttled, silent = Counter[str](), Counter[str](), Counter[str]()
    for reason, count in figures.waiting.items():
        waiting[reasons(reason or "none")] += count
    for provider, count in figures.throttles.items():
        throttled[providers(provider)] += count
    for provider, count in figures.silent.items():
        silent[providers(provider)] += count
    oldest = min((one.since for one in figures.unknown), default=now)
    yield gauge(families.CAMPAIGNS, _by_name(statuses))
    yield gauge(families.PAUSED, _by_name(paused))
    yield gauge(families.OPEN, {(): sum(group.open for group in active)})
    yield gauge(families.PENDING, {(): sum(group.pending for group in active)})
    yield gauge(families.WAITING, _by_name(waiting))
    yield gauge(families.UNKNOWN, {(): sum(one.count for one in figures.unknown)})
    yield gauge(families.UNKNOWN_AGE, {(): max((now - oldest).total_seconds(), 0.0)})
    yield gauge(families.THROTTLED, _by_name(throttled))
    yield gauge(families.SILENT, _by_name(silent))
    yield gauge(families.SCHEDULES_PAUSED, {(): figures.schedules_paused})
    yield gauge(families.WEBHOOKS_DISABLED, {(): figures.webhooks_disabled})
    yield gauge(families.HELD, {(): figures.held})


def of_files(database: Path) -> Iterator[Metric]:
    """Yield the sizes of a database's files and of their disk; unreadable ones are left out."""
    sizes: dict[Labels, float] = {}
    for name, suffix in _FILES.items():
        with suppress(OSError):
            sizes[(name,)] = database.with_name(database.name + suffix).stat().st_size
    yield gauge(families.FILES, sizes)
    with suppress(OSError):
        disk = shutil.disk_usage(database.parent)
        yield gauge(families.DISK_FREE, {(): disk.free})
        yield gauge(families.DISK_SIZE, {(): disk.total})


def _by_name(counts: Counter[str]) -> dict[Labels, float]:
    return {(name,): count for name, count in counts.items()}
