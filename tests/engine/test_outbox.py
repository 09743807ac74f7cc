from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import pairwise

import anyio
import attrs
import pytest
from anyio.lowlevel import checkpoint

from outreach import Outreach
from outreach.core.clock import Clock
from outreach.dispatch.outbox import Outbox
from outreach.errors import StorageError
from outreach.ledger.campaigns import transitions as moves
from outreach.models.account import StoredAccount
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.states import DispatchState, WorkspaceMode
from outreach.protocols.storage import Storage
from outreach.providers.http.request_gate import current_gate
from outreach.providers.pool import ProviderRequest, ResolveProvider, SendRequest
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_account, make_dispatch, make_provider_throttle, make_workspace, new_id
from outreach.testing.clock import ShiftedClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.given import commit, given_active
from tests.engine.rig import QUICK, WakeSignal, WatchedStorage, make_engine_worker

pytestmark = pytest.mark.virtual_time


def _pause(tx: Transaction, now: datetime, campaign: Campaign) -> None:
    moves.pause(tx, THIS_WORKSPACE, campaign.id, now=now, actor="test")


def _throttle(tx: Transaction, now: datetime, _: Campaign) -> None:
    tx.provider_throttles.put(make_provider_throttle(since=now, until=now + timedelta(minutes=1), provider="twilio"))


def _account(tx: Transaction) -> StoredAccount:
    account = tx.accounts.of_provider(THIS_WORKSPACE, "twilio")
    assert account is not None
    return account


def _replace_account(tx: Transaction, now: datetime, _: Campaign) -> None:
    tx.accounts.update(attrs.evolve(_account(tx), revision=1, updated_at=now))


def _remove_account(tx: Transaction, _: datetime, __: Campaign) -> None:
    tx.accounts.delete(THIS_WORKSPACE, _account(tx).id)


def _rekey_account(tx: Transaction, _: datetime, __: Campaign) -> None:
    tx.accounts.reseal(attrs.evolve(_account(tx), sealed="other"))


@pytest.mark.parametrize(
    ("change", "mode", "withdrawn"),
    [
        (_pause, WorkspaceMode.LIVE, "campaign_stopped"),
        (_throttle, WorkspaceMode.LIVE, "provider_throttle"),
        (_replace_account, WorkspaceMode.LIVE, "account_changed"),
        (_remove_account, WorkspaceMode.LIVE, "account_changed"),
        (_rekey_account, WorkspaceMode.LIVE, None),
        (_replace_account, WorkspaceMode.SANDBOX, None),
        (_remove_account, WorkspaceMode.SANDBOX, None),
    ],
)
async def test_a_stop_while_a_request_waits_for_its_turn_is_honoured(
    open_storage: OpenStorage,
    change: Callable[[Transaction, datetime, Campaign], None],
    mode: WorkspaceMode,
    withdrawn: str | None,
) -> None:
    """The stops are checked immediately before the request, not before the waiting.

    A changed account is a stop; the same credentials under another key are none, and a sandbox needs no account.
    docs/delivery-contract.md#rule-4, #rule-7.
    """
    async with _served(open_storage) as (storage, outbox, campaign):
        account = make_account(provider="twilio", updated_at=clock_of_loop().now())

        def given(tx: Transaction) -> None:
            workspace = tx.workspaces.get(THIS_WORKSPACE)
            assert workspace is not None
            tx.workspaces.update(attrs.evolve(workspace, mode=mode))
            tx.accounts.insert(account)

        await storage.write(given)
        both = await _intents(storage, campaign, 2)
        asked: list[str] = []

        async def meanwhile() -> None:
            if len(asked) == 1:
                # While the other one waits for its turn.
                await anyio.sleep(1)
                now = clock_of_loop().now()
                await storage.write(lambda tx: change(tx, now, campaign))

        for one in both:
            await _send(outbox, one, asked, spacing=timedelta(seconds=3), meanwhile=meanwhile)
        await outbox.drain(grace_seconds=30)
        other = next(one for one in both if one.id != asked[0])
        assert asked[1:] == ([] if withdrawn else [other.id])
        ending = (DispatchState.WITHDRAWN, withdrawn) if withdrawn else (DispatchState.ACCEPTED, None)
        assert await _ending(storage, other) == ending


