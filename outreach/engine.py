"""The composition root: everything is put together here, and nowhere else."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, cast

import anyio
import anyio.to_thread
import attrs
from anyio.abc import TaskStatus

from outreach.core.clock import SharedClock, SystemClock, UuidV7Source
from outreach.core.config import IN_PROCESS, MAX_WORKERS, EngineConfig, SimulatorConfig
from outreach.core.log_throttle import LogThrottle
from outreach.core.logged_errors import log_error
from outreach.core.vault import Vault
from outreach.engine_services import EngineServices
from outreach.errors import ConfigError, Conflict, StorageError
from outreach.models.health import DispatcherHealth
from outreach.models.states import WorkspaceMode
from outreach.plugins import dispatcher_plugin, ledger_archives
from outreach.protocols.dispatcher import DispatcherParts, ReportSource
from outreach.protocols.instrumentation import Instruments, ObservableStorage
from outreach.protocols.storage import NotifyingStorage, WakeUps
from outreach.providers.http.request_gate import call_plugin, call_plugin_function
from outreach.providers.pool import AccountConnections
from outreach.providers.registry import Adapters, installed_analysers
from outreach.rules.provider_analyser import ProviderAnalyser
from outreach.services.context import GuardedStorage, LoopGuard, ServiceContext
from outreach.storage.opening import is_postgres, key_file_for, state_directory, storage_from_url

if TYPE_CHECKING:
    from outreach.core.clock import Clock, IdSource
    from outreach.dispatch.webhook_endpoint import Sender
    from outreach.dispatch.webhooks import WebhookPump
    from outreach.models.work import WorkUnit
    from outreach.models.workspace import Workspace
    from outreach.protocols.adapter import AnyAdapter
    from outreach.protocols.carrier import Carrier
    from outreach.protocols.dispatcher import Dispatcher, DispatcherFactory
    from outreach.protocols.instrumentation import Instrumentation
    from outreach.protocols.storage import Storage
    from outreach.protocols.voice import Analyser, VoiceProvider
    from outreach.providers.pool import ProviderPool
    from outreach.storage.unit_of_work import Transaction

_log = logging.getLogger(__name__)

_REMIND_SECONDS: Final = 5.0
_WEBHOOK_POLLS: Final = 4
"""Events for webhooks are looked for so much less often than changes of the work."""

_LOOKED_AT: Final = 1000
"""The webhooks among which one that was not removed is looked for."""

_STORAGE: Final = ("__aenter__", "__aexit__", "write", "read", "campaign_list_revision")
_DISPATCHER: Final = ("run", "wake", "stop", "health")

_DISPATCHER_ENDED: Final = (
    "The dispatcher has ended by itself: this process dispatches nothing any more. Open the engine again."
)

ANALYSER_VARIABLE: Final = "OUTREACH_ANALYSER"
"""Names the analyser of an installed package."""


class Outreach(EngineServices):
    """The engine: campaigns, calls and messages of many workspaces over one database.

    Use it as an async context manager, on asyncio. It belongs to the event loop and the process that it was opened in:
    a call from another loop, another thread or a forked child raises `ConfigError`; threads hand their calls over, with
    `anyio.from_thread.run` or `asyncio.run_coroutine_threadsafe`. It installs no signal handler, no logging set-up and
    nothing global; errors of its background work never cancel the host's code.

        async with Outreach.open("sqlite:///app.db", dispatch=True) as engine:
            ...

    Args:
        storage: Where everything is kept.
        dispatch: Whether this process sends. Without it the engine only reads and writes.
        clock: Where the time comes from.
        rng: Where randomness comes from.
        config: How it behaves.
        simulator: How the simulators behave.
        analyser: Decides what came of a call that has ended; or the name under which an installed package brings one
            (entry points of the group `outreach.analysers`).
        adapters: Carriers and voice providers of one's own, beside those that the engine brings and those of installed
            packages (entry points of the group `outreach.adapters`).
        dispatcher: Makes the dispatcher, where this process dispatches; by default one that lives in this process
            (`outreach.protocols.Dispatcher`).
        sandbox_carrier: Takes the messages of sandboxes; the simulated carrier by default.
        sandbox_voice: Takes the calls of sandboxes; the simulated voice provider by default.
        vault: Encrypts the credentials of accounts; by default with a key that ends with this engine.
        instrumentation: Observes what the engine does, such as `outreach.integrations.prometheus.EngineMetrics` and
            `outreach.integrations.opentelemetry.Tracing`.

    Its services are named at its base `EngineServices`. Each is imported and made when it is first used; an engine that
    dispatches imports all as it is opened.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        dispatch: bool = False,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        config: EngineConfig | None = None,
        simulator: SimulatorConfig | None = None,
        analyser: Analyser | str | None = None,
        adapters: Sequence[AnyAdapter] = (),
        dispatcher: DispatcherFactory | None = None,
        sandbox_carrier: Carrier | None = None,
        sandbox_voice: VoiceProvider | None = None,
        vault: Vault | None = None,
        instrumentation: Sequence[Instrumentation] = (),
    ) -> None:
        given: object = storage
        if isinstance(given, str | os.PathLike):
            raise ConfigError("Outreach takes a storage. For a database by its URL: Outreach.open(url).")
        _check_storage(given)
        _check_kinds(dispatch=dispatch, clock=clock, rng=rng, config=config, simulator=simulator, analyser=analyser)
        _check_sandbox(sandbox_carrier, sandbox_voice)
        self._storage = storage
        self._dispatch = dispatch
        self._clock = SharedClock(clock or SystemClock())
        self._rng = rng or random.SystemRandom()
        self._config = config or EngineConfig()
        self._simulator = simulator or SimulatorConfig()
        self._analyser = _analyser(analyser)
        self._adapters = Adapters(adapters)
        self._log_throttle = LogThrottle(self._clock)
        self._instruments = Instruments(instrumentation, self._log_throttle)
        if instrumentation and isinstance(storage, ObservableStorage):
            storage.observe(self._instruments)
        self._vault = vault or Vault()
        self._may_make_key = False
        self._connections = AccountConnections(
            vault=self._vault,
            clock=self._clock,
            answer_seconds=self._config.provider_timeout_seconds,
            public_url=self._config.public_url,
        )
        if dispatcher is not None and not callable(dispatcher):
            raise ConfigError(f"dispatcher is {dispatcher!r}; it must be a function that makes an outreach.Dispatcher.")
        self._make_dispatcher = dispatcher or self._in_process
        self._prepare: Callable[[], object] | None = None
        self._sandbox_carrier = sandbox_carrier
        self._sandbox_voice = sandbox_voice
        self._provider_pool: ProviderPool | None = None
        self._database_url = None
        self._ids: IdSource = UuidV7Source(clock=self._clock, rng=self._rng)
        self._dispatcher: Dispatcher | None = None
        self._services_come_later = False
        self._stopping = self._dispatching_is_over = False
        self._stack: AsyncExitStack | None = None
        self._loop_guard = LoopGuard()
        self._grace_ends = 0.0
        self._wake_ups = WakeUps(storage if isinstance(storage, NotifyingStorage) else None)
        self._archives = ledger_archives()
        self._context = ServiceContext(
            loop_guard=self._loop_guard,
            storage=GuardedStorage(
                storage,
                self._loop_guard,
                clock=self._clock,
                compare_clocks=self._compare_clocks,
                archives=self._archives,
            ),
            clock=self._clock,
            ids=self._ids,
            config=self._config,
            wake=self._wake,
            dispatching=lambda: self.health().dispatching,
            log_throttle=self._log_throttle,
            adapters=self._adapters,
            instrumentation=self._instruments,
            wake_ups=self._wake_ups,
            archives=self._archives,
        )

    @classmethod
    def open(
        cls,
        url: str,
        *,
        dispatch: bool = False,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        config: EngineConfig | None = None,
        simulator: SimulatorConfig | None = None,
        analyser: Analyser | str | None = None,
        adapters: Sequence[AnyAdapter] = (),
        dispatcher: DispatcherFactory | None = None,
        sandbox_carrier: Carrier | None = None,
        sandbox_voice: VoiceProvider | None = None,
        vault: Vault | None = None,
        instrumentation: Sequence[Instrumentation] = (),
        create: bool = True,
        migrate: bool | None = None,
    ) -> Self:
        """Return an engine over the database that a URL names; enter it to open it.

        `OUTREACH_HOST_ID` names this machine where its own identity changes from start to start, as in a
        container: a database that finds itself on another machine does not start sending. `OUTREACH_STATE_DIR` names
        the directory in which a worker notes how far a PostgreSQL database has come; by default it is the one that
        systemd names (`STATE_DIRECTORY`), if any: a database that was set back does not start sending.
        `OUTREACH_SECRET_KEY` holds
        the key that accounts' credentials are encrypted with, or `OUTREACH_SECRET_KEY_FILE` names a file that does;
        without them it is the systemd credential `outreach-secret-key`, else a file beside the database.

        Args:
            url: `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://host/database` or `memory://`.
            dispatch: Whether this process sends. The server asks for it, the command line does not.
            clock: Where the time comes from; the system by default.
            rng: Where randomness comes from; the system by default.
            config: How it behaves; by default as the environment says (`EngineConfig.load(os.environ)`).
            simulator: How the simulators behave; by default as the environment says, too.
            analyser: Decides what came of a call that has ended, or the name of an installed one; by default that of
                `OUTREACH_ANALYSER`, else the provider's own verdict.
            adapters: Carriers and voice providers of one's own; see the class.
            dispatcher: Makes the dispatcher; see the class.
            sandbox_carrier: Takes the messages of sandboxes; the simulated carrier by default.
            sandbox_voice: Takes the calls of sandboxes; the simulated voice provider by default.
            vault: Encrypts the credentials of accounts; by default with the key above.
            instrumentation: Observes what the engine does; see the class.
            create: Whether entering it makes the database where there is none; otherwise that is `DatabaseMissing`.
            migrate: Whether entering it brings a database of an older version up to date; otherwise that is
                `DatabaseOlder`. By default the process that dispatches does so: it is the one that owns the database,
                and what merely looks into it must not change it under another one that runs.

        Raises:
            ConfigError: The URL or a variable is not valid.
        """
        given: object = url
        if not isinstance(given, str):
            raise ConfigError(f"The database is {given!r}; it must be a URL such as 'sqlite:///app.db'.")
        _check_truth("create", create)
        if migrate is not None:
            _check_truth("migrate", migrate)
        # Here too, where an empty value would be treated as a missing one.
        _check_kinds(dispatch=dispatch, clock=clock, rng=rng, config=config, simulator=simulator, analyser=analyser)
        clock = clock or SystemClock()
        config = config or EngineConfig.load(os.environ)
        migrate = dispatch if migrate is None else migrate
        by_plugin = config.dispatcher != IN_PROCESS and dispatcher is None
        engine = cls(
            storage_from_url(
                url,
                clock=clock,
                host=os.environ.get("OUTREACH_HOST_ID") or None,
                create=create,
                migrate=migrate,
                workers=MAX_WORKERS if by_plugin else config.max_workers,
                state_dir=state_directory(os.environ),
            ),
            dispatch=dispatch,
            clock=clock,
            rng=rng,
            config=config,
            vault=vault or Vault.from_environment(os.environ, key_file=key_file_for(url), required=is_postgres(url)),
            simulator=simulator or SimulatorConfig.load(os.environ),
            analyser=analyser if analyser is not None else os.environ.get(ANALYSER_VARIABLE) or None,
            adapters=adapters,
            dispatcher=dispatcher,
            sandbox_carrier=sandbox_carrier,
            sandbox_voice=sandbox_voice,
            instrumentation=instrumentation,
        )
        engine._database_url = url
        if by_plugin:
            engine._dispatch_by_plugin(url, migrate=migrate)
        return engine

    def _dispatch_by_plugin(self, url: str, *, migrate: bool) -> None:
        """Have the dispatcher that the configuration names drive the work in a database.

        Raises:
            ConfigError: It cannot work in this database, or is not installed.
        """
        plugin = dispatcher_plugin(self._config.dispatcher)
        assert plugin is not None  # noqa: S101 - the caller has compared the name
        self._make_dispatcher = plugin.dispatcher_of(
            url,
            concurrency=self._config.worker_concurrency,
            log_throttle=self._log_throttle,
            instrumentation=self._instruments,
        )
        if migrate:
            self._prepare = lambda: plugin.install(url)
        elif self._dispatch:
            self._prepare = lambda: plugin.require(url)

    async def __aenter__(self) -> Self:
        """Open the database and, where asked for, begin to dispatch.

        Raises:
            ConfigError: The running event loop is not asyncio's, or the engine is open already.
            DatabaseOlder: An older version has written it, and this engine was not to bring it up to date.
            StorageError: The database cannot be used.
        """
        self._loop_guard.bind()
        self._wake_ups._begin()
        async with AsyncExitStack() as stack:
            stack.callback(self._loop_guard.leave)
            await stack.enter_async_context(self._storage)
            if self._prepare is not None:
                await anyio.to_thread.run_sync(self._prepare)
            with suppress(StorageError):
                # The next call raises it.
                await self._storage.read(self._compare_clocks)
                if self._vault.makes_key():
                    self._may_make_key = not await self._storage.read(_holds_secrets)
            if self._dispatch and not self._services_come_later:
                deque(self._import_services(), maxlen=0)
            stack.push_async_callback(self._release_events)
            stack.push_async_callback(self._connections.aclose)
            stack.push_async_callback(self._end_rate_limits)
            if "_creation" in vars(self):
                self._creation.open()
            stack.push_async_callback(self._end_creations)
            if self._dispatch:
                await self._name_unreadable_archives()
                await self._start_dispatching(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Stop dispatching, letting what is in flight end within the grace, and close the database.

        Campaigns that are being loaded are not created; within the same grace nothing of them is left.

        Raises:
            ConfigError: It was opened in another process, thread or event loop.
        """
        self._loop_guard.require()
        if "events" in vars(self):
            self.events._close()
        if "_creation" in vars(self):
            self._creation.stop()
        self._grace_ends = self._clock.monotonic() + self._config.stop_grace_seconds
        stack, self._stack = self._stack, None
        if stack is not None:
            await stack.aclose()

    def now(self) -> datetime:
        """Return the present moment by the engine's clock."""
        return self._clock.now()

    def health(self) -> DispatcherHealth:
        """Return how dispatching is in this process."""
        if self._dispatcher is None:
            return DispatcherHealth(
                state="off", dispatching=False, epoch=None, active_units=0, failures=0, last_error=None
            )
        health = self._dispatcher.health()
        if not self._dispatching_is_over:
            left = health.lease_seconds_left
            if health.dispatching and left is not None and left <= 0:
                # No request starts until a heartbeat is written, whatever it says of itself.
                return attrs.evolve(health, state="lease_expired", dispatching=False)
            return health
        # Whatever it says of itself.
        return attrs.evolve(
            health,
            state="refused",
            dispatching=False,
            epoch=None,
            refused=_DISPATCHER_ENDED,
            refused_reason="ended",
            lease_seconds_left=None,
            heartbeat_seconds_ago=None,
        )

    def _compare_clocks(self, tx: Transaction) -> None:
        """Go by the clock of the database: machines that share it may differ by seconds."""
        if tx.own_clock:
            self._clock.follow(tx.now)

    async def _name_unreadable_archives(self) -> None:
        """Log at the start what could not be read later, such as archives that an upgrade has left behind."""
        with suppress(StorageError):
            for one in await self._storage.read(lambda tx: self._archives.list_archives(tx, None)):
                if one.problem is not None:
                    _log.warning("%s", one.problem, extra={"action": "archive_missing"})

    def _wake(self, unit: WorkUnit) -> None:
        self._instruments.unit_changed(unit)
        if self._dispatcher is not None:
            try:
                call_plugin_function(self._dispatcher.wake, unit)
            except Exception as error:
                # The change is committed: an error would make the caller repeat it.
                self._log_throttle.failure(
                    "wake_failed",
                    error,
                    "The dispatcher could not be woken; it finds the work when it reads the feed.",
                    unit=unit.id,
                )

    async def _start_dispatching(self, stack: AsyncExitStack) -> None:
        # An engine that does not dispatch, as that of most commands, loads none of it.
        from outreach.dispatch.account_keys import require_key
        from outreach.dispatch.runner import Runner
        from outreach.dispatch.worker import Worker

        carrier, voice, provider_pool = self._make_providers()
        self._provider_pool = provider_pool
        worker = Worker(
            storage=self._storage,
            clock=self._clock,
            config=self._config,
            analyser=self._analyser,
            archives=self._archives,
            log_throttle=self._log_throttle,
            instrumentation=self._instruments,
            compare_clocks=self._compare_clocks,
            require_key=partial(require_key, vault=self._vault),
        )
        runner = Runner(
            storage=self._storage,
            clock=self._clock,
            ids=self._ids,
            config=self._config,
            provider_pool=provider_pool,
            worker=worker,
            forecast=self.campaigns.forecast,
            run_schedule=self.campaigns._run_schedule,
        )
        dispatcher = self._make_dispatcher(
            DispatcherParts(
                worker=worker,
                runner=runner,
                sources=[source for source in (carrier, voice) if isinstance(source, ReportSource)],
                report=worker.report,
                clock=self._clock,
                config=self._config,
                wake_ups=self._wake_ups,
            )
        )
        lacking = [name for name in _DISPATCHER if not callable(getattr(dispatcher, name, None))]
        if lacking:
            raise ConfigError(f"dispatcher made {dispatcher!r}, which lacks {', '.join(lacking)} of a Dispatcher.")
        self._dispatcher = dispatcher
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # A task of its own and not a task group of the host's task: the host's errors are not wrapped in a group,
        # ours never cancel it, and it may close the engine from another task than the one that opened it.
        root = asyncio.create_task(self._supervise(dispatcher, started), name="outreach dispatcher")
        stack.push_async_callback(self._stop_dispatching, dispatcher, root)
        await asyncio.wait({root, started}, return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            root.result()
        self._start_webhooks(stack)

    def _start_webhooks(self, stack: AsyncExitStack) -> None:
        """Deliver events to webhooks until the engine is closed, before dispatching is."""
        from outreach.dispatch.webhook_records import StoredWebhooks
        from outreach.dispatch.webhooks import WebhookPump
        from outreach.rules.webhook_targets import Allowed

        config = self._config
        allowed = Allowed.from_settings(config.webhook_allow, http=config.webhook_allow_http)

        def make_sender() -> Sender:
            # httpx takes long to import, and few databases have webhooks.
            from outreach.dispatch.webhook_sender import WebhookSender

            return WebhookSender(allowed=allowed)

        pump = WebhookPump(
            records=StoredWebhooks(
                storage=self._storage, clock=self._clock, ids=self._ids, secrets=self.webhooks._signing_keys
            ),
            make_sender=make_sender,
            clock=self._clock,
            rng=self._rng,
            poll_seconds=_WEBHOOK_POLLS * config.change_poll_seconds,
            log_throttle=self._log_throttle,
            instrumentation=self._instruments,
        )
        task = asyncio.create_task(pump.run(), name="outreach webhooks")
        stack.push_async_callback(_stop_webhooks, pump, task)

    def _make_providers(self) -> tuple[Carrier, VoiceProvider, ProviderPool]:
        """Return the carrier and the voice provider of sandboxes, and the pool of all."""
        from outreach.providers.pool import ProviderPool
        from outreach.providers.simulator import SimulatedCarrier, SimulatedVoice

        rng = random.Random(self._simulator.seed) if self._simulator.seed is not None else self._rng  # noqa: S311 - no secret
        carrier: Carrier = self._sandbox_carrier or SimulatedCarrier(
            config=self._simulator, clock=self._clock, rng=rng, ids=self._ids
        )
        voice: VoiceProvider = self._sandbox_voice or SimulatedVoice(
            config=self._simulator, clock=self._clock, rng=rng, ids=self._ids
        )
        pool = ProviderPool(
            sandbox_carrier=carrier,
            sandbox_voice=voice,
            storage=self._storage,
            connections=self._connections,
            adapters=self._adapters,
        )
        return carrier, voice, pool

    def _pool_of(self, workspace: Workspace) -> ProviderPool:
        """Return what finds the providers of a workspace's requests.

        Raises:
            Conflict: It is a sandbox, and this engine does not dispatch: it knows nothing of the simulator's requests.
        """
        if workspace.mode is WorkspaceMode.SANDBOX and self._dispatcher is None:
            raise Conflict(
                "This is a sandbox, and this process does not send its requests: only the one that does knows them, "
                "and looks them up by itself."
            )
        if self._provider_pool is None:
            self._provider_pool = self._make_providers()[2]
        return self._provider_pool

    def _in_process(self, parts: DispatcherParts) -> Dispatcher:
        from outreach.dispatch.leased import InProcessDispatcher

        return InProcessDispatcher(
            worker=parts.worker,
            runner=parts.runner,
            report=parts.report,
            sources=parts.sources,
            clock=parts.clock,
            config=parts.config,
            log_throttle=self._log_throttle,
            instrumentation=self._instruments,
            wake_ups=parts.wake_ups,
        )

    async def _release_events(self) -> None:
        if "events" in vars(self):
            await self.events._release()

    async def _end_rate_limits(self) -> None:
        if "_rate_limits" in vars(self):
            await self._rate_limits.aclose()

    async def _end_creations(self) -> None:
        if "_creation" not in vars(self):
            return
        with anyio.CancelScope(shield=True):
            left = max(self._grace_ends - self._clock.monotonic(), 0.0)
            await self._creation.close(grace_seconds=left)

    async def _supervise(self, dispatcher: Dispatcher, started: asyncio.Future[None]) -> None:
        """Run the dispatcher until it is stopped; an error before it has started is raised to the caller.

        Raises:
            ConfigError: It ended before it had reported ready.
        """
        self._stopping = self._dispatching_is_over = False
        reminding = asyncio.create_task(_remind(self._log_throttle), name="outreach log counts")
        try:
            await call_plugin(dispatcher.run(task_status=_Readiness(started)))
        except Exception as error:
            if not started.done():
                raise
            # A dispatcher that is cancelled at the close may raise any error.
            if not self._stopping:
                self._dispatching_is_over = True
                what = "Dispatching ended in an unexpected error."
                log_error(_log, logging.ERROR, what, error=error, extra={"action": "dispatcher_failed"})
        else:
            if not started.done():
                raise ConfigError(f"The dispatcher {dispatcher!r} has ended before task_status.started() was called.")
            if not self._stopping:
                self._dispatching_is_over = True
                _log.error(_DISPATCHER_ENDED, extra={"action": "dispatcher_failed"})
        finally:
            reminding.cancel()
            await asyncio.gather(reminding, return_exceptions=True)

    async def _stop_dispatching(self, dispatcher: Dispatcher, root: asyncio.Task[None]) -> None:
        self._stopping = True
        with anyio.CancelScope(shield=True):
            try:
                await dispatcher.stop(grace_seconds=self._config.stop_grace_seconds)
            except asyncio.CancelledError:
                # By asyncio itself, as a timeout around the closing does: it waits no longer, and yet nothing goes on
                # over a storage that is closed.
                root.cancel()
                await dispatcher.stop(grace_seconds=0)
                raise
            finally:
                # Its result is not awaited: an error at the start was raised to the opener, and later ones are logged.
                await asyncio.gather(root, return_exceptions=True)
                self._dispatcher = None


async def _stop_webhooks(pump: WebhookPump, task: asyncio.Task[None]) -> None:
    pump.stop()
    with anyio.CancelScope(shield=True):
        (ended,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(ended, Exception):
        what = "Deliveries of webhooks ended in an unexpected error."
        log_error(_log, logging.ERROR, what, error=ended, extra={"action": "webhooks_failed"})


def _check_kinds(
    *, dispatch: object, clock: object, rng: object, config: object, simulator: object, analyser: object
) -> None:
    """Check what is easily confused: a mapping is no configuration, "no" no boolean.

    Raises:
        ConfigError: Something is of another kind.
    """
    _check_truth("dispatch", dispatch)
    if clock is not None and not all(callable(getattr(clock, name, None)) for name in ("now", "monotonic")):
        raise ConfigError(f"clock is {clock!r}; it must be an outreach.Clock.")
    if rng is not None and not isinstance(rng, random.Random):
        raise ConfigError(f"rng is {rng!r}; it must be a random.Random.")
    for name, value, kind in (("config", config, EngineConfig), ("simulator", simulator, SimulatorConfig)):
        if value is not None and not isinstance(value, kind):
            raise ConfigError(f"{name} is {value!r}; it must be an outreach.{kind.__name__}.")
    if analyser is not None and not isinstance(analyser, str) and not _is_analyser(analyser):
        raise ConfigError(f"analyser is {analyser!r}; {_NO_ANALYSER}")


def _holds_secrets(tx: Transaction) -> bool:
    """Return whether accounts or webhooks have secrets, which need the key that they were encrypted with."""
    webhooks = tx.webhooks.every(limit=_LOOKED_AT)
    return bool(tx.accounts.any_workspace(None, limit=1)) or any(one.removed_at is None for one in webhooks)


def _check_storage(storage: object) -> None:
    """Check that it is an object that can be opened, read and written.

    Raises:
        ConfigError: It is not.
    """
    lacking = [name for name in _STORAGE if isinstance(storage, type) or not callable(getattr(storage, name, None))]
    if lacking:
        raise ConfigError(f"storage is {storage!r}, which lacks {', '.join(lacking)} of an outreach.Storage.")


def _check_sandbox(carrier: object, voice: object) -> None:
    """Check what takes the requests of sandboxes: an object, not a provider's name.

    Raises:
        ConfigError: It cannot send.
    """
    for name, value, method, kind in (
        ("sandbox_carrier", carrier, "send", "Carrier"),
        ("sandbox_voice", voice, "place_call", "VoiceProvider"),
    ):
        if value is not None and (isinstance(value, type) or not callable(getattr(value, method, None))):
            raise ConfigError(f"{name} is {value!r}; it must be an outreach.{kind}.")


def _analyser(given: Analyser | str | None) -> Analyser:
    """Return the analyser that was given, or that an installed package brings under a name.

    Raises:
        ConfigError: There is none of this name that can be used.
    """
    if given is None:
        return ProviderAnalyser()
    if not isinstance(given, str):
        return given
    installed = installed_analysers()
    found, source = installed.found.get(given, (None, ""))
    if found is None:
        known = ", ".join(sorted(installed.found)) or "none"
        broken = [problem.message for problem in installed.problems if problem.path == given]
        words = f"There is no analyser {given!r}. Installed packages bring: {known}."
        raise ConfigError(" ".join([words, *broken]))
    if not _is_analyser(found):
        raise ConfigError(f"The analyser {given!r} of {source} is {found!r}; {_NO_ANALYSER}")
    return cast("Analyser", found)


_NO_ANALYSER: Final = "it must be an outreach.Analyser, whose method `outcome` is no async one."


def _is_analyser(value: object) -> bool:
    # A class has the method too, but needs an instance. A coroutine function cannot be awaited in a transaction.
    outcome = getattr(value, "outcome", None)
    return not isinstance(value, type) and callable(outcome) and not inspect.iscoroutinefunction(outcome)


def _check_truth(name: str, value: object) -> None:
    if type(value) is not bool:
        raise ConfigError(f"{name} is {value!r}; it must be True or False.")


class _Readiness(TaskStatus[None]):
    """Reports to the code that opens the engine that its dispatcher has started."""

    def __init__(self, started: asyncio.Future[None]) -> None:
        self._started = started

    def started(self, value: None = None) -> None:
        """Report ready."""
        if not self._started.done():
            self._started.set_result(None)


async def _remind(log_throttle: LogThrottle) -> None:
    while True:
        await anyio.sleep(_REMIND_SECONDS)
        log_throttle.flush_counts()
