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

from outreach.errors import Conflict, InvalidRequest, RequestInProgress, StorageError
from outreach.ledger.access import idempotency as operations
from outreach.ledger.common import workspace_of
from outreach.models.work import AnswerReplayed, IdempotencyKey, IdempotentRequest, LastingKey, StoredAnswer
from outreach.protocols.storage import Operation, Within
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

M = TypeVar("M")

_POLL_SECONDS: Final = 0.05
_LISTENING_POLL_SECONDS: Final = 0.5
"""How often the answer is polled for where other processes' commits are notified."""
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


class _ClaimedKey(IdempotencyGuard[M]):
    def __init__(self, context: ServiceContext, workspace_id: str, request: IdempotentRequest[M], key: str) -> None:
        self._context = context
        self.workspace_id = workspace_id
        self._request = request
        self._place = (workspace_id, request.operation, key)
        self.token = context.ids()
        self.finished = False

    def claim(self, tx: Transaction) -> operations.KeyClaim:
        """Claim the key, or return its answer or its holder."""
        workspace_of(tx, self.workspace_id)
        return operations.claim_key(
            tx,
            *self._place,
            fingerprint=self._request.digest,
            token=self.token,
            now=self._context.now(),
            keep=self._keep(),
            where=self._request.where,
        )

    def _keep(self) -> timedelta:
        """Return how long the key is remembered: at least as long as any key."""
        least = timedelta(seconds=self._context.config.idempotency_key_ttl_seconds)
        return max(least, timedelta(days=self._request.idempotency_days or 0))

    def keep(self, tx: Transaction) -> None:
        operations.renew_claim(tx, *self._place, token=self.token, now=self._context.now())

    def finish(self, tx: Transaction, made: M, *, settled: bool = True) -> None:
        self._request.answer = self._request.render(made)
        operations.store_answer(
            tx, *self._place, token=self.token, answer=self._request.answer, now=self._context.now(), settled=settled
        )
        # Set even if the transaction fails after this: the error then ends the request and releases the key.
        self.finished = True

    def give_up(self, tx: Transaction) -> None:
        """Release the key, unless something was made under it."""
        operations.release_claim(tx, *self._place, token=self.token)


class Idempotency:
    """Makes a thing once for each idempotency key."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def once(
        self,
        workspace_id: str,
        operation: str,
        idempotency_key: IdempotencyKey[M],
        *,
        content: object,
        make: Callable[[IdempotencyGuard[M]], Awaitable[M]],
        remember: Callable[[M], bytes],
        recall: Callable[[bytes], Awaitable[M]],
    ) -> M:
        """Make something, once for each key.

        Waits while another request holds the key. An error releases the key, so that a refused request can be
        corrected.

        Args:
            workspace_id: The workspace.
            operation: The operation's name, which scopes a program's keys.
            idempotency_key: A program's key, or a request with its own; None for no key.
            content: What a program asks for, which must be the same each time.
            make: Makes the thing; if it does not finish the guard, this method does.
            remember: Makes what a program's key stores, within the transaction that makes the thing.
            recall: Makes the thing, in its current state, of what a program's key has stored.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The key is invalid, or was used for another request.
            RequestInProgress: The first request still ran after the longest wait.
            AnswerReplayed: The request was answered before.
        """
        if idempotency_key is None:
            return await make(IdempotencyGuard())
        if isinstance(idempotency_key, IdempotentRequest):
            return await self._answer(workspace_id, idempotency_key, make)
        request = _program_request(operation, idempotency_key, content, remember)
        try:
            return await self._answer(workspace_id, request, make)
        except AnswerReplayed:
            return await recall(request.answer.body)

    async def model(
        self,
        workspace_id: str,
        operation: str,
        idempotency_key: IdempotencyKey[I],
        *,
        content: object,
        make: Callable[[IdempotencyGuard[I]], Awaitable[I]],
        find: Callable[[Transaction, str], I],
    ) -> I:
        """Make something that has an id, once for each key; see `once`.

        Args:
            workspace_id: The workspace.
            operation: The operation's name.
            idempotency_key: The key.
            content: What a program asks for.
            make: Makes the thing.
            find: Returns the thing of an id, or raises `NotFound`.

        Raises:
            NotFound: The workspace does not exist, or the thing was removed.
            OutreachError: See `once`.
            AnswerReplayed: See `once`.
        """
        return await self.once(
            workspace_id,
            operation,
            idempotency_key,
            content=content,
            make=make,
            remember=lambda made: made.id.encode(),
            recall=lambda stored: self._context.storage.read(lambda tx: find(tx, stored.decode())),
        )

    async def written(
        self,
        workspace_id: str,
        operation: str,
        idempotency_key: IdempotencyKey[I],
        write: Operation[I],
        *,
        content: object,
        find: Callable[[Transaction, str], I],
    ) -> I:
        """Make something in one transaction, which stores the key too; see `model`."""

        async def make(once: IdempotencyGuard[I]) -> I:
            return await self._context.storage.write_in(workspace_id, finishing(write, once))

        return await self.model(workspace_id, operation, idempotency_key, content=content, make=make, find=find)

    async def written_once(
        self,
        workspace_id: str,
        operation: str,
        idempotency_key: str | None,
        write: Operation[M],
        *,
        content: object,
        remember: Callable[[M], str],
        again: str,
    ) -> M:
        """Make something with a secret in one transaction, which stores the key too; see `once`.

        The secret is in the first answer alone.

        Args:
            workspace_id: The workspace.
            operation: The operation's name.
            idempotency_key: The key.
            write: Makes the thing; `Within` where it writes in workspaces only.
            content: What a program asks for.
            remember: Returns the id of the thing.
            again: What a repeated request is told, with `{id}` for the id.

        Raises:
            Conflict: It was made before.
            OutreachError: See `once`.
        """

        async def recall(stored: bytes) -> M:
            raise Conflict(again.format(id=stored.decode()))

        return await self.once(
            workspace_id,
            operation,
            idempotency_key,
            content=content,
            make=lambda once: self._context.storage.write(finishing(write, once)),
            remember=lambda made: remember(made).encode(),
            recall=recall,
        )

    async def _answer(
        self, workspace_id: str, request: IdempotentRequest[M], make: Callable[[IdempotencyGuard[M]], Awaitable[M]]
    ) -> M:
        """Make something and set the request's answer, or raise `AnswerReplayed` with the answer of before."""
        if request.key is None:
            made = await make(IdempotencyGuard())
            request.answer = request.render(made)
            return made
        claimed = _ClaimedKey(self._context, workspace_id, request, request.key)
        try:
            replay = await self._claim(claimed)
        except asyncio.CancelledError:
            # The claim may be committed all the same.
            await self._give_back(claimed)
            raise
        if replay is not None:
            request.answer = replay
            raise AnswerReplayed
        try:
            made = await make(claimed)
            if not claimed.finished:
                await self._context.storage.write_in(workspace_id, lambda tx: claimed.finish(tx, made))
        except BaseException:
            await self._give_back(claimed)
            raise
        return made

    async def _claim(self, key: _ClaimedKey[M]) -> StoredAnswer | None:
        context = self._context
        give_up_at = context.clock.monotonic() + context.config.idempotency_wait_seconds
        while True:
            begun = await context.storage.write_in(key.workspace_id, key.claim)
            if begun.state != "wait":
                return begun.answer
            if context.clock.monotonic() >= give_up_at:
                raise RequestInProgress
            await context.wake_ups.wait(
                "keys", poll_seconds=_POLL_SECONDS, listening_poll_seconds=_LISTENING_POLL_SECONDS
            )

    async def _give_back(self, key: _ClaimedKey[M]) -> None:
        # Where the database is down, the claim expires, and the caller gets the first error.
        with anyio.CancelScope(shield=True), suppress(StorageError):
            await self._context.storage.write_in(key.workspace_id, key.give_up)


