"""Users, their roles and their links, within a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from outreach.errors import Conflict, NotFound, Unauthorized
from outreach.ledger.common import existing, record_audit, workspace_of
from outreach.models.user import Invitation, Membership, RecoveryCode, Role, StoredUser, User
from outreach.storage.unit_of_work import AlreadyExists, Transaction

LINK_NOT_VALID = "This link is not valid: it was used, has expired, or was withdrawn. Have a new one made."


def user_of(tx: Transaction, user_id: str) -> StoredUser:
    """Return a user, or raise `NotFound`."""
    return existing(tx.users.get(user_id), "user", user_id)


def shown(user: StoredUser) -> User:
    """Return a user without secrets."""
    return User(
        id=user.id,
        email=user.email,
        name=user.name,
        operator=user.operator,
        has_password=user.password is not None,
        has_second_factor=user.totp_since is not None,
        time_zone=user.time_zone,
        phone=user.phone,
        created_at=user.created_at,
        last_seen_at=user.last_seen_at,
        disabled_at=user.disabled_at,
    )


def create(tx: Transaction, user: StoredUser, *, actor: str) -> StoredUser:
    """Write a new user, or raise `Conflict` if the address is another user's."""
    try:
        tx.users.insert(user)
    except AlreadyExists:
        raise Conflict("There is a user with this e-mail address already.") from None
    note(tx, user, "user.create", now=user.created_at, actor=actor, detail="operator" if user.operator else None)
    return user


def note(
    tx: Transaction,
    user: StoredUser,
    action: str,
    *,
    now: datetime,
    actor: str,
    detail: str | None = None,
    workspace_id: str | None = None,
) -> None:
    """Append to the audit log what was done with a user."""
    record_audit(tx, workspace_id, action, user.id, actor=actor, now=now, detail=detail)


def set_role(
    tx: Transaction,
    workspace_id: str,
    user_id: str,
    role: Role | None,
    *,
    now: datetime,
    actor: str,
    invited_by: str | None = None,
) -> Membership | None:
    """Give a user a role in a workspace, or None; a change ends the user's sessions.

    The user's open invitations to the workspace are withdrawn: each would bring an earlier role back.

    Args:
        tx: The transaction.
        workspace_id: The workspace.
        user_id: The user.
        role: The role; None to remove the user from the workspace.
        now: The current time.
        actor: Recorded in the audit trail.
        invited_by: The maker of the invitation that the user accepts, for the audit trail; None without one.

    Raises:
        NotFound: There is no such workspace or user.
        Conflict: The user is the last owner.
    """
    workspace_of(tx, workspace_id)
    user = user_of(tx, user_id)
    for one in tx.invitations.list(workspace_id):
        if one.used_at is None and one.email == user.email:
            withdraw(tx, one, now=now, actor=actor, workspace_id=workspace_id)
    known = tx.memberships.get(workspace_id, user_id)
    if (known.role if known is not None else None) == role:
        return known
    if known is not None and known.role is Role.OWNER:
        _require_other_owner(tx, workspace_id, user)
        _withdraw_made_by(tx, user_id, workspace_id, now=now, actor=actor)
    after = None
    if role is None:
        tx.memberships.delete(workspace_id, user_id)
    else:
        created_at = known.created_at if known is not None else now
        after = Membership(workspace_id=workspace_id, user_id=user_id, role=role, created_at=created_at)
        tx.memberships.put(after)
    tx.sessions.end_of_user(user_id, now)
    detail = (role or "none") + (f", invited by {invited_by}" if invited_by is not None else "")
    note(tx, user, "user.role", now=now, actor=actor, detail=detail, workspace_id=workspace_id)
    return after


def set_operator(tx: Transaction, user_id: str, operator: bool, *, now: datetime, actor: str) -> StoredUser:
    """Make a user an operator or not, or raise `NotFound`; a change ends the user's sessions."""
    user = user_of(tx, user_id)
    if user.operator == operator:
        return user
    after = attrs.evolve(user, operator=operator)
    tx.users.update(after)
    tx.sessions.end_of_user(user_id, now)
    note(tx, user, "user.operator", now=now, actor=actor, detail="yes" if operator else "no")
    return after


def disable(
    tx: Transaction, user_id: str, *, disabled: bool, now: datetime, actor: str, workspace_id: str | None
) -> StoredUser:
    """Disable or enable a user; to disable ends the sessions, and withdraws the links to a new password.

    Args:
        tx: The transaction.
        user_id: The user.
        disabled: Whether to disable the user.
        now: The current time.
        actor: Recorded in the audit trail.
        workspace_id: The workspace whose owner does it, for the audit trail; None for an operator.

    Raises:
        NotFound: There is no such user.
        Conflict: The user is the last owner of a workspace.
    """
    user = user_of(tx, user_id)
    if (user.disabled_at is not None) == disabled:
        return user
    if disabled:
        for membership in tx.memberships.of_user(user_id):
            if membership.role is Role.OWNER:
                _require_other_owner(tx, membership.workspace_id, user)
                _withdraw_made_by(tx, user_id, membership.workspace_id, now=now, actor=actor)
        tx.sessions.end_of_user(user_id, now)
        withdraw_resets(tx, user_id, now=now, actor=actor, workspace_id=workspace_id)
    after = attrs.evolve(user, disabled_at=now if disabled else None)
    tx.users.update(after)
    action = "user.disable" if disabled else "user.enable"
    note(tx, user, action, now=now, actor=actor, workspace_id=workspace_id)
    return after


