"""People: those of a workspace, with their invitations, and all users of the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import attrs

from outreach import NotFound
from outreach.models import ROLES, CreatedInvitation, NewUser, Page, Session, User
from outreach.server_support import JoinedReads
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.set_up.inputs import Input, inputs_of
from outreach_server.console.pages.set_up.nouns import PAGE_SIZE, Cell, Listed, Noun, On, Result, Sent, SetUpAction, at
from outreach_server.console.people import names_of

_ROLES = [(role, role.capitalize()) for role in ROLES]
_ONCE = "Give this link to {name}: it works once, and cannot be shown again. Nothing was sent."
_MOST_SESSIONS = 200


@attrs.frozen(kw_only=True)
class Person:
    """A user as the page of one shows it.

    Attributes:
        role: The role in the workspace; empty on the pages of operators.
        sessions: The logins that last.
    """

    user: User
    role: str
    sessions: Sequence[Session] = ()

    @property
    def id(self) -> str:
        """The identifier of the user."""
        return self.user.id


class PeopleNoun(Noun):
    """People who sign in to the console."""

    title, one = "Users", "user"
    own_login = True
    standing: str
    """The name of a person's role here: the head of its column, and its name among the facts."""

    def __init__(self) -> None:
        self.columns = ("Name", "E-mail address", self.standing, "Last seen", "Sessions", "Second factor", "State")

    def stands(self, one: Person) -> str:
        """Return the role of a person here, in a word; empty without one."""
        raise NotImplementedError

    def called(self, one: Person) -> str:
        """Return the name."""
        return one.user.name

    async def cells(self, visit: Visit, items: Sequence[Person]) -> Sequence[Sequence[Cell]]:
        """Return what is known of each."""
        sessions = await visit.engine.sessions.count_open(*(one.id for one in items))
        return [
            (
                one.user.email,
                self.stands(one),
                at(visit, one.user.last_seen_at) or "Never",
                words.number(sessions[one.id]) if sessions[one.id] else "None",
                *_states(one.user),
            )
            for one in items
        ]

    async def facts(self, visit: Visit, one: Person) -> Sequence[tuple[str, Cell]]:
        """Return what is known of a person."""
        second_factor, state = _states(one.user)
        return [
            (self.standing, self.stands(one) or "No"),
            ("E-mail address", one.user.email),
            ("State", state),
            ("Second factor", second_factor),
            ("Last seen", at(visit, one.user.last_seen_at) or "Never"),
            ("Open sessions", words.number(len(one.sessions))),
            ("Identifier", one.user.id),
        ]


