"""The pages of the set-up: who may do what, and that each form does what the service behind it does."""

from __future__ import annotations

import csv
import os
import platform
import re
import sqlite3
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import attrs
import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from outreach import (
    EngineStatus,
    FlowStep,
    NewAgent,
    NewFlow,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewTrunk,
    NewWorkspace,
    NotFound,
    Outreach,
    WorkspaceUpdate,
    __version__,
)
from outreach.core import passwords
from outreach.core.passwords import Cost
from outreach.core.vault import Vault
from outreach.insight.status import StatusQuery
from outreach.models import DiskUse, NewUser, NewWebhook
from outreach.models.user import IDLE
from outreach.server_support import RESOURCE_SERVICES, fields_of
from outreach.storage.base import schema
from outreach.testing.clock import ShiftedClock
from outreach_server.config import SECOND_FACTOR_FOR
from outreach_server.console import ConsoleUser, Role, create_console, throttle
from outreach_server.console.app import create_own_console
from outreach_server.console.identities import words
from outreach_server.console.identities.cookies import PLAIN_NAME
from outreach_server.console.pages.set_up.every import NOUNS
from outreach_server.console.pages.set_up.nouns import Noun, SetUpAction
from outreach_server.console.security.headers import HEADERS
from tests.console.furniture import recurring
from tests.console.page import Element, Page, parse
from tests.fake_provider import CREDENTIALS as OWN
from tests.own_adapter import OwnAdapter

pytestmark = pytest.mark.anyio

MOUNT: Final = "/a/b"
ORIGIN: Final = "http://host.example"
PASSWORD: Final = "seven blue herons"
CREDENTIALS: Final = {"credentials.account_sid": f"AC{'0' * 32}", "credentials.auth_token": "a" * 32}

HOOK: Final = {
    "url": "https://app.example/hook",
    "payload": "thin",
    "concurrency": "4",
    "types_campaign.completed": "yes",
}

RECURRING: Final = {
    "name": "Recalls",
    "every": "1",
    "repeats": "WEEKLY",
    "weekdays_MO": "yes",
    "starts_on": "2027-01-04",
    "at": "09:30",
    "zone": "Europe/Lisbon",
    "holidays": "skip",
    "overlap": "skip",
}

LEAST: Final = {
    **dict.fromkeys(("settings", "agents", "trunks", "numbers", "flows", "schedules", "prices"), "manager"),
    **dict.fromkeys(("accounts", "webhooks", "keys", "users", "invitations", "audit"), "owner"),
    **dict.fromkeys(("system-workspaces", "system-server", "system-users", "system-audit"), "operator"),
}
"""The least role that sees each page, written out and not read from the code."""

FORMS: Final[Mapping[tuple[str, str], tuple[str, Mapping[str, str]]]] = {
    ("settings", "workspace"): ("owner", {"name": "Acme 2", "sms_campaigns_enabled": "yes"}),
    ("settings", "approval"): ("owner", {"approve_over_contacts": "500", "approve_over_amount": "40"}),
    ("settings", "hours"): ("owner", {"narrower_hours": "US-FL: mon-sun 08:00-20:00 (Fla. Stat. 501.616)"}),
    ("settings", "sms"): ("owner", {"max_segments": "4", "retry_max_attempts": "2", "retry_delay_minutes": "15"}),
    ("settings", "calls"): ("owner", {"retry_max_attempts": "2", "retry_delay_minutes": "15"}),
    ("settings", "replies"): ("owner", {"enabled": "yes", "stop_text": "Bye."}),
    ("settings", "retention"): ("owner", {"retention_days": "30"}),
    ("agents", "create"): ("owner", {"name": "Ada", "provider": "simulator", "direction": "outbound"}),
    ("agents", "update"): ("owner", {"name": "Ada 2", "is_active": "yes"}),
    ("agents", "remove"): ("owner", {"typed": "Agent"}),
    ("trunks", "create"): ("owner", {"name": "Backup", "address": "sip.example"}),
    ("trunks", "update"): ("owner", {"name": "Main 2", "address": "sip.example"}),
    ("trunks", "remove"): ("owner", {"typed": "Main"}),
    ("numbers", "create"): ("owner", {"phone": "+12025550109", "carrier": "twilio"}),
    ("numbers", "update"): ("owner", {"carrier": "twilio", "rate_per_minute": "30"}),
    ("numbers", "remove"): ("owner", {"typed": "+12025550100"}),
    ("schedules", "create"): ("manager", {**RECURRING, "name": "Other"}),
    ("schedules", "update"): ("manager", {**RECURRING, "at": "10:15"}),
    ("schedules", "remove"): ("manager", {"typed": "Recalls"}),
    ("schedules", "approve"): ("manager", {"most_contacts": "500"}),
    **{("schedules", name): ("manager", {}) for name in ("pause", "resume", "run-now", "skip-next")},
    ("flows", "create"): ("manager", {"name": "Bye", "kind0": "send", "body0": "Bye"}),
    ("flows", "update"): ("manager", {"name": "Hello", "kind0": "send", "body0": "Hello"}),
    ("flows", "remove"): ("manager", {"typed": "Welcome"}),
    ("webhooks", "create"): ("owner", {**HOOK, "url": "https://app.example/other"}),
    ("webhooks", "update"): ("owner", {**HOOK, "description": "Ours"}),
    ("webhooks", "replay"): ("owner", {"number": "1"}),
    ("webhooks", "rotate"): ("owner", {"overlap_hours": "2"}),
    ("webhooks", "remove"): ("owner", {"typed": HOOK["url"]}),
    **{("webhooks", name): ("owner", {}) for name in ("pause", "enable", "test")},
    ("accounts", "connect"): ("owner", {"provider": "twilio", **CREDENTIALS}),
    ("accounts", "check"): ("owner", {}),
    ("accounts", "callback"): ("owner", {}),
    ("accounts", "replace"): ("owner", {f"credentials.{name}": value for name, value in OWN.items()}),
    ("accounts", "remove"): ("owner", {"typed": "Mycarrier"}),
    ("prices", "update"): ("owner", {"currency": "usd", "prices": "sms twilio us 0.0079\ncall * * 0.09"}),
    ("prices", "remove"): ("owner", {"typed": "USD"}),
    ("keys", "create"): ("owner", {"name": "Shop", "scopes_send": "yes", "scopes_read": "yes"}),
    ("keys", "revoke"): ("owner", {"typed": "Booking"}),
    ("users", "invite"): ("owner", {"email": "new@acme.example", "role": "agent"}),
    ("users", "role"): ("owner", {"role": "manager"}),
    ("users", "sessions"): ("owner", {}),
    ("users", "reset"): ("owner", {}),
    ("users", "disable"): ("owner", {}),
    ("users", "enable"): ("owner", {}),
    ("users", "leave"): ("owner", {"typed": "Ben"}),
    ("invitations", "withdraw"): ("owner", {}),
    ("system-workspaces", "create"): ("operator", {"name": "Third", "mode": "sandbox", "default_region": "US"}),
    ("system-workspaces", "update"): ("operator", {"status": "suspended", "request_limit": "5"}),
    ("system-server", "doctor"): ("operator", {}),
    ("system-users", "create"): ("operator", {"email": "third@acme.example", "name": "Third"}),
    ("system-users", "sessions"): ("operator", {}),
    ("system-users", "reset"): ("operator", {}),
    ("system-users", "second-factor"): ("operator", {"typed": "Ben"}),
    ("system-users", "disable"): ("operator", {}),
    ("system-users", "enable"): ("operator", {}),
    ("system-users", "operator"): ("operator", {"operator": "yes"}),
}
"""Of each action the least role that may do it, and a form; written out, so that a new one is added here."""

