"""A dispatching engine in front of scripted providers, and a storage whose writes a test can make fail."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from types import MappingProxyType, TracebackType
from typing import Any, Self, TypeVar

import anyio
import attrs

from outreach import (
    EngineConfig,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    Outreach,
    SmsSettingsUpdate,
    WorkspaceMode,
)
from outreach.core.clock import Clock, UuidV7Source
from outreach.dispatch.leased import InProcessDispatcher
from outreach.dispatch.runner import Runner
from outreach.dispatch.worker import Worker
from outreach.models.account import Account, StoredAccount
from outreach.models.campaign import Campaign, Recipient
from outreach.models.reports import MessageReport
from outreach.models.states import MessageStatus
from outreach.models.workspace import Workspace
from outreach.plugins import ledger_archives
from outreach.protocols.carrier import OutboundMessage
from outreach.protocols.storage import DispatchLock, Operation, Storage
from outreach.rules.provider_analyser import ProviderAnalyser
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_message_report
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.provider_pool import provider_pool_of

T = TypeVar("T")

QUICK = EngineConfig(
    change_poll_seconds=0.02,
    heartbeat_interval_seconds=0.05,
    lock_retry_seconds=0.03,
    stop_grace_seconds=2.0,
    backoff_initial_seconds=0.05,
    acceptance_wait_seconds=0.3,
)
"""Looks around quickly; nothing of the rules is different."""


class WatchedStorage:
    """A storage that counts its writes and lets a test make them fail.

    Attributes:
        writes: How many were asked for.
        before_write: Called before each; what it raises is raised instead of the write.
        after_write: Awaited after each with what it returned, before its caller goes on.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.writes = 0
        self.before_write: Callable[[], None] = lambda: None
        self.after_write: Callable[[object], Awaitable[None]] | None = None

    async def __aenter__(self) -> Self:
        """Open it."""
        await self._storage.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close it."""
        await self._storage.__aexit__(exc_type, exc, tb)

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Count, and write unless the test says otherwise."""
        self.writes += 1
        self.before_write()
        result = await self._storage.write(operation, bulk=bulk)
        if self.after_write is not None:
            await self.after_write(result)
        return result

    async def read(self, operation: Operation[T]) -> T:
        """Read."""
        return await self._storage.read(operation)

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        """Return the storage's own."""
        return self._storage.campaign_list_revision(workspace_id)

    @property
    def lock(self) -> DispatchLock:
        """The storage's own lock."""
        return self._storage.lock


@attrs.define
class WakeSignal:
    """The wake signal of a slice, which a test may have stop."""

    stopping: bool = False

    async def wait(self, seconds: float) -> None:
        """Wait."""
        await anyio.sleep(seconds)


def make_engine_worker(storage: Storage, clock: Clock, config: EngineConfig = QUICK, **more: Any) -> Worker:
    """Return a worker of a storage."""
    return Worker(
        storage=storage, clock=clock, config=config, analyser=ProviderAnalyser(), archives=ledger_archives(), **more
    )


@attrs.frozen(kw_only=True)
class Rig:
    """What a test of sending holds."""

    engine: Outreach
    storage: WatchedStorage
    dispatcher: InProcessDispatcher
    worker: Worker
    carrier: ScriptedCarrier
    voice: ScriptedVoice


@asynccontextmanager
async def dispatching(
    storage: Storage,
    *,
    carrier: ScriptedCarrier | None = None,
    voice: ScriptedVoice | None = None,
    config: EngineConfig = QUICK,
    clock: Clock | None = None,
) -> AsyncIterator[Rig]:
    """Open a storage and dispatch from it to scripted providers."""
    clock = clock or clock_of_loop()
    carrier, voice = carrier or ScriptedCarrier(), voice or ScriptedVoice()
    watched = WatchedStorage(storage)
    engine = Outreach(watched, clock=clock, config=config)
    worker = make_engine_worker(watched, clock, config)
    ids = UuidV7Source(clock=clock, rng=random.Random(1))
    runner = Runner(
        storage=watched,
        clock=clock,
        ids=ids,
        config=config,
        provider_pool=provider_pool_of(carrier, voice),
        worker=worker,
    )
    dispatcher = InProcessDispatcher(
        worker=worker,
        runner=runner,
        report=worker.report,
        sources=(carrier, voice),
        clock=clock,
        config=config,
        log_throttle=worker.log_throttle,
    )
    # What `Outreach.open(…, dispatch=True)` does, with these providers in place of the simulators.
    engine._dispatcher = dispatcher
    async with engine, anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run)
        try:
            yield Rig(
                engine=engine, storage=watched, dispatcher=dispatcher, worker=worker, carrier=carrier, voice=voice
            )
        finally:
            with anyio.CancelScope(shield=True):
                await dispatcher.stop(grace_seconds=config.stop_grace_seconds)


async def until(
    read: Callable[[], Awaitable[T]], holds: Callable[[T], object] = bool, *, timeout_seconds: float = 30.0
) -> Any:
    """Read again and again until a condition holds of the result, by default that it is true, and return the result.

    Raises:
        TimeoutError: It never did.
    """
    with anyio.fail_after(timeout_seconds):
        while not holds(result := await read()):  # noqa: ASYNC110 - it is asked of a database
            await anyio.sleep(0.02)
    return result