def finishing(write: Operation[M], once: IdempotencyGuard[M]) -> Operation[M]:
    """Return an operation that also stores what the key replays, in the same workspaces."""

    def operation(tx: Transaction) -> M:
        return finished(tx, write(tx), once)

    return Within(write.workspace_ids, operation) if isinstance(write, Within) else operation


def finished(tx: Transaction, made: M, once: IdempotencyGuard[M]) -> M:
    """Store what the key replays, and return what was made."""
    once.finish(tx, made)
    return made


def _program_request(
    operation: str, idempotency_key: object, content: object, remember: Callable[[M], bytes]
) -> IdempotentRequest[M]:
    """Return a program's request under its key.

    Raises:
        InvalidRequest: The key is not a string of 1 to 255 characters, or the content cannot be compared.
    """
    where = "idempotency_key"
    lasting = idempotency_key if isinstance(idempotency_key, LastingKey) else None
    key = idempotency_key if lasting is None else lasting.key
    if not isinstance(key, str) or not 1 <= len(key) <= _MAX_KEY_LENGTH or not key.isprintable():
        raise InvalidRequest.at(where, f"must be a string of 1 to {_MAX_KEY_LENGTH} printable characters")
    try:
        digest = sha256(json_of(content)).hexdigest()
    except (TypeError, ValueError) as error:
        raise InvalidRequest.at(where, f"the request cannot be compared: {error}") from None
    return IdempotentRequest(
        # The prefix keeps these keys apart from the server's, which replay responses.
        operation=f"library {operation}",
        key=key,
        digest=digest,
        where=where,
        render=lambda made: StoredAnswer(body=remember(made)),
        idempotency_days=None if lasting is None else lasting.idempotency_days,
    )


def json_of(content: object) -> bytes:
    """Return content as canonical JSON.

    Raises:
        TypeError: It holds a value that JSON cannot represent.
    """
    return orjson.dumps(content, default=_plain, option=orjson.OPT_SORT_KEYS)


_LATER: Final = frozenset({"external_id", "metadata"})
"""Optional fields that requests of earlier versions had not: without them, a request is compared as it was then."""


def _plain(value: object) -> Any:
    kind: type[Any] = type(value)
    if attrs.has(kind):
        given = {field.name: getattr(value, field.name) for field in attrs.fields(kind)}
        return {name: item for name, item in given.items() if name not in _LATER or item is not None}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