CHANGES_NOTHING: Final = {("accounts", "check"), ("accounts", "callback"), ("system-server", "doctor")}
"""Actions that look at something."""

PROVED: Final = {
    *(("accounts", name) for name in ("connect", "replace", "remove")),
    *(("webhooks", name) for name in ("create", "update", "rotate", "remove")),
    *(("keys", name) for name in ("create", "revoke")),
    *(("users", name) for name in ("invite", "role", "sessions", "reset", "disable", "enable", "leave")),
    *(("system-workspaces", name) for name in ("create", "update")),
    *(
        ("system-users", name)
        for name in ("create", "sessions", "reset", "second-factor", "disable", "enable", "operator")
    ),
    ("settings", "retention"),
}
"""Actions for which the password is asked again."""

TYPED: Final = {
    *((name, "remove") for name in ("agents", "trunks", "numbers", "flows", "schedules", "webhooks", "accounts")),
    ("keys", "revoke"),
    ("prices", "remove"),
    ("users", "leave"),
    ("system-users", "second-factor"),
}
"""Actions for which the name is typed."""

RANKS: Final = {name: place for place, name in enumerate(SECOND_FACTOR_FOR)}


@attrs.define
class Place:
    """A console with its own logins, a workspace in which there is one of everything, and a person in each role.

    Attributes:
        ids: The identifier of one thing of each noun.
        tokens: The token of each person's session, and its identifier.
    """

    engine: Outreach
    app: Starlette
    clock: ShiftedClock
    workspace: str
    ids: dict[str, str]
    people: dict[str, tuple[str, str]]
    client: httpx.AsyncClient

    def path(self, noun: Noun, *, one: bool, workspace: str | None = None) -> str:
        """Return the path of a page."""
        name = noun.name.removeprefix("system-")
        path = f"/w/{workspace or self.workspace}/{name}" if noun.place == "workspace" else f"/system/{name}"
        return f"{MOUNT}{path}/{self.ids[noun.name]}" if one and noun.shape == "many" else f"{MOUNT}{path}"

    async def get(self, path: str, person: str | None = "operator") -> httpx.Response:
        """Get a page."""
        return await self.client.get(path, headers=self._headers(person))

    async def page(self, path: str, person: str = "operator") -> Page:
        """Get a page and read it."""
        answer = await self.get(path, person)
        assert answer.status_code == 200, answer.text
        page = parse(answer.text)
        assert page.problems == []
        return page

    async def post(
        self, path: str, form: Mapping[str, str], person: str | None = "operator", **headers: str
    ) -> httpx.Response:
        """Send a form, with the token of the person's session."""
        console = self.app.state.console
        token = console.tokens.token(f"session:{self.people[person][1]}", console.now()) if person else ""
        fields = {"token": token, "key": "k", **form}
        sent = {"sec-fetch-site": "same-origin", **headers, **self._headers(person)}
        return await self.client.post(path, data=fields, headers=sent)

    async def seen(self, noun: Noun, action: SetUpAction, person: str = "operator") -> dict[str, str]:
        """Return what the form of an action has hidden."""
        hidden: dict[str, str] = {"template_id": self.ids["campaign"]} if action.preview is not None else {}
        if not action.changes and action.preview is None:
            return {}
        path = self.path(noun, one=action in noun.on_one)
        page = await self.page(path, person)
        if action.preview is not None:
            given = {"action": action.name, **FORMS[noun.name, action.name][1], **hidden}
            for one in _form(page, action).all("input", name="seen"):
                given["seen"] = one.attributes["value"]
            page = parse((await self.post(path, given, person)).text)
        for name in ("seen", "previewed"):
            for one in _form(page, action).all("input", name=name):
                hidden[name] = one.attributes["value"]
        return hidden

    async def send(self, noun: Noun, action: SetUpAction, person: str = "operator", **more: str) -> httpx.Response:
        """Send the form of an action."""
        form = {"action": action.name, **await self.seen(noun, action), **FORMS[noun.name, action.name][1], **more}
        return await self.post(self.path(noun, one=action in noun.on_one), form, person)

    async def user(self, person: str) -> str:
        """Return the identifier of a person."""
        return (await self.engine.users.find(f"{person}@acme.example")).id

    async def entries(self) -> list[str]:
        """Return all entries of the audit trail."""
        return [f"{one.actor} {one.action} {one.subject} {one.detail}" async for one in self.engine.audit.iter_all()]

    async def prepare(self, noun: Noun, action: SetUpAction) -> None:
        """Bring what the action is done to into a state in which it can be done."""
        if (noun.name, action.name) == ("webhooks", "enable"):
            await self.engine.webhooks.pause(self.workspace, self.ids["webhooks"])
        if (noun.name, action.name) == ("schedules", "resume"):
            await self.engine.schedules.pause(self.workspace, self.ids["schedules"])
        if (noun.name, action.name) == ("schedules", "approve"):
            await self.engine.workspaces.update(self.workspace, WorkspaceUpdate(approve_over_contacts=0))
        if action.name == "enable" and noun.name != "webhooks":
            await self.engine.users.disable(self.ids["users"])
        if (noun.name, action.name) == ("prices", "remove"):
            update = next(one for one in noun.on_one if one.name == "update")
            assert (await self.send(noun, update)).status_code == 303

    def _headers(self, person: str | None) -> dict[str, str]:
        return {} if person is None else {"cookie": f"{PLAIN_NAME}={self.people[person][0]}"}


