"""Workspaces, their keys and their audit trail."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Final

import attrs

from outreach.errors import InvalidRequest, NotFound, Unauthorized
from outreach.models.states import WorkspaceMode, WorkspaceStatus
from outreach.models.work import AuditEntry
from outreach.models.workspace import DEFAULT_REQUEST_LIMIT, ApiKey, CreatedApiKey, Workspace, WorkspaceUpdate
from outreach.operations.access import workspaces as operations
from outreach.operations.common import record_audit, workspace_of
from outreach.policy.phones import is_region
from outreach.services.api_key_cache import ApiKeyCache
from outreach.services.context import ServiceContext
from outreach.services.validation import (
    check_choice,
    check_flags,
    check_integer,
    check_limit,
    check_name,
    validated_fields,
)
from outreach.working_set import Transaction

KEY_PREFIX: Final = "outreach_"
"""What every API key begins with, so that people and secret scanners recognise one."""

_KEY_BYTES: Final = 32
_HINT_LENGTH: Final = len(KEY_PREFIX) + 6


class Workspaces:
    """The tenants of the engine."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._known = ApiKeyCache(context.clock)

    async def create(
        self,
        name: str,
        *,
        mode: WorkspaceMode = WorkspaceMode.SANDBOX,
        sms_campaigns_enabled: bool = True,
        request_limit: int | None = DEFAULT_REQUEST_LIMIT,
        default_region: str | None = None,
        contact_hours: bool | None = None,
        frequency_cap: int | None = None,
        actor: str = "library",
    ) -> Workspace:
        """Make a workspace.

        Args:
            name: 1 to 255 characters.
            mode: A sandbox sends everything to the simulators.
            sms_campaigns_enabled: Whether SMS campaigns may be created (docs/interface.md#4.3, rule 1).
            request_limit: Requests a minute over all its keys; None for no limit.
            default_region: Region in which local numbers are read, such as `US`; None reads international ones only.
            contact_hours: Whether people are contacted between 8 and 21 of their own clocks only; None for yes in a
                live workspace and no in a sandbox.
            frequency_cap: How many dispatches may go to one number in 24 hours, over all campaigns; None for any.
            actor: Who does it, for the audit trail.

        Raises:
            InvalidRequest: A value is out of its bounds.
        """
        check_name("name", name, 255)
        check_choice("mode", mode, tuple(WorkspaceMode))
        check_flags({"sms_campaigns_enabled": sms_campaigns_enabled}, "sms_campaigns_enabled")
        if contact_hours is not None:
            check_flags({"contact_hours": contact_hours}, "contact_hours")
        _check_limit(request_limit)
        _check_region(default_region)
        _check_cap(frequency_cap)
        mode = WorkspaceMode(mode)
        now = self._context.now()
        workspace = Workspace(
            id=self._context.ids(),
            name=name,
            mode=mode,
            status=WorkspaceStatus.ACTIVE,
            sms_campaigns_enabled=sms_campaigns_enabled,
            request_limit=request_limit,
            default_region=default_region,
            revision=0,
            created_at=now,
            updated_at=now,
            contact_hours=mode is WorkspaceMode.LIVE if contact_hours is None else contact_hours,
            frequency_cap=frequency_cap,
        )
        return await self._context.storage.write(lambda tx: operations.create(tx, workspace, actor=actor))

    async def update(self, workspace_id: str, change: WorkspaceUpdate, *, actor: str = "library") -> Workspace:
        """Change a workspace; a running server heeds it within a second.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A value is out of its bounds.
        """
        changes = validated_fields(
            change, WorkspaceUpdate, clearable=("request_limit", "default_region", "frequency_cap")
        )
        if "name" in changes:
            check_name("name", changes["name"], 255)
        if "status" in changes:
            check_choice("status", changes["status"], tuple(WorkspaceStatus))
            change = attrs.evolve(change, status=WorkspaceStatus(changes["status"]))
        check_flags(changes, "sms_campaigns_enabled", "contact_hours")
        _check_limit(changes.get("request_limit"))
        _check_region(changes.get("default_region"))
        _check_cap(changes.get("frequency_cap"))
        clock = self._context.clock
        try:
            return await self._context.storage.write(
                lambda tx: operations.update(tx, workspace_id, change, now=clock.now(), actor=actor)
            )
        finally:
            self._known.forget()

    async def get(self, workspace_id: str) -> Workspace:
        """Return a workspace.

        Raises:
            NotFound: There is no such workspace.
        """
        return await self._context.storage.read(lambda tx: workspace_of(tx, workspace_id))

    async def list(self) -> Sequence[Workspace]:
        """Return all workspaces, oldest first."""
        return await self._context.storage.read(lambda tx: tx.workspaces.list())

    async def create_key(self, workspace_id: str, *, name: str = "", actor: str = "library") -> CreatedApiKey:
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

    async def list_keys(self, workspace_id: str) -> Sequence[ApiKey]:
        """Return a workspace's keys, revoked ones included, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return await self._context.storage.read(lambda tx: tx.keys.list(workspace_of(tx, workspace_id).id))

    async def find_key(self, key_id: str) -> ApiKey:
        """Return a key of whatever workspace: for operators, whose commands name keys alone.

        Raises:
            NotFound: There is no such key.
        """
        key = await self._context.storage.read(lambda tx: tx.keys.get(key_id))
        if key is None:
            raise NotFound("key", key_id)
        return key

    async def revoke_key(self, workspace_id: str, key_id: str, *, actor: str = "library") -> ApiKey:
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

    async def audit(self, workspace_id: str | None = None, *, limit: int = 1000) -> Sequence[AuditEntry]:
        """Return the newest entries of the audit trail, of a workspace or of all, newest first.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The limit is none.
        """
        check_limit(limit)

        def operation(tx: Transaction) -> Sequence[AuditEntry]:
            _require(tx, workspace_id)
            return tx.audit.list(workspace_id, limit=limit)

        return await self._context.storage.read(operation)

    async def note(self, workspace_id: str | None, *, actor: str, action: str, subject: str) -> None:
        """Append to the audit trail what an embedding application did.

        Raises:
            NotFound: There is no such workspace.
        """
        now = self._context.now()

        def operation(tx: Transaction) -> None:
            _require(tx, workspace_id)
            record_audit(tx, now=now, workspace_id=workspace_id, actor=actor, action=action, subject=subject)

        await self._context.storage.write(operation)


def _require(tx: Transaction, workspace_id: str | None) -> None:
    if workspace_id is not None:
        workspace_of(tx, workspace_id)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _check_limit(limit: int | None) -> None:
    if limit is not None:
        check_integer("request_limit", limit, 1, 1_000_000)


def _check_cap(cap: int | None) -> None:
    if cap is not None:
        check_integer("frequency_cap", cap, 1, 1000)


def _check_region(region: object) -> None:
    if region is not None and not (isinstance(region, str) and is_region(region)):
        raise InvalidRequest.at("default_region", f"{region!r} is no region; use two capital letters such as US")
