"""The server, for operators: who sends, the database, the doctor, and all workspaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import attrs

from outreach import EngineStatus, NewWorkspace, WorkspaceMode, WorkspaceUpdate
from outreach.errors import Problem
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.set_up.inputs import Input, changed, inputs_of
from outreach_server.console.pages.set_up.nouns import PAGE_SIZE, Cell, Deed, Listed, Noun, On, Result, Sent, at
from outreach_server.console.pages.set_up.settings import OF_OPERATORS

_DISPATCHED_BY: Final = {
    "this_process": "This process",
    "another_process": "Another process",
    "no_process": "No process",
}
_MEGABYTE: Final = 1_000_000
_HEALTHY: Final = "Nothing is wrong."
_NEW: Final = ("name", "mode", "default_region")


class WorkspacesNoun(Noun):
    """All workspaces at a glance."""

    name, title, one, right = "system-workspaces", "Workspaces", "workspace", Right.OPERATE
    place = "system"
    columns = ("Workspace", "Mode", "Status", "Campaigns that run", "Needs a person", "Created")
    empty = "There is no workspace yet."

    def __init__(self) -> None:
        self.on_list = (
            Deed(
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
            Deed(
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
        one.workspace_id for listed in (status.paused, status.unknown, status.held, status.accounts) for one in listed
    )


@attrs.frozen(kw_only=True)
class Examined:
    """The server as it is now."""

    status: EngineStatus


class SystemNoun(Noun):
    """Who sends, and the database, with the doctor."""

    name, title, one, right = "system-server", "Server", "server", Right.OPERATE
    place, shape = "system", "single"

    def __init__(self) -> None:
        self.on_one = (
            Deed(
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
        return Examined(status=await visit.engine.status())

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
            size, log, free = (
                f"{one // _MEGABYTE:,} MB" for one in (disk.database_bytes, disk.log_bytes, disk.free_bytes)
            )
            found += [
                ("Database", disk.path),
                ("Its size", f"{size}, and {log} of its log"),
                ("Free on its disk", free),
            ]
        return [*found, *((words.sentence_of(one.severity or "info"), _sentence(one)) for one in status.findings)]


def _worker(visit: Visit, worker: Any) -> str:
    seen = words.moment(worker.heartbeat_at, visit.now, visit.zone(), seconds=True)
    return f"lease {worker.epoch}, last sign of life {seen} ({words.zone_name(visit.zone())})"


def _sentence(one: Problem) -> str:
    return " ".join((one.message, *one.commands[:1]))


async def _doctor_fields(_: On) -> Sequence[Input]:
    return [Input(name="network", label="Also ask providers, and look up names", kind="tick", value="yes")]


async def _examine(sent: Sent) -> Result:
    found = await sent.engine.diagnose(network=bool(sent.values["network"]))
    lines = [f"{words.sentence_of(one.severity or 'info')}: {_sentence(one)}" for one in found.findings]
    return Result(text="\n".join([*lines, *found.skipped]) or _HEALTHY, good=not found.findings)


async def _new_fields(_: On) -> Sequence[Input]:
    return inputs_of(NewWorkspace, names=_NEW)


async def _create(sent: Sent) -> Result:
    made = await sent.engine.workspaces.create(NewWorkspace(**sent.values), actor=sent.actor)
    return Result(goes_to=made.id)


async def _change_fields(on: On) -> Sequence[Input]:
    return inputs_of(WorkspaceUpdate, on.one, names=OF_OPERATORS)


async def _update(sent: Sent) -> Result:
    if changes := changed(sent.values, sent.one):
        await sent.engine.workspaces.update(sent.one.id, WorkspaceUpdate(**changes), actor=sent.actor)
    return Result()
