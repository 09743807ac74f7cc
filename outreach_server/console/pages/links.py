"""Links that are used once: invitations, new passwords, and the first-run set-up."""

from __future__ import annotations

from starlette.responses import Response

from outreach import Conflict, InvalidRequest, NewWorkspace, NotFound, WorkspaceMode
from outreach.errors import Unauthorized
from outreach.models import Invitation, NewUser, Visit
from outreach_server.console.identities import words
from outreach_server.console.identities.guests import Guest
from outreach_server.console.identities.setting_up import fill_sandbox, needs_setup


async def show_invitation(guest: Guest) -> Response:
    """Show what a link is for, without using it."""
    return await _invitation(guest)


async def act_invitation(guest: Guest) -> Response:
    """Use a link: join, or choose a password; then the person is signed in."""
    token = guest.request.path_params["token"]
    signed_in = await _signed_in(guest)
    try:
        if guest.form.get("action") == "join" and signed_in is not None:
            user = await guest.engine.users.join(token, signed_in.user.id)
        else:
            user = await guest.engine.users.accept(
                token, password=guest.form.get("password", ""), name=guest.form.get("name", "")
            )
    except InvalidRequest as error:
        return await _invitation(guest, status=422, problems=words.problems_of(error))
    except Conflict as error:
        return await _invitation(guest, status=409, problems={"": error.message})
    except (Unauthorized, NotFound):
        return _gone(guest)
    return guest.enter(await guest.engine.sessions.begin(user.id, address=guest.address, agent=guest.agent))


async def _invitation(guest: Guest, *, status: int = 200, problems: dict[str, str] | None = None) -> Response:
    try:
        found = await guest.engine.users.get_invitation(guest.request.path_params["token"])
    except Unauthorized:
        return _gone(guest)
    if found.kind == "setup":
        return _gone(guest)
    signed_in = await _signed_in(guest)
    joins = signed_in is not None and found.kind == "invitation" and signed_in.user.email == found.email
    return guest.page(
        "invitation",
        title="New password" if found.kind == "reset" else "Invitation",
        status=status,
        problems=problems or {},
        name=guest.form.get("name", ""),
        email=found.email,
        kind=found.kind,
        role=found.role,
        workspace=await _workspace_name(guest, found),
        joins=joins,
        login_url=guest.url("login", {"next": guest.request.url.path, "again": "yes"}),
    )


async def _workspace_name(guest: Guest, invitation: Invitation) -> str:
    if invitation.workspace_id is None:
        return ""
    return (await guest.engine.workspaces.get(invitation.workspace_id)).name


async def _signed_in(guest: Guest) -> Visit | None:
    return await guest.engine.sessions.find(guest.token) if guest.token else None


def _gone(guest: Guest, message: str = words.LINK_GONE) -> Response:
    return guest.page("gone", title="Link not valid", status=404, message=message)


async def show_setup(guest: Guest) -> Response:
    """Show the set-up, which is closed for good once there is a user."""
    if not await needs_setup(guest.engine):
        return guest.go("login")
    return _setup(guest)


async def act_setup(guest: Guest) -> Response:
    """Make the first user and a workspace; a sandbox has an agent, a number and a sample list."""
    form = guest.form
    mode = WorkspaceMode.LIVE if form.get("mode") == "live" else WorkspaceMode.SANDBOX
    if not await needs_setup(guest.engine):
        return guest.go("login")
    try:
        made = await guest.engine.users.set_up(
            form.get("setup_token", "").strip().rpartition("#")[2],
            NewUser(email=form.get("email", ""), name=form.get("name", "").strip()),
            password=form.get("password", ""),
            workspace=NewWorkspace(
                name=form.get("workspace", "").strip() or mode.value.capitalize(),
                mode=mode,
                default_region=form.get("region", "").strip().upper() or None,
            ),
        )
    except InvalidRequest as error:
        return _setup(guest, status=422, problems=words.problems_of(error))
    except (Unauthorized, NotFound):
        return _setup(guest, status=422, problems={"setup_token": words.SETUP_GONE})
    if mode is WorkspaceMode.SANDBOX:
        await fill_sandbox(guest.engine, made.workspace.id, actor=f"user:{made.user.id}")
    session = await guest.engine.sessions.begin(made.user.id, address=guest.address, agent=guest.agent)
    return guest.enter(session, guest.url("overview", workspace=made.workspace.id))


def _setup(guest: Guest, *, status: int = 200, problems: dict[str, str] | None = None) -> Response:
    kept = {name: guest.form.get(name, "") for name in ("setup_token", "email", "name", "workspace", "region", "mode")}
    problems = dict(problems or {})
    if "default_region" in problems:
        problems["region"] = problems.pop("default_region")
    return guest.page("setup", title="Set up", status=status, problems=problems, kept=kept)
