"""Custom dispatchers that end by themselves: opening the engine fails, or its health and log show the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from outreach import ConfigError, NewMessage, Outreach
from outreach.models.work import WorkUnit
from outreach.protocols import DispatcherHealth, DispatcherParts
from tests.engine.rig import given_workspace, until_true

pytestmark = pytest.mark.virtual_time

Run = Callable[[TaskStatus[None]], Awaitable[None]]


class Own:
    """A dispatcher that says of itself that it dispatches, whatever it does."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __call__(self, parts: DispatcherParts) -> Own:
        """Be its own factory."""
        return self

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Do what the test says."""
        await self._run(task_status)

    def wake(self, unit: WorkUnit) -> None:
        """Do nothing."""

    async def stop(self, *, grace_seconds: float) -> None:
        """Do nothing."""

    def health(self) -> DispatcherHealth:
        """Return what is not true."""
        return DispatcherHealth(
            state="dispatching", dispatching=True, epoch=1, active_units=0, failures=0, last_error=None
        )


async def fails(_: TaskStatus[None]) -> None:
    """Fail at the start."""
    raise LookupError("There is no queue of this name.")


async def returns(_: TaskStatus[None]) -> None:
    """End at the start."""


@pytest.mark.parametrize(
    ("run", "error", "words"),
    [
        (fails, LookupError, "There is no queue"),
        (returns, ConfigError, r"has ended before task_status\.started\(\) was called"),
    ],
)
async def test_an_end_at_the_start_is_raised_as_it_is(run: Run, error: type[Exception], words: str) -> None:
    """And in no group of errors, which nobody who opens an engine expects."""
    with pytest.raises(error, match=words):
        async with Outreach.open("memory://", dispatch=True, dispatcher=Own(run)):
            pass


async def fails_later(task_status: TaskStatus[None]) -> None:
    """Start, and fail."""
    task_status.started()
    raise LookupError("The queue is gone.")


async def returns_later(task_status: TaskStatus[None]) -> None:
    """Start, and end."""
    task_status.started()


async def is_cancelled_later(task_status: TaskStatus[None]) -> None:
    """Start, and await a task of its own that was cancelled."""
    task_status.started()
    shared = asyncio.get_running_loop().create_future()
    shared.cancel()
    await shared


@pytest.mark.parametrize("run", [fails_later, returns_later, is_cancelled_later])
async def test_an_end_after_the_start_is_reported(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Log, health and readiness show it: the process would otherwise seem to dispatch, and do nothing."""
    async with Outreach.open("memory://", dispatch=True, dispatcher=Own(run)) as engine:
        await until_true(lambda: not engine.health().dispatching)
        health, readiness = engine.health(), await engine.readiness()
    assert (health.state, health.refused_reason) == ("refused", "ended")
    assert not readiness.ready
    assert [reason.split(":")[0] for reason in readiness.reasons] == ["The dispatcher has ended by itself"]
    assert [_action(record) for record in caplog.records if record.levelname == "ERROR"] == ["dispatcher_failed"]


async def works(task_status: TaskStatus[None]) -> None:
    """Start, and go on."""
    task_status.started()
    await asyncio.sleep(3600)


class Unwoken(Own):
    """A dispatcher that cannot be woken."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(works)
        self._error = error

    def wake(self, unit: WorkUnit) -> None:
        """Raise the error."""
        raise self._error


@pytest.mark.parametrize("error", [RuntimeError("There is no queue."), asyncio.CancelledError()], ids=repr)
async def test_a_change_that_wakes_no_dispatcher_is_made(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """The change is committed, and a caller that gets an error would make it again."""
    async with Outreach.open("memory://", dispatch=True, dispatcher=Unwoken(error)) as engine:
        workspace = await given_workspace(engine)
        message = await engine.messages.send(workspace.id, NewMessage(to="+14155550101", body="Hi"))
    (line,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert (_action(line), line.__dict__["unit"]) == ("wake_failed", message.id)


async def test_an_end_that_was_asked_for_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """The engine of the same program may be opened again."""
    engine = Outreach.open("memory://", dispatch=True)
    for _ in range(2):
        async with engine:
            assert engine.health().dispatching
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def _action(record: Any) -> str:
    return str(record.action)