def _form(page: Page, action: SetUpAction) -> Element:
    """Return the form of an action."""
    [form] = [one for one in page.all("form") if one.all("button", value=action.name)]
    return form


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash at the least cost, and send as fast as tests do."""
    monkeypatch.setattr(passwords, "COST", Cost(kibibytes=8, passes=1, lanes=1))
    monkeypatch.setattr(throttle, "REQUESTS_PER_SECOND", 10_000)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """A console with one of everything."""
    clock = ShiftedClock()
    async with Outreach.open("memory://", clock=clock, adapters=[OwnAdapter()]) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", default_region="US"))
        ids = await _everything(engine, workspace.id)
        people = {}
        for name in SECOND_FACTOR_FOR:
            new = NewUser(email=f"{name}@acme.example", name=f"Ann {name}", operator=name == "operator")
            user = await engine.users.create(new)
            for role in Role:
                if role == name:
                    await engine.users.set_role(workspace.id, user.id, role)
            await engine.users.accept((await engine.users.reset(user.id)).token, password=PASSWORD)
            made = await engine.sessions.begin(user.id)
            people[name] = (made.token, made.session.id)
        console = create_own_console(get_engine=lambda: engine)
        app = Starlette(routes=[Mount(MOUNT, console)])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
            yield Place(engine, console, clock, workspace.id, ids, people, client)


async def _campaign(engine: Outreach, workspace: str) -> str:
    number = await engine.numbers.create(workspace, NewNumber(phone="+12025550101", carrier="twilio"))
    new = NewSmsCampaign(name="Recall", body="Hi", carrier="twilio", from_number=number.phone)
    made = await engine.campaigns.create_sms(workspace, new, [NewRecipient(phone_number="+13035550100")])
    return made.campaign.id


async def _everything(engine: Outreach, workspace: str) -> dict[str, str]:
    """Make one of everything in a workspace; return the identifiers by noun."""
    steps = [FlowStep(kind="send", body="Hi {{first_name}}"), FlowStep(kind="wait", wait_minutes=90)]
    user = await engine.users.create(NewUser(email=f"ben@{workspace}.example", name="Ben"))
    await engine.users.set_role(workspace, user.id, Role.AGENT)
    await engine.sessions.begin(user.id)
    invited = await engine.users.invite(workspace, "eve@acme.example", Role.VIEWER, actor="cli:ann")
    key = await engine.api_keys.create(workspace, name="Booking", actor="cli:ann")
    return {
        "agents": (await engine.agents.create(workspace, NewAgent(name="Agent"))).id,
        "trunks": (await engine.trunks.create(workspace, NewTrunk(name="Main", address="sip.example"))).id,
        "numbers": (await engine.numbers.create(workspace, NewNumber(phone="+12025550100", carrier="twilio"))).id,
        "flows": (await engine.flows.create(workspace, NewFlow(name="Welcome", steps=steps))).id,
        "webhooks": (await engine.webhooks.create(workspace, NewWebhook(url=HOOK["url"]))).webhook.id,
        "campaign": (campaign := await _campaign(engine, workspace)),
        "schedules": (await engine.schedules.create(workspace, recurring(campaign))).id,
        "accounts": (await engine.accounts.connect(workspace, "mycarrier", OWN)).id,
        "keys": key.id,
        "users": user.id,
        "invitations": invited.invitation.id,
        "system-workspaces": workspace,
        "system-users": user.id,
    }


def actions() -> list[tuple[Noun, SetUpAction]]:
    """Return every action with its noun."""
    return [(noun, action) for noun in NOUNS for action in (*noun.on_list, *noun.on_one)]


def _id(value: Any) -> str:
    return str(getattr(value, "name", value))


every_noun = pytest.mark.parametrize("noun", NOUNS, ids=_id)
every_action = pytest.mark.parametrize(("noun", "action"), actions(), ids=_id)


def test_each_action_is_tried() -> None:
    """A new one is added here, with its right, and whether it takes a proof and a name."""
    named = {(noun.name, action.name) for noun, action in actions()}
    assert named == set(FORMS)
    assert {noun.name for noun in NOUNS} == set(LEAST)
    assert {(noun.name, action.name) for noun, action in actions() if action.proof} == PROVED
    assert {(noun.name, action.name) for noun, action in actions() if action.typed} == TYPED


@every_noun
async def test_each_page_is_there_for_those_who_may_see_it(place: Place, noun: Noun) -> None:
    """With its headers and its tab; others are refused, and strangers find nothing."""
    theirs = await place.engine.workspaces.create(NewWorkspace(name="Other"))
    for one in {False, noun.shape == "many"}:
        path = place.path(noun, one=one)
        for role in SECOND_FACTOR_FOR:
            answer = await place.get(path, role)
            allowed = RANKS[role] >= RANKS[LEAST[noun.name]]
            assert answer.status_code == (200 if allowed else 403), role
            assert parse(answer.text).problems == []
            assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
            assert len(answer.text) < 150_000
        assert (await place.get(path, None)).status_code == 303
        if noun.place == "workspace":
            assert (await place.get(place.path(noun, one=one, workspace=theirs.id), "owner")).status_code == 404
    tabs = [one for one in (await place.page(place.path(noun, one=False))).all("a") if "aria-current" in one.attributes]
    assert place.path(noun, one=False) in {one.attributes["href"] for one in tabs}


@every_action
async def test_an_action_is_done_by_those_whose_button_is_there(place: Place, noun: Noun, action: SetUpAction) -> None:
    """Every other role is refused, and nothing changes; the audit trail names who did it."""
    await place.prepare(noun, action)
    least, _ = FORMS[noun.name, action.name]
    path = place.path(noun, one=action in noun.on_one)
    before = await place.entries()
    for role in SECOND_FACTOR_FOR:
        if RANKS[role] < RANKS[least]:
            assert (await place.send(noun, action, role)).status_code == 403, role
            shown = await place.get(path, role)
            assert shown.status_code == 403 or action.name not in parse(shown.text).buttons
    assert await place.entries() == before
    assert action.name in (await place.page(path, least)).buttons
    answer = await place.send(noun, action, least)
    assert answer.status_code in {200, 303}, answer.text
    if answer.status_code == 200:
        assert parse(answer.text).problems == []
    else:
        assert f"done={action.name}" in answer.headers["location"]
    if (noun.name, action.name) in CHANGES_NOTHING:
        assert await place.entries() == before
    else:
        newest = (await place.entries())[0]
        assert newest.startswith("user:"), newest
        assert newest != before[0]


@every_action
async def test_a_form_is_of_a_page_and_of_its_session(place: Place, noun: Noun, action: SetUpAction) -> None:
    """Without a token, with one of somebody else, from another site, or without a key, it does nothing."""
    await place.prepare(noun, action)
    path, form = (
        place.path(noun, one=action in noun.on_one),
        {"action": action.name, **FORMS[noun.name, action.name][1]},
    )
    form |= await place.seen(noun, action)
    before = await place.entries()
    console = place.app.state.console
    other = console.tokens.token(f"session:{place.people['owner'][1]}", console.now())
    for wrong in ({"token": ""}, {"token": other}):
        assert (await place.post(path, {**form, **wrong})).status_code == 403
    assert (await place.post(path, form, **{"sec-fetch-site": "cross-site"})).status_code == 403
    assert (await place.post(path, {**form, "key": ""})).status_code == 400
    assert (await place.post(path, {**form, "action": "explode"})).status_code == 400
    assert (await place.post(path, form, None)).status_code == 401
    assert await place.entries() == before


@every_noun
async def test_ids_of_others_are_not_there(place: Place, noun: Noun) -> None:
    """Neither to see nor to change: those of another workspace, and those of nothing."""
    if noun.shape != "many":
        return
    theirs = await place.engine.workspaces.create(NewWorkspace(name="Other"))
    foreign = await _everything(place.engine, theirs.id)
    wrong = ["01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01", "nope"]
    if noun.place == "workspace":
        wrong.append(foreign[noun.name])
    before = await place.entries()
    for identifier in wrong:
        path = f"{place.path(noun, one=False)}/{identifier}"
        assert (await place.get(path)).status_code == 404
        for action in noun.on_one:
            form = {"action": action.name, **FORMS[noun.name, action.name][1]}
            assert (await place.post(path, form)).status_code == 404
    assert await place.entries() == before


@every_action
async def test_what_is_dangerous_takes_the_password_again(place: Place, noun: Noun, action: SetUpAction) -> None:
    """A quarter of an hour after the login; another password does nothing, and the field keeps none."""
    await place.prepare(noun, action)
    place.clock.advance(timedelta(minutes=16).total_seconds())
    path = place.path(noun, one=action in noun.on_one)
    asks = any(one.attributes.get("id") == f"{action.name}-current" for one in (await place.page(path)).all("input"))
    assert asks is ((noun.name, action.name) in PROVED)
    if not asks:
        return
    before = await place.entries()
    for password in ("", "seven blue hens"):
        answer = await place.send(noun, action, current=password)
        assert answer.status_code == 422
        assert parse(answer.text).problems == []
        assert "seven blue hens" not in answer.text
    assert await place.entries() == before
    assert (await place.send(noun, action, current=PASSWORD)).status_code in {200, 303}
    assert await place.entries() != before


@pytest.mark.parametrize(("noun", "action"), [one for one in actions() if one[1].proof], ids=_id)
async def test_a_form_from_before_the_proof_ended_is_shown_with_the_password(
    place: Place, noun: Noun, action: SetUpAction
) -> None:
    """The form that was sent had no such field: its problem says so, and stands beside the field."""
    await place.prepare(noun, action)
    place.clock.advance(timedelta(minutes=16).total_seconds())
    page = parse((await place.send(noun, action)).text)
    assert page.by_id(f"{action.name}-current").attributes["type"] == "password"
    assert page.by_id(f"{action.name}-current-problem").text == words.PROOF_ENDED


@pytest.mark.parametrize(("noun", "action"), [one for one in actions() if one[1].typed], ids=_id)
async def test_what_cannot_be_undone_takes_the_name(place: Place, noun: Noun, action: SetUpAction) -> None:
    """Another name does nothing, and stays in its field."""
    await place.prepare(noun, action)
    before = await place.entries()
    answer = await place.send(noun, action, typed="Anothe<r")
    assert answer.status_code == 422
    assert 'value="Anothe&lt;r"' in answer.text
    assert await place.entries() == before


@pytest.mark.parametrize(("noun", "action"), [one for one in actions() if one[1].changes], ids=_id)
async def test_a_form_of_an_earlier_state_shows_the_present_one(place: Place, noun: Noun, action: SetUpAction) -> None:
    """It keeps what was written, and can be sent once more."""
    await place.prepare(noun, action)
    before = await place.entries()
    answer = await place.send(noun, action, seen="earlier")
    assert answer.status_code == 409
    assert "It has changed since" in answer.text
    assert await place.entries() == before
    form = dict(FORMS[noun.name, action.name][1])
    [shown] = [one for one in parse(answer.text).all("form") if one.all("button", value=action.name)]
    for one in (*shown.all("input"), *shown.all("select"), *shown.all("textarea")):
        name = one.attributes.get("name", "")
        if name in form and one.tag == "input" and one.attributes.get("type") != "checkbox":
            assert one.attributes["value"] == form[name]


@pytest.mark.parametrize("name", [one.name for one in NOUNS if one.name in RESOURCE_SERVICES])
async def test_the_forms_of_a_resource_have_the_fields_of_its_models(place: Place, name: str) -> None:
    """A field that is added to a model is in the form of it; steps have fields of their own."""
    noun = next(one for one in NOUNS if one.name == name)
    definition = RESOURCE_SERVICES[name]
    for action, model, one in (("create", definition.new, False), ("update", definition.change, True)):
        page = await place.page(place.path(noun, one=one))
        fields = {
            field.attributes["name"]
            for tag in ("input", "select", "textarea")
            for field in page.all(tag)
            if field.attributes.get("id", "").startswith(f"{action}-")
        }
        assert "steps" not in fields
        # A group of ticks has a name for each.
        assert set(fields_of(model)) - {"steps"} <= {one.partition("_")[0] if "." in one else one for one in fields}


async def test_a_form_that_is_wrong_says_where(place: Place) -> None:
    """Each field has its sentence, all keep what was written, and nothing is made."""
    path = f"{MOUNT}/w/{place.workspace}/numbers"
    form = {"action": "create", "phone": "not a <number>", "carrier": "", "rate_per_minute": "999", "trunk_id": ""}
    answer = await place.post(path, form)
    page = parse(answer.text)
    assert (answer.status_code, page.problems) == (422, [])
    assert page.by_id("create-rate_per_minute-problem").text == "Messages a minute must be between 1 and 600."
    assert page.by_id("create-rate_per_minute").attributes["value"] == "999"
    assert page.by_id("create-phone").attributes["value"] == "not a <number>"
    answer = await place.post(path, {**form, "rate_per_minute": "many"})
    assert "Messages a minute must be a whole number." in answer.text
    answer = await place.post(path, {"action": "create", "phone": "+12025550100", "carrier": "twilio"})
    assert (answer.status_code, "has number +12025550100 already" in answer.text) == (409, True)
    numbers = [one.phone for one in (await place.engine.numbers.list(place.workspace)).items]
    assert numbers.count("+12025550100") == 1


async def test_a_form_that_is_sent_twice_makes_one_thing(place: Place) -> None:
    """Its key is the idempotency key."""
    path = f"{MOUNT}/w/{place.workspace}/trunks"
    form = {"action": "create", "name": "Backup", "address": "sip.example", "key": "same"}
    assert len({(await place.post(path, form)).headers["location"] for _ in range(2)}) == 1
    assert len((await place.engine.trunks.list(place.workspace)).items) == 2


async def test_what_is_not_possible_any_more_is_said_on_the_page(place: Place) -> None:
    """A form that is sent twice, such as a pause, shows the present state."""
    hook = (await place.engine.webhooks.list(place.workspace)).items[0]
    await place.engine.webhooks.enable(place.workspace, hook.id)
    path = f"{MOUNT}/w/{place.workspace}/webhooks/{hook.id}"
    form = {"action": "pause", "key": "same"}
    first, again = [await place.post(path, form, "owner") for _ in range(2)]
    assert (first.status_code, again.status_code) == (303, 409)
    page = parse(again.text)
    assert "the first time counts" in page.by_id("problems").text
    assert "enable" in page.buttons


async def test_a_workspace_is_created_once(place: Place) -> None:
    """No second one of its name, as by the command; what was typed stays."""
    form = {"action": "create", "name": "Third", "mode": "sandbox", "default_region": "", "key": "same"}
    first, again = [await place.post(f"{MOUNT}/system/workspaces", form, "operator") for _ in range(2)]
    assert (first.status_code, again.status_code) == (303, 409)
    assert parse(again.text).by_id("create-name").attributes["value"] == "Third"
    names = [one.name async for one in place.engine.workspaces.iter_all()]
    assert names.count("Third") == 1


@pytest.mark.parametrize(
    ("noun", "form", "other"),
    [
        ("keys", {"action": "create", "name": "Shop", "scopes_read": "yes"}, {"name": "Clinic"}),
        ("webhooks", {"action": "create", **HOOK}, {"concurrency": "5"}),
        ("users", {"action": "invite", "email": "new@acme.example", "role": "agent"}, {"role": "owner"}),
    ],
)
async def test_a_form_of_a_secret_that_is_sent_twice_makes_one(
    place: Place, noun: str, form: dict[str, str], other: dict[str, str]
) -> None:
    """The second answer names what was made, without its secret, and makes nothing of other content either."""
    path = f"{MOUNT}/w/{place.workspace}/{noun}"
    before = await place.entries()
    first, again, changed = [await place.post(path, sent, "owner") for sent in (form, form, {**form, **other})]
    assert (first.status_code, again.status_code, changed.status_code) == (200, 409, 422)
    assert len(await place.entries()) == len(before) + 1
    secret = re.search(r"<p><code>([^<]+)</code></p>", first.text)
    assert secret is not None
    assert secret[1] not in again.text
    made = (await place.entries())[0].split()[2]
    assert made in again.text
    assert "cannot be shown again" in again.text
    assert "This form was sent before with something else" in changed.text
    assert "idempotency" not in changed.text


async def test_a_user_without_permission_sees_whom_to_ask(place: Place) -> None:
    """The names of those with the role, who can sign in; an operator is named by no workspace."""
    path = f"{MOUNT}/w/{place.workspace}"
    assert "<p>Ask Ann manager or Ann owner." in (await place.get(f"{path}/agents", "agent")).text
    assert "<p>Ask Ann owner." in (await place.get(f"{path}/keys", "manager")).text
    assert "another role" not in (await place.get(f"{path}/keys", "manager")).text
    eve = await place.engine.users.create(NewUser(email="eve@acme.example", name="Eve <b>"))
    await place.engine.users.set_role(place.workspace, eve.id, Role.OWNER)
    assert "Ask Ann owner or Eve &lt;b&gt;." in (await place.get(f"{path}/keys", "manager")).text
    await place.engine.users.disable(eve.id)
    assert "Eve &lt;b" not in (await place.get(f"{path}/keys", "manager")).text
    assert "<p>Ask somebody who runs this server." in (await place.get(f"{MOUNT}/system/server", "owner")).text


async def test_the_limits_of_approval_are_set_and_said(place: Place) -> None:
    """With who may approve; nothing written is no limit."""
    noun = next(one for one in NOUNS if one.name == "settings")
    action = next(one for one in noun.on_one if one.name == "approval")
    path = place.path(noun, one=True)
    assert (
        await place.send(noun, action, "owner", approve_over_contacts="0", approve_over_amount="")
    ).status_code == 303
    found = await place.engine.workspaces.get(place.workspace)
    assert (found.approve_over_contacts, found.approve_over_amount) == (0, None)
    page = await place.page(path, "owner")
    assert page.by_id("approval-approve_over_contacts").attributes["value"] == "0"
    assert "each manager or owner of the workspace, but for the person who changed the campaign last" in page.root.text
    answer = await place.send(noun, action, "owner", approve_over_contacts="-1")
    assert (answer.status_code, "must be a whole number" in answer.text) == (422, True)


async def test_narrower_hours_are_lines(place: Place) -> None:
    """A line that is wrong is named with its number, what was typed stays, and saved lines are read again as shown."""
    noun = next(noun for noun in NOUNS if noun.name == "settings")
    action = next(action for action in noun.on_one if action.name == "hours")
    wrong = {
        "US-FL mon-sun 08:00-20:00": "line 1: 'US-FL mon-sun 08:00-20:00' is not such as",
        "FR: lundi 08:00-20:00 (Loi)": "line 1: 'lundi 08:00-20:00' is not valid",
        "\nFR: mon 08:00-22:00 (Loi)": "line 2: schedule.monday must lie within 08:00 to 21:00",
        "FR: mon 08:00-20:00 (Loi)\n\nZZ: mon 09:00-10:00 (None)": "line 3: place 'ZZ' is no known country",
        "FR: mon 08:00-20:00 (Loi)\nFR: tue 08:00-20:00 (Loi)": "line 2: place is FR again",
    }
    for text, said in wrong.items():
        answer = await place.send(noun, action, narrower_hours=text)
        assert answer.status_code == 422
        page = parse(answer.text)
        assert said in page.by_id("hours-narrower_hours-problem").text
        assert page.by_id("hours-narrower_hours").texts[0].strip() == text.strip()
    lines = (
        "FR: mon-fri 10:00-13:00, 14:00-20:00 (Code de la consommation, art. L223-1)\n"
        "US-FL: mon-sat 08:00-20:00; sun 10:00-18:00 (Fla. Stat. 501.616(6)(a))\nUS-LA: fri 09:00-10:00 (Holiday)"
    )
    assert (await place.send(noun, action, narrower_hours=lines)).status_code == 303
    held = (await place.engine.workspaces.get(place.workspace)).narrower_hours
    assert [(one.place, one.source) for one in held][1:] == [
        ("US-FL", "Fla. Stat. 501.616(6)(a)"),
        ("US-LA", "Holiday"),
    ]
    assert [len(windows) for windows in held[0].schedule.values() if windows] == [2] * 5
    assert not (await place.page(place.path(noun, one=True))).all("input", name="narrower_hours")
    shown = (await place.page(place.path(noun, one=True))).by_id("hours-narrower_hours").texts[0].strip()
    assert shown == lines
    assert "US-FL: mon-sat 08:00-20:00" in (await place.page(place.path(noun, one=True), "manager")).root.text
    before = len(await place.entries())
    assert (await place.send(noun, action, narrower_hours=shown)).status_code == 303
    assert len(await place.entries()) == before


async def test_a_key_is_shown_once_and_works(place: Place) -> None:
    """Its page says who made it and when it was used last; the key itself is on no page any more."""
    path = f"{MOUNT}/w/{place.workspace}/keys"
    answer = await place.post(path, {"action": "create", "name": "Shop", "scopes_read": "yes"}, "owner")
    found = re.search(r"<code>(outreach_[\w-]+)</code>", answer.text)
    assert found is not None
    assert (await place.engine.api_keys.authenticate(found[1])).scopes == ("read",)
    text = (await place.get(path, "owner")).text
    assert found[1] not in text
    assert "Ann owner" in text
    assert "ann, by a command" in text
    answer = await place.post(path, {"action": "create", "name": "None"}, "owner")
    assert (answer.status_code, "at least one of" in answer.text) == (422, True)


async def test_secrets_of_an_account_are_on_no_page(place: Place) -> None:
    """Neither in its page nor in a form that failed; what is wrong with a form is said by field."""
    account = f"{MOUNT}/w/{place.workspace}/accounts/{place.ids['accounts']}"
    for path in (account, account.rpartition("/")[0]):
        assert OWN["token"] not in (await place.get(path)).text
    path = f"{MOUNT}/w/{place.workspace}/accounts"
    form = {"action": "connect", "provider": "twilio", "credentials.auth_token": "s3cret-too"}
    answer = await place.post(path, form)
    assert answer.status_code == 422
    assert "Account SID is missing" in answer.text
    assert "s3cret-too" not in answer.text
    shown = await place.get(f"{path}?provider=vapi")
    assert 'name="credentials.api_key"' in shown.text


async def test_a_check_says_what_is_wrong(place: Place) -> None:
    """Without a public address no callback comes."""
    account = f"{MOUNT}/w/{place.workspace}/accounts/{place.ids['accounts']}"
    answer = await place.post(account, {"action": "callback"})
    assert answer.status_code == 200
    assert "public" in parse(answer.text).all("div", role="status")[0].text.lower()


async def test_a_flow_is_drawn_and_edited(place: Place) -> None:
    """With its contacts; steps that are emptied are left out, and a wrong one is named."""
    path = f"{MOUNT}/w/{place.workspace}/flows/{place.ids['flows']}"
    page = await place.page(path, "manager")
    labels = {one.attributes["aria-label"] for one in page.all("svg") if "aria-label" in one.attributes}
    assert labels == {"step 1: Send: Hi {{first_name}}, 0 contacts; step 2: Wait 1 h 30 min, 0 contacts"}
    noun, action = next(one for one in actions() if (one[0].name, one[1].name) == ("flows", "update"))
    seen = await place.seen(noun, action)
    form = {"action": "update", "name": "Welcome", "kind0": "send", "body0": "Hello", "kind3": "wait", "wait3": "5"}
    assert (await place.post(path, {**form, **seen}, "manager")).status_code == 303
    flow = await place.engine.flows.get(place.workspace, place.ids["flows"])
    assert flow.steps == (FlowStep(kind="send", body="Hello"), FlowStep(kind="wait", wait_minutes=5))
    seen = await place.seen(noun, action)
    answer = await place.post(path, {**form, **seen, "wait3": ""}, "manager")
    assert (answer.status_code, "a wait step needs" in answer.text) == (422, True)


async def test_prices_are_lines(place: Place) -> None:
    """A line that is none is named by its number, and what was written stays."""
    path = f"{MOUNT}/w/{place.workspace}/prices"
    noun, action = next(one for one in actions() if (one[0].name, one[1].name) == ("prices", "update"))
    assert (await place.send(noun, action)).status_code == 303
    table = await place.engine.prices.get(place.workspace)
    assert table is not None
    assert [(one.kind, one.provider, one.country, f"{one.amount}") for one in table.prices] == [
        ("sms", "twilio", "US", "0.0079"),
        ("call", None, None, "0.09"),
    ]
    assert "A segment by twilio to US" in (await place.page(path)).root.text
    answer = await place.send(noun, action, prices="sms * * 0.01\nsms twilio 0.01")
    assert (answer.status_code, "line 2 is none" in answer.text) == (422, True)
    assert "sms twilio 0.01</textarea>" in answer.text


async def test_a_link_of_an_invitation_opens(place: Place) -> None:
    """It is shown once, and leads to a page of this console."""
    answer = await place.post(
        f"{MOUNT}/w/{place.workspace}/users",
        {"action": "invite", "email": "new@acme.example", "role": "agent"},
        "owner",
    )
    found = re.search(rf"<code>{ORIGIN}({MOUNT}/invitation/[\w-]+)</code>", answer.text)
    assert found is not None
    assert (await place.get(found[1], None)).status_code == 200
    assert found[1] not in (await place.get(f"{MOUNT}/w/{place.workspace}/invitations", "owner")).text
    place.engine._config = attrs.evolve(place.engine._config, public_url=f"https://shown.example{MOUNT}")
    path = f"{MOUNT}/w/{place.workspace}/users/{place.ids['users']}"
    assert (
        f"<code>https://shown.example{MOUNT}/invitation/" in (await place.post(path, {"action": "reset"}, "owner")).text
    )


async def test_an_account_that_cannot_be_used_says_why(place: Place) -> None:
    """The key that encrypted it may be gone, and the page is still there."""
    place.engine.accounts._vault = Vault(keys="A" * 43 + "=")
    account = f"{MOUNT}/w/{place.workspace}/accounts/{place.ids['accounts']}"
    assert "OUTREACH_SECRET_KEY" in (await place.page(account, "owner")).root.text


@pytest.mark.parametrize("action", ["sessions", "reset", "disable"])
async def test_an_owner_has_no_power_over_those_with_more_rights(place: Place, action: str) -> None:
    """A person with rights in another workspace is an operator's matter, and the page says so."""
    theirs = await place.engine.workspaces.create(NewWorkspace(name="Other"))
    await place.engine.users.set_role(theirs.id, place.ids["users"], Role.VIEWER)
    await place.engine.sessions.begin(place.ids["users"])
    path = f"{MOUNT}/w/{place.workspace}/users/{place.ids['users']}"
    answer = await place.post(path, {"action": action}, "owner")
    assert (answer.status_code, "only an operator" in answer.text) == (409, True)
    path = f"{MOUNT}/system/users/{place.ids['users']}"
    assert (await place.post(path, {"action": action})).status_code in {200, 303}