async def test_starts_of_one_pace_are_a_spacing_apart_even_when_their_slots_have_passed(
    open_storage: OpenStorage,
) -> None:
    """docs/rules.md#pace: requests that begin late do not come closer than the pace allows."""
    async with _served(open_storage) as (storage, outbox, campaign):
        starts: list[datetime] = []
        spacing = timedelta(seconds=0.1)

        async def ask() -> DispatchOutcome:
            # The moment of its turn by the outbox's own account: by now the processor may have been away for a while.
            following = outbox.earliest_start("pace")
            assert following is not None
            starts.append(following - spacing)
            assert clock_of_loop().now() >= starts[-1] - timedelta(milliseconds=1)
            return DispatchOutcome(state=DispatchState.ACCEPTED)

        for dispatch in await _intents(storage, campaign, 5):
            assert await outbox.reserve("account", WakeSignal())
            outbox.send(
                ProviderRequest(
                    dispatch=dispatch, resolve_provider=_asking(ask), account="account", paces={"pace": spacing}
                )
            )
        await outbox.drain(grace_seconds=20)
        assert len(starts) == 5
        # Turns go by the monotonic clock, and are told by the other one.
        assert all(later - earlier >= spacing - timedelta(milliseconds=1) for earlier, later in pairwise(starts))


async def test_requests_that_wait_for_their_turn_are_ahead_of_those_to_come(open_storage: OpenStorage) -> None:
    """docs/rules.md#pace: slots follow the starts, so that a late start makes no later one later still."""
    async with _served(open_storage) as (storage, outbox, campaign):
        spacing = timedelta(seconds=10)
        asked: list[str] = []
        assert outbox.earliest_slot("pace") is None
        for dispatch in await _intents(storage, campaign, 3):
            await _send(outbox, dispatch, asked, spacing=spacing)
        began = clock_of_loop().now()
        await anyio.sleep(1)
        assert len(asked) == 1
        # Two wait, each a spacing; the rest is the time until the turn of the first of them.
        following = outbox.earliest_slot("pace")
        assert following is not None
        assert following >= began + 3 * spacing
        await outbox.drain(grace_seconds=30)
        # They came too late for their turns, and hold nobody up any more.
        following = outbox.earliest_slot("pace")
        assert following is None or following <= began + 2 * spacing
        assert len(asked) == 1


async def test_no_request_starts_after_it_is_valid(open_storage: OpenStorage) -> None:
    """docs/delivery-contract.md#rule-4: an intent that is too late is withdrawn; field, test 8."""
    async with _served(open_storage) as (storage, outbox, campaign):
        (dispatch,) = await _intents(storage, campaign, 1, now=clock_of_loop().now() - timedelta(minutes=1))
        assert dispatch.valid_until < clock_of_loop().now()
        asked: list[str] = []
        await _send(outbox, dispatch, asked)
        await outbox.drain(grace_seconds=10)
        assert asked == []
        assert await _ending(storage, dispatch) == (DispatchState.WITHDRAWN, "too_late")


async def _connect(
    outbox: Outbox, dispatch: Dispatch, meanwhile: Callable[[], Awaitable[None]], *, reason: str | None = None
) -> None:
    answers: list[bool] = []

    async def ask() -> DispatchOutcome:
        may_start = current_gate()
        assert may_start is not None
        answers.append(await may_start())
        await meanwhile()
        answers.append(await may_start())
        return DispatchOutcome(state=DispatchState.NOT_SENT, reason=reason)

    assert await outbox.reserve("account", WakeSignal())
    outbox.send(ProviderRequest(dispatch=dispatch, resolve_provider=_asking(ask), account="account"))
    await outbox.drain(grace_seconds=30)
    assert answers == [True, False]
    assert current_gate() is None


