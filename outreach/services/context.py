"""The context that services share: storage, clock, ids, the engine's event loop, joined reads, parts and checks.

Reads of several services that are made at the same time are joined in one snapshot of the database.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context, ContextVar, copy_context
from datetime import datetime
from functools import cached_property, wraps
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar, cast

import anyio
import attrs

from outreach.errors import ConfigError, InvalidRequest, OutreachError, StorageError
from outreach.models.base import set_fields
from outreach.models.fields import OneOf, check_value
from outreach.protocols.storage import Operation, RemoteStorage, Within

if TYPE_CHECKING:
    from outreach.core.clock import Clock, IdSource
    from outreach.core.config import EngineConfig
    from outreach.core.log_throttle import LogThrottle
    from outreach.models.account import ProviderKind
    from outreach.models.work import DatabaseHome, HighWaterMark, WorkUnit
    from outreach.protocols.instrumentation import Instrumentation
    from outreach.protocols.ledger_archives import LedgerArchives
    from outreach.protocols.storage import Storage, WakeUps
    from outreach.providers.registry import Adapters
    from outreach.storage.unit_of_work import Transaction


T = TypeVar("T")

_Read = Callable[[Operation[Any]], Awaitable[Any]]
_Outcome = tuple[Any, OutreachError | None]
_Waiting = Sequence[tuple[Operation[Any], asyncio.Future[Any]]]


class JoinedReads:
    """Runs calls of services side by side; reads at the same time are of one snapshot.

    The first reads of all calls are of one snapshot, then the second ones of those that read again, and so on. The
    calls are made within `async with`, whose end waits for all of them:

        async with JoinedReads() as reads:
            campaign = reads.start(engine.campaigns.get(workspace_id, campaign_id))
            counts = reads.start(engine.campaigns.count_recipients(workspace_id, campaign_id))
        print(campaign.result(), counts.result())
    """

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._unfinished = 0
        self._waiting: list[tuple[Operation[Any], asyncio.Future[Any]]] = []
        self._blocked: Counter[object] = Counter()
        self._read: _Read | None = None
        self.is_open = False

    async def __aenter__(self) -> Self:
        """Begin."""
        await self._group.__aenter__()
        self.is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the calls; raise the first error of one, which has cancelled the others."""
        try:
            await self._group.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self.is_open = False

    def start(self, call: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a call; its result is known after the end of the block."""
        context, token = copy_context(), object()
        context.run(_JOINED.set, (self, token))
        # It belongs to the group, which waits for it.
        task = self._begin(call, context)
        self._unfinished += 1
        task.add_done_callback(self._end)
        return task

    async def read(self, read: _Read, operation: Operation[T], token: object) -> T:
        """Run an operation together with those of the other calls.

        Args:
            read: Runs an operation on a snapshot.
            operation: The operation.
            token: The call that it is of.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._read = read
        self._waiting.append((operation, future))
        self._blocked[token] += 1
        self._look()
        return await future

    def _begin(self, call: Coroutine[Any, Any, T], context: Context | None = None) -> asyncio.Task[T]:
        try:
            return self._group.create_task(call, context=context)
        except RuntimeError:
            # The group ends, because a call has failed or the block was cancelled, and begins nothing any more.
            call.close()
            raise

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._unfinished -= 1
        if not task.cancelled() and task.exception() is not None:
            self.is_open = False
        self._look()

    def _look(self) -> None:
        """Read, if every call that has not finished waits for that; soon, as one may begin several reads at once."""
        if self._waiting and len(self._blocked) >= self._unfinished:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        if not self._waiting or self._read is None:
            return
        waiting, self._waiting = self._waiting, []
        self._blocked.clear()
        try:
            self._begin(_run(self._read, waiting))
        except RuntimeError:
            self.is_open = False
            _cancel(waiting)


_JOINED: ContextVar[tuple[JoinedReads, object] | None] = ContextVar("outreach_joined_reads", default=None)


async def read_joined(read: _Read, operation: Operation[T]) -> T:
    """Run an operation by `read`: together with others, within a call that `JoinedReads` has started."""
    joined = _JOINED.get()
    # Something that a call has begun for others may outlast it.
    if joined is None or not joined[0].is_open:
        result: T = await read(operation)
        return result
    reads, token = joined
    return await reads.read(read, operation, token)


async def _run(read: _Read, waiting: _Waiting) -> None:
    def operation(tx: Transaction) -> Sequence[_Outcome]:
        return [_outcome(one, tx) for one, _ in waiting]

    try:
        outcomes: Sequence[_Outcome] = await read(operation)
    except asyncio.CancelledError:
        _cancel(waiting)
        raise
    except Exception as error:
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)
        return
    for (_, future), (result, refused) in zip(waiting, outcomes, strict=True):
        if future.done():
            continue
        if refused is None:
            future.set_result(result)
        else:
            future.set_exception(refused)