async def test_the_list_of_users_counts_their_open_sessions(place: Place) -> None:
    """Those that were ended, or are not used any more, do not count."""
    ben = place.ids["users"]

    async def sessions(noun: str, person: str) -> dict[str, str]:
        page = await place.page(f"{MOUNT}{noun}", person)
        rows = [one for one in page.all("tr") if one.all("th", scope="row")]
        return {row.all("th")[0].text: row.all("td", **{"data-label": "Sessions"})[0].text for row in rows}

    for path in (f"/w/{place.workspace}/users", "/system/users"):
        assert (await sessions(path, "operator"))["Ben"] == "1"
    second = await place.engine.sessions.begin(ben)
    assert (await sessions(f"/w/{place.workspace}/users", "owner"))["Ben"] == "2"
    await place.engine.sessions.end(ben, second.session.id)
    assert (await sessions(f"/w/{place.workspace}/users", "owner"))["Ben"] == "1"
    place.clock.advance(IDLE.total_seconds())
    place.people["owner"] = await _session(place, "owner")
    found = await sessions(f"/w/{place.workspace}/users", "owner")
    assert (found["Ben"], found["Ann owner"]) == ("None", "1")


async def _session(place: Place, person: str) -> tuple[str, str]:
    """Begin a session of a person."""
    user = await place.engine.users.find(f"{person}@acme.example")
    made = await place.engine.sessions.begin(user.id)
    return made.token, made.session.id