async def test_a_request_asks_once_more_when_its_connection_is_there(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether its intent is still valid: connecting may have taken long; docs/delivery-contract.md#rule-4.

    That it is not is no failure of the provider, and is not reported as one.
    """
    async with _served(open_storage) as (storage, outbox, campaign):
        (dispatch,) = await _intents(storage, campaign, 1)

        async def wait() -> None:
            await anyio.sleep((dispatch.valid_until - clock_of_loop().now()).total_seconds() + 0.001)

        await _connect(outbox, dispatch, wait, reason="not_connected")
        assert await _ending(storage, dispatch) == (DispatchState.NOT_SENT, "not_asked")
    assert "account_in_trouble" not in [getattr(record, "action", None) for record in caplog.records]


@pytest.mark.parametrize("broken", [False, True])
async def test_a_stop_while_a_request_waits_for_a_connection_is_honoured(
    open_storage: OpenStorage, broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is withdrawn; where the database gives no answer it is not sent; docs/delivery-contract.md#rule-4."""

    async def fail(_: object) -> None:
        raise StorageError("A scripted error of the database.")

    async with _served(open_storage) as (storage, outbox, campaign):
        (dispatch,) = await _intents(storage, campaign, 1)
        read = storage.read

        async def pause() -> None:
            await storage.write(lambda tx: _pause(tx, clock_of_loop().now(), campaign))
            await anyio.sleep(1)
            if broken:
                monkeypatch.setattr(storage, "read", fail)

        await _connect(outbox, dispatch, pause, reason="not_connected")
        monkeypatch.setattr(storage, "read", read)
        assert await _ending(storage, dispatch) == (
            (DispatchState.NOT_SENT, "not_asked") if broken else (DispatchState.WITHDRAWN, "campaign_stopped")
        )


async def test_a_request_whose_clock_is_set_back_while_it_connects_does_not_start(open_storage: OpenStorage) -> None:
    """Its hours may not be open yet by the right time; docs/delivery-contract.md#rule-4."""
    clock = ShiftedClock()
    async with _served(open_storage, clock=clock) as (storage, outbox, campaign):
        (dispatch,) = await _intents(storage, campaign, 1, now=clock.now())

        async def set_back() -> None:
            clock.shift(timedelta(seconds=-2))

        await _connect(outbox, dispatch, set_back)


async def test_without_a_lease_no_request_starts(open_storage: OpenStorage) -> None:
    """The remaining lease is measured on the monotonic clock; without it nothing starts.

    docs/delivery-contract.md#rule-11.
    """
    async with _served(open_storage, leased=False) as (storage, outbox, campaign):
        (dispatch,) = await _intents(storage, campaign, 1)
        asked: list[str] = []
        await _send(outbox, dispatch, asked)
        await outbox.drain(grace_seconds=10)
        assert asked == []


async def test_a_cancellation_does_not_wait_for_outcomes_that_cannot_be_recorded(open_storage: OpenStorage) -> None:
    """Without a drain before, it tries for a moment; the next worker finds the dispatch without an outcome."""
    watched = WatchedStorage(open_storage(clock_of_loop()))
    attempts: list[None] = []

    def fail() -> None:
        attempts.append(None)
        if len(attempts) < 4:
            raise StorageError("A scripted error of the database.")

    async with _served(lambda _: watched) as (storage, outbox, campaign):
        (dispatch,) = await _intents(storage, campaign, 1)
        asked = anyio.Event()

        async def ask() -> DispatchOutcome:
            asked.set()
            await anyio.sleep_forever()
            return DispatchOutcome(state=DispatchState.ACCEPTED)

        assert await outbox.reserve("account", WakeSignal())
        outbox.send(ProviderRequest(dispatch=dispatch, resolve_provider=_asking(ask), account="account"))
        await asked.wait()
        watched.before_write = fail
    # The outcome twice, and with the lease how far the database has come.
    assert len(attempts) == 3


async def test_a_request_that_waits_for_its_slot_is_withdrawn_at_the_end(open_storage: OpenStorage) -> None:
    """Nothing is sent, and its outcome is recorded."""
    asked: list[str] = []
    async with _served(open_storage) as (storage, outbox, campaign):
        now = clock_of_loop().now()
        dispatch = (await commit(storage, campaign, 0, 1, now=now, spacing=timedelta(seconds=2))).dispatches[1]
        assert dispatch.slot_at == now + timedelta(seconds=2)
        await _send(outbox, dispatch, asked)
        await outbox.drain(grace_seconds=1)
        await anyio.sleep(5)
        assert await _ending(storage, dispatch) == (DispatchState.WITHDRAWN, "stopped")
        assert asked == []


async def test_a_mistake_of_the_engine_ends_the_outbox(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not lost in the task of a request."""

    async def fail() -> None:
        async with _served(open_storage) as (storage, outbox, campaign):
            (dispatch,) = await _intents(storage, campaign, 1)
            monkeypatch.setattr("outreach.dispatch.outbox.log_provider_outcome", None)
            outbox.send(ProviderRequest(dispatch=dispatch, resolve_provider=_asking(_refuse), account="account"))
            await anyio.sleep(5)

    with pytest.raises(ExceptionGroup) as raised:
        await fail()
    assert raised.group_contains(TypeError)


async def _refuse() -> DispatchOutcome:
    return DispatchOutcome(state=DispatchState.REFUSED, reason="temporary")


@pytest.mark.parametrize(("subject", "pauses"), [("campaign_id", True), ("message_id", False)])
async def test_only_outcomes_of_campaigns_are_collected_for_a_moment(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch, subject: str, *, pauses: bool
) -> None:
    """Nobody waits for them, unlike for that of a single message."""
    monkeypatch.setattr("outreach.dispatch.worker._SETTLING_PAUSE_SECONDS", 60.0)
    storage = open_storage(clock_of_loop())
    worker = make_engine_worker(storage, clock_of_loop())
    async with Outreach(storage, clock=clock_of_loop()):
        began = anyio.current_time()
        # Two, and then another one. They are in no ledger, and change nothing.
        for count in (2, 1):
            async with anyio.create_task_group() as tasks:
                for _ in range(count):
                    dispatch = make_dispatch(**{subject: new_id()})
                    tasks.start_soon(worker.settle, dispatch, DispatchOutcome(state=DispatchState.ACCEPTED))
        assert (anyio.current_time() - began > 30.0) is pauses


@asynccontextmanager
async def _served(
    open_storage: OpenStorage, *, leased: bool = True, clock: Clock | None = None
) -> AsyncIterator[tuple[Storage, Outbox, Campaign]]:
    clock = clock or clock_of_loop()
    storage = open_storage(clock)
    worker = make_engine_worker(storage, clock)
    outbox = Outbox(storage=storage, clock=clock, config=QUICK, worker=worker)
    async with Outreach(storage, clock=clock), anyio.create_task_group() as tasks:
        await storage.write(lambda tx: tx.workspaces.insert(make_workspace()))
        if leased:
            assert await worker.acquire() == 1
        campaign = await given_active(storage, 5)
        await tasks.start(outbox.serve)
        yield storage, outbox, campaign
        tasks.cancel_scope.cancel()
        await worker.release()


async def _intents(storage: Storage, campaign: Campaign, count: int, *, now: datetime | None = None) -> list[Dispatch]:
    committed = await commit(storage, campaign, *range(count), now=now or clock_of_loop().now(), spacing=timedelta())
    return list(committed.dispatches)


async def _ending(storage: Storage, dispatch: Dispatch) -> tuple[DispatchState, str | None]:
    settled = await storage.read(lambda tx: tx.dispatches.get(THIS_WORKSPACE, dispatch.id))
    assert settled is not None
    return settled.state, settled.reason


async def _send(
    outbox: Outbox,
    dispatch: Dispatch,
    asked: list[str],
    *,
    spacing: timedelta = timedelta(),
    meanwhile: Callable[[], Awaitable[None]] = checkpoint,
) -> None:
    async def ask() -> DispatchOutcome:
        asked.append(dispatch.id)
        await meanwhile()
        return DispatchOutcome(state=DispatchState.ACCEPTED)

    assert await outbox.reserve("account", WakeSignal())
    outbox.send(
        ProviderRequest(dispatch=dispatch, resolve_provider=_asking(ask), account="account", paces={"pace": spacing})
    )


def _asking(ask: SendRequest) -> ResolveProvider:
    async def find() -> SendRequest:
        return ask

    return find
