"""Requests start at their slots, one timer for all, and end when they are cancelled."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import copy_context

import pytest

from outreach.dispatch.request_tasks import SlotQueue, StartedRequest, WaitingRequest
from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.providers.pool import ProviderRequest, SendRequest
from outreach.testing.builders import make_dispatch

pytestmark = pytest.mark.virtual_time


async def test_each_request_starts_at_its_slot_and_no_earlier() -> None:
    """Whatever the order in which they come."""
    starts = await _starts({"c": 0.3, "a": 0.1, "now": 0.0, "b": 0.2}, until=1.0)
    assert [name for name, _ in starts] == ["now", "a", "b", "c"]
    assert [at for _, at in starts] == pytest.approx([0.0, 0.1, 0.2, 0.3], abs=0.001)


async def test_requests_of_close_slots_start_together() -> None:
    """A few milliseconds late at most, so that they share their last check."""
    starts = await _starts({"a": 0.1, "b": 0.101, "c": 0.102, "d": 0.2}, until=1.0)
    at = dict(starts)
    assert at["a"] == pytest.approx(0.1, abs=0.0005)
    assert at["b"] == at["c"]
    assert 0.102 <= at["c"] <= 0.105
    assert at["d"] == pytest.approx(0.2, abs=0.0005)


async def test_what_waits_can_be_started_at_once() -> None:
    """In the order of the slots, and none of them again."""
    started: list[str] = []
    queue = SlotQueue(lambda waiting: started.append(waiting.request.account))
    for name, seconds in {"b": 0.2, "a": 0.1}.items():
        queue.put(_waiting(name), seconds)
    queue.start_all()
    assert started == ["a", "b"]
    await asyncio.sleep(1)
    assert started == ["a", "b"]


async def test_a_block_that_goes_on_after_its_time_is_cancelled_again() -> None:
    """An adapter may catch its cancellation."""
    caught = 0

    async def stubborn(started: StartedRequest) -> float:
        nonlocal caught
        with started.time_limit(5):
            while True:
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    caught += 1
                    if caught == 3:
                        raise
        return asyncio.get_running_loop().time()

    started, task = _begun(stubborn)
    began = asyncio.get_running_loop().time()
    assert await task - began == pytest.approx(5.2, abs=0.01)
    assert task.cancelling() == 0
    del started


async def test_a_request_that_ignores_its_cancellations_is_left_once() -> None:
    """And is cancelled no more."""
    released, caught = asyncio.Event(), 0

    async def deaf(started: StartedRequest) -> float:
        nonlocal caught
        with started.time_limit(5):
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    caught += 1
        return 1.0

    started, task = _begun(deaf)
    left = list[float]()
    began = asyncio.get_running_loop().time()
    started.leave = lambda: left.append(asyncio.get_running_loop().time() - began)
    await asyncio.sleep(60)
    released.set()
    assert await task == 1.0
    assert left == [pytest.approx(9.9, abs=0.01)]
    assert (started.is_left, caught) == (True, 50)


async def test_another_cancellation_is_not_taken_for_the_end_of_the_time() -> None:
    """Neither before that nor after it."""

    async def slow(started: StartedRequest) -> float:
        with started.time_limit(5), suppress(TimeoutError):
            try:
                await asyncio.sleep(3600)
            finally:
                # It ends late, so that both cancellations have come.
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(1)
        return 0.0

    for seconds in (1.0, 5.05):
        started, task = _begun(slow)
        await asyncio.sleep(seconds)
        started.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_request_is_not_cancelled_before_it_begins_or_while_it_is_recorded() -> None:
    """Otherwise its outcome would be lost."""

    async def work(started: StartedRequest) -> float:
        started.begin()
        started.records = True
        await asyncio.sleep(1)
        return 1.0

    started = StartedRequest()
    task = asyncio.get_running_loop().create_task(work(started))
    started.task = task  # type: ignore[assignment]
    started.cancel()
    await asyncio.sleep(0.5)
    started.cancel()
    assert await task == 1.0


def _begun(work: object) -> tuple[StartedRequest, asyncio.Task[float]]:
    started = StartedRequest()
    task: asyncio.Task[float] = asyncio.get_running_loop().create_task(work(started))  # type: ignore[operator]
    started.task = task  # type: ignore[assignment]
    started.begin()
    return started, task


async def _starts(slots: dict[str, float], *, until: float) -> list[tuple[str, float]]:
    loop = asyncio.get_running_loop()
    began, found = loop.time(), list[tuple[str, float]]()
    queue = SlotQueue(lambda waiting: found.append((waiting.request.account, loop.time() - began)))
    for name, seconds in slots.items():
        queue.put(_waiting(name), seconds)
    await asyncio.sleep(until)
    return found


def _waiting(name: str) -> WaitingRequest:
    async def send() -> DispatchOutcome:
        return DispatchOutcome(state=DispatchState.ACCEPTED)

    async def resolve() -> SendRequest:
        return send

    request = ProviderRequest(dispatch=make_dispatch(), resolve_provider=resolve, account=name)
    return WaitingRequest(request, waits_until=0.0, context=copy_context())