async def test_the_last_owner_stays(place: Place) -> None:
    """The page says why."""
    owner = (await place.engine.users.find("owner@acme.example")).id
    path = f"{MOUNT}/w/{place.workspace}/users/{owner}"
    answer = await place.post(path, {"action": "role", "role": "agent"})
    assert (answer.status_code, "last owner" in answer.text) == (409, True)


async def test_the_audit_is_filtered_by_its_address(place: Place) -> None:
    """Who, what and of what."""
    path = f"{MOUNT}/w/{place.workspace}/audit"
    page = await place.page(f"{path}?action=key.create&actor=cli:ann&subject={place.ids['keys']}", "owner")
    assert [one.text for one in page.all("th", scope="row")] == ["key.create"]
    assert page.by_id("filter-action").attributes["value"] == "key.create"
    assert "No entry matches these filters." in (await place.page(f"{path}?action=nothing", "owner")).root.text
    assert (await place.get(f"{path}?action={'x' * 300}", "owner")).status_code == 400


async def test_the_audit_is_a_file_for_those_who_see_it(place: Place) -> None:
    """With the filters of the page; what went out is an entry itself, and the password is asked for again."""
    await place.engine.audit.record(place.workspace, actor="cli:ann", action="shop.open", subject="=1+1")
    await place.engine.audit.record(None, actor="cli:ann", action="server.open", subject="s")
    path = f"{MOUNT}/w/{place.workspace}/audit/file"
    for person in RANKS:
        allowed = RANKS[person] >= RANKS["owner"]
        assert (await place.get(path, person)).status_code == (200 if allowed else 403), person
        answer = await place.get(f"{MOUNT}/system/audit/file", person)
        assert answer.status_code == (200 if person == "operator" else 403), person
    rows = list(csv.DictReader((await place.get(f"{path}?action=shop.open", "owner")).text[1:].splitlines()))
    assert [(row["subject"], row["name"]) for row in rows] == [("'=1+1", "ann, by a command")]
    [entry, *_] = (await place.engine.audit.list(place.workspace, action="audit.export")).items
    assert (entry.actor, entry.detail) == (f"user:{await place.user('owner')}", "csv, rows: 1")
    server = list(csv.DictReader((await place.get(f"{MOUNT}/system/audit/file")).text[1:].splitlines()))
    assert {"shop.open", "server.open", "audit.export"} <= {row["action"] for row in server}
    [link] = [one for one in (await place.page(f"{path[:-5]}?action=shop.open")).all("a") if one.text == "CSV"]
    assert link.attributes["href"] == f"{path}?action=shop.open"
    place.clock.advance(timedelta(minutes=16).total_seconds())
    asked = await place.get(f"{path}?action=shop.open", "owner")
    assert asked.headers["content-type"].startswith("text/html")
    form = {"action": "export-audit", "current": "wrong"}
    assert (await place.post(f"{path}?action=shop.open", form, "owner")).status_code == 422
    led = await place.post(f"{path}?action=shop.open", {**form, "current": PASSWORD}, "owner")
    assert led.headers["location"] == f"{path}?action=shop.open"
    assert (await place.get(path, "owner")).headers["content-disposition"] == 'attachment; filename="audit.csv"'


