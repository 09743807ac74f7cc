"""`users`: people who use the console."""

from __future__ import annotations

from typing import Any, Final

import click

from outreach import Outreach
from outreach.http import to_json
from outreach.models import ROLES, CreatedInvitation, Invitation, NewUser, Role, Session, User
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, state, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.console_links import link_of
from outreach_server.cli.model_options import NO_CHANGE
from outreach_server.cli.output import note, show, show_list
from outreach_server.cli.values import NAME, WORKSPACE, Identifier, OneOf, Text
from outreach_server.config import scheme_of

_EMAIL: Final = Text(3, 254)
_USER: Final = Text(1, 254)
_SESSION: Final = Identifier("session")
_ONCE: Final = "Give the link to this person now: it works once, and cannot be shown again. Nothing was sent."
_WORKSPACE_OPTION: Final = click.option(
    "--workspace", "workspace_id", type=WORKSPACE, metavar="WORKSPACE_ID", help="The workspace of the role."
)
_ROLE_OPTION: Final = click.option("--role", type=OneOf(ROLES), help="What the user may do there.")


@click.group(cls=Group)
def users() -> None:
    """Manage the people who use the console: roles, invitations and logins."""


@users.command()
@click.argument("email", type=_EMAIL)
@click.option("--name", type=NAME, help="The name; by default the e-mail address.")
@_WORKSPACE_OPTION
@_ROLE_OPTION
@click.option("--operator", is_flag=True, help="Every right in every workspace, and on the server.")
def create(email: str, name: str | None, workspace_id: str | None, role: Role | None, operator: bool) -> None:
    """Create the user EMAIL, and show the link by which this person chooses a password."""
    _require_both(workspace_id, role)

    async def work(engine: Outreach) -> tuple[User, CreatedInvitation]:
        if workspace_id is not None:
            await engine.workspaces.get(workspace_id)
        new = NewUser(email=email, name=name or email, operator=operator)
        user = await engine.users.create(new, actor=actor())
        if workspace_id is not None:
            await engine.users.set_role(workspace_id, user.id, role, actor=actor())
        return user, await engine.users.reset(user.id, actor=actor())

    user, made = with_engine(work)
    show({**documents.resource(user), **_link(made)})
    note(_ONCE)


@users.command("list")
@click.argument("workspace_id", type=WORKSPACE, required=False)
def list_(workspace_id: str | None) -> None:
    """List all users, or those of one workspace with their roles."""

    async def work(engine: Outreach) -> list[documents.Document]:
        if workspace_id is None:
            found = [documents.resource(one) async for one in engine.users.iter_all()]
        else:
            members = engine.users.iter_members(workspace_id)
            found = [{**documents.resource(one.user), "role": one.role} async for one in members]
        sessions = await engine.sessions.count_open(*(one["id"] for one in found))
        return [{**one, "open_sessions": sessions[one["id"]]} for one in found]

    show_list(
        with_engine(work),
        (
            "id",
            "email",
            "name",
            *(() if workspace_id is None else ("role",)),
            "operator",
            "last_seen_at",
            "open_sessions",
            "disabled_at",
        ),
        empty="There are no users yet. Make one with: outreach-server users create EMAIL --operator",
    )


@users.command()
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("email", type=_EMAIL, required=False)
@click.option("--role", type=OneOf(ROLES), default="viewer", show_default=True, help="What the user may do there.")
@click.option("--withdraw", type=Identifier("invitation"), metavar="ID", help="Withdraw an invitation that was made.")
def invite(workspace_id: str, email: str | None, role: Role, withdraw: str | None) -> None:
    """Show a link by which EMAIL joins a workspace; without EMAIL list the invitations.

    The link is good for seven days. Somebody who is a user already signs in, and opens it then.
    """
    if withdraw is not None:
        if email is not None:
            raise click.UsageError("Give EMAIL or --withdraw, not both.")
        show(
            _invitation(
                with_engine(lambda engine: engine.users.withdraw_invitation(workspace_id, withdraw, actor=actor()))
            )
        )
        return
    if email is None:
        found = with_engine(lambda engine: collect(engine.users.iter_invitations(workspace_id)))
        show_list(
            [_invitation(one) for one in found],
            ("id", "email", "role", "made_by", "expires_at", "used_at"),
            empty="There are no invitations.",
        )
        return
    made = with_engine(lambda engine: engine.users.invite(workspace_id, email, role, actor=actor()))
    show({**_invitation(made.invitation), **_link(made)})
    note(_ONCE)


