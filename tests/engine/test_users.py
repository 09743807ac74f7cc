"""Users, roles and links (docs/users.md): on every storage."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from outreach import Conflict, InvalidRequest, NewWorkspace, NotFound, Outreach, Workspace
from outreach.errors import Unauthorized
from outreach.models import NewUser, Role, User, UserUpdate
from outreach.testing.clock import ManualClock
from tests.engine.conftest import OpenStorage

pytestmark = pytest.mark.anyio

PASSWORD = "seven blue herons"
OTHER = "nine green otters"


@pytest.fixture
async def engine(open_storage: OpenStorage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """Open an engine on a clock that the test moves."""
    async with Outreach(open_storage(clock), clock=clock) as engine:
        yield engine


@pytest.fixture
async def acme(engine: Outreach) -> Workspace:
    """A workspace."""
    return await engine.workspaces.create(NewWorkspace(name="Acme"))


async def user_of(engine: Outreach, workspace_id: str, role: Role, email: str = "ann@acme.example") -> User:
    """Return a user with a role and a password."""
    user = await engine.users.create(NewUser(email=email, name="Ann"))
    await engine.users.accept((await engine.users.reset(user.id)).token, password=PASSWORD)
    return await engine.users.set_role(workspace_id, user.id, role)


async def actions(engine: Outreach, workspace_id: str | None = None) -> list[tuple[str, str, str | None]]:
    """Return the audit trail: what was done, by whom, with which detail."""
    return [(one.action, one.actor, one.detail) async for one in engine.audit.iter_all(workspace_id)]


# ------------------------------------------------------------------------------------------------- users


async def test_an_address_is_one_user_in_any_case(engine: Outreach) -> None:
    """Nobody has two accounts by accident, and nobody takes the place of another by a capital letter."""
    ann = await engine.users.create(NewUser(email=" Ann@ACME.example ", name="Ann"))
    assert ann.email == "ann@acme.example"
    assert await engine.users.find("ANN@acme.example") == ann
    with pytest.raises(Conflict, match="already"):
        await engine.users.create(NewUser(email="ann@acme.example", name="Other"))
    assert [one.id async for one in engine.users.iter_all()] == [ann.id]


@pytest.mark.parametrize("text", ["ann", "@acme", "ann@", "a b@c.d", "ann@a\x00b", "a@b@c", "x" * 251 + "@c.d"])
async def test_what_is_no_address_is_refused(engine: Outreach, text: str) -> None:
    """By its place."""
    with pytest.raises(InvalidRequest) as caught:
        await engine.users.create(NewUser(email=text, name="Ann"))
    assert [one.path for one in caught.value.details] == ["email"]


async def test_a_user_changes_name_zone_and_number(engine: Outreach) -> None:
    """What is not named stays."""
    ann = await engine.users.create(NewUser(email="ann@acme.example", name="Ann"))
    change = UserUpdate(time_zone="Europe/Berlin", phone="+1 415 555 0102")
    after = await engine.users.update(ann.id, change, actor=f"user:{ann.id}")
    assert (after.name, after.time_zone, after.phone) == ("Ann", "Europe/Berlin", "+14155550102")
    assert (await engine.users.update(ann.id, UserUpdate(phone=None))).phone is None
    with pytest.raises(InvalidRequest, match="zone"):
        UserUpdate(time_zone="Berlin")
    with pytest.raises(InvalidRequest, match="phone"):
        await engine.users.update(ann.id, UserUpdate(phone="12"))
    assert (await actions(engine))[1] == ("user.update", f"user:{ann.id}", "phone, time_zone")


# ------------------------------------------------------------------------------------------------- roles


async def test_a_role_is_of_one_workspace_and_a_change_ends_the_sessions(engine: Outreach, acme: Workspace) -> None:
    """What somebody may do is what the next login finds."""
    other = await engine.workspaces.create(NewWorkspace(name="Other"))
    ann = await user_of(engine, acme.id, Role.AGENT)
    session = await engine.sessions.sign_in(ann.email, PASSWORD)
    assert (found := await engine.sessions.find(session.token)) is not None
    assert found.roles == {acme.id: "agent"}
    await engine.users.set_role(acme.id, ann.id, Role.AGENT)
    assert await engine.sessions.find(session.token) is not None
    await engine.users.set_role(other.id, ann.id, Role.VIEWER, actor="user:x")
    assert await engine.sessions.find(session.token) is None
    assert await engine.users.get_roles(ann.id) == {acme.id: "agent", other.id: "viewer"}
    assert [(one.user.id, one.role) async for one in engine.users.iter_members(other.id)] == [(ann.id, "viewer")]
    assert (await actions(engine, other.id))[0] == ("user.role", "user:x", "viewer")
    await engine.users.set_role(other.id, ann.id, None)
    assert await engine.users.get_roles(ann.id) == {acme.id: "agent"}
    with pytest.raises(InvalidRequest, match="role"):
        await engine.users.set_role(acme.id, ann.id, "admin")  # type: ignore[arg-type]


async def test_the_last_owner_stays(engine: Outreach, acme: Workspace) -> None:
    """Neither as another role, nor removed, nor disabled; a disabled owner is none."""
    ann = await user_of(engine, acme.id, Role.OWNER)
    ben = await user_of(engine, acme.id, Role.OWNER, "ben@acme.example")
    await engine.users.disable(ben.id)
    demotions: tuple[Role | None, ...] = (Role.MANAGER, None)
    for role in demotions:
        with pytest.raises(Conflict, match="last owner"):
            await engine.users.set_role(acme.id, ann.id, role)
    with pytest.raises(Conflict, match="last owner"):
        await engine.users.disable(ann.id)
    await engine.users.enable(ben.id)
    assert (await engine.users.disable(ann.id)).disabled_at is not None


async def test_a_disabled_user_is_out_at_once_and_stays_out(engine: Outreach, acme: Workspace) -> None:
    """Sessions, passwords and links: none of them opens anything, until the user is enabled."""
    ann = await user_of(engine, acme.id, Role.AGENT)
    session = await engine.sessions.sign_in(ann.email, PASSWORD)
    link = await engine.users.reset(ann.id)
    await engine.users.disable(ann.id)
    assert await engine.sessions.find(session.token) is None
    with pytest.raises(Unauthorized):
        await engine.sessions.sign_in(ann.email, PASSWORD)
    with pytest.raises(Unauthorized):
        await engine.sessions.begin(ann.id)
    with pytest.raises(Unauthorized):
        await engine.users.accept(link.token, password=OTHER)
    with pytest.raises(Conflict, match="disabled"):
        await engine.users.reset(ann.id)
    await engine.users.enable(ann.id)
    assert await engine.sessions.find(session.token) is None
    with pytest.raises(Unauthorized):
        await engine.users.accept(link.token, password=OTHER)
    assert (await engine.sessions.sign_in(ann.email, PASSWORD)).user.id == ann.id


async def test_an_operator_is_one_for_the_whole_server(engine: Outreach, acme: Workspace) -> None:
    """A change ends the sessions, as that of a role."""
    ann = await user_of(engine, acme.id, Role.AGENT)
    session = await engine.sessions.sign_in(ann.email, PASSWORD)
    assert (await engine.users.set_operator(ann.id, True)).operator
    assert await engine.sessions.find(session.token) is None
    assert not (await engine.users.set_operator(ann.id, False)).operator


# ------------------------------------------------------------------------------------------------- links


async def test_an_invitation_is_used_once_and_makes_the_user(engine: Outreach, acme: Workspace) -> None:
    """Its token is nowhere in the database; who has the link chooses the password."""
    made = await engine.users.invite(acme.id, "Ben@acme.example", Role.MANAGER, actor="user:x")
    assert len(made.token) >= 43
    assert made.token not in repr(made)
    assert (await engine.users.get_invitation(made.token)).role == "manager"
    ben = await engine.users.accept(made.token, password=PASSWORD, name="Ben")
    assert (ben.email, ben.name, ben.operator) == ("ben@acme.example", "Ben", False)
    assert await engine.users.get_roles(ben.id) == {acme.id: "manager"}
    with pytest.raises(Unauthorized, match="link"):
        await engine.users.accept(made.token, password=PASSWORD)
    assert [one.used_at is None async for one in engine.users.iter_invitations(acme.id)] == [False]
    done = [(action, actor) for action, actor, _ in await actions(engine, acme.id)]
    assert done[:2] == [("user.role", f"user:{ben.id}"), ("user.invite", "user:x")]
    assert (await actions(engine, acme.id))[0][2] == "manager, invited by user:x"


async def test_a_link_expires_and_is_withdrawn(engine: Outreach, acme: Workspace, clock: ManualClock) -> None:
    """An invitation after a week, a new password after a day; another workspace withdraws nothing."""
    other = await engine.workspaces.create(NewWorkspace(name="Other"))
    ann = await user_of(engine, acme.id, Role.AGENT)
    first = await engine.users.invite(acme.id, "ben@acme.example", Role.VIEWER)
    with pytest.raises(NotFound):
        await engine.users.withdraw_invitation(other.id, first.invitation.id)
    await engine.users.withdraw_invitation(acme.id, first.invitation.id)
    second = await engine.users.invite(acme.id, "ben@acme.example", Role.VIEWER)
    reset = await engine.users.reset(ann.id)
    clock.advance(timedelta(days=1).total_seconds())
    await engine.users.get_invitation(second.token)
    clock.advance(timedelta(days=6).total_seconds())
    for token in (first.token, second.token, reset.token, "", "x" * 4000, "\ud800"):
        with pytest.raises(Unauthorized):
            await engine.users.get_invitation(token)
        with pytest.raises(Unauthorized):
            await engine.users.accept(token, password=PASSWORD)


async def test_an_invitation_takes_nobodys_account(engine: Outreach, acme: Workspace) -> None:
    """Who is a user already signs in as this user, with or without a password; others cannot use the link."""
    other = await engine.workspaces.create(NewWorkspace(name="Other"))
    ann = await user_of(engine, acme.id, Role.OWNER)
    new = await engine.users.create(NewUser(email="new@acme.example", name="New"))
    for user in (ann, new):
        made = await engine.users.invite(other.id, user.email, Role.VIEWER)
        with pytest.raises(Conflict, match="sign in"):
            await engine.users.accept(made.token, password=OTHER)
        with pytest.raises(Conflict, match="another"):
            await engine.users.join(made.token, (ann if user is new else new).id)
        await engine.users.join(made.token, user.id)
        assert (await engine.users.get_roles(user.id))[other.id] == "viewer"
    assert (await engine.sessions.sign_in(ann.email, PASSWORD)).user.id == ann.id


@pytest.mark.parametrize("role", [None, Role.AGENT, Role.VIEWER])
async def test_a_set_role_withdraws_the_invitations_of_its_user(
    engine: Outreach, acme: Workspace, role: Role | None
) -> None:
    """An earlier link brings no other role back, also where the role stays; other links stay valid."""
    other = await engine.workspaces.create(NewWorkspace(name="Other"))
    ann = await user_of(engine, acme.id, Role.VIEWER)
    early = await engine.users.invite(acme.id, ann.email, Role.MANAGER)
    kept = [
        await engine.users.invite(acme.id, "ben@acme.example", Role.AGENT),
        await engine.users.invite(other.id, ann.email, Role.AGENT),
    ]
    await engine.users.set_role(acme.id, ann.id, role)
    with pytest.raises(Unauthorized):
        await engine.users.join(early.token, ann.id)
    assert (await engine.users.get_roles(ann.id)).get(acme.id) == role
    for one in kept:
        await engine.users.get_invitation(one.token)


async def test_an_accepted_invitation_withdraws_the_others_of_its_address(engine: Outreach, acme: Workspace) -> None:
    """Of two links for one person the first that is opened counts."""
    mistake = await engine.users.invite(acme.id, "ben@acme.example", Role.MANAGER)
    meant = await engine.users.invite(acme.id, "ben@acme.example", Role.VIEWER)
    ben = await engine.users.accept(meant.token, password=PASSWORD)
    with pytest.raises(Unauthorized):
        await engine.users.join(mistake.token, ben.id)
    assert await engine.users.get_roles(ben.id) == {acme.id: "viewer"}


async def test_an_owner_makes_no_link_to_an_account_with_more_rights(engine: Outreach, acme: Workspace) -> None:
    """The link gives the account, also that of an operator or of a person in another workspace."""
    other = await engine.workspaces.create(NewWorkspace(name="Other"))
    ann = await user_of(engine, acme.id, Role.AGENT)
    assert (await engine.users.reset(ann.id, workspace_id=acme.id)).invitation.user_id == ann.id
    with pytest.raises(NotFound):
        await engine.users.reset(ann.id, workspace_id=other.id)
    await engine.users.set_role(other.id, ann.id, Role.VIEWER)
    with pytest.raises(Conflict, match="only an operator"):
        await engine.users.reset(ann.id, workspace_id=acme.id)
    await engine.users.set_role(other.id, ann.id, None)
    await engine.users.set_operator(ann.id, True)
    with pytest.raises(Conflict, match="only an operator"):
        await engine.users.reset(ann.id, workspace_id=acme.id)


async def test_an_owner_disables_nobody_with_more_rights(engine: Outreach, acme: Workspace) -> None:
    """The same holds for enabling again."""
    other = await engine.workspaces.create(NewWorkspace(name="Other"))
    ann = await user_of(engine, acme.id, Role.AGENT)
    with pytest.raises(NotFound):
        await engine.users.disable(ann.id, workspace_id=other.id)
    assert (await engine.users.disable(ann.id, workspace_id=acme.id)).disabled_at is not None
    await engine.users.set_role(other.id, ann.id, Role.VIEWER)
    for change in (engine.users.enable, engine.users.disable):
        with pytest.raises(Conflict, match="only an operator"):
            await change(ann.id, workspace_id=acme.id)
    assert (await engine.users.get(ann.id)).disabled_at is not None


async def test_the_trail_of_a_workspace_has_what_its_owner_does_to_a_persons_account(
    engine: Outreach, acme: Workspace
) -> None:
    """What an operator or the person does is of no workspace."""
    ann = await user_of(engine, acme.id, Role.AGENT)
    await engine.sessions.begin(ann.id)
    before = await actions(engine, acme.id)
    users = engine.users
    for act in (users.reset, users.reset, engine.sessions.end_all, users.disable, users.enable):
        await act(ann.id, workspace_id=acme.id, actor="user:x")
    trail = await actions(engine, acme.id)
    assert [(action, actor) for action, actor, _ in reversed(trail[: -len(before)])] == [
        ("user.reset", "user:x"),
        ("user.withdraw", "user:x"),
        ("user.reset", "user:x"),
        ("session.end", "user:x"),
        ("user.withdraw", "user:x"),
        ("user.disable", "user:x"),
        ("user.enable", "user:x"),
    ]
    await users.accept((await users.reset(ann.id)).token, password=OTHER)
    await users.disable(ann.id)
    assert await actions(engine, acme.id) == trail


async def test_the_trail_has_each_link_that_a_change_of_a_role_withdraws(engine: Outreach, acme: Workspace) -> None:
    """Those to the person, and those that an owner made; of an account elsewhere it has none."""
    other = await engine.workspaces.create(NewWorkspace(name="Other"))
    ann = await user_of(engine, acme.id, Role.OWNER)
    ben, cem = [await user_of(engine, one.id, Role.OWNER, f"{one.name}@b.example") for one in (acme, other)]
    to_ann = await engine.users.invite(acme.id, ann.email, Role.MANAGER)
    by_ann = await engine.users.invite(acme.id, "eve@acme.example", Role.OWNER, actor=f"user:{ann.id}")
    for one in (ben, cem):
        await engine.users.reset(one.id, actor=f"user:{ann.id}")
    await engine.users.set_role(acme.id, ann.id, Role.VIEWER, actor="user:x")
    found = {one.subject async for one in engine.audit.iter_all(acme.id) if one.action == "user.withdraw"}
    assert found == {to_ann.invitation.id, by_ann.invitation.id, ben.id}
    everywhere = [one.subject async for one in engine.audit.iter_all() if one.action == "user.withdraw"]
    assert sorted(everywhere) == sorted([*found, cem.id])


async def test_who_is_no_owner_any_more_has_no_link_in_reserve(engine: Outreach, acme: Workspace) -> None:
    """An invitation that was made in advance would be the way back."""
    await user_of(engine, acme.id, Role.OWNER, "ben@acme.example")
    ann = await user_of(engine, acme.id, Role.OWNER)
    made = [await engine.users.invite(acme.id, f"{n}@evil.example", Role.OWNER, actor=f"user:{ann.id}") for n in "ab"]
    await engine.users.set_role(acme.id, ann.id, Role.VIEWER)
    for one in made:
        with pytest.raises(Unauthorized):
            await engine.users.accept(one.token, password=PASSWORD)


@pytest.mark.parametrize("end", ["disabled", "no operator"])
async def test_who_operates_no_more_has_no_link_in_reserve(engine: Outreach, acme: Workspace, end: str) -> None:
    """Neither an invitation nor a new password of somebody; a link of somebody else stays valid."""
    eve = await engine.users.create(NewUser(email="eve@acme.example", name="Eve", operator=True))
    ben = await user_of(engine, acme.id, Role.OWNER, "ben@acme.example")
    made = [
        await engine.users.invite(acme.id, "eve2@evil.example", Role.OWNER, actor=f"user:{eve.id}"),
        await engine.users.reset(ben.id, actor=f"user:{eve.id}"),
    ]
    kept = await engine.users.invite(acme.id, "cem@acme.example", Role.AGENT, actor=f"user:{ben.id}")
    if end == "disabled":
        await engine.users.disable(eve.id)
    else:
        await engine.users.set_operator(eve.id, False)
    for one in made:
        with pytest.raises(Unauthorized):
            await engine.users.accept(one.token, password=OTHER)
    assert (await engine.users.accept(kept.token, password=PASSWORD)).email == "cem@acme.example"


@pytest.mark.parametrize("more", ["another workspace", "operator"])
async def test_an_owners_link_does_not_grow_with_the_account(engine: Outreach, acme: Workspace, more: str) -> None:
    """An owner who made a link to an account in advance does not get the rights that the account has got since."""
    ben = await user_of(engine, acme.id, Role.OWNER, "ben@acme.example")
    ann = await user_of(engine, acme.id, Role.AGENT)
    made = await engine.users.reset(ann.id, workspace_id=acme.id, actor=f"user:{ben.id}")
    assert (await engine.users.get_invitation(made.token)).user_id == ann.id
    if more == "operator":
        await engine.users.set_operator(ann.id, True)
    else:
        await engine.users.set_role((await engine.workspaces.create(NewWorkspace(name="B"))).id, ann.id, Role.VIEWER)
    with pytest.raises(Unauthorized):
        await engine.users.accept(made.token, password=OTHER)


async def test_a_new_password_ends_everything_of_the_old_one(engine: Outreach, acme: Workspace) -> None:
    """Sessions, and other links; the old password is wrong."""
    ann = await user_of(engine, acme.id, Role.AGENT)
    session = await engine.sessions.sign_in(ann.email, PASSWORD)
    first = await engine.users.reset(ann.id)
    second = await engine.users.reset(ann.id)
    with pytest.raises(Unauthorized):
        await engine.users.accept(first.token, password=OTHER)
    assert await engine.sessions.find(session.token) is not None
    await engine.users.accept(second.token, password=OTHER)
    assert await engine.sessions.find(session.token) is None
    with pytest.raises(Unauthorized):
        await engine.sessions.sign_in(ann.email, PASSWORD)
    assert (await engine.sessions.sign_in(ann.email, OTHER)).user.id == ann.id


@pytest.mark.parametrize(
    "password",
    [
        "short",
        "a" * 12,
        "x" * 257,
        "ann@acme.example",
        "Passwort2026!",
        "qwertyuiop123",
        "correct horse battery staple",
    ],
)
async def test_a_bad_password_is_refused_and_the_link_stays(engine: Outreach, acme: Workspace, password: str) -> None:
    """Too short, too long, the address, or one that everybody tries; the error does not quote it."""
    made = await engine.users.invite(acme.id, "ann@acme.example", Role.VIEWER)
    with pytest.raises(InvalidRequest) as caught:
        await engine.users.accept(made.token, password=password)
    assert [one.path for one in caught.value.details] == ["password"]
    assert password not in str(caught.value)
    assert (await engine.users.accept(made.token, password="é" * 2 + "longer words")).has_password


# ------------------------------------------------------------------------------------------------ set-up


async def test_the_first_run_is_opened_by_each_link_of_the_last_hour(engine: Outreach, clock: ManualClock) -> None:
    """Each of several servers prints one. None is valid any more once there is a user."""
    new, workspace = NewUser(email="ann@acme.example", name="Ann"), NewWorkspace(name="Acme")
    late = await engine.users.open_setup()
    assert late is not None
    clock.advance(3600)
    good, other = await engine.users.open_setup(), await engine.users.open_setup()
    spare_time = clock.now()
    assert good is not None
    assert other is not None
    for token in (late.token, "guess"):
        with pytest.raises(Unauthorized):
            await engine.users.set_up(token, new, password=PASSWORD, workspace=workspace)
    with pytest.raises(InvalidRequest):
        await engine.users.set_up(good.token, new, password="short", workspace=workspace)
    made = await engine.users.set_up(good.token, new, password=PASSWORD, workspace=workspace)
    assert clock.now() == spare_time
    assert made.user.operator
    assert await engine.users.get_roles(made.user.id) == {made.workspace.id: "owner"}
    assert await engine.users.open_setup() is None
    for token in (good.token, other.token):
        with pytest.raises(Unauthorized):
            await engine.users.set_up(token, new, password=PASSWORD, workspace=workspace)
    assert {actor for action, actor, _ in await actions(engine) if action != "setup.open"} == {f"user:{made.user.id}"}


async def test_a_user_closes_an_open_set_up(engine: Outreach) -> None:
    """Also one that the command line has made."""
    link = await engine.users.open_setup()
    assert link is not None
    await engine.users.create(NewUser(email="ben@acme.example", name="Ben"))
    with pytest.raises(Unauthorized):
        await engine.users.set_up(
            link.token,
            NewUser(email="ann@acme.example", name="Ann"),
            password=PASSWORD,
            workspace=NewWorkspace(name="Acme"),
        )


async def test_links_are_used_for_what_they_were_made_for(engine: Outreach, acme: Workspace) -> None:
    """A link of the set-up is no invitation, and an invitation sets nothing up."""
    setup = await engine.users.open_setup()
    assert setup is not None
    with pytest.raises(NotFound):
        await engine.users.accept(setup.token, password=PASSWORD)
    invitation = await engine.users.invite(acme.id, "ann@acme.example", Role.VIEWER)
    with pytest.raises(NotFound):
        await engine.users.set_up(
            invitation.token,
            NewUser(email="ann@acme.example", name="Ann"),
            password=PASSWORD,
            workspace=NewWorkspace(name="Mine"),
        )