async def test_the_audit_says_from_where_a_person_acted(place: Place) -> None:
    """By the sessions that the person had then: not by one of before or after, nor for programs."""
    engine = place.engine
    actor = f"user:{place.ids['users']}"

    async def act(subject: str) -> None:
        await engine.audit.record(place.workspace, actor=actor, action="shop.open", subject=subject)
        place.clock.advance(60)

    await act("before")
    first = await engine.sessions.begin(place.ids["users"], address="192.0.2.7")
    await act("first")
    second = await engine.sessions.begin(place.ids["users"], address="198.51.100.2")
    await act("both")
    await engine.sessions.end(place.ids["users"], first.session.id)
    place.clock.advance(180)
    await engine.sessions.find(second.token)
    await act("second")
    place.clock.advance(IDLE.total_seconds())
    await act("after")
    await engine.audit.record(place.workspace, actor="api", action="shop.open", subject="program")
    place.people["owner"] = await _session(place, "owner")
    page = await place.page(f"{MOUNT}/w/{place.workspace}/audit?action=shop.open", "owner")
    rows = [one.all("td") for one in page.all("tr") if one.all("th", scope="row")]
    assert {row[3].text: row[1].text for row in rows} == {
        "before": "",
        "first": "192.0.2.7",
        "both": "192.0.2.7 or 198.51.100.2",
        "second": "198.51.100.2",
        "after": "",
        "program": "",
    }
    file = (await place.get(f"{MOUNT}/w/{place.workspace}/audit/file?action=shop.open", "owner")).text
    assert {row["subject"]: row["address"] for row in csv.DictReader(file[1:].splitlines())}["first"] == "192.0.2.7"


