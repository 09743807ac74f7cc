"""A console over an engine in memory, and the people who use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from string import Formatter

import attrs
import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from outreach import Campaign, NewNumber, NewRecipient, NewSmsCampaign, NewWorkspace, Outreach, SimulatorConfig
from outreach_server.console import ConsoleUser, Role, create_console
from tests.console.page import Page, parse
from tests.console.places import OF_CAMPAIGNS, TAKES

ORIGIN = "http://host.example"
MOUNT = "/a/b"
SENDER = "+12025550100"
PEOPLE = "x-test-person"


@attrs.define
class House:
    """A console with a workspace, another workspace, and a person for each role.

    Attributes:
        people: Who may sign in, by name; nobody else is known.
    """

    engine: Outreach
    app: Starlette
    workspace: str
    foreign: str
    client: httpx.AsyncClient
    people: dict[str, ConsoleUser]

    async def get(self, path: str, *, person: str | None = "owner", **headers: str) -> httpx.Response:
        """Get a page of the workspace, or of the console by a path with a slash before it."""
        return await self.client.get(self.url(path), headers=_headers(person, headers))

    async def page(self, path: str, *, person: str | None = "owner") -> Page:
        """Get a page and read it."""
        answer = await self.get(path, person=person)
        assert answer.status_code == 200, answer.text
        return parse(answer.text)

    async def post(
        self, path: str, form: Mapping[str, str], *, person: str | None = "owner", **headers: str
    ) -> httpx.Response:
        """Send a form as a page of the console does, with a token of the person."""
        fields = {"token": await self.token(person), "key": "k1", **form} if person else dict(form)
        sent = {"sec-fetch-site": "same-origin", **headers}
        return await self.client.post(self.url(path), data=fields, headers=_headers(person, sent))

    async def token(self, person: str | None) -> str:
        """Return the token of a person's forms."""
        console = self.app.state.console
        assert person is not None
        token: str = console.tokens.token(self.people[person].subject, console.now())
        return token

    def url(self, path: str) -> str:
        """Return the address of a page of the workspace, or of the console by a path with a slash before it."""
        return f"{MOUNT}{path}" if path.startswith("/") else f"{MOUNT}/w/{self.workspace}/{path}"

    async def campaign(
        self,
        name: str = "Reminders",
        *,
        contacts: int = 3,
        workspace: str | None = None,
        starts_at: datetime | None = None,
        stay_open: bool = False,
    ) -> Campaign:
        """Return a campaign that is ready."""
        new = NewSmsCampaign(
            name=name,
            body="Hi {{first_name}}",
            carrier="twilio",
            from_number=SENDER,
            schedule_type="immediate" if starts_at is None else "scheduled",
            scheduled_start_at=starts_at,
            stay_open=stay_open,
        )
        people = [
            NewRecipient(phone_number=f"+1303555{number:04d}", first_name=f"Ana {number}") for number in range(contacts)
        ]
        created = await self.engine.campaigns.create_sms(workspace or self.workspace, new, people)
        return created.campaign


def _headers(person: str | None, more: Mapping[str, str]) -> dict[str, str]:
    named = {} if person is None else {PEOPLE: person}
    return {**named, **{name.replace("_", "-"): value for name, value in more.items()}}


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A console, mounted in another app."""
    async with Outreach.open("memory://", simulator=SimulatorConfig(latency_ms=0, seed=1)) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme Clinic"))
        foreign = await engine.workspaces.create(NewWorkspace(name="Others"))
        for one in (workspace, foreign):
            await engine.numbers.create(one.id, NewNumber(phone=SENDER, carrier="twilio"))
        people = {
            role.value: ConsoleUser(id=role.value, name=f"Ann {role}", workspaces={workspace.id: role}) for role in Role
        }
        people["operator"] = ConsoleUser(id="operator", name="Olga", operator=True)
        people["stranger"] = ConsoleUser(id="stranger", name="Sam", workspaces={foreign.id: Role.OWNER})

        async def identify(request: Request) -> ConsoleUser | None:
            return people.get(request.headers.get(PEOPLE, ""))

        console = create_console(engine=engine, identify=identify, title="Acme campaigns", sign_out_url="/bye")
        app = Starlette(routes=[Mount(MOUNT, console)])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
            yield House(engine, console, workspace.id, foreign.id, client, people)


_KNOWN = {"campaign": "{campaign}", "ended": "{campaign}", "position": "0", "phone": "13035550000", "name": "Reminders"}
_OF_CAMPAIGNS = {
    path.format_map(_KNOWN): name
    for name, paths in OF_CAMPAIGNS.items()
    for path in paths
    if {field for _, field, *_ in Formatter().parse(path) if field} <= set(_KNOWN)
}

GUARDED = {path: TAKES[name] for path, name in _OF_CAMPAIGNS.items() if name in TAKES}
"""Pages that take more than to see, with the right that they take."""

PAGES = (*_OF_CAMPAIGNS, "nothing")
"""The pages of a workspace that has a campaign and nothing else; one is not there."""
