"""Links that can be used once: invitations, new passwords, and the first-run set-up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Final

import attrs

from outreach.errors import Conflict, NotFound
from outreach.ledger import common
from outreach.ledger.access import users as operations
from outreach.ledger.common import workspace_of
from outreach.models.base import Page
from outreach.models.fields import OneOf, check_value
from outreach.models.user import (
    ROLES,
    CreatedInvitation,
    Invitation,
    InvitationKind,
    NewUser,
    Role,
    SetUp,
    StoredUser,
    User,
)
from outreach.models.workspace import NewWorkspace
from outreach.services.context import ServiceContext, check_kind
from outreach.services.idempotency import Idempotency
from outreach.services.lists import PageRequest, iterate
from outreach.services.tenants.workspaces import new_workspace
from outreach.services.users.context import UserContext, check_email, check_new_password, check_text
from outreach.services.users.secrets import digest_of, new_token
from outreach.storage.unit_of_work import Transaction

_INVITED_FOR: Final = timedelta(days=7)
_RESET_FOR: Final = timedelta(days=1)
_SETUP_FOR: Final = timedelta(hours=1)

_EXISTS: Final = "There is a user with this e-mail address already: sign in as this user, and open the link again."


class Links:
    """Links that can be used once; their tokens are shown once, and only SHA-256 of them is stored."""

    _users: UserContext
    _context: ServiceContext

    async def invite(
        self,
        workspace_id: str,
        email: str,
        role: Role,
        *,
        idempotency_key: str | None = None,
        actor: str = "library",
    ) -> CreatedInvitation:
        """Make a link by which somebody joins a workspace; good for seven days. Nothing is sent.

        Args:
            workspace_id: The workspace.
            email: Whom it is for.
            role: The role there.
            idempotency_key: A name for it, such as `ann-1`: for a day, no second link is made under it.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: This is no e-mail address, or no role; or the idempotency key was used with others.
            Conflict: A link was made under the idempotency key before, and cannot be shown again.
            RequestInProgress: The first call with this idempotency key is still running.
        """
        folded = check_email("email", email)
        role = check_value("role", role, OneOf(ROLES, Role))
        made = self._make("invitation", _INVITED_FOR, actor, email=folded, workspace_id=workspace_id, role=role)

        def operation(tx: Transaction) -> CreatedInvitation:
            workspace_of(tx, workspace_id)
            self._insert(tx, made.invitation, "user.invite", workspace_id)
            return made

        return await Idempotency(self._context).written_once(
            workspace_id,
            "users.invite",
            idempotency_key,
            operation,
            content=[folded, role],
            remember=lambda one: one.invitation.id,
            again="A link was made by this request before, and cannot be shown again. If nobody has it, withdraw "
            "invitation {id} and make another one.",
        )

    async def reset(
        self,
        user_id: str,
        *,
        workspace_id: str | None = None,
        second_factor: bool = False,
        actor: str = "library",
    ) -> CreatedInvitation:
        """Make a link by which a user chooses a new password; good for a day. Earlier ones are withdrawn.

        Args:
            user_id: The user.
            workspace_id: The workspace whose owner makes it: then the user must have no rights outside it, because
                a person with the link has the account. None for an operator.
            second_factor: Whether the second factor is removed too, for a lost device. The present password is then
                not valid any more.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: There is no such user, in this workspace.
            Conflict: The user is disabled, or has rights outside the workspace.
        """

        def operation(tx: Transaction) -> CreatedInvitation:
            now = self._context.now()
            if workspace_id is not None:
                operations.require_member(tx, workspace_id, user_id)
            user = operations.user_of(tx, user_id)
            if user.disabled_at is not None:
                raise Conflict("This user is disabled. Enable the user first.")
            if second_factor:
                user = operations.remove_second_factor(tx, user, now=now, actor=actor, workspace_id=workspace_id)
                tx.users.update(attrs.evolve(user, password=None))
                tx.sessions.end_of_user(user_id, now)
            operations.withdraw_resets(tx, user_id, now=now, actor=actor, workspace_id=workspace_id)
            made = self._make("reset", _RESET_FOR, actor, email=user.email, user_id=user_id)
            self._insert(tx, made.invitation, "user.reset", workspace_id)
            return made

        return await self._context.storage.write(operation)

    async def open_setup(self, *, actor: str = "library") -> CreatedInvitation | None:
        """Make the link of the first-run set-up, good for an hour or until there is a user; None if there is one.

        Earlier ones stay valid: each of several servers prints its own.

        Args:
            actor: Recorded in the audit trail.
        """

        def operation(tx: Transaction) -> CreatedInvitation | None:
            if tx.users.exists_any():
                return None
            made = self._make("setup", _SETUP_FOR, actor)
            self._insert(tx, made.invitation, "setup.open", None)
            return made

        if await self._context.storage.read(lambda tx: tx.users.exists_any()):
            return None
        return await self._context.storage.write(operation)

    async def get_invitation(self, token: str) -> Invitation:
        """Return the invitation of a link, without using it.

        Raises:
            Unauthorized: It was used, has expired, or was withdrawn; or its user is disabled.
        """
        digest = digest_of(token)
        return await self._context.storage.read(lambda tx: operations.invitation_of(tx, digest, self._context.now()))

    async def accept(self, token: str, *, password: str, name: str = "") -> User:
        """Use a link: a new user joins, or a user gets a new password.

        Args:
            token: The last part of the link.
            password: 12 to 256 characters.
            name: The name of a new user; by default the e-mail address.

        Raises:
            Unauthorized: The link was used, has expired, or was withdrawn; or its user is disabled.
            InvalidRequest: The password or name cannot be used.
            Conflict: The link is an invitation of somebody who is a user already; see `join`.
            ConfigError: The extra for passwords is not installed.
        """
        digest = digest_of(token)
        invitation = await self.get_invitation(token)
        if invitation.email is None:
            raise NotFound("invitation", invitation.id)
        given = check_text("name", name, 255).strip() or invitation.email
        hashed = await self._users.hasher.hash(check_new_password(password, invitation.email))
        identifier = self._context.ids()

        def operation(tx: Transaction) -> StoredUser:
            now = self._context.now()
            found = operations.invitation_of(tx, digest, now)
            operations.use(tx, found, now)
            if found.user_id is not None:
                user = operations.user_of(tx, found.user_id)
                return operations.set_password(tx, user, hashed, now=now, actor=f"user:{user.id}")
            email = found.email or ""
            if tx.users.by_email(email) is not None:
                raise Conflict(_EXISTS)
            new = StoredUser(id=identifier, email=email, name=given, password=hashed, operator=False, created_at=now)
            user = operations.create(tx, new, actor=found.made_by)
            self._join(tx, found, user)
            return user

        return operations.shown(await self._context.storage.write(operation))

    async def join(self, token: str, user_id: str) -> User:
        """Use an invitation as a user who has signed in; the user's sessions end, because the rights change.

        Args:
            token: The last part of the link.
            user_id: The user, whose e-mail address must be that of the invitation.

        Raises:
            NotFound: There is no such user.
            Unauthorized: The link was used, has expired, or was withdrawn.
            Conflict: The link is for somebody else.
        """
        digest = digest_of(token)

        def operation(tx: Transaction) -> StoredUser:
            now = self._context.now()
            user = operations.user_of(tx, user_id)
            found = operations.invitation_of(tx, digest, now)
            if found.kind != "invitation" or found.email != user.email:
                raise Conflict("This link is for another e-mail address.")
            operations.use(tx, found, now)
            self._join(tx, found, user)
            return user

        return operations.shown(await self._context.storage.write(operation))

    async def set_up(self, token: str, new: NewUser, *, password: str, workspace: NewWorkspace) -> SetUp:
        """Use the link of the first-run set-up: make the first user, who operates the server, and a workspace.

        Args:
            token: The last part of the link.
            new: The user, who becomes an operator, and owner of the workspace.
            password: 12 to 256 characters.
            workspace: The workspace.

        Raises:
            Unauthorized: The link was used, has expired, or was withdrawn; or there is a user.
            InvalidRequest: The user, the password or the workspace cannot be made.
            ConfigError: The extra for passwords is not installed.
        """
        check_kind("new", new, NewUser)
        digest = digest_of(token)
        # Before the password is hashed: strangers may send anything here.
        await self._require_setup(token)
        email = check_email("email", new.email)
        hashed = await self._users.hasher.hash(check_new_password(password, email))
        first = new_workspace(self._context, workspace)
        user_id = self._context.ids()

        def operation(tx: Transaction) -> SetUp:
            now = self._context.now()
            found = operations.invitation_of(tx, digest, now)
            if found.kind != "setup":
                raise NotFound("invitation", found.id)
            operations.use(tx, found, now)
            stored = StoredUser(id=user_id, email=email, name=new.name, password=hashed, operator=True, created_at=now)
            actor = f"user:{user_id}"
            user = operations.create(tx, stored, actor=actor)
            made = common.create_workspace(tx, first, actor=actor)
            operations.set_role(tx, made.id, user_id, Role.OWNER, now=now, actor=actor)
            return SetUp(user=operations.shown(user), workspace=made)

        return await self._context.storage.write(operation)

    async def list_invitations(
        self, workspace_id: str, *, after: str | None = None, limit: int = 100
    ) -> Page[Invitation]:
        """Return a page of the invitations to a workspace, used and expired ones included, oldest first.

        They are deleted three months after they expire.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("invitations", workspace_id, after=after, limit=limit)
        storage = self._context.storage
        found = await storage.read(lambda tx: tx.invitations.list(workspace_of(tx, workspace_id).id))
        return page_request.page_of_few(found)

    def iter_invitations(self, workspace_id: str) -> AsyncIterator[Invitation]:
        """Iterate over the invitations to a workspace, oldest first; see `list_invitations`."""
        return iterate(partial(self.list_invitations, workspace_id))

    async def withdraw_invitation(self, workspace_id: str, invitation_id: str, *, actor: str = "library") -> Invitation:
        """Withdraw an invitation to a workspace, so that its link is not valid any more.

        Raises:
            NotFound: The workspace has no such invitation.
        """

        def operation(tx: Transaction) -> Invitation:
            now = self._context.now()
            workspace = workspace_of(tx, workspace_id)
            found = tx.invitations.get(invitation_id)
            if found is None or found.workspace_id != workspace.id:
                raise NotFound("invitation", invitation_id)
            if found.used_at is None:
                operations.withdraw(tx, found, now=now, actor=actor, workspace_id=workspace.id)
            return attrs.evolve(found, used_at=found.used_at or now)

        return await self._context.storage.write(operation)

    async def _require_setup(self, token: str) -> None:
        invitation = await self.get_invitation(token)
        if invitation.kind != "setup":
            raise NotFound("invitation", invitation.id)

    def _join(self, tx: Transaction, invitation: Invitation, user: StoredUser) -> None:
        if invitation.workspace_id is None or invitation.role is None:
            return
        operations.set_role(
            tx,
            invitation.workspace_id,
            user.id,
            invitation.role,
            now=self._context.now(),
            actor=f"user:{user.id}",
            invited_by=invitation.made_by,
        )

    def _make(
        self,
        kind: InvitationKind,
        lasts: timedelta,
        actor: str,
        *,
        email: str | None = None,
        workspace_id: str | None = None,
        role: Role | None = None,
        user_id: str | None = None,
    ) -> CreatedInvitation:
        token = new_token()
        now = self._context.now()
        invitation = Invitation(
            id=self._context.ids(),
            digest=digest_of(token),
            kind=kind,
            email=email,
            workspace_id=workspace_id,
            role=role,
            user_id=user_id,
            made_by=actor,
            created_at=now,
            expires_at=now + lasts,
        )
        return CreatedInvitation(invitation=invitation, token=token)

    def _insert(self, tx: Transaction, invitation: Invitation, action: str, workspace_id: str | None) -> None:
        actor = invitation.made_by
        operations.note_link(tx, invitation, action, now=invitation.created_at, actor=actor, workspace_id=workspace_id)
        tx.invitations.insert(invitation)