async def test_operators_see_all_workspaces_at_a_glance(place: Place) -> None:
    """What runs and what waits in each; a workspace that is suspended says so."""
    await place.engine.unsubscribes.add(place.workspace, "+13035550100")
    page = await place.page(f"{MOUNT}/system/workspaces")
    assert [one.text for one in page.all("th", scope="row")] == ["Acme"]
    noun, action = next(one for one in actions() if (one[0].name, one[1].name) == ("system-workspaces", "update"))
    assert (await place.send(noun, action)).status_code == 303
    workspace = await place.engine.workspaces.get(place.workspace)
    assert (workspace.status, workspace.request_limit) == ("suspended", 5)
    assert "Suspended" in (await place.page(f"{MOUNT}/system/workspaces")).root.text


async def test_the_server_page_shows_versions_and_what_is_known_of_backups(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the copies that a migration, a restore or a compaction has left; a log beside one is none."""
    path = f"{MOUNT}/system/server"

    async def facts() -> dict[str, str]:
        page = await place.page(path)
        [shown] = page.all("dl", **{"class": "facts"})
        return dict(zip((one.text for one in shown.all("dt")), (one.text for one in shown.all("dd")), strict=True))

    found = await facts()
    assert found["Version of Outreach"] == __version__
    assert found["Python"] == platform.python_version()
    assert found["Database software"] == f"SQLite {sqlite3.sqlite_version}"
    newest = sorted(file.stem for file in (Path(schema.__file__).parent).glob("*.sql"))[-1]
    assert found["Schema of the database"] == newest.replace("_", " ")
    assert "None can be made" in found["Backups"]
    file = tmp_path / "outreach.db"
    for name in ("", ".before-restore-20261101T020000Z", ".before-restore-20261101T020000Z-wal", ".before-migration"):
        (tmp_path / f"outreach.db{name}").write_bytes(b"x" * 2_000_000)
    os.utime(f"{file}.before-migration", (0, 0))
    disk = DiskUse(path=str(file), database_bytes=2_000_000, log_bytes=0, free_bytes=9_000_000)
    status = await place.engine.status()
    assert status.versions is not None
    shown = status

    async def changed(_: object) -> EngineStatus:
        return shown

    monkeypatch.setattr(StatusQuery, "__call__", changed)
    shown = attrs.evolve(status, versions=attrs.evolve(status.versions, database="PostgreSQL 16.4"))
    assert "pg_dump --schema='outreach*'" in (await facts())["Backups"]
    shown = attrs.evolve(status, disk=disk)
    found = await facts()
    assert "outreach-server db backup FILE" in found["Backups"]
    assert found["Copy kept beside it 1"].startswith("outreach.db.before-restore-20261101T020000Z, 2 MB, of ")
    assert found["Copy kept beside it 2"] == "outreach.db.before-migration, 2 MB, of 1 Jan 1970 00:00:00 (UTC)"
    assert "Copy kept beside it 3" not in found
    assert found["Its size"] == "2 MB, and less than 1 MB of its log"


@pytest.mark.parametrize("least", SECOND_FACTOR_FOR)
async def test_a_server_may_ask_a_second_factor_of_a_role(place: Place, least: str) -> None:
    """Those of the role and of more rights set it up first: other pages lead there, and forms do nothing."""
    console = create_own_console(get_engine=lambda: place.engine, require_second_factor=least)
    app = Starlette(routes=[Mount(MOUNT, console)])
    before = await place.entries()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
        asked = attrs.evolve(place, app=console, client=client)
        for role in SECOND_FACTOR_FOR:
            answer = await asked.get(f"{MOUNT}/w/{place.workspace}/", role)
            must = RANKS[role] >= RANKS[least]
            assert answer.status_code == (303 if must else 200), role
            if must:
                assert answer.headers["location"] == f"{MOUNT}/account/two-factor"
                assert (await asked.get(answer.headers["location"], role)).status_code == 200
                path = f"{MOUNT}/w/{place.workspace}/trunks"
                answer = await asked.post(path, {"action": "create", "name": "x", "address": "y"}, role)
                assert (answer.status_code, "second factor first" in answer.text) == (403, True)
    assert await place.entries() == before


async def test_a_host_asks_for_the_proof_itself() -> None:
    """The console of a host has no passwords, and no pages of users."""
    async with Outreach.open("memory://") as engine:
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        verified = False

        async def identify(request: Request) -> ConsoleUser:
            return ConsoleUser(id="ann", name="Ann", workspaces={workspace: Role.OWNER}, verified=verified)

        console = create_console(engine=engine, identify=identify)
        app = Starlette(routes=[Mount(MOUNT, console)])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
            path = f"{MOUNT}/w/{workspace}/keys"
            token = console.state.console.tokens.token("user:ann", console.state.console.now())
            form = {"action": "create", "name": "x", "scopes_read": "yes", "token": token, "key": "k"}
            headers = {"sec-fetch-site": "same-origin"}
            answer = await client.post(path, data=form, headers=headers)
            assert (answer.status_code, "in the application where you signed in" in answer.text) == (403, True)
            assert (await engine.api_keys.list(workspace)).items == []
            verified = True
            assert (await client.post(path, data=form, headers=headers)).status_code == 200
            assert (await client.get(f"{MOUNT}/w/{workspace}/users")).status_code == 404
            with pytest.raises(NotFound):
                await engine.users.find("ann@acme.example")
