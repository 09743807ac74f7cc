"""Requests that may safely be sent again."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

import anyio
import attrs

from outreach.errors import RequestInProgress
from outreach.operations import requests as operations
from outreach.operations.requests import Answer
from outreach.protocols.storage import Transaction
from outreach.services.context import ServiceContext

_POLL_SECONDS: Final = 0.05


@attrs.frozen(kw_only=True)
class Claim:
    """An idempotency key that this request holds.

    What a service makes under a claim is stored together with the answer, in one transaction.
    """

    workspace_id: str
    operation: str
    key: str
    token: str

    def keep(self, tx: Transaction, context: ServiceContext) -> None:
        """Keep the key for another while, within a transaction.

        Raises:
            RequestInProgress: Another request has taken the key over.
        """
        operations.keep(tx, self.workspace_id, self.operation, self.key, token=self.token, now=context.now())

    def finish(self, tx: Transaction, answer: Answer, context: ServiceContext, *, settled: bool = True) -> None:
        """Store the answer, within a transaction; one that is not settled is followed by another.

        Raises:
            RequestInProgress: Another request has taken the key over.
        """
        operations.finish(
            tx,
            self.workspace_id,
            self.operation,
            self.key,
            token=self.token,
            answer=answer,
            now=context.now(),
            settled=settled,
        )


@attrs.frozen(kw_only=True)
class Attempt:
    """How a request with an idempotency key goes on.

    Attributes:
        claim: The key, when this request is the one that does the work; None for a replay.
        replay: The first answer, when there is one already.
    """

    claim: Claim | None
    replay: Answer | None


class Requests:
    """Requests with an idempotency key."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    @asynccontextmanager
    async def idempotent(
        self, workspace_id: str, operation: str, key: str, body: bytes | None = None, *, digest: str | None = None
    ) -> AsyncIterator[Attempt]:
        """Hold an idempotency key while a request runs.

        While another request holds it, wait for that one's answer. Leaving with an exception gives the key
        back, so that a refused request is not stored.

        Args:
            workspace_id: Whose request it is.
            operation: The operation's name; keys of different operations do not meet.
            key: The client's key.
            body: The raw body; the same key with another body is refused.
            digest: The SHA-256 of the raw body in hexadecimal instead, where the body is not in memory.

        Raises:
            InvalidRequest: The key was used with another body.
            RequestInProgress: The first request still ran after the longest wait.
        """
        fingerprint = digest if digest is not None else hashlib.sha256(body or b"").hexdigest()
        attempt = await self._begin(workspace_id, operation, key, fingerprint)
        try:
            yield attempt
        except BaseException:
            claim = attempt.claim
            if claim is not None:
                with anyio.CancelScope(shield=True):
                    await self._context.storage.write(
                        lambda tx: operations.give_up(tx, workspace_id, operation, key, token=claim.token)
                    )
            raise

    async def _begin(self, workspace_id: str, operation: str, key: str, fingerprint: str) -> Attempt:
        context = self._context
        token = context.ids()
        keep = timedelta(seconds=context.config.idempotency_seconds)
        give_up_at = context.clock.monotonic() + context.config.idempotency_wait_seconds
        while True:
            begun = await context.storage.write(
                lambda tx: operations.begin(
                    tx,
                    workspace_id,
                    operation,
                    key,
                    fingerprint=fingerprint,
                    token=token,
                    now=context.now(),
                    keep=keep,
                )
            )
            if begun.state == "replay":
                return Attempt(claim=None, replay=begun.answer)
            if begun.state == "mine":
                claim = Claim(workspace_id=workspace_id, operation=operation, key=key, token=token)
                return Attempt(claim=claim, replay=None)
            if context.clock.monotonic() >= give_up_at:
                raise RequestInProgress
            await anyio.sleep(_POLL_SECONDS)