async def until_true(condition: Callable[[], object], *, timeout_seconds: float = 30.0) -> Any:
    """Wait until a condition gives something true, and return that."""

    async def read() -> object:
        return condition()

    return await until(read, timeout_seconds=timeout_seconds)


def contacts(count: int, *, first: int = 0) -> list[NewRecipient]:
    """Return contacts with numbers of their own."""
    return [NewRecipient(phone_number=f"+1415555{first + n:04d}", first_name=f"N{first + n}") for n in range(count)]


def stored_account(tx: Transaction, account: Account) -> StoredAccount:
    """Return an account as the database holds it."""
    found = tx.accounts.get(account.workspace_id, account.id)
    assert found is not None
    return found


async def given_workspace(engine: Outreach, **changes: Any) -> Workspace:
    """Make a sandbox without a request limit."""
    return await engine.workspaces.create(NewWorkspace(name="Acme", request_limit=None, default_region="US", **changes))


async def given_campaign(
    engine: Outreach,
    workspace: Workspace,
    recipients: int | Sequence[NewRecipient] = 3,
    *,
    add_sender: bool = True,
    **changes: Any,
) -> Campaign:
    """Create a campaign that is ready, at the highest rate.

    A live campaign sends from a number of its workspace: it is added, unless `add_sender` is false.
    """
    fields: dict[str, Any] = {
        "name": "Spring",
        "body": "Hello {{first_name}}",
        "carrier": "twilio",
        "from_number": "+14155550199",
        "rate_per_minute": 600,
        **changes,
    }
    people = contacts(recipients) if isinstance(recipients, int) else recipients
    sender = fields["from_number"]
    if add_sender and workspace.mode is WorkspaceMode.LIVE and sender:
        owned = {number.phone async for number in engine.numbers.iter_all(workspace.id)}
        if sender not in owned:
            await engine.numbers.create(workspace.id, NewNumber(phone=sender))
    return (await engine.campaigns.create_sms(workspace.id, NewSmsCampaign(**fields), people)).campaign


async def start_campaign(engine: Outreach, workspace: Workspace, *args: Any, **changes: Any) -> Campaign:
    """Make a campaign, as `given_campaign` does, and start it."""
    campaign = await given_campaign(engine, workspace, *args, **changes)
    return await engine.campaigns.start(workspace.id, campaign.id)


@asynccontextmanager
async def sending(
    storage: Storage,
    recipients: int | Sequence[NewRecipient] = 3,
    *,
    carrier: ScriptedCarrier | None = None,
    config: EngineConfig = QUICK,
    clock: Clock | None = None,
    settings: SmsSettingsUpdate | None = None,
    workspace: Mapping[str, Any] = MappingProxyType({}),
    **changes: Any,
) -> AsyncIterator[tuple[Rig, Campaign]]:
    """Dispatch from a storage, in which a campaign of a new workspace has just been started."""
    async with dispatching(storage, carrier=carrier, config=config, clock=clock) as rig:
        owner = await given_workspace(rig.engine, **workspace)
        if settings is not None:
            await rig.engine.sms_settings.update(owner.id, settings)
        yield rig, await start_campaign(rig.engine, owner, recipients, **changes)


async def reaches(engine: Outreach, campaign: Campaign, status: str) -> Campaign:
    """Wait until a campaign has a status, with counters that equal a recount, and return it."""

    async def there() -> Campaign | None:
        found = await engine.campaigns.get(campaign.workspace_id, campaign.id)
        return found if found.status == status else None

    found: Campaign = await until(there)
    # Both in one transaction: what goes on meanwhile, such as the closing of an expired campaign, comes between two.
    stored, counted = await engine._storage.read(
        lambda tx: (
            tx.campaigns.get(campaign.workspace_id, campaign.id),
            tx.recipients.recount(campaign.workspace_id, campaign.id),
        )
    )
    assert stored is not None
    assert stored.counters == counted
    return found


async def people(engine: Outreach, campaign: Campaign) -> list[Recipient]:
    """Return a campaign's recipients."""
    return [one async for one in engine.campaigns.iter_recipients(campaign.workspace_id, campaign.id)]


def reported(
    request: OutboundMessage, status: MessageStatus = MessageStatus.DELIVERED, **changes: Any
) -> MessageReport:
    """Return what a carrier reports of a request, by our identifier, now."""
    told = {"workspace_id": request.workspace_id, "dispatch_id": request.dispatch_id, "provider_id": None}
    return make_message_report(**{**told, "status": status, "at": clock_of_loop().now(), **changes})


async def time_passes(rig: Rig, clock: ShiftedClock, **delta: float) -> None:
    """Let time pass, and wait until the worker has noted that it did."""
    clock.advance(timedelta(**delta).total_seconds())
    now = clock.now()

    async def noted() -> bool:
        lease = await rig.storage.read(lambda tx: tx.leases.current())
        # One that lies far ahead was noted before the clock was set back.
        return (
            lease is not None
            and lease.steady_until is not None
            and now <= lease.steady_until <= now + timedelta(hours=1)
        )

    await until(noted)
