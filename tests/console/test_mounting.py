"""The console below any path, in other applications, and twice in one."""

from __future__ import annotations

import subprocess
import sys

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from outreach import ConfigError, NewWorkspace, Outreach
from outreach_server.console import ConsoleUser, Role, create_console, throttle
from outreach_server.console.access import checked
from tests.console.conftest import MOUNT, PAGES, House
from tests.console.page import parse

pytestmark = pytest.mark.anyio


async def test_every_link_stays_below_the_mount(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links, forms, files and redirects."""
    monkeypatch.setattr(throttle, "REQUESTS_PER_SECOND", 1_000)
    campaign = await house.campaign()
    for path in PAGES:
        answer = await house.get(path.format(campaign=campaign.id))
        if answer.is_redirect:
            assert answer.headers["location"].startswith(f"{MOUNT}/w/")
            continue
        for one in parse(answer.text).root:
            for name in ("href", "src", "action", "hx-sse:connect"):
                value = one.attributes.get(name, "")
                if value and not value.startswith("#") and value != "/bye":
                    assert value.startswith(f"{MOUNT}/"), value


async def test_behind_a_proxy_that_strips_the_prefix(house: House) -> None:
    """The server knows the prefix by `--root-path`, and the requests come without it."""
    transport = httpx.ASGITransport(house.app, root_path="/a/b/outreach")
    async with httpx.AsyncClient(transport=transport, base_url="http://host.example") as client:
        answer = await client.get("/a/b/outreach/", headers={"x-test-person": "owner"})
        assert answer.status_code == 303
        assert answer.headers["location"] == f"/a/b/outreach/w/{house.workspace}/"
        answer = await client.get(answer.headers["location"], headers={"x-test-person": "owner"})
        assert answer.status_code == 200
        assert 'href="/a/b/outreach/static/' in answer.text


async def test_two_consoles_in_one_app_know_nothing_of_each_other() -> None:
    """Each has its engine, its people and its forms."""

    async def ann(request: Request) -> ConsoleUser | None:
        return ConsoleUser(id="ann", name="Ann", operator=True)

    async def nobody(request: Request) -> ConsoleUser | None:
        return None

    async with Outreach.open("memory://") as one, Outreach.open("memory://") as two:
        first = await one.workspaces.create(NewWorkspace(name="First"))
        consoles = [
            create_console(engine=one, identify=ann, title="One"),
            create_console(engine=two, identify=nobody, title="Two", sign_in_url="/sign-in"),
        ]
        app = Starlette(routes=[Mount("/one", consoles[0]), Mount("/two", consoles[1])])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://host.example") as client:
            page = await client.get("/one/")
            assert f"/one/w/{first.id}/" in page.text
            assert "One</title>" in page.text
            away = await client.get(f"/two/w/{first.id}/")
            assert (away.status_code, away.headers["location"]) == (303, "/sign-in")


async def test_the_person_may_sign_out_where_the_host_says(house: House) -> None:
    """And the page names the person, and the host's title."""
    page = await house.page("")
    assert [one.attributes["href"] for one in page.all("a") if "Sign out" in one.text] == ["/bye"]
    assert "Ann owner" in page.all("header")[0].text
    assert page.all("title")[0].text == "Overview · Acme Clinic · Acme campaigns"


async def test_someone_with_several_workspaces_chooses(house: House) -> None:
    """Someone with one is brought there, and someone with none is told so."""
    house.people["two"] = ConsoleUser(
        id="two", name="Two", workspaces={house.workspace: Role.VIEWER, house.foreign: Role.OWNER}
    )
    house.people["none"] = ConsoleUser(id="none", name="None")
    page = await house.page("/", person="two")
    assert {row.all("a")[0].text: row.all("td")[0].text for row in page.all("tr")[1:]} == {
        "Acme Clinic": "viewer",
        "Others": "owner",
    }
    assert (await house.get("/", person="owner")).status_code == 303
    assert "no workspace yet" in (await house.page("/", person="none")).all("main")[0].text
    assert len((await house.page("/", person="operator")).all("tr")) == 3


def test_wrong_arguments_are_named() -> None:
    """At once, and not at the first request."""

    async def nobody(request: Request) -> ConsoleUser | None:
        return None

    engine = Outreach.open("memory://")
    for arguments, word in (
        ({"engine": "sqlite://"}, "engine"),
        ({"identify": None}, "identify"),
        ({"title": ""}, "title"),
    ):
        with pytest.raises(ConfigError, match=word):
            create_console(**{"engine": engine, "identify": nobody, **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("identified", "word"),
    [
        ({"id": "ann"}, "must return a ConsoleUser or None"),
        (ConsoleUser(id="", name="Ann"), "must have 1 to 200"),
        (ConsoleUser(id="a" * 201, name="Ann"), "must have 1 to 200"),
        (ConsoleUser(id="ann", name="Ann", workspaces={"w": "boss"}), "must be a Role"),  # type: ignore[dict-item]
        (ConsoleUser(id="ann", name="Ann", workspaces={"w": {}}), "must be a Role"),  # type: ignore[dict-item]
    ],
)
def test_a_wrong_person_of_a_host_is_named(identified: object, word: str) -> None:
    """With what is right."""
    with pytest.raises(ConfigError, match=word):
        checked(identified)


def test_the_longest_id_and_roles_as_text_are_right() -> None:
    """Hosts keep roles as text."""
    user = ConsoleUser(id="a" * 200, name="Ann", workspaces={"w": "owner"})  # type: ignore[dict-item]
    assert checked(user) is user


def test_the_server_without_the_console_imports_none_of_it() -> None:
    """`import outreach_server` and its app need no template engine."""
    script = (
        "import sys, outreach_server; outreach_server.create_app; import outreach_server.cli.root\n"
        "print([one for one in sys.modules if one.startswith(('jinja2', 'outreach_server.console', 'segno'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
