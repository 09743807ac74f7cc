"""API keys."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from outreach.core.clock import Clock
from outreach.errors import (
    InvalidRequest,
    NotFound,
    StorageError,
    Unauthorized,
)
from outreach.ledger import common
from outreach.ledger.common import existing, workspace_of
from outreach.models.base import Page
from outreach.models.fields import ListOf, OneOf, Text, check_value
from outreach.models.workspace import (
    API_SCOPES,
    DEFAULT_SCOPES,
    ApiAccess,
    ApiKey,
    ApiScope,
    CreatedApiKey,
)
from outreach.protocols.storage import Within
from outreach.services.context import ServiceContext
from outreach.services.idempotency import Idempotency
from outreach.services.lists import PageRequest, iterate
from outreach.storage.unit_of_work import Transaction

KEY_PREFIX: Final = "outreach_"
"""The prefix of every API key, by which people and secret scanners recognise one."""

_KEY_BYTES: Final = 32
_HINT_LENGTH: Final = len(KEY_PREFIX) + 6

_KEPT_SECONDS: Final = 0.5
"""Changes by other processes take effect within a second (docs/rules.md#due-work)."""

_MAX_KEPT: Final = 10_000


class ApiKeys:
    """The API keys of workspaces."""

    def __init__(self, context: ServiceContext, known_keys: ApiKeyCache) -> None:
        self._context = context
        self._known = known_keys
        self._keys = Idempotency(context)

    async def create(
        self,
        workspace_id: str,
        *,
        name: str = "",
        scopes: Sequence[ApiScope] = DEFAULT_SCOPES,
        idempotency_key: str | None = None,
        actor: str = "library",
    ) -> CreatedApiKey:
        """Create an API key; only its SHA-256 is stored, so the result is the only place with the key.

        Args:
            workspace_id: The workspace.
            name: Its purpose, up to 255 characters.
            scopes: What it may do, at least one of `send`, `manage` and `read` (docs/managing.md#scopes).
            idempotency_key: A name for it, such as `booking-1`: for a day, no second key is made under it.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The name is too long, or the scopes are none; or the idempotency key was used with others.
            Conflict: A key was made under the idempotency key before; its secret cannot be shown again.
            RequestInProgress: The first call with this idempotency key is still running.
        """
        check_value("name", name, Text(0, 255))
        allowed = _checked(scopes)
        secret = KEY_PREFIX + secrets.token_urlsafe(_KEY_BYTES)
        key = ApiKey(
            id=self._context.ids(),
            workspace_id=workspace_id,
            name=name,
            digest=_digest(secret),
            hint=secret[:_HINT_LENGTH],
            created_at=self._context.now(),
            revoked_at=None,
            scopes=allowed,
            made_by=actor,
        )

        def operation(tx: Transaction) -> CreatedApiKey:
            common.create_key(tx, key, actor=actor)
            return CreatedApiKey(id=key.id, api_key=secret)

        return await self._keys.written_once(
            workspace_id,
            "api_keys.create",
            idempotency_key,
            Within([workspace_id], operation),
            content=[name, allowed],
            remember=lambda made: made.id,
            again="A key was made by this request before, and cannot be shown again. If nobody has it, revoke key {id} "
            "and make another one.",
        )

    async def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[ApiKey]:
        """Return a page of a workspace's keys, revoked ones included, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("API keys", workspace_id, after=after, limit=limit)
        found = await self._context.storage.read(lambda tx: tx.keys.list(workspace_of(tx, workspace_id).id))
        return page_request.page_of_few(found)

    def iter_all(self, workspace_id: str) -> AsyncIterator[ApiKey]:
        """Iterate over a workspace's keys, revoked ones included, oldest first; see `list`."""
        return iterate(partial(self.list, workspace_id))

    async def get(self, workspace_id: str, key_id: str) -> ApiKey:
        """Return a key, revoked or not.

        Raises:
            NotFound: The workspace has no such key.
        """
        key = await self._context.storage.read(lambda tx: tx.keys.get(key_id))
        if key is None or key.workspace_id != workspace_id:
            raise NotFound("key", key_id)
        return key

    async def get_anywhere(self, key_id: str) -> ApiKey:
        """Return a key of any workspace, for operator commands that name a key alone.

        Raises:
            NotFound: No key has this id.
        """
        return await self._context.storage.read(lambda tx: existing(tx.keys.get(key_id), "key", key_id))

    async def revoke(self, workspace_id: str, key_id: str, *, actor: str = "library") -> ApiKey:
        """Revoke a key: in this process at once, in others within a second.

        Raises:
            NotFound: The workspace has no such key.
        """
        clock = self._context.clock
        try:
            return await self._context.storage.write_in(
                workspace_id, lambda tx: common.revoke_key(tx, workspace_id, key_id, now=clock.now(), actor=actor)
            )
        finally:
            self._known.forget()

    async def authenticate(self, api_key: str) -> ApiAccess:
        """Return the workspace of a key, whatever its status, and what the key may do there.

        A result is cached for half a second; a key revoked in this process stops working at once. The lookup by digest
        leaks nothing through timing: it depends only on the digest of the text that was sent.

        Raises:
            Unauthorized: The key is malformed, unknown or revoked.
        """
        given: object = api_key
        if not isinstance(given, str) or not given.startswith(KEY_PREFIX) or not given.isascii():
            raise Unauthorized(f"The API key is malformed. Keys begin with {KEY_PREFIX}.")
        digest = _digest(api_key)
        known = self._known.get(digest)
        if known is None:
            keep = self._known.start_lookup(digest)
            found, is_due = await self._context.storage.read(
                lambda tx: common.authenticate(tx, digest, self._context.now())
            )
            keep(found)
            known = found
            if is_due:
                # No request fails because another process writes just now.
                with suppress(StorageError):
                    await self._context.storage.write_in(
                        found.workspace.id, lambda tx: common.note_use_of_key(tx, digest, self._context.now())
                    )
        return known


def _checked(scopes: object) -> tuple[ApiScope, ...]:
    """Return scopes, each once, in the order of `API_SCOPES`."""
    given = check_value("scopes", scopes, ListOf(OneOf(API_SCOPES)))
    if not given:
        raise InvalidRequest.at("scopes", f"must have at least one of {', '.join(API_SCOPES)}")
    return tuple(scope for scope in API_SCOPES if scope in given)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class ApiKeyCache:
    """Caches what keys may do briefly, so that not every request reads it.

    Args:
        clock: Measures the age of entries.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._found: dict[str, tuple[ApiAccess, float]] = {}
        self._forgotten = 0

    def get(self, digest: str) -> ApiAccess | None:
        """Return what the key of a digest may do, if that is cached."""
        found = self._found.get(digest)
        if found is None:
            return None
        access, at = found
        if 0 <= self._clock.monotonic() - at < _KEPT_SECONDS:
            return access
        del self._found[digest]
        return None

    def start_lookup(self, digest: str) -> Callable[[ApiAccess], None]:
        """Return a function that caches the answer, which ages from now, unless `forget` is called before."""
        started_at, forgotten = self._clock.monotonic(), self._forgotten

        def keep(access: ApiAccess) -> None:
            if forgotten != self._forgotten:
                return
            if len(self._found) >= _MAX_KEPT:
                self._found.clear()
            self._found[digest] = (access, started_at)

        return keep

    def forget(self) -> None:
        """Drop all entries, after a key or a workspace has changed here."""
        self._found.clear()
        self._forgotten += 1
