"""The rights of people in the console: one table of roles and rights."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

import attrs
from starlette.requests import Request

from outreach import ConfigError, Workspace
from outreach.models import Role as Role  # hosts import it from the console


class Right(StrEnum):
    """Something that a person may do in a workspace.

    Meanings:
        see: read campaigns, their contacts and reports
        pause: pause campaigns; it can be undone, and stopping is safe
        draft: change and archive what is not being sent
        start: start and resume campaigns, which send messages or place calls; write to a number first, or call it again
        cancel: end campaigns for good
        flows: see what the workspace is set up with, and change its flows
        set_up: change settings, numbers, agents and trunks
        own: accounts, keys, people, and the audit trail
        operate: suspend and limit workspaces, and see the server; it is of operators alone
        reply: read and answer replies, and decide what held numbers meant
        decide: decide what cannot be known, change the register, and set the outcome of calls
        export: take personal data out; a workspace can keep it from managers
        erase: erase a person
    """

    SEE = "see"
    PAUSE = "pause"
    DRAFT = "draft"
    START = "start"
    CANCEL = "cancel"
    REPLY = "reply"
    DECIDE = "decide"
    EXPORT = "export"
    ERASE = "erase"
    FLOWS = "flows"
    SET_UP = "set_up"
    OWN = "own"
    OPERATE = "operate"


_VIEWER: Final = frozenset({Right.SEE})
_AGENT: Final = _VIEWER | {Right.PAUSE, Right.REPLY}
_MANAGER: Final = _AGENT | {Right.DRAFT, Right.START, Right.CANCEL, Right.DECIDE, Right.EXPORT, Right.FLOWS}
_OWNER: Final = _MANAGER | {Right.ERASE, Right.SET_UP, Right.OWN}

_LONGEST_ID: Final = 200

RIGHTS: Final[Mapping[Role, frozenset[Right]]] = MappingProxyType(
    {Role.VIEWER: _VIEWER, Role.AGENT: _AGENT, Role.MANAGER: _MANAGER, Role.OWNER: _OWNER}
)
"""The rights of each role. Pages and templates use this table and no other."""


@attrs.frozen(kw_only=True)
class ConsoleUser:
    """A person who is signed in.

    Attributes:
        id: Identifies the person in the audit trail: 1 to 200 characters.
        name: The name that pages show.
        workspaces: The person's role in each workspace, by the workspace's id.
        operator: Whether the person runs the server: an owner of every workspace.
        time_zone: The IANA zone of the person's times; empty for the campaign's, else UTC.
        session: Identifies the session, to bind forms and streams to it; empty for hosts whose sessions the console
            does not know, where the person's id takes its place.
        verified: Whether dangerous actions need no other proof of who this is. With its own logins the console asks for
            the password; a host that sets False has to ask for its own proof.
        incomplete: Whether the person has to set up a second factor before anything else.
    """

    id: str
    name: str
    workspaces: Mapping[str, Role] = attrs.field(factory=dict)
    operator: bool = False
    time_zone: str = ""
    session: str = attrs.field(default="", repr=False)
    verified: bool = True
    incomplete: bool = False

    def role_in(self, workspace_id: str) -> Role | None:
        """Return the person's role in a workspace; None if it is none of the person's."""
        return Role.OWNER if self.operator else self.workspaces.get(workspace_id)

    @property
    def subject(self) -> str:
        """The subject that forms and streams are bound to: the session, else the person."""
        return f"session:{self.session}" if self.session else f"user:{self.id}"


def checked(user: object) -> ConsoleUser:
    """Return the person that a host has identified, if it is valid.

    Raises:
        ConfigError: It is no `ConsoleUser`, its id is empty or too long, or a role is none.
    """
    if not isinstance(user, ConsoleUser):
        raise ConfigError(f"identify returned {type(user).__name__}; it must return a ConsoleUser or None.")
    if not 1 <= len(user.id) <= _LONGEST_ID:
        raise ConfigError(f"identify returned an id of {len(user.id)} characters; it must have 1 to {_LONGEST_ID}.")
    wrong = [role for role in user.workspaces.values() if role not in tuple(Role)]
    if wrong:
        raise ConfigError(f"identify returned the role {wrong[0]!r}; it must be a Role.")
    return user


Identify: TypeAlias = Callable[[Request], Awaitable[ConsoleUser | None]]
"""Returns the person who sends a request; None if nobody is signed in."""


def may(role: Role | None, right: Right, workspace: Workspace | None = None) -> bool:
    """Return whether a role has a right, in a workspace if one is given."""
    if role is Role.MANAGER and right is Right.EXPORT and workspace is not None and not workspace.managers_export:
        return False
    return role is not None and right in RIGHTS[role]


def roles_with(right: Right, workspace: Workspace | None = None) -> tuple[Role, ...]:
    """Return the roles that have a right, in a workspace if one is given, the least first."""
    return tuple(role for role in Role if may(role, right, workspace))
