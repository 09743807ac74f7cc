"""Workspaces and their keys."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.errors import NotFound, Unauthorized
from outreach.models.states import WorkspaceStatus
from outreach.models.workspace import ApiKey, Workspace
from outreach.operations import trail
from outreach.operations.common import note, touch_running, workspace_of
from outreach.operations.holds import rules_of
from outreach.protocols.storage import Transaction


@attrs.frozen(kw_only=True)
class WorkspaceChange:
    """What to change of a workspace; None leaves a field as it is.

    Attributes:
        unlimited_requests: Take the request limit away; it goes before `request_limit`.
        contact_hours: Whether people are contacted between 8 and 21 of their own clocks only.
        frequency_cap: How many dispatches may go to one number in 24 hours; 0 takes the cap away.
    """

    name: str | None = None
    status: WorkspaceStatus | None = None
    sms_campaigns_enabled: bool | None = None
    request_limit: int | None = None
    unlimited_requests: bool = False
    default_region: str | None = None
    contact_hours: bool | None = None
    frequency_cap: int | None = None


def create(tx: Transaction, workspace: Workspace, *, actor: str) -> Workspace:
    """Write a new workspace."""
    tx.workspaces.insert(workspace)
    note(
        tx,
        now=workspace.created_at,
        workspace_id=workspace.id,
        actor=actor,
        action="workspace.create",
        subject=workspace.id,
        detail=workspace.mode,
    )
    return workspace


def update(tx: Transaction, workspace_id: str, change: WorkspaceChange, *, now: datetime, actor: str) -> Workspace:
    """Change a workspace and return it; a running server heeds it at its next request or message.

    Raises:
        NotFound: There is no such workspace.
    """
    before = workspace_of(tx, workspace_id)
    after = attrs.evolve(
        before,
        name=before.name if change.name is None else change.name,
        status=before.status if change.status is None else change.status,
        sms_campaigns_enabled=(
            before.sms_campaigns_enabled if change.sms_campaigns_enabled is None else change.sms_campaigns_enabled
        ),
        request_limit=(
            None
            if change.unlimited_requests
            else before.request_limit
            if change.request_limit is None
            else change.request_limit
        ),
        default_region=before.default_region if change.default_region is None else change.default_region,
        contact_hours=before.contact_hours if change.contact_hours is None else change.contact_hours,
        frequency_cap=before.frequency_cap if change.frequency_cap is None else change.frequency_cap or None,
        revision=before.revision + 1,
        updated_at=now,
    )
    tx.workspaces.update(after)
    touch_running(tx, workspace_id, now)
    rules = rules_of(after) if rules_of(after) != rules_of(before) else None
    if after.status is not before.status or rules is not None:
        trail.workspace_moved(tx, workspace_id, after.status, reason=rules, actor=actor, now=now)
    changed = [
        f"{field.name}={getattr(after, field.name)}"
        for field in attrs.fields(Workspace)
        if field.name not in {"revision", "updated_at"} and getattr(after, field.name) != getattr(before, field.name)
    ]
    note(
        tx,
        now=now,
        workspace_id=workspace_id,
        actor=actor,
        action="workspace.update",
        subject=workspace_id,
        detail=", ".join(changed),
    )
    return after


def create_key(tx: Transaction, key: ApiKey, *, actor: str) -> ApiKey:
    """Write a new key.

    Raises:
        NotFound: There is no such workspace.
    """
    workspace_of(tx, key.workspace_id)
    tx.keys.insert(key)
    note(tx, now=key.created_at, workspace_id=key.workspace_id, actor=actor, action="key.create", subject=key.id)
    return key


def revoke_key(tx: Transaction, key_id: str, *, now: datetime, actor: str) -> ApiKey:
    """Make a key worthless; one that is revoked already stays as it is.

    Raises:
        NotFound: There is no such key.
    """
    key = tx.keys.get(key_id)
    if key is None:
        raise NotFound("key", key_id)
    if key.revoked_at is not None:
        return key
    revoked = attrs.evolve(key, revoked_at=now)
    tx.keys.update(revoked)
    note(tx, now=now, workspace_id=key.workspace_id, actor=actor, action="key.revoke", subject=key.id)
    return revoked


def authenticate(tx: Transaction, digest: str) -> Workspace:
    """Return the workspace that a key belongs to, whatever its status.

    Raises:
        Unauthorized: The key is unknown or revoked.
    """
    key = tx.keys.by_digest(digest)
    workspace = tx.workspaces.get(key.workspace_id) if key is not None and key.revoked_at is None else None
    if workspace is None:
        raise Unauthorized("The API key is not valid: it is none of this service, or was revoked.")
    return workspace
