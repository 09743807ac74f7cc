"""Who may see and do what."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import httpx
import pytest
from starlette.requests import Request
from starlette.routing import Route

from outreach import CampaignStatus, CampaignUpdate, NewWorkspace, Outreach, WorkspaceUpdate
from outreach_server.console.access import RIGHTS, ConsoleUser, Right, Role, may
from outreach_server.console.actions import ACTIONS
from outreach_server.console.app import build
from tests.console.conftest import GUARDED, ORIGIN, PAGES, PEOPLE, House
from tests.console.furniture import addresses, furnished
from tests.console.places import PUBLIC
from tests.console.test_people import fields
from tests.own_adapter import OwnAdapter

pytestmark = pytest.mark.anyio

OWN: Final = frozenset({"workspace", "phone"})
"""Parameters of paths that name nothing which is in one workspace alone."""

READY_FOR = {
    "start": (),
    "pause": ("start",),
    "resume": ("start", "pause"),
    "cancel": ("start",),
    "archive": (),
    "unarchive": ("archive",),
    "unschedule": ("start",),
    "close": ("start",),
}
"""What brings a ready campaign into a state in which each action is possible."""

TAKES = {
    "start": Right.START,
    "pause": Right.PAUSE,
    "resume": Right.START,
    "cancel": Right.CANCEL,
    "archive": Right.DRAFT,
    "unarchive": Right.DRAFT,
    "unschedule": Right.START,
    "close": Right.CANCEL,
}
"""The right that each action takes, written out and not read from the code."""

TABLE = {
    Role.VIEWER: {Right.SEE},
    Role.AGENT: {Right.SEE, Right.PAUSE, Right.REPLY},
    Role.MANAGER: {
        *(Right.SEE, Right.PAUSE, Right.DRAFT, Right.START, Right.CANCEL),
        *(Right.REPLY, Right.DECIDE, Right.EXPORT, Right.FLOWS),
    },
    Role.OWNER: set(Right) - {Right.OPERATE},
}


def test_each_action_is_tried_with_each_role() -> None:
    """A new one is added here."""
    assert set(READY_FOR) == set(TAKES) == set(ACTIONS)


def test_the_table_of_rights_is_the_designs() -> None:
    """Everybody may pause but viewers; managers may send, owners set up, and no role operates the server."""
    assert dict(RIGHTS) == TABLE
    assert not any(may(None, right) for right in Right)


@pytest.mark.parametrize("path", [path for path in PAGES if path != "nothing"])
async def test_each_role_sees_each_page_of_its_workspace(house: House, path: str) -> None:
    """Strangers find nothing there, and people who are not signed in are told so."""
    campaign, right = await house.campaign(), GUARDED.get(path, Right.SEE)
    path = path.format(campaign=campaign.id)
    for role in (*Role, "operator"):
        seen = role == "operator" or may(Role(role), right)
        expected = {200} if seen and path != "/" else {200, 303} if seen else {403}
        assert (await house.get(path, person=str(role))).status_code in expected
    assert (await house.get(path, person=None)).status_code == 401
    if not path.startswith("/"):
        assert (await house.get(path, person="stranger")).status_code == 404


@pytest.mark.parametrize("path", ["campaigns/{campaign}/export", "register/file"])
async def test_files_with_numbers_are_for_those_who_may_take_them_out(house: House, path: str) -> None:
    """In both ways: the file, and the form before it."""
    path = path.format(campaign=(await house.campaign()).id)
    form = {"action": "export-register" if "register" in path else "export"}
    for role in Role:
        allowed = may(role, Right.EXPORT)
        assert (await house.get(path, person=role)).status_code == (200 if allowed else 403)
        assert (await house.post(path, form, person=role)).status_code == (303 if allowed else 403)
    assert (await house.post(path, {"action": "clone"})).status_code == 400


async def test_exports_can_be_kept_from_managers(house: House) -> None:
    """In this workspace alone, and nothing else: their buttons go, and what they ask for is refused, with who may."""
    campaign = await house.campaign()
    paths = {"register": "register/file", f"campaigns/{campaign.id}/report": f"campaigns/{campaign.id}/export"}
    await house.engine.unsubscribes.add(house.workspace, "+13035550199")

    async def offers(page: str, path: str, person: str) -> bool:
        links = [one.attributes.get("href", "") for one in (await house.page(page, person=person)).all("a")]
        return house.url(path) in {link.partition("?")[0] for link in links}

    for page, path in paths.items():
        assert await offers(page, path, "manager")
    await house.engine.workspaces.update(house.workspace, WorkspaceUpdate(managers_export=False))
    for page, path in paths.items():
        form = {"action": "export-register" if "register" in path else "export"}
        for person, allowed in (("manager", False), ("owner", True), ("operator", True)):
            assert await offers(page, path, person) is allowed
            assert (await house.get(path, person=person)).status_code == (200 if allowed else 403)
            assert (await house.post(path, form, person=person)).status_code == (303 if allowed else 403)
        assert "This takes the role owner in this workspace" in (await house.get(path, person="manager")).text
    workspace = await house.engine.workspaces.get(house.workspace)
    kept = {right for right in Right if may(Role.MANAGER, right, workspace)}
    assert kept == TABLE[Role.MANAGER] - {Right.EXPORT}
    assert may(Role.MANAGER, Right.EXPORT, await house.engine.workspaces.get(house.foreign))


@pytest.mark.parametrize("role", [*Role, "operator"])
@pytest.mark.parametrize("name", READY_FOR)
async def test_an_action_works_exactly_where_its_button_is(house: House, name: str, role: str) -> None:
    """Another role gets 403, with the roles that may, and nothing changes."""
    starts_at = house.app.state.console.now() + timedelta(days=1) if name == "unschedule" else None
    campaign = await house.campaign("Reminders", starts_at=starts_at, stay_open=name == "close")
    for before in READY_FOR[name]:
        await getattr(house.engine.campaigns, before)(house.workspace, campaign.id)
    allowed = role == "operator" or may(Role(role), TAKES[name])
    shown = await house.page(f"campaigns/{campaign.id}", person=role)
    assert (name in shown.buttons) is allowed
    before_it = await house.engine.campaigns.get(house.workspace, campaign.id)
    form = {"action": name, "name": "Reminders", "revision": str(campaign.revision)}
    answer = await house.post(f"campaigns/{campaign.id}", form, person=role)
    after = await house.engine.campaigns.get(house.workspace, campaign.id)
    if allowed:
        assert answer.status_code == 303
        assert answer.headers["location"].endswith(f"/campaigns/{campaign.id}?done={name}")
        assert after != before_it
        assert ACTIONS[name].done in (await house.page(f"campaigns/{campaign.id}?done={name}", person=role)).root.text
        assert (await house.engine.audit.list(house.workspace)).items[0].actor == f"host:{role}"
    else:
        assert answer.status_code == 403
        assert "manager or owner" in answer.text
        assert after == before_it


async def test_a_page_does_not_say_that_an_action_was_done_when_it_was_reversed(house: House) -> None:
    """The address still names the action, after a reload or by the back button."""
    campaign = await house.campaign("Reminders")
    await house.engine.campaigns.start(house.workspace, campaign.id)
    paused = f"campaigns/{campaign.id}?done=pause"
    assert ACTIONS["pause"].done not in (await house.page(paused)).root.text
    await house.engine.campaigns.pause(house.workspace, campaign.id)
    assert ACTIONS["pause"].done in (await house.page(paused)).root.text


async def test_a_campaign_that_stays_open_is_closed(house: House) -> None:
    """Its page says how contacts are added; a draft, whose form has the box, and other campaigns have no button."""
    other = await house.campaign()
    await house.engine.campaigns.start(house.workspace, other.id)
    campaign = await house.campaign("Reminders", stay_open=True)
    path, command = f"campaigns/{campaign.id}", f"outreach-server campaigns add {campaign.id} FILE"
    for one in (f"campaigns/{other.id}", path):
        assert "close" not in (await house.page(one)).buttons
    await house.engine.campaigns.start(house.workspace, campaign.id)
    shown = await house.page(path)
    assert "close" in shown.buttons
    assert command in shown.root.text
    assert command not in (await house.page(path, person="agent")).root.text
    for _ in range(2):
        assert (await house.post(path, {"action": "close"})).headers["location"].endswith("?done=close")
    shown = await house.page(path)
    assert "close" not in shown.buttons
    assert command not in shown.root.text


async def test_a_row_of_the_list_offers_what_may_be_done(house: House) -> None:
    """The list has the same buttons, and they work from there."""
    campaign = await house.campaign()
    await house.engine.campaigns.start(house.workspace, campaign.id)
    assert (await house.page("campaigns", person="viewer")).buttons == set()
    assert (await house.page("campaigns", person="agent")).buttons == {"pause"}
    answer = await house.post("campaigns", {"action": "pause", "campaign": campaign.id}, person="agent")
    assert answer.status_code == 303
    found = await house.engine.campaigns.get(house.workspace, campaign.id)
    assert found.status is CampaignStatus.PAUSED


async def test_a_start_is_of_the_campaign_that_the_page_has_shown(house: House) -> None:
    """After a change by somebody else both buttons refuse, and the page shows the campaign as it is now."""
    campaign = await house.campaign()
    path = f"campaigns/{campaign.id}"
    for place in (path, "campaigns"):
        form = fields(await house.page(place), "start")
        await house.engine.campaigns.update(house.workspace, campaign.id, CampaignUpdate(body=f"Hello from {place}"))
        answer = await house.post(place, form)
        assert (answer.status_code, "changed meanwhile, so nothing was done" in answer.text) == (409, True), place
        assert place != path or f"Hello from {path}" in answer.text
    assert (await house.engine.campaigns.get(house.workspace, campaign.id)).status is CampaignStatus.READY
    form = fields(await house.page("campaigns"), "start")
    assert (await house.post("campaigns", {**form, "revision": ""})).status_code == 400
    for _ in range(2):
        assert (await house.post("campaigns", form)).status_code == 303


async def test_ids_of_other_workspaces_are_not_there(house: House) -> None:
    """Neither for reading nor for changing, in every role."""
    theirs = await house.campaign(workspace=house.foreign)
    pages = [path for path in PAGES if "{campaign}" in path]
    for path in (*pages, "campaigns/{campaign}/export", "live?of=campaign:{campaign}"):
        for person in ("owner", "operator"):
            assert (await house.get(path.format(campaign=theirs.id), person=person)).status_code == 404, path
    for path, form in ((f"campaigns/{theirs.id}", {}), ("campaigns", {"campaign": theirs.id})):
        answer = await house.post(path, {"action": "start", "revision": str(theirs.revision), **form})
        assert answer.status_code == 404
    ours = await house.campaign()
    assert (await house.get(f"campaigns/{ours.id}/contacts/99")).status_code == 404
    assert (await house.get(f"/w/{house.foreign}/")).status_code == 404
    assert (await house.get("/w/none/", person="operator")).status_code == 404
    assert (await house.engine.campaigns.get(house.foreign, theirs.id)).status is CampaignStatus.READY


async def test_every_page_is_for_people_of_its_workspace_and_every_form_for_its_own_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of all addresses that there are: for nobody, for an owner of another workspace, and for forms of another page."""
    monkeypatch.setenv("OUTREACH_SECRET_KEY", "A" * 43 + "=")
    async with Outreach.open("memory://", adapters=[OwnAdapter()]) as engine:
        ours = await furnished(engine)
        theirs = {**ours, "workspace": (await engine.workspaces.create(NewWorkspace(name="Others"))).id}
        people = {
            "operator": ConsoleUser(id=ours["users"], name="Olga", operator=True),
            "stranger": ConsoleUser(id="stranger", name="Sam", workspaces={theirs["workspace"]: Role.OWNER}),
        }

        async def identify(request: Request) -> ConsoleUser | None:
            return people.get(request.headers.get(PEOPLE, ""))

        app = build(get_engine=lambda: engine, identify=identify, actor_kind="user", has_login=True)
        console = app.state.console
        console.throttle.admits = lambda subject: True
        token = console.tokens.token(people["operator"].subject, console.now())
        accepts = {route.name for route in app.routes if isinstance(route, Route) and "POST" in (route.methods or ())}
        of_one = {route.name for route in app.routes if isinstance(route, Route) and set(route.param_convertors) - OWN}
        of_one |= {"new-text", "new-when", "new-check"}
        before = (await engine.audit.list(ours["workspace"])).items
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
            for name, path in addresses(app, ours, files=True):
                assert (await client.get(path)).status_code == 303, path
                if path.startswith("/w/"):
                    assert (await client.get(path, headers={PEOPLE: "stranger"})).status_code == 404, path
                for headers, form in (
                    ({"sec-fetch-site": "same-origin"}, {"key": "k"}),
                    ({"sec-fetch-site": "same-origin"}, {"key": "k", "token": "x"}),
                    ({"sec-fetch-site": "cross-site"}, {"key": "k", "token": token}),
                    ({}, {"key": "k", "token": token}),
                ):
                    sent = await client.post(path, data=form, headers={PEOPLE: "operator", **headers})
                    assert sent.status_code == (403 if name in accepts else 405), (path, headers)
            # What is of another workspace is not there, in the name of one's own.
            for name, path in addresses(app, theirs, files=True):
                if path.startswith("/w/") and name in of_one:
                    assert (await client.get(path, headers={PEOPLE: "stranger"})).status_code == 404, path
        assert accepts <= {name for name, _ in addresses(app, ours, files=True)} | PUBLIC.keys()
        assert (await engine.audit.list(ours["workspace"])).items == before


async def test_reading_changes_nothing(house: House) -> None:
    """A GET with the fields of a form does nothing, and pages without forms take none."""
    campaign = await house.campaign()
    token = await house.token("owner")
    await house.get(f"campaigns/{campaign.id}?action=start&key=k&token={token}")
    assert (await house.engine.campaigns.get(house.workspace, campaign.id)).status is CampaignStatus.READY
    assert (await house.post("", {"action": "start"})).status_code == 405


async def test_an_api_key_does_not_open_the_console(house: House) -> None:
    """People sign in; programs have keys."""
    key = await house.engine.api_keys.create(house.workspace, name="app", scopes=["send", "manage"])
    answer = await house.get("", person=None, authorization=f"Bearer {key.api_key}")
    assert answer.status_code == 401


async def test_one_session_cannot_send_without_end(house: House) -> None:
    """More than twenty requests in a second are refused for a moment, and those of others are not."""
    answers = [(await house.get("campaigns")).status_code for _ in range(60)]
    if 429 not in answers:
        console = house.app.state.console
        counts = [console.throttle.admits("somebody") for _ in range(100)]
        assert False in counts
    assert (await house.get("campaigns", person="viewer")).status_code == 200
