"""Idempotency keys: a request with a key is done once, and its result is replayed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final, Generic, Protocol, TypeVar

import anyio
import attrs
import orjson

from outreach.errors import InvalidRequest, NotFound, RequestInProgress, StorageError
from outreach.models.work import IdempotentRequest, StoredAnswer
from outreach.operations.access import idempotency as operations
from outreach.operations.common import workspace_of
from outreach.protocols.storage import Operation
from outreach.services.context import ServiceContext
from outreach.working_set import Transaction

M = TypeVar("M")

_POLL_SECONDS: Final = 0.05
_LISTENING_POLL_SECONDS: Final = 0.5
"""How often it is asked for where other processes' commits are notified."""
_MAX_KEY_LENGTH: Final = 255


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


I = TypeVar("I", bound=_Identified)  # noqa: E741 - like M, with an id


class IdempotencyGuard(Generic[M]):
    """Stores an idempotency key with what is made under it; does nothing without a key.

    The key and what it replays are stored in one transaction, so neither exists without the other.
    """

    def keep(self, tx: Transaction) -> None:
        """Extend the claim on the key, within a transaction.

        Raises:
            RequestInProgress: Another request has taken the key over.
        """

    def finish(self, tx: Transaction, made: M, *, settled: bool = True) -> None:
        """Store what the key replays, in the transaction that makes it; `settled=False` announces a later answer.

        Raises:
            RequestInProgress: Another request has taken the key over.
        """


class _Held(IdempotencyGuard[M]):
    def __init__(
        self,
        context: ServiceContext,
        workspace_id: str,
        request: IdempotentRequest,
        *,
        token: str,
        render: Callable[[M], StoredAnswer],
    ) -> None:
        self._context = context
        self._place = (workspace_id, request.operation, request.key)
        self._token = token
        self._render = render
        self.finished = False

    def keep(self, tx: Transaction) -> None:
        operations.renew_claim(tx, *self._place, token=self._token, now=self._context.now())

    def finish(self, tx: Transaction, made: M, *, settled: bool = True) -> None:
        operations.store_answer(
            tx, *self._place, token=self._token, answer=self._render(made), now=self._context.now(), settled=settled
        )
        # Set even if the transaction fails after this: the error then ends the request and releases the key.
        self.finished = True

    def give_up(self, tx: Transaction) -> None:
        """Release the key, unless something was made under it."""
        operations.release_claim(tx, *self._place, token=self._token)


