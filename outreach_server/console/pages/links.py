"""Links that are used once: invitations, new passwords, and the first-run set-up."""

from __future__ import annotations

from starlette.responses import Response

from outreach import Conflict, InvalidRequest, NewWorkspace, NotFound, WorkspaceMode
from outreach.errors import Unauthorized
from outreach.models import Invitation, NewUser, Visit
from outreach_server.console.identities import words
from outreach_server.console.identities.public_pages import PublicVisit
from outreach_server.console.identities.setting_up import fill_sandbox, needs_setup


async def show_invitation(visit: PublicVisit) -> Response:
    """Show what a link is for, without using it."""
    return await _invitation(visit)


async def act_invitation(visit: PublicVisit) -> Response:
    """Use a link: join, or choose a password; then the person is signed in."""
    token = visit.request.path_params["token"]
    signed_in = await _signed_in(visit)
    try:
        if visit.form.get("action") == "join" and signed_in is not None:
            user = await visit.engine.users.join(token, signed_in.user.id)
        else:
            user = await visit.engine.users.accept(
                token, password=visit.form.get("password", ""), name=visit.form.get("name", "")
            )
    except InvalidRequest as error:
        return await _invitation(visit, status=422, problems=words.problems_of(error))
    except Conflict as error:
        return await _invitation(visit, status=409, problems={"": error.message})
    except (Unauthorized, NotFound):
        return _gone(visit)
    return visit.enter(await visit.engine.sessions.begin(user.id, address=visit.address, agent=visit.agent))


async def _invitation(visit: PublicVisit, *, status: int = 200, problems: dict[str, str] | None = None) -> Response:
    try:
        found = await visit.engine.users.get_invitation(visit.request.path_params["token"])
    except Unauthorized:
        return _gone(visit)
    if found.kind == "setup":
        return _gone(visit)
    signed_in = await _signed_in(visit)
    joins = signed_in is not None and found.kind == "invitation" and signed_in.user.email == found.email
    return visit.page(
        "invitation",
        title="New password" if found.kind == "reset" else "Invitation",
        status=status,
        problems=problems or {},
        name=visit.form.get("name", ""),
        email=found.email,
        kind=found.kind,
        role=found.role,
        workspace=await _workspace_name(visit, found),
        joins=joins,
        login_url=visit.url("login", {"next": visit.request.url.path, "again": "yes"}),
    )


async def _workspace_name(visit: PublicVisit, invitation: Invitation) -> str:
    if invitation.workspace_id is None:
        return ""
    return (await visit.engine.workspaces.get(invitation.workspace_id)).name


async def _signed_in(visit: PublicVisit) -> Visit | None:
    return await visit.engine.sessions.find(visit.token) if visit.token else None


def _gone(visit: PublicVisit, message: str = words.LINK_GONE) -> Response:
    return visit.page("gone", title="Link not valid", status=404, message=message)


async def show_setup(visit: PublicVisit) -> Response:
    """Show the set-up, which is closed for good once there is a user."""
    if not await needs_setup(visit.engine):
        return visit.go("login")
    return _setup(visit)


async def act_setup(visit: PublicVisit) -> Response:
    """Make the first user and a workspace; a sandbox has an agent, a number and a sample list."""
    form = visit.form
    mode = WorkspaceMode.LIVE if form.get("mode") == "live" else WorkspaceMode.SANDBOX
    if not await needs_setup(visit.engine):
        return visit.go("login")
    try:
        made = await visit.engine.users.set_up(
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
        return _setup(visit, status=422, problems=words.problems_of(error))
    except (Unauthorized, NotFound):
        return _setup(visit, status=422, problems={"setup_token": words.SETUP_GONE})
    if mode is WorkspaceMode.SANDBOX:
        await fill_sandbox(visit.engine, made.workspace.id, actor=f"user:{made.user.id}")
    session = await visit.engine.sessions.begin(made.user.id, address=visit.address, agent=visit.agent)
    return visit.enter(session, visit.url("overview", workspace=made.workspace.id))


def _setup(visit: PublicVisit, *, status: int = 200, problems: dict[str, str] | None = None) -> Response:
    kept = {name: visit.form.get(name, "") for name in ("setup_token", "email", "name", "workspace", "region", "mode")}
    problems = dict(problems or {})
    if "default_region" in problems:
        problems["region"] = problems.pop("default_region")
    return visit.page("setup", title="Set up", status=status, problems=problems, kept=kept)
