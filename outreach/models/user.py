"""People who use the console: their roles, sessions and invitations, which belong to the database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, Final, Literal

import attrs

from outreach.models.base import UNSET, Unset
from outreach.models.fields import Checked, ruled, sized, zone
from outreach.models.workspace import Workspace

SecondFactor = Literal["none", "awaited", "given"]
"""Of a session: the user has none, has yet to give it (such a session opens nothing), or has given it."""

InvitationKind = Literal["invitation", "reset", "setup"]
"""The purpose of a link: to join, to choose a new password, or to make the first user."""

IDLE: Final = timedelta(hours=12)
"""A session ends when it was unused for this time."""

LONGEST: Final = timedelta(days=30)
"""A session ends so long after its login."""

SUDO: Final = timedelta(minutes=15)
"""For so long after a password or code was given, dangerous actions need no other."""

MIN_PASSWORD: Final = 12
MAX_PASSWORD: Final = 256


class Role(StrEnum):
    """The role of a person in a workspace; each role has the rights of those before it."""

    VIEWER = "viewer"
    AGENT = "agent"
    MANAGER = "manager"
    OWNER = "owner"


ROLES: Final = tuple(one.value for one in Role)
"""The words of all roles, the one with the fewest rights first."""


@attrs.frozen(kw_only=True)
class StoredUser:
    """A user as the database holds it.

    Attributes:
        email: Folded (`rules.emails`), and unique.
        password: The hash of the password, as a PHC string; None before one was chosen.
        totp: The encrypted secret of the second factor (`vault.Vault`); None without one.
        totp_since: When it was confirmed by a code; None while it is being set up.
        totp_step: The last time step whose code was accepted, so that none is accepted twice.
    """

    id: str
    email: str
    name: str
    password: str | None = attrs.field(default=None, repr=False)
    totp: str | None = attrs.field(default=None, repr=False)
    totp_since: datetime | None = None
    totp_step: int | None = None
    operator: bool
    time_zone: str | None = None
    phone: str | None = attrs.field(default=None, repr=False)
    created_at: datetime
    last_seen_at: datetime | None = None
    disabled_at: datetime | None = None


@attrs.frozen(kw_only=True)
class User:
    """A person who uses the console.

    Attributes:
        email: Folded, and unique in the database.
        operator: Whether the user operates the server: every right in every workspace.
        has_password: Whether a password was chosen.
        has_second_factor: Whether a login needs a code, too.
        time_zone: The zone of the times on pages, such as `Europe/Berlin`; None for that of the browser.
        phone: The own number, for test messages; None if not known.
        last_seen_at: The last use of a session, to the minute.
        disabled_at: Since when the user cannot sign in; None while enabled.
    """

    id: str
    email: str
    name: str
    operator: bool
    has_password: bool
    has_second_factor: bool
    time_zone: str | None
    phone: str | None = attrs.field(repr=False)
    created_at: datetime
    last_seen_at: datetime | None
    disabled_at: datetime | None


@attrs.frozen(kw_only=True)
class NewUser(Checked):
    """A user to create.

    Attributes:
        email: An e-mail address; case does not count.
        name: 1 to 255 characters.
        operator: Whether the user operates the server.
    """

    email: str = sized(3, 254)
    name: str = sized(1, 255)
    operator: bool = False


@attrs.frozen(kw_only=True)
class UserUpdate(Checked):
    """The fields of a user to change; `UNSET` leaves a field as it is.

    Attributes:
        name: 1 to 255 characters.
        time_zone: An IANA name; None for that of the browser.
        phone: In E.164; None for none.
    """

    _rules_from: ClassVar = (NewUser,)

    name: str | Unset = UNSET
    time_zone: str | Unset | None = ruled(zone, default=UNSET)
    phone: str | Unset | None = sized(2, 32, default=UNSET)


@attrs.frozen(kw_only=True)
class Membership:
    """The role of a user in a workspace."""

    workspace_id: str
    user_id: str
    role: Role
    created_at: datetime


@attrs.frozen(kw_only=True)
class Member:
    """A user with the role in one workspace."""

    user: User
    role: Role


@attrs.frozen(kw_only=True)
class Session:
    """A login.

    Attributes:
        digest: SHA-256 of its token, in hexadecimal.
        seen_at: Its last use, to the minute.
        expires_at: When it ends at the latest; not being used ends it earlier.
        verified_at: When a password or code was last given.
        address: The IP address of the login; empty if not known.
        agent: The browser, as it calls itself; up to 255 characters.
        second_factor: Whether the second factor was given.
        ended_at: When it was ended; None while it lasts.
    """

    id: str
    digest: str = attrs.field(repr=False)
    user_id: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    verified_at: datetime
    address: str
    agent: str
    second_factor: SecondFactor
    ended_at: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        """Return whether it lasts at a moment."""
        return self.ended_at is None and now < min(self.expires_at, self.seen_at + IDLE)

    def is_verified(self, now: datetime) -> bool:
        """Return whether a dangerous action needs no password or code at a moment."""
        return self.second_factor != "awaited" and now < self.verified_at + SUDO


@attrs.frozen(kw_only=True)
class SignedIn:
    """A new session with its token, which is not stored.

    Attributes:
        token: The value that the browser keeps.
        session: The session; while its second factor is `awaited`, it opens nothing.
        user: The user.
    """

    token: str = attrs.field(repr=False)
    session: Session
    user: User


@attrs.frozen(kw_only=True)
class Visit:
    """The result of a look-up of a session.

    Attributes:
        roles: The role in each workspace, by its id; an operator has every right in the others, too.
    """

    session: Session
    user: User
    roles: Mapping[str, Role]


@attrs.frozen(kw_only=True)
class Invitation:
    """A link that can be used once.

    Attributes:
        digest: SHA-256 of its token, in hexadecimal.
        email: Whom it is for; None for the set-up.
        workspace_id: The workspace to join; None if there is none.
        role: The role there.
        user_id: The user who gets a new password; None if it is for somebody else.
        made_by: The actor who made it.
        used_at: When it was used or withdrawn; None before.
    """

    id: str
    digest: str = attrs.field(repr=False)
    kind: InvitationKind
    email: str | None
    workspace_id: str | None
    role: Role | None
    user_id: str | None
    made_by: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        """Return whether it can be used at a moment."""
        return self.used_at is None and now < self.expires_at


@attrs.frozen(kw_only=True)
class CreatedInvitation:
    """A new invitation with its token, which is not stored.

    Attributes:
        token: The last part of the link.
    """

    invitation: Invitation
    token: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class SetUp:
    """The result of the first-run set-up."""

    user: User
    workspace: Workspace


@attrs.frozen(kw_only=True)
class RecoveryCode:
    """A code that takes the place of the second factor once.

    Attributes:
        digest: SHA-256 of the user's id and the code, in hexadecimal.
    """

    user_id: str
    digest: str = attrs.field(repr=False)
    used_at: datetime | None = None


@attrs.frozen(kw_only=True)
class SecondFactorSecret:
    """The secret of a second factor that is being set up, which is shown once.

    Attributes:
        secret: In base 32, for typing.
        url: The same for an authenticator app, as `otpauth://…`.
    """

    secret: str = attrs.field(repr=False)
    url: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class LoginFailures:
    """Failed logins of an account or a network.

    Attributes:
        bucket: Whose they are: a digest, without an e-mail address or IP address.
        count: How many, without a quiet quarter of an hour between (`rules.login_throttle`).
        last_at: The last one.
    """

    bucket: str
    count: int
    last_at: datetime
