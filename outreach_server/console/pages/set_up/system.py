"""The server, for operators: the processes that send, the database, the doctor, and all workspaces."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs
from anyio import to_thread

from outreach import EngineStatus, NewWorkspace, WorkspaceMode, WorkspaceUpdate
from outreach.errors import Conflict, Problem
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.campaign_views import with_times
from outreach_server.console.pages.set_up.inputs import Input, changed, inputs_of
from outreach_server.console.pages.set_up.nouns import PAGE_SIZE, Cell, Listed, Noun, On, Result, Sent, SetUpAction, at
from outreach_server.console.pages.set_up.settings import OF_OPERATORS
from outreach_server.workspace_names import workspace_called

_DISPATCHED_BY: Final = {
    "this_process": "This process",
    "another_process": "Another process",
    "no_process": "No process",
}
_MEGABYTE: Final = 1_000_000
_MOST_KEPT: Final = 20
_BACKUPS: Final = (
    "Made by outreach-server db backup FILE, at any time. The database does not know of them: look at the files that "
    "you keep, and try one with outreach-server db restore."
)
_BACKUPS_OF_SERVER: Final = (
    "Made by pg_dump --schema='outreach*', or by the backups of your PostgreSQL server. This database does not know "
    "of them."
)
_NO_BACKUPS: Final = "None can be made: this database is in the memory of the server, and ends with it."
_HEALTHY: Final = "Nothing is wrong."
_NEW: Final = ("name", "mode", "default_region")


class WorkspacesNoun(Noun):
    """All workspaces at a glance."""

    name, title, one, right = "system-workspaces", "Workspaces", "workspace", Right.OPERATE
    place = "system"
    columns = ("Workspace", "Mode", "Status", "Campaigns that run", "Needs a person", "Created")
    empty = "There is no workspace yet. Each holds campaigns, numbers and people of its own."

    def __init__(self) -> None:
        self.on_list = (
            SetUpAction(
                name="create",
                label="Create a workspace",
                command="workspaces create",
                fields=_new_fields,
                do=_create,
                proof=True,
                primary=True,
                done="It is created.",
            ),
        )
        self.on_one = (
            SetUpAction(
                name="update",
                label="Save",
                title="Change it",
                command="workspaces update",
                fields=_change_fields,
                do=_update,
                proof=True,
                changes=True,
            ),
        )

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the workspaces."""
        page = await visit.engine.workspaces.list(after=after, limit=PAGE_SIZE)
        return Listed(items=page.items, next=page.next)

    async def get(self, visit: Visit, identifier: str) -> Any:
        """Return a workspace."""
        return await visit.engine.workspaces.get(identifier)

    async def cells(self, visit: Visit, items: Sequence[Any]) -> Sequence[Sequence[Cell]]:
        """Return what each does, and what waits in it."""
        status = await visit.engine.status()
        running = Counter(one.workspace_id for one in status.running)
        waiting = waiting_in(status)
        return [
            (
                "Sandbox" if one.mode is WorkspaceMode.SANDBOX else "Live",
                str(one.status.value).capitalize(),
                words.number(running[one.id]) if running[one.id] else "",
                words.number(waiting[one.id]) if waiting[one.id] else "",
                at(visit, one.created_at),
            )
            for one in items
        ]

    async def facts(self, visit: Visit, one: Any) -> Sequence[tuple[str, Cell]]:
        """Return what cannot be changed here."""
        return [
            ("Identifier", one.id),
            ("Mode", "Sandbox" if one.mode is WorkspaceMode.SANDBOX else "Live"),
            ("Created", at(visit, one.created_at)),
        ]


def waiting_in(status: EngineStatus) -> Counter[str]:
    """Return how many things wait for a person in each workspace, of those that a status lists."""
    return Counter(
        one.workspace_id
        for listed in (status.paused, status.taken_back, status.unknown, status.held, status.accounts)
        for one in listed
    )


@attrs.frozen(kw_only=True)
class KeptCopy:
    """A copy of the database that a migration, a restore or a compaction has left beside it."""

    name: str
    size: int
    at: datetime


@attrs.frozen(kw_only=True)
class Examined:
    """The server as it is now.

    Attributes:
        kept: The copies beside the database.
    """

    status: EngineStatus
    kept: Sequence[KeptCopy] = ()


