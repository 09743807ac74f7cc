"""The contract of users, their roles, sessions, invitations, recovery codes and failed logins."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach.models.user import IDLE, LoginFailures, RecoveryCode, Role
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import AlreadyExists
from outreach.testing.builders import NOW, make_invitation, make_membership, make_session, make_user
from outreach.testing.storage_tables.base_contract import (
    MAX_INTEGER,
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    awkward_moments,
    awkward_texts,
    given_rows,
)


class UsersContract(ContractBase):
    """Users, who belong to no workspace."""

    @awkward_texts
    async def test_a_user_is_read_as_it_was_written(self, storage: Storage, text: str) -> None:
        """Each field comes back, whatever the text; the address finds the user."""
        user = make_user(
            email=f"{text[:100]}@x", name=text, password=text, totp=text, totp_step=MAX_INTEGER, phone="+1"
        )
        await given_rows(storage, user)
        assert await storage.read(lambda tx: tx.users.get(user.id)) == user
        assert await storage.read(lambda tx: tx.users.by_email(user.email)) == user
        assert await storage.read(lambda tx: tx.users.by_email("other@x")) is None

    @awkward_moments
    async def test_an_update_of_a_user_replaces_every_field_but_the_first_moment(
        self, storage: Storage, moment: datetime
    ) -> None:
        """When the user was created is fixed."""
        user = make_user()
        after = attrs.evolve(
            user, email="new@x", operator=True, totp="t", totp_since=moment, last_seen_at=moment, disabled_at=moment
        )
        await given_rows(storage, user)
        await storage.write(lambda tx: tx.users.update(attrs.evolve(after, created_at=moment)))
        assert await storage.read(lambda tx: tx.users.get(user.id)) == after

    async def test_an_address_is_unique(self, storage: Storage) -> None:
        """In the whole database; the second user is not written."""
        user = make_user()
        assert not await storage.read(lambda tx: tx.users.exists_any())
        await given_rows(storage, user)
        with pytest.raises(AlreadyExists):
            await storage.write(lambda tx: tx.users.insert(make_user(email=user.email)))
        assert await storage.read(lambda tx: tx.users.exists_any())
        assert await storage.read(lambda tx: list(tx.users.page(limit=9))) == [user]

    async def test_users_are_paged_by_identifier(self, storage: Storage) -> None:
        """Which is the order in which they were made."""
        users = [make_user() for _ in range(3)]
        await given_rows(storage, *reversed(users))
        assert await storage.read(lambda tx: list(tx.users.page(limit=2))) == users[:2]
        assert await storage.read(lambda tx: list(tx.users.page(after=users[1].id, limit=2))) == users[2:]

    async def test_a_role_is_one_for_each_workspace(self, storage: Storage) -> None:
        """It is replaced, removed, and listed from both sides."""
        ann, ben = make_user(), make_user()
        here = make_membership(user_id=ann.id)
        there = make_membership(user_id=ann.id, workspace_id=OTHER_WORKSPACE, created_at=NOW + TICK)
        other = make_membership(user_id=ben.id, created_at=NOW + TICK)
        await given_rows(storage, ann, ben, other, there, here)
        assert await storage.read(lambda tx: list(tx.memberships.of_user(ann.id))) == [here, there]
        assert await storage.read(lambda tx: list(tx.memberships.of_workspace(THIS_WORKSPACE))) == [here, other]
        owner = attrs.evolve(here, role=Role.OWNER)
        await storage.write(lambda tx: tx.memberships.put(owner))
        assert await storage.read(lambda tx: tx.memberships.get(THIS_WORKSPACE, ann.id)) == owner
        assert await storage.write(lambda tx: tx.memberships.delete(THIS_WORKSPACE, ann.id))
        assert not await storage.write(lambda tx: tx.memberships.delete(THIS_WORKSPACE, ann.id))
        assert await storage.read(lambda tx: list(tx.memberships.of_user(ann.id))) == [there]

    @awkward_texts
    async def test_a_session_is_found_by_its_digest(self, storage: Storage, text: str) -> None:
        """Which may change; the user and the first moment do not."""
        user, session = await self._with_user(storage, make_session(address=text, agent=text))
        after = attrs.evolve(session, digest="other", second_factor="given", ended_at=NOW, verified_at=NOW + TICK)
        await given_rows(storage, session)
        assert await storage.read(lambda tx: tx.sessions.by_digest(session.digest)) == session
        await storage.write(lambda tx: tx.sessions.update(after))
        assert await storage.read(lambda tx: tx.sessions.by_digest(session.digest)) is None
        assert await storage.read(lambda tx: tx.sessions.by_digest("other")) == after
        assert await storage.read(lambda tx: tx.sessions.get(session.id)) == after
        assert user.id == after.user_id

    async def test_sessions_of_a_user_are_ended_and_swept(self, storage: Storage) -> None:
        """All but one, those that are open; then all; those of others stay."""
        ann, one = await self._with_user(storage, make_session())
        _, foreign = await self._with_user(storage, make_session(created_at=NOW + TICK))
        two = make_session(user_id=ann.id, created_at=NOW + TICK)
        done = make_session(user_id=ann.id, created_at=NOW + 2 * TICK, ended_at=NOW)
        await given_rows(storage, one, two, done, foreign)
        assert await storage.read(lambda tx: list(tx.sessions.of_user(ann.id, limit=2))) == [done, two]
        later = NOW + timedelta(hours=1)
        assert await storage.write(lambda tx: tx.sessions.end_of_user(ann.id, later, but=one.id)) == 1
        assert await storage.read(lambda tx: list(tx.sessions.of_user(ann.id, limit=9))) == [
            done,
            attrs.evolve(two, ended_at=later),
            one,
        ]
        assert await storage.write(lambda tx: tx.sessions.end_all(later)) == 2
        assert await storage.write(lambda tx: tx.sessions.sweep(NOW + TICK, limit=9)) == 1
        assert await storage.write(lambda tx: tx.sessions.sweep(NOW + 9 * TICK, limit=2)) == 2

    async def test_open_sessions_of_users_are_counted(self, storage: Storage) -> None:
        """As each says of itself whether it is open."""
        ann, one = await self._with_user(storage, make_session())
        ben, foreign = await self._with_user(storage, make_session())
        idle, over = make_session(user_id=ann.id, seen_at=NOW - IDLE), make_session(user_id=ann.id, expires_at=NOW)
        ended, two = make_session(user_id=ann.id, ended_at=NOW), make_session(user_id=ann.id, seen_at=NOW - IDLE + TICK)
        await given_rows(storage, one, foreign, idle, over, ended, two)
        assert [session.is_open(NOW) for session in (one, idle, over, ended, two)] == [True, False, False, False, True]
        counted = await storage.read(lambda tx: tx.sessions.count_open([ann.id, ben.id, "none"], NOW))
        assert counted == {ann.id: 2, ben.id: 1}
        assert await storage.read(lambda tx: tx.sessions.count_open([], NOW)) == {}

    @awkward_texts
    async def test_an_invitation_is_found_by_its_digest(self, storage: Storage, text: str) -> None:
        """It may be for a workspace, for a user, or for neither; its digest is fixed."""
        user, _ = await self._with_user(storage, make_session())
        here = make_invitation(email=text, made_by=text)
        reset = make_invitation(kind="reset", workspace_id=None, role=None, user_id=user.id)
        setup = make_invitation(
            kind="setup", email=None, workspace_id=None, role=None, expires_at=NOW, created_at=NOW + TICK
        )
        await given_rows(storage, here, reset, setup)
        assert await storage.read(lambda tx: tx.invitations.by_digest(here.digest)) == here
        assert await storage.read(lambda tx: list(tx.invitations.list(THIS_WORKSPACE))) == [here]
        assert await storage.read(lambda tx: list(tx.invitations.list(None))) == [reset, setup]
        used = attrs.evolve(here, used_at=NOW)
        await storage.write(lambda tx: tx.invitations.update(attrs.evolve(used, digest="other")))
        assert await storage.read(lambda tx: tx.invitations.get(here.id)) == used
        assert await storage.write(lambda tx: tx.invitations.withdraw_all(NOW + TICK)) == 1
        assert await storage.write(lambda tx: tx.invitations.sweep(NOW + TICK, limit=9)) == 1
        assert await storage.read(lambda tx: list(tx.invitations.list(None))) == [
            attrs.evolve(reset, used_at=NOW + TICK)
        ]

    async def test_recovery_codes_are_replaced_together(self, storage: Storage) -> None:
        """Those of others stay."""
        (ann, _), (ben, _) = [await self._with_user(storage, make_session()) for _ in range(2)]
        codes = {user.id: [RecoveryCode(user_id=user.id, digest=text) for text in "ab"] for user in (ann, ben)}
        for user_id, made in codes.items():
            await storage.write(
                lambda tx, user_id=user_id, made=made: tx.recovery_codes.replace(user_id, made)  # type: ignore[misc]
            )
        used = attrs.evolve(codes[ann.id][0], used_at=NOW)
        await storage.write(lambda tx: tx.recovery_codes.update(used))
        assert await storage.read(lambda tx: tx.recovery_codes.get(ann.id, "a")) == used
        assert await storage.read(lambda tx: tx.recovery_codes.count_unused(ann.id)) == 1
        await storage.write(lambda tx: tx.recovery_codes.replace(ann.id, [RecoveryCode(user_id=ann.id, digest="a")]))
        assert await storage.read(lambda tx: tx.recovery_codes.get(ann.id, "b")) is None
        assert await storage.read(lambda tx: tx.recovery_codes.count_unused(ann.id)) == 1
        assert await storage.read(lambda tx: tx.recovery_codes.count_unused(ben.id)) == 2

    async def test_failed_logins_are_counted_and_swept(self, storage: Storage) -> None:
        """By bucket."""
        rows = [
            LoginFailures(bucket=name, count=number, last_at=NOW + number * TICK) for number, name in enumerate("abc")
        ]
        await given_rows(storage, *rows)
        assert await storage.read(lambda tx: tx.login_failures.get("b")) == rows[1]
        again = attrs.evolve(rows[1], count=MAX_INTEGER)
        await storage.write(lambda tx: tx.login_failures.put(again))
        assert await storage.read(lambda tx: tx.login_failures.get("b")) == again
        await storage.write(lambda tx: tx.login_failures.delete("c"))
        assert await storage.write(lambda tx: tx.login_failures.sweep(NOW + TICK, limit=9)) == 1
        assert await storage.read(lambda tx: [tx.login_failures.get(name) for name in "abc"]) == [None, again, None]

    async def _with_user(self, storage: Storage, session: Any) -> tuple[Any, Any]:
        """Write a user; return it, and a session as one of this user."""
        user = make_user()
        await given_rows(storage, user)
        return user, attrs.evolve(session, user_id=user.id)
