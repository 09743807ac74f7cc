"""Users, their roles, sessions, invitations, recovery codes and failed logins: of the database, not of a workspace."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from outreach.core.clock import format_timestamp
from outreach.models.user import IDLE, Invitation, LoginFailures, Membership, RecoveryCode, Session, StoredUser
from outreach.storage.unit_of_work.kinds import (
    INVITATIONS,
    LOGIN_FAILURES,
    MEMBERSHIPS,
    RECOVERY_CODES,
    SESSIONS,
    USERS,
)
from outreach.storage.unit_of_work.tables.base import KindTable, Table, json_list


class Users(KindTable[StoredUser]):
    """Users; the e-mail address is unique."""

    def get(self, user_id: str) -> StoredUser | None:
        """Return a user."""
        return self._rows.get(USERS, (user_id,))

    def prefetch(self, user_ids: Iterable[str]) -> None:
        """Read users together, so that `get` finds them."""
        self._rows.prefetch(USERS, ((user_id,) for user_id in user_ids))

    def by_email(self, email: str) -> StoredUser | None:
        """Return the user with a folded address."""
        return self._one(USERS, "users.by_email", email=email)

    def exists_any(self) -> bool:
        """Return whether there is any user."""
        return self._one(USERS, "users.any_user") is not None

    def page(self, *, after: str = "", limit: int) -> Sequence[StoredUser]:
        """Return the users with an identifier behind `after`, by identifier."""
        return self._list(USERS, "users.page_of_users", after=after, limit=limit)


class Memberships(Table):
    """The roles of users, at most one in a workspace."""

    def get(self, workspace_id: str, user_id: str) -> Membership | None:
        """Return the role of a user in a workspace."""
        return self._rows.get(MEMBERSHIPS, (workspace_id, user_id))

    def put(self, membership: Membership) -> None:
        """Write a role."""
        self._rows.put(MEMBERSHIPS, MEMBERSHIPS.key_of(membership), membership)

    def delete(self, workspace_id: str, user_id: str) -> bool:
        """Remove a role; return whether there was one."""
        return self._rows.delete(MEMBERSHIPS, (workspace_id, user_id))

    def of_workspace(self, workspace_id: str) -> Sequence[Membership]:
        """Return all roles in a workspace, oldest first by (created_at, user)."""
        return self._list(MEMBERSHIPS, "users.of_workspace", workspace_id=workspace_id)

    def of_user(self, user_id: str) -> Sequence[Membership]:
        """Return all roles of a user, oldest first by (created_at, workspace)."""
        return self._list(MEMBERSHIPS, "users.of_user", user_id=user_id)


class Sessions(KindTable[Session]):
    """Sessions, ended ones included; the digest is unique."""

    def get(self, session_id: str) -> Session | None:
        """Return a session."""
        return self._rows.get(SESSIONS, (session_id,))

    def by_digest(self, digest: str) -> Session | None:
        """Return the session with this digest, ended or not."""
        return self._one(SESSIONS, "users.session_by_digest", digest=digest)

    def of_user(self, user_id: str, *, limit: int) -> Sequence[Session]:
        """Return the latest sessions of a user, the newest first by (created_at, id)."""
        return self._list(SESSIONS, "users.sessions_of_user", user_id=user_id, limit=limit)

    def count_open(self, user_ids: Collection[str], now: datetime) -> Mapping[str, int]:
        """Return how many sessions of users last at a moment, by user; a user without any is not there."""
        if not user_ids:
            return {}
        moments = {"now": format_timestamp(now), "idle_since": format_timestamp(now - IDLE)}
        rows = self._rows.query("users.open_sessions", SESSIONS, ids=json_list(user_ids), **moments)
        return {row[0]: int(row[1]) for row in rows}

    def end_of_user(self, user_id: str, now: datetime, *, but: str = "") -> int:
        """End the sessions of a user, but for the one with the identifier `but`; return how many were open."""
        return self._rows.execute_on(
            SESSIONS, "users.end_sessions_of_user", user_id=user_id, now=format_timestamp(now), but=but
        )

    def end_all(self, now: datetime) -> int:
        """End all sessions; return how many were open."""
        return self._rows.execute_on(SESSIONS, "users.end_all_sessions", now=format_timestamp(now))

    def sweep(self, before: datetime, *, limit: int) -> int:
        """Delete up to `limit` sessions created before a moment, the oldest first; return how many."""
        return self._rows.execute_on(SESSIONS, "users.sweep_sessions", before=format_timestamp(before), limit=limit)


class Invitations(KindTable[Invitation]):
    """Links that can be used once; the digest is unique."""

    def get(self, invitation_id: str) -> Invitation | None:
        """Return an invitation."""
        return self._rows.get(INVITATIONS, (invitation_id,))

    def by_digest(self, digest: str) -> Invitation | None:
        """Return the invitation with this digest, used or not."""
        return self._one(INVITATIONS, "users.invitation_by_digest", digest=digest)

    def list(self, workspace_id: str | None) -> Sequence[Invitation]:
        """Return the invitations to a workspace, or those to none, oldest first by (created_at, id)."""
        return self._list(INVITATIONS, "users.invitations_of_workspace", workspace_id=workspace_id)

    def withdraw_all(self, now: datetime) -> int:
        """Withdraw all invitations but those of the set-up; return how many were open."""
        return self._rows.execute_on(INVITATIONS, "users.withdraw_all_invitations", now=format_timestamp(now))

    def sweep(self, before: datetime, *, limit: int) -> int:
        """Delete up to `limit` invitations that expired before a moment, the oldest first; return how many."""
        return self._rows.execute_on(
            INVITATIONS, "users.sweep_invitations", before=format_timestamp(before), limit=limit
        )


class RecoveryCodes(Table):
    """Recovery codes of users."""

    def get(self, user_id: str, digest: str) -> RecoveryCode | None:
        """Return a code, used or not."""
        return self._rows.get(RECOVERY_CODES, (user_id, digest))

    def replace(self, user_id: str, codes: Sequence[RecoveryCode]) -> None:
        """Delete the codes of a user, and write others."""
        self._rows.execute_on(RECOVERY_CODES, "users.delete_codes", user_id=user_id)
        for code in codes:
            self._rows.insert(RECOVERY_CODES, RECOVERY_CODES.key_of(code), code)

    def update(self, code: RecoveryCode) -> None:
        """Replace a code."""
        self._rows.update(RECOVERY_CODES, RECOVERY_CODES.key_of(code), code)

    def count_unused(self, user_id: str) -> int:
        """Return how many codes a user has left."""
        [(count,)] = self._rows.query("users.unused_codes", RECOVERY_CODES, user_id=user_id)
        return int(count)


class Failures(Table):
    """Failed logins, by bucket."""

    def get(self, bucket: str) -> LoginFailures | None:
        """Return the failures of a bucket."""
        return self._rows.get(LOGIN_FAILURES, (bucket,))

    def put(self, failures: LoginFailures) -> None:
        """Write the failures of a bucket."""
        self._rows.put(LOGIN_FAILURES, LOGIN_FAILURES.key_of(failures), failures)

    def delete(self, bucket: str) -> None:
        """Delete the failures of a bucket, if there are any."""
        self._rows.delete(LOGIN_FAILURES, (bucket,))

    def sweep(self, before: datetime, *, limit: int) -> int:
        """Delete up to `limit` buckets without a failure since a moment, the oldest first; return how many."""
        return self._rows.execute_on(
            LOGIN_FAILURES, "users.sweep_failures", before=format_timestamp(before), limit=limit
        )