def _cancel(waiting: _Waiting) -> None:
    for _, future in waiting:
        future.cancel()


def _outcome(operation: Operation[Any], tx: Transaction) -> _Outcome:
    try:
        return operation(tx), None
    except StorageError:
        raise
    except OutreachError as error:
        # The other operations may succeed.
        return None, error


_COMPARE_SECONDS: Final = 10.0
"""How often a node that writes compares its clock with the database's; a worker does at each heartbeat, too."""


class LoopGuard:
    """The process, thread and event loop that opened an engine; use from elsewhere would never get an answer."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self._thread = 0

    def bind(self) -> None:
        """Bind the guard to the current process, thread and event loop.

        Raises:
            ConfigError: It is open already, or the event loop is not asyncio's.
        """
        self.require()
        if self._loop is not None:
            raise ConfigError("This engine is already open. Close it first, or create another one.")
        loop = _running_loop()
        if loop is None:
            raise ConfigError("The engine runs on asyncio, as its SQLite driver does; this is another loop.")
        self._loop, self._process, self._thread = loop, os.getpid(), threading.get_ident()

    def leave(self) -> None:
        """Unbind the guard, so that the engine may be opened elsewhere."""
        self._loop = None

    def require_open(self) -> None:
        """Check that the engine is open, and that this is where it was opened.

        Raises:
            StorageError: It is not open.
            ConfigError: This is another process, thread or event loop.
        """
        if self._loop is None:
            raise StorageError("This engine is not open: use it within `async with engine:`.")
        self.require()

    def require(self) -> None:
        """Check that this is where the engine was opened; a closed engine passes.

        Raises:
            ConfigError: This is another process, thread or event loop.
        """
        if self._loop is None:
            return
        if os.getpid() != self._process:
            raise ConfigError(
                f"This engine was opened in process {self._process}, from which this one, {os.getpid()}, was forked. "
                "Close it before the fork, or open it after the fork only: an open database does not survive one."
            )
        if _running_loop() is self._loop:
            return
        if threading.get_ident() != self._thread:
            raise ConfigError(
                "This engine was opened in another thread, and belongs to the event loop there. Hand the call to that "
                "loop, with anyio.from_thread.run or asyncio.run_coroutine_threadsafe, or use outreach.sync."
            )
        raise ConfigError(
            "This engine was opened on another event loop, and belongs to it. Use it within the asyncio.run that "
            "opened it, or open an engine on this loop."
        )


class GuardedStorage:
    """The storage that services use; it refuses calls from outside the engine's event loop.

    Args:
        storage: The storage.
        loop_guard: Knows where the engine was opened.
        clock: The engine's.
        compare_clocks: Sets that clock right by the database's; called now and then with a transaction that writes, so
            that the clocks of nodes which dispatch nothing stay together too.
    """

    def __init__(
        self,
        storage: Storage,
        loop_guard: LoopGuard,
        *,
        clock: Clock,
        compare_clocks: Callable[[Transaction], None],
        archives: LedgerArchives,
    ) -> None:
        self._storage = storage
        self._loop_guard = loop_guard
        self._clock = clock
        self._compare_clocks = compare_clocks
        self._archives = archives
        self._compared = float("-inf")

    async def write(self, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation in a transaction; see `Storage.write`.

        Raises:
            StorageError: The engine is not open.
            ConfigError: The engine was opened elsewhere.
        """
        self._loop_guard.require_open()
        now = self._clock.monotonic()
        if now < self._compared + _COMPARE_SECONDS:
            return await self._storage.write(operation, bulk=bulk)

        def compared(tx: Transaction) -> T:
            self._compare_clocks(tx)
            # Not before: the database may be away.
            self._compared = now
            return operation(tx)

        within = Within(operation.workspace_ids, compared) if isinstance(operation, Within) else compared
        return await self._storage.write(within, bulk=bulk)

    async def write_in(self, workspace_id: str, operation: Operation[T], *, bulk: bool = False) -> T:
        """Run an operation that writes in one workspace only, in a transaction; see `Storage.write`.

        Raises:
            StorageError: The engine is not open.
            ConfigError: The engine was opened elsewhere.
            InvalidRequest: The workspace is named by something else than a text.
        """
        return await self.write(Within([workspace_id], operation), bulk=bulk)

    async def read(self, operation: Operation[T]) -> T:
        """Run an operation on a snapshot; see `Storage.read`.

        Raises:
            StorageError: The engine is not open.
            ConfigError: The engine was opened elsewhere.
        """
        self._loop_guard.require_open()
        return await read_joined(self._storage.read, operation)

    async def read_ledger(self, workspace_id: str, campaign_id: str, operation: Operation[T]) -> T:
        """Run an operation on a snapshot in which a campaign has its contacts, requests, calls and trail.

        Raises:
            StorageError: The engine is not open.
            ConfigError: The engine was opened elsewhere.
            ArchiveUnavailable: They are in an archive that cannot be read; the message names it.
        """

        def over(tx: Transaction) -> T:
            with self._archives.ledger_of(tx, workspace_id, campaign_id) as ledger:
                return operation(ledger)

        return await self.read(over)

    def home(self) -> DatabaseHome | None:
        """Return where the database is; None if not applicable (in memory)."""
        return self._storage.lock.home()

    def high_water(self) -> HighWaterMark | None:
        """Return the high-water mark that is kept beside the database; None without one."""
        return self._storage.lock.high_water()

    async def why_not_writable(self) -> StorageError | None:
        """Return the error that the database's server gives to a write; None without one, and for a file."""
        return await self._storage.why_not_writable() if isinstance(self._storage, RemoteStorage) else None

    def campaign_list_revision(self, workspace_id: str) -> int | None:
        """Return the revision of a workspace's lists; see `Storage.campaign_list_revision`.

        Raises:
            ConfigError: The engine was opened elsewhere.
        """
        self._loop_guard.require()
        return self._storage.campaign_list_revision(workspace_id)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@attrs.frozen(kw_only=True)
