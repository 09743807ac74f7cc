"""Processes that share a PostgreSQL database: what random operations in overlapping workspaces leave behind.

The simulation has a double of the fences. Here they are PostgreSQL's own, with the threads of three processes' writers.
How these interleave is the server's choice: a seed repeats the operations, not their order.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final

import attrs
import psycopg
import pytest

from outreach.errors import StorageBusy
from outreach.models.states import DispatchState
from outreach.models.work import Claim, WorkItem, WorkUnit
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_dispatch, make_message, make_workspace, new_id
from tests.storage.conftest import opened, within

pytestmark = [pytest.mark.anyio, pytest.mark.soak("three processes write side by side")]

WORKSPACES: Final = [f"workspace-{number}" for number in range(5)]
PROCESSES: Final = 3
CLIENTS: Final = 4
"""Of each process."""

OPERATIONS: Final = 40
"""Of each client."""


_LOOK_AGAIN_SECONDS: Final = 0.01


class Refused(Exception):
    """The error of an operation that is undone."""


@attrs.frozen
class Drawn:
    """What an operation does.

    Attributes:
        workspaces: The workspaces that it writes in.
        names_them: Whether it names them, or is one for all workspaces.
        reads_all: Whether it reads rows of the other workspaces first, which it decides nothing by.
        reads_numbers: Whether it draws its change numbers before the commit.
        fails: Whether it raises an error at the end.
        provider_ids: The identifiers of its answers, one for each workspace.
    """

    workspaces: Sequence[str]
    names_them: bool
    reads_all: bool
    reads_numbers: bool
    fails: bool
    provider_ids: Sequence[str]


def draw(rng: random.Random, step: int) -> Drawn:
    """Draw the operation of a client's step. At the same step many clients want the same few identifiers."""
    names_them = rng.random() < 0.9
    workspaces = rng.sample(WORKSPACES, rng.choice([1, 1, 1, 2, 3])) if names_them else WORKSPACES
    return Drawn(
        workspaces=workspaces,
        names_them=names_them,
        reads_all=rng.random() < 0.3,
        reads_numbers=rng.random() < 0.2,
        fails=rng.random() < 0.1,
        provider_ids=[f"answer-{step}-{rng.randrange(3)}" for _ in workspaces],
    )


def operation_of(drawn: Drawn, unit_id: str) -> Callable[[Transaction], dict[str, int]]:
    """Return an operation that counts its runs in each workspace, and returns the counts."""

    def operation(tx: Transaction) -> dict[str, int]:
        counted: dict[str, int] = {}
        if drawn.reads_all:
            for workspace_id in WORKSPACES:
                tx.stops.count(workspace_id)
                tx.claims.get(workspace_id, "runs")
        for workspace_id, provider_id in zip(drawn.workspaces, drawn.provider_ids, strict=True):
            claim = tx.claims.get(workspace_id, "runs")
            assert claim is not None
            tx.claims.put(attrs.evolve(claim, epoch=claim.epoch + 1))
            tx.stops.increment(workspace_id)
            tx.work.schedule(WorkUnit("message", workspace_id, unit_id), NOW)
            if drawn.reads_numbers:
                tx.work.last_change()
            _take_answer(tx, workspace_id, provider_id)
            counted[workspace_id] = claim.epoch + 1
        if drawn.fails:
            raise Refused
        return counted

    return operation


def _take_answer(tx: Transaction, workspace_id: str, provider_id: str) -> None:
    """Give a new request an answer's identifier, unless another one has it."""
    message = make_message(workspace_id=workspace_id)
    tx.messages.insert(message)
    dispatch = make_dispatch(workspace_id=workspace_id, message_id=message.id)
    tx.dispatches.insert(dispatch)
    if not tx.dispatches.with_provider_id(dispatch.provider, provider_id):
        tx.dispatches.update(attrs.evolve(dispatch, state=DispatchState.ACCEPTED, provider_id=provider_id))


def _scheduled_since(change: int) -> Callable[[Transaction], Sequence[WorkItem]]:
    return lambda tx: list(tx.work.since(change))


def _furnish(tx: Transaction) -> None:
    for workspace_id in WORKSPACES:
        tx.workspaces.insert(make_workspace(id=workspace_id, name=workspace_id))
        tx.claims.put(Claim(workspace_id=workspace_id, subject="runs", epoch=0, held=True))


@pytest.mark.parametrize("seed", range(2))
async def test_side_by_side_no_write_is_lost_seen_twice_or_decided_by_an_outdated_row(url: str, seed: int) -> None:
    """Counters, stops, the change feed and the identifiers of answers are as if one ran after the other."""
    counted: defaultdict[str, list[int]] = defaultdict(list)
    written: set[tuple[str, str]] = set()
    seen: Counter[tuple[str, str]] = Counter()
    async with asyncio.timeout(240), AsyncExitStack() as stack:
        storages = [await stack.enter_async_context(opened(url)) for _ in range(PROCESSES)]
        reader = await stack.enter_async_context(opened(url))
        await reader.write(_furnish)

        async def work(process: int, client: int) -> None:
            rng = random.Random(f"{seed} {process} {client}")
            for step in range(OPERATIONS):
                drawn, unit_id = draw(rng, step), new_id()
                operation = operation_of(drawn, unit_id)
                try:
                    result = await storages[process].write(
                        within(drawn.workspaces if drawn.names_them else None, operation), bulk=rng.random() < 0.1
                    )
                except (Refused, StorageBusy):
                    # Nothing was written; a busy machine may keep a fence for longer than its time.
                    continue
                for workspace_id, count in result.items():
                    counted[workspace_id].append(count)
                    written.add((workspace_id, unit_id))

        async def follow() -> None:
            position, ended = 0, False
            while not ended:
                ended = workers.done()
                for item in await reader.read(_scheduled_since(position)):
                    seen[item.unit.workspace_id, item.unit.id] += 1
                    position = max(position, item.change)
                # Without a pause the loop's thread would keep the interpreter from the writers' threads.
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)

        workers = asyncio.gather(*(work(process, client) for process in range(PROCESSES) for client in range(CLIENTS)))
        await asyncio.gather(workers, follow())
        claims = await reader.read(lambda tx: {one: tx.claims.get(one, "runs") for one in WORKSPACES})
        stops = await reader.read(lambda tx: {one: tx.stops.count(one) for one in WORKSPACES})
    with psycopg.connect(url) as raw:
        answers = Counter(name for (name,) in raw.execute("SELECT provider_id FROM outreach.dispatches") if name)
    for workspace_id in WORKSPACES:
        runs = len(counted[workspace_id])
        claim = claims[workspace_id]
        assert sorted(counted[workspace_id]) == list(range(1, runs + 1)), (seed, workspace_id)
        assert (claim and claim.epoch, stops[workspace_id]) == (runs, runs), (seed, workspace_id)
    assert seen == dict.fromkeys(written, 1), seed
    assert [provider_id for provider_id, count in answers.items() if count > 1] == [], seed
    assert answers
