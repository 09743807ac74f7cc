"""API keys: what a request over HTTP shows to be of a workspace."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Final

from outreach.errors import NotFound, Unauthorized
from outreach.models.workspace import ApiKey, CreatedApiKey, Workspace
from outreach.operations.access import workspaces as operations
from outreach.operations.common import workspace_of
from outreach.services.api_key_cache import ApiKeyCache
from outreach.services.context import ServiceContext
from outreach.services.validation import check_name

KEY_PREFIX: Final = "outreach_"
"""What every API key begins with, so that people and secret scanners recognise one."""

_KEY_BYTES: Final = 32
_HINT_LENGTH: Final = len(KEY_PREFIX) + 6


class ApiKeys:
    """The API keys of workspaces."""

    def __init__(self, context: ServiceContext, known_keys: ApiKeyCache) -> None:
        self._context = context
        self._known = known_keys

    async def create(self, workspace_id: str, *, name: str = "", actor: str = "library") -> CreatedApiKey:
        """Make an API key. The key is in the answer and nowhere else: only its SHA-256 is stored.

        Raises:
            NotFound: There is no such workspace.
        """
        check_name("name", name, 255, minimum=0)
        secret = KEY_PREFIX + secrets.token_urlsafe(_KEY_BYTES)
        key = ApiKey(
            id=self._context.ids(),
            workspace_id=workspace_id,
            name=name,
            digest=_digest(secret),
            hint=secret[:_HINT_LENGTH],
            created_at=self._context.now(),
            revoked_at=None,
        )
        await self._context.storage.write(lambda tx: operations.create_key(tx, key, actor=actor))
        return CreatedApiKey(id=key.id, api_key=secret)

    async def list(self, workspace_id: str) -> Sequence[ApiKey]:
        """Return a workspace's keys, revoked ones included, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return await self._context.storage.read(lambda tx: tx.keys.list(workspace_of(tx, workspace_id).id))

    async def get_anywhere(self, key_id: str) -> ApiKey:
        """Return a key of whatever workspace: for operators, whose commands name keys alone.

        Raises:
            NotFound: There is no such key.
        """
        key = await self._context.storage.read(lambda tx: tx.keys.get(key_id))
        if key is None:
            raise NotFound("key", key_id)
        return key

    async def revoke(self, workspace_id: str, key_id: str, *, actor: str = "library") -> ApiKey:
        """Make a key worthless: in this process at once, in others within a second.

        Raises:
            NotFound: The workspace has no such key.
        """
        clock = self._context.clock
        try:
            return await self._context.storage.write(
                lambda tx: operations.revoke_key(tx, workspace_id, key_id, now=clock.now(), actor=actor)
            )
        finally:
            self._known.forget()

    async def authenticate(self, api_key: str) -> Workspace:
        """Return the workspace that a key belongs to, whatever its status.

        What was found is believed for half a second: a key that another process revokes is worthless within that, one
        that is revoked here at once. The key is looked up by its digest: what an attacker could learn from timing is
        about the digest of what he sent, which tells him nothing of any key.

        Raises:
            Unauthorized: The key is malformed, unknown or revoked.
        """
        given: object = api_key
        if not isinstance(given, str) or not given.startswith(KEY_PREFIX) or not given.isascii():
            raise Unauthorized(f"The API key is malformed. Keys begin with {KEY_PREFIX}.")
        digest = _digest(api_key)
        known = self._known.get(digest)
        if known is None:
            asked = self._known.asked()
            known = await self._context.storage.read(lambda tx: operations.authenticate(tx, digest))
            self._known.keep(digest, known, asked)
        return known


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
