"""What is done once under an idempotency key, however often it is asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final, Generic, Protocol, TypeVar

import anyio
import attrs
import orjson

from outreach.errors import InvalidRequest, NotFound, RequestInProgress
from outreach.models.http import IdempotentRequest, StoredAnswer
from outreach.operations.access import idempotency as operations
from outreach.operations.common import workspace_of
from outreach.protocols.storage import Operation
from outreach.services.context import ServiceContext
from outreach.working_set import Transaction

M = TypeVar("M")

_POLL_SECONDS: Final = 0.05
_MAX_KEY_LENGTH: Final = 255


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


I = TypeVar("I", bound=_Identified)  # noqa: E741 - M is what is made, I what is made and has an identifier


class IdempotencyGuard(Generic[M]):
    """What the making of one thing owes to its idempotency key; nothing where it has none.

    It holds the key and knows what the key replays, so that neither is ever there without the other.
    """

    def keep(self, tx: Transaction) -> None:
        """Keep the key for another while, within a transaction.

        Raises:
            RequestInProgress: Another request has taken the key over.
        """

    def finish(self, tx: Transaction, made: M, *, settled: bool = True) -> None:
        """Store what the key replays, in the transaction that makes it; what is not settled is followed by more.

        Raises:
            RequestInProgress: Another request has taken the key over.
        """


class _Held(IdempotencyGuard[M]):
    """An idempotency key that this request holds."""

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
        self.settled = False

    def keep(self, tx: Transaction) -> None:
        operations.renew_claim(tx, *self._place, token=self._token, now=self._context.now())

    def finish(self, tx: Transaction, made: M, *, settled: bool = True) -> None:
        operations.store_answer(
            tx, *self._place, token=self._token, answer=self._render(made), now=self._context.now(), settled=settled
        )
        # Also where the transaction fails after this: then its error ends the request, and the key is given back.
        self.settled = settled

    def give_up(self, tx: Transaction) -> None:
        """Forget the key, unless something was made under it."""
        operations.release_claim(tx, *self._place, token=self._token)


class Idempotency:
    """Does what is asked for under an idempotency key once, and replays it after that."""

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

        While another request holds the key, wait for that one. An error gives the key back, so that a request that
        was refused may be corrected. A `make` that has not finished its key has it finished here.

        Args:
            workspace_id: Whose request it is.
            request: The key and what is asked for; None makes it without any.
            render: Makes what the key replays, within the transaction that makes the thing.
            make: Makes the thing.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The key was used for something else.
            RequestInProgress: The first request still ran after the longest wait.
        """
        if request is None:
            return await make(IdempotencyGuard())
        token = self._context.ids()
        replay = await self._begin(workspace_id, request, token)
        if replay is not None:
            return replay
        held = _Held(self._context, workspace_id, request, token=token, render=render)
        try:
            made = await make(held)
            if not held.settled:
                await self._context.storage.write(lambda tx: held.finish(tx, made))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._context.storage.write(held.give_up)
            raise
        return made

    async def answer(
        self,
        workspace_id: str,
        request: IdempotentRequest | None,
        *,
        render: Callable[[M], StoredAnswer],
        make: Callable[[IdempotencyGuard[M]], Awaitable[M]],
    ) -> StoredAnswer:
        """Make something for an HTTP server, and return what it answers: the same that the key replays; see `once`."""
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
        """Make something for a program that embeds the engine; what a key replays is the thing, as it is then.

        Args:
            workspace_id: Whose it is.
            operation: The operation's name.
            idempotency_key: The program's key; None makes it without any.
            content: All that is asked for, which the same key has to come with each time.
            make: Makes the thing.
            find: Finds the thing by its identifier.
            kind: What it is, for people.

        Raises:
            NotFound: There is no such workspace, or what the key made has been removed since.
            InvalidRequest: The key is none, or was used for something else.
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
        """Make something by one transaction, which stores the key too; see `model`."""

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
            await anyio.sleep(_POLL_SECONDS)


def finished(tx: Transaction, made: M, once: IdempotencyGuard[M]) -> M:
    """Store what the key replays, and return what was made."""
    once.finish(tx, made)
    return made


def library_request(operation: str, idempotency_key: str | None, content: object) -> IdempotentRequest | None:
    """Return what a program that embeds the engine asks for under a key; None where it names none.

    Raises:
        InvalidRequest: The key is no text of 1 to 255 characters, or the content cannot be compared.
    """
    if idempotency_key is None:
        return None
    where = "idempotency_key"
    given: object = idempotency_key
    if not isinstance(given, str) or not 1 <= len(given) <= _MAX_KEY_LENGTH or not given.isprintable():
        raise InvalidRequest.at(where, f"must be a text of 1 to {_MAX_KEY_LENGTH} printable characters")
    try:
        digest = sha256(json_of(content)).hexdigest()
    except (TypeError, ValueError) as error:
        raise InvalidRequest.at(where, f"what is asked for cannot be compared: {error}") from None
    # Another name than the server's operations have: what those replay are answers, and no identifiers.
    return IdempotentRequest(operation=f"library {operation}", key=given, digest=digest, where=where)


def json_of(content: object) -> bytes:
    """Return content as JSON that is the same for what is the same.

    Raises:
        TypeError: It holds what is no JSON.
    """
    return orjson.dumps(content, default=_plain, option=orjson.OPT_SORT_KEYS)


def _plain(value: object) -> Any:
    kind: type[Any] = type(value)
    if attrs.has(kind):
        return {field.name: getattr(value, field.name) for field in attrs.fields(kind)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")
