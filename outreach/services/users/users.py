"""Users of the console, who belong to the database and have a role in each of their workspaces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial

import attrs

from outreach.ledger.access import users as operations
from outreach.ledger.common import existing, workspace_of
from outreach.models.base import Page
from outreach.models.fields import OneOf, boolean, check_value
from outreach.models.user import ROLES, Member, NewUser, Role, StoredUser, User, UserUpdate
from outreach.services.context import changed_fields, check_kind, check_phone
from outreach.services.lists import PageRequest, iterate
from outreach.services.users.context import UserContext, check_email
from outreach.services.users.links import Links
from outreach.services.users.second_factors import SecondFactors
from outreach.storage.unit_of_work import Transaction


class Users(Links, SecondFactors):
    """The users of the console (docs/users.md)."""

    def __init__(self, users: UserContext) -> None:
        self._users = users
        self._context = users.services

    async def create(self, new: NewUser, *, actor: str = "library") -> User:
        """Create a user without a password; `reset` makes the link by which the user chooses one.

        Args:
            new: The user.
            actor: Recorded in the audit trail.

        Raises:
            InvalidRequest: The e-mail address is none.
            Conflict: Another user has this e-mail address.
        """
        check_kind("new", new, NewUser)
        email = check_email("email", new.email)
        user = StoredUser(
            id=self._context.ids(), email=email, name=new.name, operator=new.operator, created_at=self._context.now()
        )
        return operations.shown(await self._context.storage.write(lambda tx: operations.create(tx, user, actor=actor)))

    async def get(self, user_id: str) -> User:
        """Return a user.

        Raises:
            NotFound: There is no such user.
        """
        return operations.shown(await self._context.storage.read(lambda tx: operations.user_of(tx, user_id)))

    async def find(self, email: str) -> User:
        """Return the user with an e-mail address; case does not count.

        Raises:
            InvalidRequest: This is no e-mail address.
            NotFound: No user has it.
        """
        folded = check_email("email", email)
        found = await self._context.storage.read(lambda tx: existing(tx.users.by_email(folded), "user", folded))
        return operations.shown(found)

    async def list(self, *, after: str | None = None, limit: int = 100) -> Page[User]:
        """Return a page of all users, disabled ones included, by identifier: oldest first.

        Raises:
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("users", after=after, limit=limit)
        found = await self._context.storage.read(
            lambda tx: tx.users.page(after=page_request.cursor or "", limit=limit + 1)
        )
        return page_request.page([operations.shown(one) for one in found], lambda one: one.id)

    def iter_all(self) -> AsyncIterator[User]:
        """Iterate over all users; see `list`."""
        return iterate(self.list)

    async def list_members(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Member]:
        """Return a page of the users with a role in a workspace, by user.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("members", workspace_id, after=after, limit=limit)

        def operation(tx: Transaction) -> list[Member]:
            found = sorted(tx.memberships.of_workspace(workspace_of(tx, workspace_id).id), key=lambda one: one.user_id)
            rest = [one for one in found if one.user_id > (page_request.cursor or "")][: limit + 1]
            tx.users.prefetch(one.user_id for one in rest)
            return [Member(user=operations.shown(operations.user_of(tx, one.user_id)), role=one.role) for one in rest]

        return page_request.page(await self._context.storage.read(operation), lambda one: one.user.id)

    def iter_members(self, workspace_id: str) -> AsyncIterator[Member]:
        """Iterate over the users with a role in a workspace; see `list_members`."""
        return iterate(partial(self.list_members, workspace_id))

    async def get_roles(self, user_id: str) -> Mapping[str, Role]:
        """Return the role of a user in each workspace, by its id.

        Raises:
            NotFound: There is no such user.
        """
        found = await self._context.storage.read(lambda tx: tx.memberships.of_user(operations.user_of(tx, user_id).id))
        return {one.workspace_id: one.role for one in found}

    async def update(self, user_id: str, change: UserUpdate, *, actor: str = "library") -> User:
        """Change what a user says of himself: name, time zone, own number.

        Raises:
            NotFound: There is no such user.
            InvalidRequest: The number is no phone number.
        """
        changes = changed_fields(change, UserUpdate)
        if "phone" in changes:
            changes["phone"] = check_phone("phone", changes["phone"], None)

        def operation(tx: Transaction) -> User:
            user = operations.user_of(tx, user_id)
            after = attrs.evolve(user, **changes)
            tx.users.update(after)
            operations.note(
                tx, after, "user.update", now=self._context.now(), actor=actor, detail=", ".join(sorted(changes))
            )
            return operations.shown(after)

        return await self._context.storage.write(operation)

    async def set_role(self, workspace_id: str, user_id: str, role: Role | None, *, actor: str = "library") -> User:
        """Give a user a role in a workspace, or None to remove the user from it.

        A change ends the user's sessions, in every process within a second: the next login has the new rights. The
        user's open invitations to the workspace are withdrawn.

        Raises:
            NotFound: There is no such workspace or user.
            InvalidRequest: This is no role.
            Conflict: The user is the last owner of the workspace.
        """
        if role is not None:
            role = check_value("role", role, OneOf(ROLES, Role))

        def operation(tx: Transaction) -> User:
            operations.set_role(tx, workspace_id, user_id, role, now=self._context.now(), actor=actor)
            return operations.shown(operations.user_of(tx, user_id))

        return await self._context.storage.write(operation)

    async def set_operator(self, user_id: str, operator: bool, *, actor: str = "library") -> User:
        """Make a user an operator of the server, or not any more; a change ends the user's sessions.

        Raises:
            NotFound: There is no such user.
        """
        check_value("operator", operator, boolean)
        return operations.shown(
            await self._context.storage.write(
                lambda tx: operations.set_operator(tx, user_id, operator, now=self._context.now(), actor=actor)
            )
        )

    async def disable(self, user_id: str, *, workspace_id: str | None = None, actor: str = "library") -> User:
        """Disable a user, whose sessions end: in every process within a second. Links to a new password are withdrawn.

        Args:
            user_id: The user.
            workspace_id: The workspace whose owner does it: then the user must have no rights outside it. None for an
                operator.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: There is no such user, in this workspace.
            Conflict: The user is the last owner of a workspace, or has rights outside this one.
        """
        return await self._disable(user_id, True, workspace_id, actor)

    async def enable(self, user_id: str, *, workspace_id: str | None = None, actor: str = "library") -> User:
        """Enable a disabled user, with the same roles; `workspace_id` is that of `disable`.

        Raises:
            NotFound: There is no such user, in this workspace.
            Conflict: The user has rights outside this workspace.
        """
        return await self._disable(user_id, False, workspace_id, actor)

    async def _disable(self, user_id: str, disabled: bool, workspace_id: str | None, actor: str) -> User:

        def operation(tx: Transaction) -> User:
            if workspace_id is not None:
                operations.require_member(tx, workspace_id, user_id)
            now = self._context.now()
            after = operations.disable(tx, user_id, disabled=disabled, now=now, actor=actor, workspace_id=workspace_id)
            return operations.shown(after)

        return await self._context.storage.write(operation)
