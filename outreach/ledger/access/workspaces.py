"""Workspaces and their keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.errors import NotFound, Unauthorized
from outreach.ledger.campaigns import trail
from outreach.ledger.common import record_audit, wake_running_campaigns, workspace_of
from outreach.models.base import set_fields
from outreach.models.hours import PlaceHours
from outreach.models.workspace import ApiAccess, ApiKey, Workspace, WorkspaceUpdate
from outreach.rules.holding import contact_rules_key
from outreach.storage.unit_of_work import Transaction

_NOTED_EVERY: Final = timedelta(hours=1)


def create(tx: Transaction, workspace: Workspace, *, actor: str) -> Workspace:
    """Write a new workspace."""
    tx.workspaces.insert(workspace)
    record_audit(
        tx,
        now=workspace.created_at,
        workspace_id=workspace.id,
        actor=actor,
        action="workspace.create",
        subject=workspace.id,
        detail=workspace.mode,
    )
    return workspace


def update(tx: Transaction, workspace_id: str, change: WorkspaceUpdate, *, now: datetime, actor: str) -> Workspace:
    """Change a workspace and return it, or raise `NotFound`; its next request or message sees the change."""
    before = workspace_of(tx, workspace_id)
    after = attrs.evolve(before, **set_fields(change), revision=before.revision + 1, updated_at=now)
    tx.workspaces.update(after)
    wake_running_campaigns(tx, workspace_id, now)
    rules = contact_rules_key(after) if contact_rules_key(after) != contact_rules_key(before) else None
    if after.status is not before.status or rules is not None:
        trail.record_workspace_status(tx, workspace_id, after.status, reason=rules, actor=actor, now=now)
    changed = [
        f"{field.name}={_in_words(getattr(after, field.name))}"
        for field in attrs.fields(Workspace)
        if field.name not in {"revision", "updated_at"} and getattr(after, field.name) != getattr(before, field.name)
    ]
    record_audit(
        tx,
        now=now,
        workspace_id=workspace_id,
        actor=actor,
        action="workspace.update",
        subject=workspace_id,
        detail=", ".join(changed),
    )
    return after


def _in_words(value: object) -> object:
    """Return the value of a field, as the audit trail tells it: of hours of places, which places."""
    if isinstance(value, tuple) and all(isinstance(one, PlaceHours) for one in value):
        return " ".join(f"{one.place} ({one.source})" for one in value)
    return value


def create_key(tx: Transaction, key: ApiKey, *, actor: str) -> ApiKey:
    """Write a new key, or raise `NotFound` if there is no such workspace."""
    workspace_of(tx, key.workspace_id)
    tx.keys.insert(key)
    record_audit(
        tx,
        now=key.created_at,
        workspace_id=key.workspace_id,
        actor=actor,
        action="key.create",
        subject=key.id,
        detail=", ".join(key.scopes),
    )
    return key


def revoke_key(tx: Transaction, workspace_id: str, key_id: str, *, now: datetime, actor: str) -> ApiKey:
    """Revoke a key, or raise `NotFound`; a revoked one stays as it is."""
    key = tx.keys.get(key_id)
    if key is None or key.workspace_id != workspace_id:
        raise NotFound("key", key_id)
    if key.revoked_at is not None:
        return key
    revoked = attrs.evolve(key, revoked_at=now)
    tx.keys.update(revoked)
    record_audit(tx, now=now, workspace_id=key.workspace_id, actor=actor, action="key.revoke", subject=key.id)
    return revoked


def authenticate(tx: Transaction, digest: str, now: datetime) -> tuple[ApiAccess, bool]:
    """Return what a key may do, in a workspace of any status, and whether its use is to be noted.

    Raises:
        Unauthorized: It is unknown or revoked.
    """
    key = tx.keys.by_digest(digest)
    if key is not None and key.revoked_at is None:
        workspace = tx.workspaces.get(key.workspace_id)
        if workspace is not None:
            return ApiAccess(workspace=workspace, scopes=key.scopes), _needs_note(key, now)
    raise Unauthorized("The API key is not valid: it is unknown, or was revoked.")


def note_use_of_key(tx: Transaction, digest: str, now: datetime) -> None:
    """Note that a key is used, unless that was noted lately or it was revoked."""
    key = tx.keys.by_digest(digest)
    if key is not None and key.revoked_at is None and _needs_note(key, now):
        tx.keys.update(attrs.evolve(key, last_used_at=now))


def _needs_note(key: ApiKey, now: datetime) -> bool:
    return key.last_used_at is None or now >= key.last_used_at + _NOTED_EVERY