class ServiceContext:
    """The collaborators that the engine hands to its services.

    Attributes:
        home: Where the engine was opened.
        storage: Its storage, guarded by `home`.
        wake: Notifies this process's dispatcher that a unit has changed; does nothing without one.
        dispatching: Whether this process dispatches now.
        log_throttle: Limits repeated log lines.
        adapters: The providers that accounts can be at.
        instrumentation: Observes what happens.
        wake_ups: Waits for what other processes change.
        archives: Reads the ledgers of campaigns that are in archives, and erases in them.
    """

    loop_guard: LoopGuard
    storage: GuardedStorage
    clock: Clock
    ids: IdSource
    config: EngineConfig
    wake: Callable[[WorkUnit], None]
    dispatching: Callable[[], bool]
    log_throttle: LogThrottle
    adapters: Adapters
    instrumentation: Instrumentation
    wake_ups: WakeUps
    archives: LedgerArchives

    def now(self) -> datetime:
        """Return the current time."""
        return self.clock.now()


A = TypeVar("A")


B = TypeVar("B")


async def run_concurrently(aside: Callable[[], Awaitable[A]], here: Callable[[], Awaitable[B]]) -> tuple[A, B]:
    """Run two functions at the same time; return both results.

    Args:
        aside: Runs in its own task, started first.
        here: Runs in the caller's task; it may block in a read, and Ctrl-C may interrupt it.

    Raises:
        Exception: The first error of either, unwrapped; the other function is cancelled.
        KeyboardInterrupt: The same.
    """
    done: list[A] = []
    found: list[B] = []
    failed: list[BaseException] = []

    async def run() -> None:
        try:
            done.append(await aside())
        except Exception as error:
            failed.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        try:
            await anyio.lowlevel.checkpoint()
            found.append(await here())
        except (Exception, KeyboardInterrupt) as error:
            failed.append(error)
            group.cancel_scope.cancel()
    if failed:
        raise failed[0]
    return done[0], found[0]


S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