class UsersNoun(PeopleNoun):
    """The people of a workspace."""

    name, right = "users", Right.OWN
    standing = "Role"
    empty = "Nobody has a role in this workspace yet."

    def __init__(self) -> None:
        super().__init__()
        self.on_list = (
            SetUpAction(
                name="invite",
                label="Invite somebody",
                command="users invite",
                fields=_invite_fields,
                do=_invite,
                proof=True,
                primary=True,
            ),
        )
        self.on_one = (
            SetUpAction(
                name="role",
                label="Save",
                title="Change the role",
                command="users role",
                fields=_role_fields,
                do=_set_role,
                proof=True,
                primary=True,
                done="It is saved. This person has to sign in again.",
            ),
            *_actions_of_logins(),
            SetUpAction(
                name="leave",
                label="Remove from this workspace",
                command="users role",
                do=_remove_role,
                proof=True,
                typed=True,
                done="This person has no role here any more.",
                effect="This person sees nothing of this workspace any more.",
            ),
        )

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the people."""
        page = await visit.engine.users.list_members(visit.place.id, after=after, limit=PAGE_SIZE)
        return Listed(items=[Person(user=one.user, role=one.role) for one in page.items], next=page.next)

    async def get(self, visit: Visit, identifier: str) -> Person:
        """Return a person of the workspace."""
        async with JoinedReads() as reads:
            roles = reads.start(visit.engine.users.get_roles(identifier))
            user = reads.start(visit.engine.users.get(identifier))
            sessions = reads.start(visit.engine.sessions.list(identifier, limit=_MOST_SESSIONS))
        role = roles.result().get(visit.place.id)
        if role is None:
            raise NotFound("user", identifier)
        return _person(visit, user.result(), role, sessions.result())

    def stands(self, one: Person) -> str:
        """Return the role."""
        return one.role.capitalize()


class InvitationsNoun(Noun):
    """The invitations to a workspace."""

    name, title, one, right = "invitations", "Invitations", "invitation", Right.OWN
    own_login = True
    columns = ("For", "Role", "Made by", "State", "Ends")
    empty = "Nobody was invited yet. An invitation is made on the page of the users."

    def __init__(self) -> None:
        self.on_one = (
            SetUpAction(
                name="withdraw",
                label="Withdraw it",
                command="users invite",
                do=_withdraw,
                done="It is withdrawn: its link is not valid any more.",
                possible=lambda on: bool(on.one.is_open(on.visit.now)),
            ),
        )

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the invitations."""
        page = await visit.engine.users.list_invitations(visit.place.id, after=after, limit=PAGE_SIZE)
        return Listed(items=page.items, next=page.next)

    async def get(self, visit: Visit, identifier: str) -> Any:
        """Return an invitation to the workspace."""
        async for one in visit.engine.users.iter_invitations(visit.place.id):
            if one.id == identifier:
                return one
        raise NotFound("invitation", identifier)

    def called(self, one: Any) -> str:
        """Return whom it is for."""
        return str(one.email)

    async def cells(self, visit: Visit, items: Sequence[Any]) -> Sequence[Sequence[Cell]]:
        """Return what is known of each."""
        names = await names_of(visit.engine, [one.made_by for one in items])
        return [
            (str(one.role).capitalize(), names[one.made_by], _state_of_link(visit, one), at(visit, one.expires_at))
            for one in items
        ]

    async def facts(self, visit: Visit, one: Any) -> Sequence[tuple[str, Cell]]:
        """Return the same of one."""
        [cells] = await self.cells(visit, [one])
        return list(zip(self.columns[1:], cells, strict=True))


