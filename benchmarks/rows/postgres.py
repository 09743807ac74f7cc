"""The engine on PostgreSQL beside itself on SQLite, and beside an app that queues one job a message there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import attrs
import psycopg

from benchmarks.postgres import computing, serving, waiting_at
from benchmarks.processes import PATIENCE, run_side
from benchmarks.results import Results, Sample, at_least, at_most
from benchmarks.rounds import alternate
from benchmarks.rows.sending import RATE, Load
from benchmarks.settings import PROCRASTINATE_NEEDS, Settings, installed
from tests.postgres import Server

_BEGIN: Final = 1
_END: Final = 2
_LOOK_AGAIN_SECONDS: Final = 0.01
_SECOND: Final = "messages a second"
_COMPUTING: Final = "CPU ms a message, with the server's"
_WAITING: Final = "part of the time waited for fences"
_WORKERS: Final = ("1 worker", "2 workers", "4 workers")
_ASK_WAITING: Final = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ 'xact_lock|fence'
"""
_CONCURRENCY: Final = 8
"""Jobs that Procrastinate's worker runs at a time: what did best of 1, 2, 4, 8, 16 and 32."""


def measure(settings: Settings) -> Results:
    """Measure it, with campaigns in many workspaces and in one."""
    results = Results()
    campaigns, recipients, workspaces = settings.sized((400, 100, 40), (4, 4, 2))
    with serving() as server, ExitStack() as stack:
        loads = [
            Load(settings=settings, campaigns=campaigns, recipients=recipients, workspaces=count)
            for count in (workspaces, 1)
        ]
        for load in loads:
            settings.say(f"postgres: making {campaigns:,} campaigns in {load.workspaces} workspaces")
            ours = Cluster(settings=settings, server=server, load=load)
            ours.furnished = stack.enter_context(server.database())
            ours.furnish()
            _measure(ours, results)
    return results


def _measure(ours: Cluster, results: Results) -> None:
    load, settings = ours.load, ours.settings
    in_many = load.workspaces > 1
    settings.say("postgres: counting statements")
    counted = ours.run(1, count=True)
    sides: dict[str, Callable[[], Sample]] = {
        "1 worker": ours.keep,
        "2 workers": partial(ours.run, 2),
        "4 workers": partial(ours.run, 4),
    }
    if in_many:
        sides["SQLite"] = load.engine
        if installed(*PROCRASTINATE_NEEDS):
            ours.keep()
            sides["Procrastinate"] = ours.procrastinate
        else:
            results.notes.append("Procrastinate is not installed here, and was not measured: see `make bench`.")
    settings.say(f"postgres: {', '.join(sides)}")
    samples = alternate(sides, settings.rounds)
    ours.forget()
    row = "postgres"
    case = f"{load.campaigns:,} campaigns in {load.workspaces} {'workspaces' if in_many else 'workspace'}"
    if in_many:
        for against, wanted in (("SQLite", at_least(0.6)), ("Procrastinate", at_least(4))):
            for name in _WORKERS:
                results.compare(
                    samples,
                    against,
                    row=row,
                    case=f"{case}, {name}",
                    unit=_SECOND,
                    wanted=wanted if name == "1 worker" else None,
                    ours=name,
                )
    for name in _WORKERS[1:]:
        for unit, wanted in ((_SECOND, at_least(0.95)), (_COMPUTING, at_most(1.15))):
            results.compare(
                samples,
                "1 worker",
                row=row,
                case=f"{case}, {name}",
                unit=unit,
                wanted=wanted if in_many else None,
                ours=name,
            )
    for name in _WORKERS:
        for what in (_SECOND, "CPU ms a message", "server's CPU ms a message"):
            results.figure(samples[name], what, row=row, case=f"{case}, {name}")
        most = at_most(0.05) if in_many else None
        results.figure(samples[name], _WAITING, row=row, case=f"{case}, {name}", wanted=most)
    for what in ("statements a message", "round trips a message", "commits a message", "WAL bytes a message"):
        results.figure([counted], what, row=row, case=f"{case}, 1 worker")