def _require_other_owner(tx: Transaction, workspace_id: str, user: StoredUser) -> None:
    for one in tx.memberships.of_workspace(workspace_id):
        if one.role is Role.OWNER and one.user_id != user.id and user_of(tx, one.user_id).disabled_at is None:
            return
    if user.disabled_at is None:
        raise Conflict(f"This user is the last owner of workspace {workspace_id}. Make another user an owner first.")


def _withdraw_made_by(tx: Transaction, user_id: str, workspace_id: str, *, now: datetime, actor: str) -> None:
    """Withdraw the links of somebody who is no owner any more, who may have made some in advance."""
    for one in (*tx.invitations.list(workspace_id), *tx.invitations.list(None)):
        if one.used_at is None and one.made_by == f"user:{user_id}":
            # An operator may have made a link to the account of a user of another workspace.
            is_here = one.user_id is None or tx.memberships.get(workspace_id, one.user_id) is not None
            withdraw(tx, one, now=now, actor=actor, workspace_id=workspace_id if is_here else None)


def require_member(tx: Transaction, workspace_id: str, user_id: str) -> None:
    """Check that a user has rights in one workspace only: a person with a link to the account takes over its rights.

    Raises:
        NotFound: There is no such workspace, or it has no such user.
        Conflict: The user operates the server, or belongs to another workspace, too.
    """
    workspace_of(tx, workspace_id)
    if tx.memberships.get(workspace_id, user_id) is None:
        raise NotFound("user", user_id)
    if user_of(tx, user_id).operator or len(tx.memberships.of_user(user_id)) > 1:
        raise Conflict(
            "This user has rights outside this workspace: only an operator does this, with `outreach-server users`."
        )


def invitation_of(tx: Transaction, digest: str, now: datetime) -> Invitation:
    """Return the invitation of a link that can be used, or raise `Unauthorized`."""
    found = tx.invitations.by_digest(digest)
    if found is None or not found.is_open(now):
        raise Unauthorized(LINK_NOT_VALID)
    if found.kind == "setup" and tx.users.exists_any():
        raise Unauthorized(LINK_NOT_VALID)
    user = tx.users.get(found.user_id) if found.user_id is not None else None
    if (user is not None and user.disabled_at is not None) or not _maker_still_may(tx, found, user):
        raise Unauthorized(LINK_NOT_VALID)
    return found


def _maker_still_may(tx: Transaction, invitation: Invitation, user: StoredUser | None) -> bool:
    """Return whether the user who made a link could make it now: an operator, or an owner of what it opens.

    A link that was not made by a user is valid by itself.
    """
    kind, _, identifier = invitation.made_by.partition(":")
    maker = tx.users.get(identifier) if kind == "user" else None
    if maker is None:
        return True
    if maker.disabled_at is not None or (user is not None and user.operator and not maker.operator):
        return False
    opened = {invitation.workspace_id}
    if user is not None:
        opened = {one.workspace_id for one in tx.memberships.of_user(user.id)}
    owned = {one.workspace_id for one in tx.memberships.of_user(maker.id) if one.role is Role.OWNER}
    return maker.operator or (bool(opened) and opened <= owned)


def use(tx: Transaction, invitation: Invitation, now: datetime) -> None:
    """Mark an invitation as used or withdrawn."""
    tx.invitations.update(attrs.evolve(invitation, used_at=now))


def note_link(
    tx: Transaction, invitation: Invitation, action: str, *, now: datetime, actor: str, workspace_id: str | None
) -> None:
    """Append to the audit log what was done with a link."""
    subject, detail = invitation.user_id or invitation.id, invitation.role
    record_audit(tx, workspace_id, action, subject, actor=actor, now=now, detail=detail)


def withdraw(tx: Transaction, invitation: Invitation, *, now: datetime, actor: str, workspace_id: str | None) -> None:
    """Withdraw a link, so that it is not valid any more."""
    use(tx, invitation, now)
    note_link(tx, invitation, "user.withdraw", now=now, actor=actor, workspace_id=workspace_id)


def withdraw_resets(
    tx: Transaction, user_id: str, *, now: datetime, actor: str, workspace_id: str | None = None
) -> None:
    """Withdraw the links by which a user may choose a password."""
    for one in tx.invitations.list(None):
        if one.user_id == user_id and one.used_at is None:
            withdraw(tx, one, now=now, actor=actor, workspace_id=workspace_id)


def set_password(
    tx: Transaction, user: StoredUser, hashed: str, *, now: datetime, actor: str, but: str = ""
) -> StoredUser:
    """Write the hash of a new password, and end the user's sessions, but for one; links to reset it are withdrawn."""
    after = attrs.evolve(user, password=hashed)
    tx.users.update(after)
    tx.sessions.end_of_user(user.id, now, but=but)
    withdraw_resets(tx, user.id, now=now, actor=actor)
    note(tx, user, "user.password", now=now, actor=actor)
    return after


def remove_second_factor(
    tx: Transaction, user: StoredUser, *, now: datetime, actor: str, workspace_id: str | None = None
) -> StoredUser:
    """Remove a user's second factor and the recovery codes."""
    after = attrs.evolve(user, totp=None, totp_since=None, totp_step=None)
    tx.users.update(after)
    tx.recovery_codes.replace(user.id, [])
    if user.totp_since is not None:
        note(tx, user, "user.second_factor", now=now, actor=actor, detail="removed", workspace_id=workspace_id)
    return after


def replace_codes(tx: Transaction, user: StoredUser, digests: Sequence[str], *, now: datetime, actor: str) -> None:
    """Write a user's new recovery codes; the earlier ones are not valid any more."""
    tx.recovery_codes.replace(user.id, [RecoveryCode(user_id=user.id, digest=digest) for digest in digests])
    note(tx, user, "user.recovery_codes", now=now, actor=actor)
