"""Reports that come at the same time are committed together, and each caller returns after the commit."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Final

import anyio
import attrs
import pytest
from anyio.lowlevel import checkpoint

from outreach.ledger.settling import callback_events
from outreach.ledger.settling.callback_events import merge_report
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import MessageReport, Report
from outreach.models.states import DispatchState, MessageStatus
from outreach.providers.simulator import ReportScheduler
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork
from outreach.testing.builders import make_message_report
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.given import receipt
from tests.engine.rig import Rig, dispatching, given_workspace, reaches, start_campaign
from tests.engine.test_accounts import live
from tests.fake_provider import CREDENTIALS, FakeAdapter, sign

pytestmark = pytest.mark.virtual_time

COUNT: Final = 40
AT_MOST: Final = 5
"""Writes of forty at the same time: one would do, and other work goes on beside."""


async def _sent(rig: Rig) -> list[Dispatch]:
    """Send a campaign; return its requests."""
    workspace = await given_workspace(rig.engine)
    campaign = await start_campaign(rig.engine, workspace, COUNT)
    await reaches(rig.engine, campaign, "completed")

    def sent(tx: Transaction) -> list[Dispatch]:
        found = [tx.dispatches.of_recipient(workspace.id, campaign.id, position) for position in range(COUNT)]
        return [dispatch for [dispatch] in found]

    return await rig.storage.read(sent)


def _receipt(dispatch: Dispatch) -> MessageReport:
    return receipt(dispatch, at=clock_of_loop().now())


async def test_receipts_that_come_together_share_a_transaction(open_storage: OpenStorage) -> None:
    """Each who waits finds its own receipt in the ledger as soon as it goes on."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        dispatches = await _sent(rig)
        before, seen = rig.storage.writes, list[MessageStatus | None]()

        async def hand_in(dispatch: Dispatch) -> None:
            await rig.worker.report(_receipt(dispatch))
            known = await rig.storage.read(lambda tx: tx.dispatches.get(dispatch.workspace_id, dispatch.id))
            seen.append(known.report if known is not None else None)

        async with anyio.create_task_group() as tasks:
            for dispatch in dispatches:
                tasks.start_soon(hand_in, dispatch)
        assert seen == [MessageStatus.DELIVERED] * COUNT
        assert rig.storage.writes - before <= AT_MOST


async def test_outcomes_of_later_tries_are_merged_with_one_read(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that reached nobody need the earlier requests of their recipients."""
    queries: list[str] = []
    query = UnitOfWork.query

    def counted(self: UnitOfWork, name: str, /, *reads: Any, **values: Any) -> Any:
        queries.append(name)
        return query(self, name, *reads, **values)

    async with dispatching(open_storage(clock_of_loop())) as rig:
        later = [attrs.evolve(dispatch, try_number=2) for dispatch in await _sent(rig)]
        withdrawn = DispatchOutcome(state=DispatchState.WITHDRAWN, reason="too_late")

        def look(tx: Transaction) -> list[int]:
            callback_events.prefetch_for_outcomes(tx, [(dispatch, withdrawn) for dispatch in later])
            read = len(queries)
            found = [
                tx.dispatches.of_recipient(one.workspace_id, one.campaign_id or "", one.position or 0) for one in later
            ]
            assert len(queries) == read
            return [len(dispatches) for dispatches in found]

        monkeypatch.setattr(UnitOfWork, "query", counted)
        assert await rig.storage.write(look) == [1] * COUNT


async def test_a_receipt_that_cannot_be_merged_keeps_no_other_from_it(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the call that handed it in raises its error."""
    merge = merge_report

    async with dispatching(open_storage(clock_of_loop())) as rig:
        dispatches = await _sent(rig)
        bad, errors = dispatches[7].id, dict[str, str]()

        def breaking(tx: Transaction, report: Report, **terms: Any) -> bool:
            changed = merge(tx, report, **terms)
            if report.dispatch_id == bad:
                raise ValueError("a receipt that cannot be merged")
            return changed

        monkeypatch.setattr(callback_events, "merge_report", breaking)

        async def hand_in(dispatch: Dispatch) -> None:
            try:
                await rig.worker.report(_receipt(dispatch))
            except ValueError as error:
                errors[dispatch.id] = str(error)

        async with anyio.create_task_group() as tasks:
            for dispatch in dispatches:
                tasks.start_soon(hand_in, dispatch)
        assert errors == {bad: "a receipt that cannot be merged"}
        known = await rig.storage.read(lambda tx: [tx.dispatches.get(one.workspace_id, one.id) for one in dispatches])
        assert {one.id for one in known if one is not None and one.report is None} == {bad}


async def test_callbacks_that_come_together_share_a_transaction(open_storage: OpenStorage, fake: FakeAdapter) -> None:
    """Each is answered with what became of its own events, after the commit; one that comes twice counts once."""
    async with live(open_storage) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)
        writes, results = 0, dict[str, list[str]]()
        storage = engine.callbacks._context.storage
        write = storage.write

        async def counted(*args: Any, **options: Any) -> Any:
            nonlocal writes
            writes += 1
            return await write(*args, **options)

        async def call(number: int) -> None:
            body = json.dumps([{"kind": "report", "id": f"e{number % COUNT}", "status": "sent"}]).encode()
            url = f"https://o.example/webhooks/{account.id}"
            headers = {"x-signature": sign(url, body)}
            records = await engine.callbacks.receive(account.id, url=url, headers=headers, body=body)
            results[str(number)] = [record.event_id for record in records]
            kept = {record.event_id for record in await engine.callbacks.list(workspace_id)}
            assert f"e{number % COUNT}" in kept

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(storage), "write", lambda _, *args, **options: counted(*args, **options))
            async with anyio.create_task_group() as tasks:
                for number in range(COUNT + 1):
                    tasks.start_soon(call, number)
        assert sorted(name for names in results.values() for name in names) == sorted(f"e{n}" for n in range(COUNT))
        assert writes <= 2 * AT_MOST


async def test_the_simulator_hands_in_together_what_is_due_together() -> None:
    """A report that was not taken in is handed in again, after the others; one that was is not."""
    clock = clock_of_loop()
    callbacks, waiting, taken = ReportScheduler(clock), anyio.Event(), list[str]()
    refused = {"r3"}

    def report(number: int) -> MessageReport:
        return make_message_report(dispatch_id=f"r{number}", at=clock.now())

    async def sink(event: Report) -> None:
        taken.append(event.dispatch_id or "")
        if len(taken) == COUNT:
            waiting.set()
        await waiting.wait()
        if event.dispatch_id in refused:
            refused.clear()
            raise ConnectionError("not taken in")

    for number in range(COUNT):
        callbacks.schedule(timedelta(), lambda number=number: report(number))  # type: ignore[misc]
    with anyio.fail_after(30):
        with pytest.raises(ConnectionError, match="not taken in"):
            await callbacks.listen(sink)
        assert sorted(taken) == sorted(f"r{number}" for number in range(COUNT))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(callbacks.listen, sink)
            while len(taken) == COUNT:
                await checkpoint()
            tasks.cancel_scope.cancel()
    assert taken[COUNT:] == ["r3"]