class AllUsersNoun(PeopleNoun):
    """All users of the server, for operators."""

    name, right = "system-users", Right.OPERATE
    place = "system"
    standing = "Operator"
    empty = "Nobody can sign in yet."

    def __init__(self) -> None:
        super().__init__()
        self.on_list = (
            SetUpAction(
                name="create",
                label="Create a user",
                command="users create",
                fields=_user_fields,
                do=_create,
                proof=True,
                primary=True,
            ),
        )
        self.on_one = (
            *_actions_of_logins(),
            SetUpAction(
                name="second-factor",
                label="Reset password and second factor",
                command="users reset",
                do=_reset_all,
                proof=True,
                typed=True,
                effect="For a lost device: the present password and second factor end at once.",
            ),
            SetUpAction(
                name="operator",
                label="Save",
                title="Make an operator, or not any more",
                command="users role",
                fields=_operator_fields,
                do=_set_operator,
                proof=True,
                done="It is saved. This person has to sign in again.",
            ),
        )

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the users."""
        page = await visit.engine.users.list(after=after, limit=PAGE_SIZE)
        return Listed(items=[Person(user=one, role="") for one in page.items], next=page.next)

    async def get(self, visit: Visit, identifier: str) -> Person:
        """Return a user."""
        async with JoinedReads() as reads:
            user = reads.start(visit.engine.users.get(identifier))
            sessions = reads.start(visit.engine.sessions.list(identifier, limit=_MOST_SESSIONS))
        return _person(visit, user.result(), "", sessions.result())

    def stands(self, one: Person) -> str:
        """Return whether it operates the server."""
        return "Yes" if one.user.operator else ""


def _person(visit: Visit, user: User, role: str, sessions: Page[Session]) -> Person:
    return Person(user=user, role=role, sessions=[one for one in sessions.items if one.is_open(visit.now)])


def _states(user: User) -> tuple[str, str]:
    state = "Disabled" if user.disabled_at is not None else "Active" if user.has_password else "Has no password yet"
    return "On" if user.has_second_factor else "Off", state


def _state_of_link(visit: Visit, one: Any) -> str:
    if one.used_at is not None:
        return "Used or withdrawn"
    return "Open" if one.is_open(visit.now) else "Expired"


def _place(visit: Visit) -> str | None:
    """Return the workspace whose owner acts; None on the pages of operators."""
    return None if visit.workspace is None else visit.workspace.id


def _with_link(visit: Visit, made: CreatedInvitation, name: str) -> Result:
    here = visit.request.url
    # The path has that of the proxy already.
    public = urlsplit(visit.console.public_url or f"{here.scheme}://{visit.request.headers.get('host', '')}")
    link = f"{public.scheme}://{public.netloc}{visit.url('invitation', token=made.token)}"
    return Result(text=_ONCE.format(name=name), secret=link)


async def _invite_fields(_: On) -> Sequence[Input]:
    return [
        Input(name="email", label="E-mail address", kind="email", required=True, longest=254),
        Input(name="role", label="Role", kind="choice", choices=_ROLES, value=ROLES[0]),
    ]


async def _invite(sent: Sent) -> Result:
    email, role = sent.values["email"], sent.values["role"]
    made = await sent.engine.users.invite(sent.place, email, role, idempotency_key=sent.key, actor=sent.actor)
    return _with_link(sent.visit, made, sent.values["email"])


async def _withdraw(sent: Sent) -> Result:
    await sent.engine.users.withdraw_invitation(sent.place, sent.one.id, actor=sent.actor)
    return Result()


async def _role_fields(on: On) -> Sequence[Input]:
    return [Input(name="role", label="Role", kind="choice", choices=_ROLES, value=on.one.role)]


async def _set_role(sent: Sent) -> Result:
    await sent.engine.users.set_role(sent.place, sent.one.id, sent.values["role"], actor=sent.actor)
    return Result()


async def _remove_role(sent: Sent) -> Result:
    await sent.engine.users.set_role(sent.place, sent.one.id, None, actor=sent.actor)
    return Result(goes_to="list")


async def _end_sessions(sent: Sent) -> Result:
    visit = sent.visit
    await sent.engine.sessions.end_all(
        sent.one.id, workspace_id=_place(visit), but=visit.user.session, actor=sent.actor
    )
    return Result()


async def _reset(sent: Sent) -> Result:
    made = await sent.engine.users.reset(sent.one.id, workspace_id=_place(sent.visit), actor=sent.actor)
    return _with_link(sent.visit, made, sent.one.user.name)


async def _reset_all(sent: Sent) -> Result:
    made = await sent.engine.users.reset(sent.one.id, second_factor=True, actor=sent.actor)
    return _with_link(sent.visit, made, sent.one.user.name)


async def _disable(sent: Sent) -> Result:
    await sent.engine.users.disable(sent.one.id, workspace_id=_place(sent.visit), actor=sent.actor)
    return Result()


async def _enable(sent: Sent) -> Result:
    await sent.engine.users.enable(sent.one.id, workspace_id=_place(sent.visit), actor=sent.actor)
    return Result()


async def _user_fields(_: On) -> Sequence[Input]:
    return inputs_of(NewUser)


async def _create(sent: Sent) -> Result:
    user = await sent.engine.users.create(NewUser(**sent.values), actor=sent.actor)
    made = await sent.engine.users.reset(user.id, actor=sent.actor)
    return _with_link(sent.visit, made, user.name)


async def _operator_fields(on: On) -> Sequence[Input]:
    return inputs_of(NewUser, on.one.user, names=["operator"])


async def _set_operator(sent: Sent) -> Result:
    await sent.engine.users.set_operator(sent.one.id, sent.values["operator"], actor=sent.actor)
    return Result()


def _actions_of_logins() -> Sequence[SetUpAction]:
    """Return what can be done to a person's logins, by an owner of the workspace or an operator."""
    return (
        SetUpAction(
            name="sessions",
            label="End all sessions",
            command="users sessions",
            do=_end_sessions,
            proof=True,
            done="All sessions are ended.",
            possible=lambda on: bool(on.one.sessions),
        ),
        SetUpAction(
            name="reset",
            label="Make a link for a new password",
            command="users reset",
            do=_reset,
            proof=True,
            possible=lambda on: on.one.user.disabled_at is None,
        ),
        SetUpAction(
            name="disable",
            label="Disable",
            command="users disable",
            do=_disable,
            proof=True,
            done="This person cannot sign in any more.",
            possible=lambda on: on.one.user.disabled_at is None,
        ),
        SetUpAction(
            name="enable",
            label="Enable again",
            command="users disable",
            do=_enable,
            proof=True,
            done="This person can sign in again.",
            possible=lambda on: on.one.user.disabled_at is not None,
        ),
    )