class SystemNoun(Noun):
    """The processes that send, and the database, with the doctor."""

    name, title, one, right = "system-server", "Server", "server", Right.OPERATE
    place, shape = "system", "single"

    def __init__(self) -> None:
        self.on_one = (
            SetUpAction(
                name="doctor",
                label="Look for faults",
                command="doctor",
                fields=_doctor_fields,
                do=_examine,
                primary=True,
            ),
        )

    async def get(self, visit: Visit, identifier: str) -> Examined:
        """Return the status of the server."""
        status = await visit.engine.status()
        kept = [] if status.disk is None else await to_thread.run_sync(_kept_beside, Path(status.disk.path))
        return Examined(status=status, kept=kept)

    def called(self, one: Examined) -> str:
        """Return what it is called."""
        return "Server"

    async def facts(self, visit: Visit, one: Examined) -> Sequence[tuple[str, Cell]]:
        """Return who sends, what waits, and how much room the database has."""
        status = one.status
        sending = status.dispatching
        found: list[tuple[str, Cell]] = [
            ("Sends", _DISPATCHED_BY[sending.by]),
            ("Last sign of life", at(visit, sending.heartbeat_at) or "None"),
            ("Waits for longest", words.duration(status.lag_seconds)),
            ("Campaigns", f"{status.active_campaigns:,} active, {status.scheduled_campaigns:,} scheduled"),
            ("Providers that throttle", words.number(len(status.throttles))),
        ]
        found[2:2] = [(f"Worker {place}", _worker(visit, worker)) for place, worker in enumerate(sending.workers, 1)]
        if status.disk is not None:
            disk = status.disk
            size, log, free = map(_megabytes, (disk.database_bytes, disk.log_bytes, disk.free_bytes))
            found += [
                ("Database", disk.path),
                ("Its size", f"{size}, and {log} of its log"),
                ("Free on its disk", free),
            ]
        found += [("Backups", _backups(status))]
        found += [
            (f"Copy kept beside it {place}", f"{one.name}, {_megabytes(one.size)}, of {_time(visit, one.at)}")
            for place, one in enumerate(one.kept, 1)
        ]
        if status.versions is not None:
            versions = status.versions
            found += [
                ("Version of Outreach", versions.outreach),
                ("Python", versions.python),
                ("Database software", versions.database),
                ("Schema of the database", versions.schema.replace("_", " ")),
            ]
        for problem in status.findings:
            found.append((words.sentence_of(problem.severity or "info"), with_times(visit, _sentence(problem))))
        return found


def _backups(status: EngineStatus) -> str:
    """Return how backups of the database are made."""
    if status.disk is not None:
        return _BACKUPS
    is_on_server = status.versions is not None and status.versions.database.startswith("PostgreSQL")
    return _BACKUPS_OF_SERVER if is_on_server else _NO_BACKUPS


def _worker(visit: Visit, worker: Any) -> str:
    return f"lease {worker.epoch}, last sign of life {_time(visit, worker.heartbeat_at)}"


def _time(visit: Visit, moment: datetime) -> str:
    return f"{visit.clocks().moment(moment, visit.now, seconds=True)} ({visit.clocks().name})"


def _megabytes(size: int) -> str:
    return f"{size // _MEGABYTE:,} MB" if size >= _MEGABYTE else "less than 1 MB"


def _kept_beside(database: Path) -> Sequence[KeptCopy]:
    """Return the copies beside a database, the newest first; none where the directory cannot be read."""
    found = []
    with suppress(OSError):
        for file in database.parent.glob(f"{glob.escape(database.name)}.before-*"):
            about = file.stat()
            if not file.name.endswith("-wal"):
                at = datetime.fromtimestamp(about.st_mtime, UTC)
                found.append(KeptCopy(name=file.name, size=about.st_size, at=at))
    return sorted(found, key=lambda one: one.at, reverse=True)[:_MOST_KEPT]


def _sentence(one: Problem) -> str:
    return " ".join((one.message, *(f"Run: {command}" for command in one.commands[:1])))


async def _doctor_fields(_: On) -> Sequence[Input]:
    return [Input(name="network", label="Also ask providers, and look up names", kind="tick", value="yes")]


async def _examine(sent: Sent) -> Result:
    found = await sent.engine.diagnose(network=bool(sent.values["network"]))
    lines = [f"{words.sentence_of(one.severity or 'info')}: {_sentence(one)}" for one in found.findings]
    return Result(text="\n".join([*lines, *found.skipped]) or _HEALTHY, good=not found.findings)


async def _new_fields(_: On) -> Sequence[Input]:
    return inputs_of(NewWorkspace, names=_NEW)


async def _create(sent: Sent) -> Result:
    if found := await workspace_called(sent.engine, sent.values["name"]):
        # Perhaps this form has made it, and was sent again.
        raise Conflict(f"There is already a workspace {found.name!r}: nothing was created. Choose another name.")
    made = await sent.engine.workspaces.create(NewWorkspace(**sent.values), actor=sent.actor)
    return Result(goes_to=made.id)


async def _change_fields(on: On) -> Sequence[Input]:
    return inputs_of(WorkspaceUpdate, on.one, names=OF_OPERATORS)


async def _update(sent: Sent) -> Result:
    if changes := changed(sent.values, sent.one):
        await sent.engine.workspaces.update(sent.one.id, WorkspaceUpdate(**changes), actor=sent.actor)
    return Result()