@users.command()
@click.argument("user", type=_USER)
@_WORKSPACE_OPTION
@_ROLE_OPTION
@click.option("--no-role", is_flag=True, help="Remove the user from the workspace.")
@click.option("--operator/--no-operator", default=None, help="Every right in every workspace, and on the server.")
def role(user: str, workspace_id: str | None, role: Role | None, no_role: bool, operator: bool | None) -> None:
    """Change what USER (an e-mail address or an id) may do; the user has to sign in again."""
    if role is not None and no_role:
        raise click.UsageError("--role and --no-role exclude each other.")
    _require_both(workspace_id, "none" if no_role else role)
    if workspace_id is None and operator is None:
        raise click.UsageError(NO_CHANGE)

    async def work(engine: Outreach) -> documents.Document:
        found = await _find(engine, user)
        if workspace_id is not None:
            found = await engine.users.set_role(workspace_id, found.id, role, actor=actor())
        if operator is not None:
            found = await engine.users.set_operator(found.id, operator, actor=actor())
        return {**documents.resource(found), "roles": dict(await engine.users.get_roles(found.id))}

    show(with_engine(work))


@users.command()
@click.argument("user", type=_USER)
@click.option("--enable", is_flag=True, help="Enable a disabled user instead.")
def disable(user: str, enable: bool) -> None:
    """Disable USER (an e-mail address or an id): logins and open sessions end within a second."""

    async def work(engine: Outreach) -> User:
        found = await _find(engine, user)
        change = engine.users.enable if enable else engine.users.disable
        return await change(found.id, actor=actor())

    show(documents.resource(with_engine(work)))


@users.command()
@click.argument("user", type=_USER)
@click.option(
    "--second-factor",
    is_flag=True,
    help="Remove the second factor too, for a lost device; the present password ends at once.",
)
def reset(user: str, second_factor: bool) -> None:
    """Show a link by which USER (an e-mail address or an id) chooses a new password; good for a day."""

    async def work(engine: Outreach) -> tuple[User, CreatedInvitation]:
        found = await _find(engine, user)
        made = await engine.users.reset(found.id, second_factor=second_factor, actor=actor())
        return await engine.users.get(found.id), made

    found, made = with_engine(work)
    show({**documents.resource(found), **_link(made)})
    note(_ONCE)


@users.command()
@click.argument("user", type=_USER)
@click.option("--end", type=_SESSION, metavar="ID", help="End this session.")
@click.option("--end-all", is_flag=True, help="End all sessions.")
def sessions(user: str, end: str | None, end_all: bool) -> None:
    """List the logins of USER (an e-mail address or an id) in the last three months, newest first, or end some."""
    if end is not None and end_all:
        raise click.UsageError("--end and --end-all exclude each other.")

    async def work(engine: Outreach) -> list[Session]:
        found = await _find(engine, user)
        if end is not None:
            await engine.sessions.end(found.id, end, actor=actor())
        if end_all:
            await engine.sessions.end_all(found.id, actor=actor())
        return await collect(engine.sessions.iter_all(found.id))

    show_list(
        [documents.resource(one) for one in with_engine(work)],
        ("id", "created_at", "seen_at", "address", "agent", "second_factor", "ended_at"),
        empty="This user has not signed in for three months.",
    )


def _link(made: CreatedInvitation) -> documents.Document:
    config, _ = state().configuration()
    own = f"{scheme_of(config)}://{config.listen_host}:{config.listen_port}{config.root_path or ''}"
    return {"link": link_of(made, config.public_url or own), "link_expires_at": to_json(made.invitation.expires_at)}


def _invitation(one: Invitation) -> documents.Document:
    shown = documents.resource(one)
    return {name: value for name, value in shown.items() if name not in {"kind", "user_id"}}


def _require_both(workspace_id: str | None, role: Any) -> None:
    if (workspace_id is None) != (role is None):
        raise click.UsageError("--workspace and --role belong together.")


async def _find(engine: Outreach, user: str) -> User:
    """Return the user with an e-mail address or an id."""
    return await (engine.users.find(user) if "@" in user else engine.users.get(user.lower()))