class Idempotency:
    """Does a request with an idempotency key once, and replays the result."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def once(
        self,
        workspace_id: str,
        request: IdempotentRequest | None,
        *,
        render: Callable[[M], StoredAnswer],
        make: Callable[[IdempotencyGuard[M]], Awaitable[M]],
    ) -> M | StoredAnswer:
        """Make something, or return what its key replays.

        Waits while another request holds the key. An error releases the key, so that a refused request can be
        corrected.

        Args:
            workspace_id: The workspace.
            request: The key and the request; None for no key.
            render: Makes what the key replays, within the transaction that makes the thing.
            make: Makes the thing; if it does not finish the guard, this method does.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The key was used for another request.
            RequestInProgress: The first request still ran after the longest wait.
        """
        if request is None:
            return await make(IdempotencyGuard())
        token = self._context.ids()
        held = _Held(self._context, workspace_id, request, token=token, render=render)
        try:
            replay = await self._begin(workspace_id, request, token)
        except asyncio.CancelledError:
            # The claim may be committed all the same.
            await self._give_back(held)
            raise
        if replay is not None:
            return replay
        try:
            made = await make(held)
            if not held.finished:
                await self._context.storage.write(lambda tx: held.finish(tx, made))
        except BaseException:
            await self._give_back(held)
            raise
        return made

    async def _give_back(self, held: _Held[M]) -> None:
        # Where the database is away the claim runs out by itself, and the caller hears of the first error.
        with anyio.CancelScope(shield=True), suppress(StorageError):
            await self._context.storage.write(held.give_up)

    async def answer(
        self,
        workspace_id: str,
        request: IdempotentRequest | None,
        *,
        render: Callable[[M], StoredAnswer],
        make: Callable[[IdempotencyGuard[M]], Awaitable[M]],
    ) -> StoredAnswer:
        """Make something and return the HTTP response to it, which the key replays; see `once`."""
        answers: list[StoredAnswer] = []

        def remembered(made: M) -> StoredAnswer:
            answers.append(render(made))
            return answers[-1]

        made = await self.once(workspace_id, request, render=remembered, make=make)
        if isinstance(made, StoredAnswer):
            return made
        return answers[-1] if answers else render(made)

    async def model(
        self,
        workspace_id: str,
        operation: str,
        idempotency_key: str | None,
        *,
        content: object,
        make: Callable[[IdempotencyGuard[I]], Awaitable[I]],
        find: Callable[[Transaction, str], I | None],
        kind: str,
    ) -> I:
        """Make something for an embedding program; a repeated key returns the same thing in its current state.

        Args:
            workspace_id: The workspace.
            operation: The operation's name.
            idempotency_key: The program's key; None for no key.
            content: The whole request, which must be the same each time.
            make: Makes the thing.
            find: Finds the thing by its id.
            kind: The thing's name in errors.

        Raises:
            NotFound: The workspace does not exist, or the thing was removed.
            InvalidRequest: The key is invalid, or was used for another request.
            RequestInProgress: The first request still ran after the longest wait.
        """
        request = library_request(operation, idempotency_key, content)

        def render(made: I) -> StoredAnswer:
            return StoredAnswer(body=made.id.encode())

        made = await self.once(workspace_id, request, render=render, make=make)
        if not isinstance(made, StoredAnswer):
            return made
        identifier = made.body.decode()
        found = await self._context.storage.read(lambda tx: find(tx, identifier))
        if found is None:
            raise NotFound(kind, identifier)
        return found

    async def written(
        self,
        workspace_id: str,
        operation: str,
        idempotency_key: str | None,
        write: Operation[I],
        *,
        content: object,
        find: Callable[[Transaction, str], I | None],
        kind: str,
    ) -> I:
        """Make something in one transaction, which stores the key too; see `model`."""

        async def make(once: IdempotencyGuard[I]) -> I:
            return await self._context.storage.write(lambda tx: finished(tx, write(tx), once))

        return await self.model(
            workspace_id, operation, idempotency_key, content=content, make=make, find=find, kind=kind
        )

    async def _begin(self, workspace_id: str, request: IdempotentRequest, token: str) -> StoredAnswer | None:
        context = self._context
        keep = timedelta(seconds=context.config.idempotency_key_ttl_seconds)
        give_up_at = context.clock.monotonic() + context.config.idempotency_wait_seconds

        def operation(tx: Transaction) -> operations.KeyClaim:
            workspace_of(tx, workspace_id)
            return operations.claim_key(
                tx,
                workspace_id,
                request.operation,
                request.key,
                fingerprint=request.digest,
                token=token,
                now=context.now(),
                keep=keep,
                where=request.where,
            )

        while True:
            begun = await context.storage.write(operation)
            if begun.state != "wait":
                return begun.answer
            if context.clock.monotonic() >= give_up_at:
                raise RequestInProgress
            await context.wake_ups.wait(
                "keys", poll_seconds=_POLL_SECONDS, listening_poll_seconds=_LISTENING_POLL_SECONDS
            )


def finished(tx: Transaction, made: M, once: IdempotencyGuard[M]) -> M:
    """Store what the key replays, and return what was made."""
    once.finish(tx, made)
    return made


def library_request(operation: str, idempotency_key: str | None, content: object) -> IdempotentRequest | None:
    """Return an embedding program's request under its key; None without a key.

    Raises:
        InvalidRequest: The key is not a string of 1 to 255 characters, or the content cannot be compared.
    """
    if idempotency_key is None:
        return None
    where = "idempotency_key"
    given: object = idempotency_key
    if not isinstance(given, str) or not 1 <= len(given) <= _MAX_KEY_LENGTH or not given.isprintable():
        raise InvalidRequest.at(where, f"must be a string of 1 to {_MAX_KEY_LENGTH} printable characters")
    try:
        digest = sha256(json_of(content)).hexdigest()
    except (TypeError, ValueError) as error:
        raise InvalidRequest.at(where, f"the request cannot be compared: {error}") from None
    # The prefix keeps these keys apart from the server's, which replay responses, not ids.
    return IdempotentRequest(operation=f"library {operation}", key=given, digest=digest, where=where)


def json_of(content: object) -> bytes:
    """Return content as canonical JSON.

    Raises:
        TypeError: It holds a value that JSON cannot represent.
    """
    return orjson.dumps(content, default=_plain, option=orjson.OPT_SORT_KEYS)


def _plain(value: object) -> Any:
    kind: type[Any] = type(value)
    if attrs.has(kind):
        return {field.name: getattr(value, field.name) for field in attrs.fields(kind)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