class Later:
    """Stands for a part's class, which is imported when it is called, or when one of its methods is.

    Args:
        module: Its module.
        name: Its name.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make a part."""
        return self._imported()(*args, **kwargs)

    def __getattr__(self, name: str) -> Callable[[], Callable[..., Any]]:
        """Return a function that imports the class and returns its method of this name."""
        return lambda: cast("Callable[..., Any]", getattr(self._imported(), name))

    def _imported(self) -> Any:
        return getattr(import_module(self._module), self._name)


def part_of(make: Callable[[ServiceContext], A]) -> cached_property[A]:
    """Make an attribute of a service that holds a part, made of the service's context when it is first used.

    Args:
        make: The part's class, which at run time is `Later`.
    """
    return cached_property(lambda service: make(service._context))


class _MethodOfPart:
    """A method that calls a part's."""

    def __init__(self, part: str, find: Callable[[], Callable[..., Any]]) -> None:
        self._part = part
        self._find = find
        self._name = ""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        """Keep its name."""
        self._name = name

    def __get__(self, service: object, owner: type[Any]) -> Any:
        """Return the method of the service's part; of the class, a function that takes the service."""
        return self.__wrapped__ if service is None else getattr(getattr(service, self._part), self._name)

    @cached_property
    def __wrapped__(self) -> Callable[..., Any]:
        """A function that takes the service; its parameters and its docstring are those of the part's method."""
        method = self._find()
        if not inspect.iscoroutinefunction(method):

            @wraps(method)
            def call(service: object, /, *args: Any, **kwargs: Any) -> Any:
                return method(getattr(service, self._part), *args, **kwargs)

            return call

        @wraps(method)
        async def wait(service: object, /, *args: Any, **kwargs: Any) -> Any:
            return await method(getattr(service, self._part), *args, **kwargs)

        return wait


def method_of(part: str, method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Make a method that calls a part's method of the same name.

    Args:
        part: The attribute that holds the part.
        method: The method of the part's class, which at run time is `Later`.
    """
    return cast("Callable[Concatenate[Any, P], R]", _MethodOfPart(part, cast("Any", method)))


_SHOWN: Final = 40
"""How many characters of a text that is no number are quoted."""


def changed_fields(change: object, kind: type) -> dict[str, Any]:
    """Return the changed fields of an `*Update` object, by name.

    Raises:
        InvalidRequest: It is an object of another class.
    """
    check_kind("change", change, kind)
    return set_fields(change)


def check_provider(path: str, value: object, kind: ProviderKind, adapters: Adapters) -> None:
    """Check that a value is the name of a provider of a kind.

    Raises:
        InvalidRequest: It is none; the message names those that there are.
    """
    if not isinstance(value, str) or adapters.kind(value) != kind:
        check_value(path, value, OneOf(adapters.names(kind)))


def check_kind(path: str, value: object, kind: type) -> None:
    """Check that an argument is an instance of a class.

    Raises:
        InvalidRequest: It is not.
    """
    if not isinstance(value, kind):
        raise InvalidRequest.at(path, f"must be an outreach.{kind.__name__}, not {type(value).__name__}")


def require_text(path: str, raw: object) -> str:
    """Return a phone number if it is a string: an integer has lost its plus sign and leading zeros.

    Raises:
        InvalidRequest: It is not a string.
    """
    if not isinstance(raw, str):
        raise InvalidRequest.at(path, f"must be a text such as '+14155550102', not {type(raw).__name__}")
    return raw


def check_phone(path: str, raw: object, region: str | None) -> str | None:
    """Return a number in E.164; None stays None.

    Raises:
        InvalidRequest: It is not a phone number.
    """
    if raw is None:
        return None
    from outreach.rules.phones import read_number

    text = require_text(path, raw)
    phone = read_number(text, region).phone
    if phone is None:
        raise InvalidRequest.at(path, phone_problem(text, region))
    return phone


def require_phone(path: str, phone: str | None) -> str:
    """Return the number that was read of a text.

    Raises:
        InvalidRequest: The text is not a phone number.
    """
    if phone is None:
        raise InvalidRequest.at(path, "is not a phone number; write it like +14155550102")
    return phone


def phone_problem(raw: str, region: str | None) -> str:
    """Return why a text is refused as a phone number, with the text, and how to write one."""
    from outreach.rules.phones import read_number

    shown = f"{raw[:_SHOWN]!r} " if raw.strip() else ""
    return f"{shown}{read_number(raw, region).problem}; write it like +14155550102"