@attrs.define(kw_only=True)
class Cluster:
    """Workers that send what one database holds, each run in a copy of it.

    Attributes:
        settings: How the benchmark is run.
        server: The server.
        load: What is sent.
        furnished: The name of the database before a run.
    """

    settings: Settings
    server: Server
    load: Load
    furnished: str = ""
    _kept: str = ""
    _received: str = ""

    def furnish(self) -> None:
        """Create and start the campaigns."""
        told = {
            "campaigns": self.load.campaigns,
            "recipients": self.load.recipients,
            "workspaces": self.load.workspaces,
            "rate": RATE,
        }
        run_side("furnishing", {**told, "url": self.server.url(self.furnished)})

    def keep(self) -> Sample:
        """Send all of it by one worker; keep the database for the other side to compare with."""
        self.forget()
        self._kept = f"kept_{time.monotonic_ns()}"
        self.server.execute(f"CREATE DATABASE {self._kept} TEMPLATE {self.furnished}")
        return self._run(self._kept, 1)

    def receive(self) -> None:
        """Take in the receipt of each message in a copy of the database that was kept; keep that too."""
        self._received = f"{self._kept}_received"
        self.server.execute(f"CREATE DATABASE {self._received} TEMPLATE {self._kept}")
        delivered = run_side("receipts", {"url": self.server.url(self._received)})["delivered"]
        if delivered != self.load.messages:
            raise RuntimeError(f"{delivered} messages were delivered instead of {self.load.messages}.")

    def forget(self) -> None:
        """Drop the databases that were kept."""
        for name in (self._kept, self._received):
            if name:
                self.server.execute(f"DROP DATABASE {name} WITH (FORCE)")
        self._kept = self._received = ""

    def run(self, workers: int, *, count: bool = False) -> Sample:
        """Send all of it by so many workers."""
        with self.server.database(template=self.furnished) as name:
            return self._run(name, workers, count=count)

    def procrastinate(self) -> Sample:
        """Run one job a message, which writes the rows of the run that was kept, and of its receipts if it has some."""
        with self.server.database(template=self.furnished) as name:
            told = {
                "before": self.server.url(self.furnished),
                "after": self.server.url(self._kept),
                "received": self.server.url(self._received) if self._received else None,
                "url": self.server.url(name),
                "messages": self.load.messages,
                "latency_ms": self.load.latency_ms,
                "concurrency": _CONCURRENCY,
                "most_seconds": self.settings.sized(20.0, 10.0),
            }
            return run_side("procrastinate_jobs", told)

    def _run(self, database: str, workers: int, *, count: bool = False) -> Sample:
        url = self.server.url(database)
        told = {"url": url, "workers": workers, "latency_ms": self.load.latency_ms, "count": count}
        self.server.execute("CHECKPOINT")
        with ThreadPoolExecutor(workers) as threads, shut_gates(url) as gates:
            running = [
                threads.submit(run_side, "worker", {**told, "begin": _BEGIN, "end": _END}) for _ in range(workers)
            ]
            _wait(lambda: waiting_at(gates, _BEGIN) == workers, running)
            used, written = computing(self.server), _written(gates)
            _open(gates, _BEGIN)
            waiting: list[int] = []
            _wait(lambda: not _any_active(gates, waiting), running)
            ended = time.time()
            used, written = computing(self.server) - used, _written(gates) - written
            _open(gates, _END)
            answers = [one.result() for one in running]
        sent = sum(answer["messages"] for answer in answers)
        if sent != self.load.messages:
            raise RuntimeError(f"{sent} messages were sent instead of {self.load.messages}.")
        computed = sum(answer["CPU seconds"] for answer in answers)
        figures = {
            _SECOND: sent / (ended - min(answer["begun"] for answer in answers)),
            "CPU ms a message": computed / sent * 1000,
            "server's CPU ms a message": used / sent * 1000,
            _COMPUTING: (computed + used) / sent * 1000,
            _WAITING: sum(waiting) / len(waiting) / workers,
            "WAL bytes a message": written / sent,
        }
        if count:
            counts = answers[0]
            for name in ("statements", "round trips", "commits"):
                figures[f"{name} a message"] = counts[name] / sent
        return figures


@contextmanager
def shut_gates(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Hold the gates of a database shut; they open at the end, if not before."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s), pg_advisory_lock(%s)", (_BEGIN, _END))
        yield connection


def _open(gates: psycopg.Connection[Any], gate: int) -> None:
    gates.execute("SELECT pg_advisory_unlock(%s)", (gate,))


def _wait(condition: Callable[[], bool], running: Sequence[Future[dict[str, Any]]]) -> None:
    """Wait for a condition while all processes run."""
    until = time.monotonic() + PATIENCE
    while not condition():
        for one in running:
            if one.done():
                raise RuntimeError(f"A worker has ended too early: {one.result()}")
        if time.monotonic() > until:
            raise RuntimeError("The workers have not come to an end.")
        time.sleep(_LOOK_AGAIN_SECONDS)


def _any_active(gates: psycopg.Connection[Any], waiting: list[int]) -> bool:
    """Return whether any campaign is active; note how many transactions wait for fences."""
    [(count,)] = gates.execute(_ASK_WAITING).fetchall()
    waiting.append(count)
    [(active,)] = gates.execute("SELECT EXISTS (SELECT 1 FROM outreach.campaigns WHERE status = 'active')").fetchall()
    return bool(active)


def _written(gates: psycopg.Connection[Any]) -> int:
    """Return how many bytes the server's log has come to."""
    [(written,)] = gates.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint").fetchall()
    return int(written)
