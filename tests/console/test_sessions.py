"""The console's own logins: cookies, links, set-up, accounts (docs/users.md)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path

import attrs
import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from outreach import NewMessage, NewNumber, NewRecipient, NewSmsCampaign, NewWorkspace, Outreach
from outreach.core import passwords
from outreach.core.passwords import Cost
from outreach.core.totp import code_at, step_of
from outreach.models import CreatedInvitation, NewUser, Role, User, Visit
from outreach.testing.clock import ShiftedClock
from outreach_server.console import words
from outreach_server.console.app import create_own_console
from outreach_server.console.identities.cookies import PLAIN_KNOWN, PLAIN_NAME, SECURE_NAME
from outreach_server.console.security.headers import HEADERS
from outreach_server.console.throttle import SessionThrottle
from tests.console.page import Page, parse

pytestmark = pytest.mark.anyio

MOUNT = "/a/b"
EMAIL = "ann@acme.example"
PASSWORD = "seven blue herons"
OTHER = "nine green otters"
PUBLIC = ("/login", "/two-factor", "/setup")


@attrs.define
class Browser:
    """A browser with cookies of its own."""

    client: httpx.AsyncClient

    @property
    def token(self) -> str:
        """The token of the session that the browser keeps."""
        return self.client.cookies.get(PLAIN_NAME) or self.client.cookies.get(SECURE_NAME) or ""

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """Get a page by its path below the mount."""
        return await self.client.get(_url(path), headers=headers)

    async def page(self, path: str) -> Page:
        """Get a page and read it."""
        answer = await self.get(path)
        assert answer.status_code == 200, (answer.status_code, answer.headers.get("location"))
        page = parse(answer.text)
        assert page.problems == []
        return page

    async def post(self, path: str, form: Mapping[str, str], *, of: str = "", **headers: str) -> httpx.Response:
        """Send a form as the page does that has it: with its hidden token."""
        page = await self.client.get(_url(of or path))
        token = re.search(r'name="token" value="(\w+)"', page.text)
        fields = {"token": token[1] if token else "", **form}
        return await self.client.post(_url(path), data=fields, headers={"sec-fetch-site": "same-origin", **headers})

    async def sign_in(self, password: str = PASSWORD, email: str = EMAIL, **form: str) -> httpx.Response:
        """Send the form of the login."""
        fields = {"email": email, "password": password, **form}
        return await self.post("/login", fields, of="/login?again=yes")

    async def is_in(self) -> bool:
        """Return whether the browser is signed in."""
        return (await self.get("/account")).status_code == 200


@attrs.define
class House:
    """A console with logins of its own, a user and a workspace."""

    engine: Outreach
    app: Starlette
    clock: ShiftedClock
    workspace: str
    ann: User

    def browser(self, *, origin: str = "http://host.example", address: str = "192.0.2.7") -> Browser:
        """Return a browser somewhere."""
        transport = httpx.ASGITransport(self.app, client=(address, 1234))
        return Browser(httpx.AsyncClient(transport=transport, base_url=origin))

    async def second_factor(self) -> tuple[str, list[str]]:
        """Give the user a second factor; return the secret and the recovery codes."""
        begun = await self.engine.users.begin_second_factor(self.ann.id)
        codes = await self.engine.users.confirm_second_factor(self.ann.id, self.code(begun.secret))
        self.clock.advance(30)
        return begun.secret, list(codes)

    def code(self, secret: str) -> str:
        """Return what the authenticator shows now."""
        return code_at(secret, step_of(self.clock.now()))


def public_token(page: httpx.Response) -> str:
    """Return the token of a page's form."""
    found = re.search(r'name="token" value="(\w+)"', page.text)
    assert found is not None
    return found[1]


def _url(path: str) -> str:
    return path if path.startswith(MOUNT) else f"{MOUNT}{path}"


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash at the least cost."""
    monkeypatch.setattr(passwords, "COST", Cost(kibibytes=8, passes=1, lanes=1))


@pytest.fixture
async def empty() -> AsyncIterator[House]:
    """A console without any user."""
    clock = ShiftedClock()
    async with Outreach.open("memory://", clock=clock) as engine:
        app = Starlette(routes=[Mount(MOUNT, create_own_console(get_engine=lambda: engine))])
        yield House(engine, app, clock, "", None)  # type: ignore[arg-type]


@pytest.fixture
async def house(empty: House) -> House:
    """A console with a user."""
    engine = empty.engine
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
    user = await engine.users.create(NewUser(email=EMAIL, name="Ann"))
    await engine.users.set_role(workspace.id, user.id, Role.OWNER)
    user = await engine.users.accept((await engine.users.reset(user.id)).token, password=PASSWORD)
    return attrs.evolve(empty, workspace=workspace.id, ann=user)


# ------------------------------------------------------------------------------------------------- login


async def test_a_login_leads_to_where_somebody_wanted_to_go(house: House) -> None:
    """And to nowhere outside of the console."""
    browser = house.browser()
    first = await browser.get(f"/w/{house.workspace}/campaigns?q=x")
    assert first.status_code == 303
    login = await browser.client.get(first.headers["location"])
    onward = re.search(r'name="next" value="([^"]*)"', login.text)
    assert onward is not None
    answer = await browser.sign_in(next=onward[1])
    assert (answer.status_code, answer.headers["location"]) == (303, f"{MOUNT}/w/{house.workspace}/campaigns?q=x")
    assert (await browser.client.get(answer.headers["location"])).status_code == 200
    for evil in ("https://evil.example/", "//evil.example", "/elsewhere", f"{MOUNT}/\\evil", f"{MOUNT}/x\r\nSet: y"):
        answer = await browser.sign_in(next=evil)
        assert answer.headers["location"] == f"{MOUNT}/"


async def test_the_cookie_is_out_of_reach(house: House) -> None:
    """Of scripts, of forms of other sites, and behind TLS of everything without it."""
    plain = (await house.browser().sign_in()).headers["set-cookie"]
    assert plain.startswith(f"{PLAIN_NAME}=")
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(plain.split("; "))
    secure = (await house.browser(origin="https://host.example").sign_in()).headers["set-cookie"]
    assert secure.startswith(f"{SECURE_NAME}=")
    assert {"HttpOnly", "Path=/", "SameSite=lax", "Secure"} <= set(secure.split("; "))
    assert "Domain" not in secure
    browser = house.browser(origin="https://host.example")
    made = await house.engine.sessions.begin(house.ann.id)
    browser.client.cookies.set(PLAIN_NAME, made.token)
    assert not await browser.is_in()


async def test_behind_a_proxy_that_names_another_host_the_cookie_is_that_of_tls(house: House) -> None:
    """The public URL says that browsers use TLS; the form says by `Origin` that it comes from there."""
    house.engine._config = attrs.evolve(house.engine._config, public_url="https://shown.example")
    browser = house.browser(origin="http://127.0.0.1:8000")
    form = {"token": public_token(await browser.get("/login")), "email": EMAIL, "password": PASSWORD}
    headers = {"sec-fetch-site": "same-origin", "origin": "https://shown.example"}
    answer = await browser.client.post(_url("/login"), data=form, headers=headers)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{SECURE_NAME}=")
    assert "Secure" in cookie.split("; ")
    token = cookie.partition("=")[2].partition(";")[0]
    inside = await house.browser(origin="http://127.0.0.1:8000").get("/account", cookie=f"{SECURE_NAME}={token}")
    assert inside.status_code == 200


async def test_a_session_that_somebody_fixed_opens_nothing_after_the_login(house: House) -> None:
    """The token is new at each login, and the one before is ended."""
    browser, fixed = house.browser(), await house.engine.sessions.begin(house.ann.id)
    browser.client.cookies.set(PLAIN_NAME, fixed.token, domain="host.example", path="/")
    assert await browser.is_in()
    answer = await browser.sign_in()
    assert answer.status_code == 303
    assert f"{PLAIN_NAME}={fixed.token}" not in answer.headers["set-cookie"]
    assert await house.engine.sessions.find(fixed.token) is None


async def test_all_failures_look_alike_and_keep_the_address(house: House) -> None:
    """Unknown or wrong: the same page but for what was typed."""
    pages = set()
    for email, password in [(EMAIL, OTHER), ("nobody@acme.example", PASSWORD), ("no address", PASSWORD)]:
        answer = await house.browser().sign_in(password, email)
        assert answer.status_code == 422
        assert "set-cookie" not in answer.headers
        assert f'value="{email}"' in answer.text
        assert password not in answer.text
        assert parse(answer.text).problems == []
        pages.add(answer.text.replace(email, ""))
    assert len(pages) == 1


async def test_throttled_logins_say_how_long(house: House) -> None:
    """Whether the user exists or not; a right password changes nothing while it lasts."""
    browser = house.browser()
    for _ in range(10):
        assert (await browser.sign_in(OTHER)).status_code == 422
        house.clock.advance(1)
    await browser.sign_in(OTHER)
    answer = await browser.sign_in()
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) in {1, 2}
    assert "Try again in" in answer.text
    house.clock.advance(3)
    assert (await browser.sign_in()).status_code == 303


async def test_a_browser_of_an_earlier_login_waits_for_nobody_else(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps a token that opens nothing, out of reach of scripts; another browser beside it waits."""
    # However fast the attempts come here, which all have one address.
    monkeypatch.setattr(SessionThrottle, "admits", lambda self, subject: True)
    browser = house.browser()
    answer = await browser.sign_in()
    [known] = [one for one in answer.headers.get_list("set-cookie") if one.startswith(f"{PLAIN_KNOWN}=")]
    assert "HttpOnly" in known
    assert "SameSite=lax" in known
    assert (await browser.post("/logout", {}, of="/account")).status_code == 303
    assert browser.client.cookies.get(PLAIN_NAME) is None
    browser.client.cookies.set(PLAIN_NAME, browser.client.cookies[PLAIN_KNOWN])
    assert not await browser.is_in()
    browser.client.cookies.delete(PLAIN_NAME)
    stranger = house.browser()
    for _ in range(11):
        await stranger.sign_in(OTHER)
    assert (await stranger.sign_in()).status_code == 429
    assert (await browser.sign_in()).status_code == 303


@pytest.mark.parametrize("path", PUBLIC)
async def test_forms_of_public_pages_come_from_here(house: House, path: str) -> None:
    """A form of another site signs nobody in, nor one without a token."""
    browser = house.browser()
    token = public_token(await browser.get("/login"))
    fields = {"email": EMAIL, "password": PASSWORD, "token": token}
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}, {}):
        answer = await browser.client.post(_url(path), data=fields, headers=headers)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
        assert words.CROSS_SITE in parse(answer.text).root.text
    answer = await browser.client.post(
        _url(path), data={**fields, "token": "0" * 64}, headers={"sec-fetch-site": "same-origin"}
    )
    page = parse(answer.text).root.text
    assert all(one in page for one in (words.FORM_REFUSED, words.STALE_FORM, words.SEND_FROM_PAGE))
    assert "role" not in page
    assert answer.status_code == 403
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


async def test_signing_out_takes_a_form_and_ends_the_session(house: House) -> None:
    """A link alone does nothing; the token is of no use afterwards."""
    browser = house.browser()
    await browser.sign_in()
    token = browser.token
    await browser.page("/logout")
    assert await browser.is_in()
    answer = await browser.post("/logout", {})
    assert answer.headers["location"] == f"{MOUNT}/login"
    assert browser.token == ""
    assert await house.engine.sessions.find(token) is None


async def test_a_session_ends_with_the_role_and_after_twelve_hours(house: House) -> None:
    """The next request lands on the login."""
    browser = house.browser()
    await browser.sign_in()
    await house.engine.users.set_role(
        (await house.engine.workspaces.create(NewWorkspace(name="B"))).id, house.ann.id, Role.VIEWER
    )
    assert not await browser.is_in()
    await browser.sign_in()
    house.clock.advance(timedelta(hours=12).total_seconds())
    assert not await browser.is_in()
    live = await browser.get(f"/w/{house.workspace}/live?of=overview")
    assert live.status_code == 401


@pytest.mark.parametrize("again", [False, True])
async def test_what_was_typed_is_shown_when_the_session_has_ended(house: House, again: bool) -> None:
    """Also after another login, whose forms have another token; nothing secret is shown, and nothing is done."""
    browser = house.browser()
    await browser.sign_in()
    path = f"/w/{house.workspace}/inbox/14155550102"
    token = public_token(await browser.get(path))
    for one in (await house.engine.sessions.list(house.ann.id)).items:
        await house.engine.sessions.end(house.ann.id, one.id)
    if again:
        await browser.sign_in()
    form = {"token": token, "key": "k", "action": "answer", "body": "Yes, <b>at 5</b>", "current": PASSWORD}
    form |= {"body2": "Bye", "prices": "sms * * 0.01", "footer_text": "", "credentials.auth_token": "no one's"}
    answer = await browser.client.post(_url(path), data=form, headers={"sec-fetch-site": "same-origin"})
    page = parse(answer.text)
    assert (answer.status_code, page.problems) == (403 if again else 401, [])
    typed = [one.text for one in page.all("textarea")]
    assert typed == ["Yes, <b>at 5</b>", "Bye", "sms * * 0.01"]
    assert PASSWORD not in answer.text
    assert [one.attributes["href"] for one in page.all("a", **{"class": "button primary"})] == [_url(path)]
    assert not (await house.engine.messages.list(house.workspace)).items


async def test_a_file_of_a_stranger_is_not_received(house: House) -> None:
    """It may be large, and come slowly: the answer does not wait for it."""
    browser = house.browser()
    headers = {"sec-fetch-site": "same-origin", "content-type": "multipart/form-data; boundary=b"}

    async def endless() -> AsyncIterator[bytes]:
        yield b"--b\r\n"
        raise AssertionError("It was received.")

    url = _url(f"/w/{house.workspace}/campaigns")
    answer = await browser.client.post(url, content=endless(), headers=headers)
    assert (answer.status_code, answer.headers["connection"]) == (401, "close")


async def test_a_thread_names_the_colleague_who_has_answered(house: House) -> None:
    """Who has no place in the workspace any more is not named, nor is a program."""
    engine, place, phone = house.engine, house.workspace, "+14155550102"
    await engine.numbers.create(place, NewNumber(phone="+12025550100", carrier="twilio"))
    for actor in ("api", "user:gone", f"user:{house.ann.id}"):
        await engine.messages.send(place, NewMessage(to=phone, body=actor), actor=actor)
    browser = house.browser()
    await browser.sign_in()
    page = await browser.page(f"/w/{place}/inbox/14155550102")
    assert page.root.text.count("Got a message") == 3
    assert page.root.text.count("Got a message from") == 1
    assert f"Got a message from {house.ann.name}" in page.root.text


async def test_an_end_is_seen_by_another_process(tmp_path: Path) -> None:
    """Two engines on one file stand for two processes: each looks into the database."""
    url = f"sqlite:///{tmp_path / 'test.db'}"
    async with Outreach.open(url) as one, Outreach.open(url) as two:
        user = await one.users.create(NewUser(email=EMAIL, name="Ann"))
        made = await one.sessions.begin(user.id)
        transport = httpx.ASGITransport(create_own_console(get_engine=lambda: two))
        cookies = {PLAIN_NAME: made.token}
        async with httpx.AsyncClient(transport=transport, base_url="http://host.example", cookies=cookies) as client:
            assert (await client.get("/account")).status_code == 200
            await one.sessions.end(user.id, made.session.id)
            assert (await client.get("/account")).status_code == 303


# ----------------------------------------------------------------------------------------- second factor


async def test_a_login_with_a_code(house: House) -> None:
    """Half a login opens no page; a code is good once; the token changes."""
    secret, codes = await house.second_factor()
    browser = house.browser()
    answer = await browser.sign_in(next=f"{MOUNT}/account")
    assert answer.headers["location"].startswith(f"{MOUNT}/two-factor?next=")
    half = browser.token
    assert not await browser.is_in()
    assert (await browser.get("/login")).headers["location"].startswith(f"{MOUNT}/two-factor")
    assert (await browser.post("/two-factor", {"code": "000000"})).status_code == 422
    code = house.code(secret)
    answer = await browser.post("/two-factor", {"code": code, "next": f"{MOUNT}/account"})
    assert answer.headers["location"] == f"{MOUNT}/account"
    assert browser.token != half
    assert await browser.is_in()
    other = house.browser()
    await other.sign_in()
    assert (await other.post("/two-factor", {"code": code})).status_code == 422
    assert (await other.post("/two-factor", {"code": codes[0]})).status_code == 303
    third = house.browser()
    await third.sign_in()
    assert (await third.post("/two-factor", {"code": codes[0]})).status_code == 422
    assert (await house.browser().get("/two-factor")).headers["location"].startswith(f"{MOUNT}/login")


async def test_a_second_factor_is_switched_on_and_off(house: House) -> None:
    """By who has given the password lately; the session that does it goes on, under another token."""
    browser, other = house.browser(), house.browser()
    await browser.sign_in()
    await other.sign_in()
    house.clock.advance(15 * 60)
    assert (await browser.post("/account/two-factor", {"action": "begin"})).status_code == 422
    assert (await browser.post("/account/two-factor", {"action": "begin", "current": OTHER})).status_code == 422
    page = parse((await browser.post("/account/two-factor", {"action": "begin", "current": PASSWORD})).text)
    assert page.problems == []
    [secret] = [one.text.replace(" ", "") for one in page.all("code") if len(one.text) > 20]
    assert (await browser.post("/account/two-factor", {"action": "confirm", "code": "000000"})).status_code == 422
    before = browser.token
    answer = await browser.post("/account/two-factor", {"action": "confirm", "code": house.code(secret)})
    codes = [one.text for one in parse(answer.text).all("code")]
    assert len(codes) == 10
    assert browser.token != before
    assert await browser.is_in()
    assert not await other.is_in()
    assert "10 recovery codes" in (await browser.get("/account")).text
    answer = await browser.post("/account/two-factor", {"action": "codes"})
    assert not set(codes) & {one.text for one in parse(answer.text).all("code")}
    await browser.post("/account/two-factor", {"action": "remove"})
    assert not (await house.engine.users.get(house.ann.id)).has_second_factor


async def test_a_session_that_ends_meanwhile_verifies_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the check of the request and that of the password, another process may end it."""
    await house.second_factor()
    made = await house.engine.sessions.begin(house.ann.id)
    code = await house.engine.users.renew_recovery_codes(house.ann.id)
    made = await house.engine.sessions.confirm(made.token, code[0])
    browser = house.browser()
    browser.client.cookies.set(PLAIN_NAME, made.token, domain="host.example", path="/")
    token = public_token(await browser.get("/account/two-factor"))
    find, looks = house.engine.sessions.find, 0

    async def find_once(*arguments: str, awaited: bool = False) -> Visit | None:
        nonlocal looks
        looks += 1
        return await find(*arguments, awaited=awaited) if looks == 1 else None

    monkeypatch.setattr(house.engine.sessions, "find", find_once)
    form = {"token": token, "action": "remove"}
    await browser.client.post(_url("/account/two-factor"), data=form, headers={"sec-fetch-site": "same-origin"})
    assert (await house.engine.users.get(house.ann.id)).has_second_factor


# ----------------------------------------------------------------------------------------------- account


async def test_an_account_is_changed_by_its_user(house: House) -> None:
    """Name, zone and number; what cannot be used is said beside what was typed."""
    browser = house.browser()
    await browser.sign_in()
    page = await browser.page("/account")
    assert page.problems == []
    form = {"action": "profile", "name": "Ann B", "time_zone": "Europe/Berlin", "phone": "+14155550102"}
    saved = await browser.post("/account", form)
    assert saved.status_code == 303
    assert "It is saved." in (await browser.get(saved.headers["location"].removeprefix(MOUNT))).text
    after = await house.engine.users.get(house.ann.id)
    assert (after.name, after.time_zone, after.phone) == ("Ann B", "Europe/Berlin", "+14155550102")
    answer = await browser.post("/account", {**form, "time_zone": "Berlin", "name": "Ann C"})
    assert answer.status_code == 422
    assert 'value="Ann C"' in answer.text
    assert parse(answer.text).problems == []
    assert (await browser.post("/account", {"action": "other"})).status_code == 400


async def test_a_password_is_changed_and_sessions_are_ended(house: House) -> None:
    """This session goes on; a session of somebody else is not found."""
    browser, other = house.browser(), house.browser()
    await browser.sign_in()
    await other.sign_in()
    wrong = await browser.post("/account", {"action": "password", "current": OTHER, "password": OTHER})
    assert wrong.status_code == 422
    assert OTHER not in wrong.text
    await browser.post("/account", {"action": "password", "current": PASSWORD, "password": OTHER})
    assert [await one.is_in() for one in (browser, other)] == [True, False]
    await other.sign_in(OTHER)
    await browser.post("/account", {"action": "end-others"})
    assert [await one.is_in() for one in (browser, other)] == [True, False]
    ben = await house.engine.users.create(NewUser(email="ben@acme.example", name="Ben"))
    foreign = await house.engine.sessions.begin(ben.id)
    assert (await browser.post("/account", {"action": "end", "session": foreign.session.id})).status_code == 404
    assert await house.engine.sessions.find(foreign.token) is not None
    trail = [one.actor async for one in house.engine.audit.iter_all() if one.action in {"user.password", "session.end"}]
    assert f"user:{house.ann.id}" in trail


# ------------------------------------------------------------------------------------------------- links


async def test_an_invitation_is_accepted_and_signs_in(house: House) -> None:
    """Once; a bad password keeps the link and the name."""
    made = await house.engine.users.invite(house.workspace, "ben@acme.example", Role.AGENT)
    browser, path = house.browser(), f"/invitation/{made.token}"
    page = await browser.page(path)
    assert "ben@acme.example" in page.root.text
    answer = await browser.post(path, {"name": "Ben", "password": "short"})
    assert answer.status_code == 422
    assert 'value="Ben"' in answer.text
    assert parse(answer.text).problems == []
    assert (await browser.post(path, {"name": "Ben", "password": PASSWORD})).status_code == 303
    assert await browser.is_in()
    assert (await browser.get(path)).status_code == 404
    assert (await house.browser().get("/invitation/guess")).status_code == 404


async def test_an_invitation_of_a_user_is_used_after_a_login(house: House) -> None:
    """The link alone does not give the account."""
    other = await house.engine.workspaces.create(NewWorkspace(name="Other"))
    made = await house.engine.users.invite(other.id, EMAIL, Role.VIEWER)
    browser, path = house.browser(), f"/invitation/{made.token}"
    assert (await browser.post(path, {"password": OTHER})).status_code == 409
    assert (await browser.post(path, {"action": "join", "password": OTHER})).status_code == 409
    await browser.sign_in()
    assert "Choose a password" not in (await browser.get(path)).text
    assert (await browser.post(path, {"action": "join"})).status_code == 303
    assert await browser.is_in()
    assert await house.engine.users.get_roles(house.ann.id) == {house.workspace: "owner", other.id: "viewer"}


async def test_a_new_password_by_a_link_needs_the_second_factor_too(house: House) -> None:
    """The link is one factor."""
    await house.second_factor()
    made = await house.engine.users.reset(house.ann.id)
    browser = house.browser()
    answer = await browser.post(f"/invitation/{made.token}", {"password": OTHER})
    assert answer.headers["location"].startswith(f"{MOUNT}/two-factor")
    assert not await browser.is_in()


# ------------------------------------------------------------------------------------------------ set-up


def setup_form(made: CreatedInvitation | None, **more: str) -> dict[str, str]:
    """Return the fields of the set-up."""
    token = made.token if made is not None else ""
    return {
        "setup_token": token,
        "name": "Ann",
        "email": EMAIL,
        "password": PASSWORD,
        "workspace": "Clinic",
        "region": "us",
        **more,
    }


async def test_the_set_up_makes_a_user_and_a_sandbox_that_can_send(empty: House) -> None:
    """With an agent, a number and a sample campaign that may be started; then it is closed."""
    browser = empty.browser()
    assert "/setup" in (await browser.get("/login")).text
    await browser.page("/setup")
    link = f"http://host.example{MOUNT}/setup#"
    made = await empty.engine.users.open_setup()
    assert made is not None
    for wrong in ({"setup_token": "guess"}, {"password": "short"}, {"email": "ann"}, {"region": "XX"}):
        answer = await browser.post("/setup", setup_form(made, **wrong))
        assert answer.status_code == 422, wrong
        assert parse(answer.text).problems == []
        assert 'value="Ann"' in answer.text
        if "region" in wrong:
            assert parse(answer.text).by_id("region-problem").text.startswith("'XX' is not a region")
    assert [one async for one in empty.engine.workspaces.iter_all()] == []
    answer = await browser.post("/setup", setup_form(made, setup_token=link + made.token))
    assert answer.status_code == 303
    assert (await browser.client.get(answer.headers["location"])).status_code == 200
    [workspace] = [one async for one in empty.engine.workspaces.iter_all()]
    assert (workspace.name, workspace.mode, workspace.default_region) == ("Clinic", "sandbox", "US")
    [campaign] = [one async for one in empty.engine.campaigns.iter_all(workspace.id)]
    await empty.engine.campaigns.start(workspace.id, campaign.id)
    assert len([one async for one in empty.engine.agents.iter_all(workspace.id)]) == 1
    [user] = [one async for one in empty.engine.users.iter_all()]
    assert user.operator
    actors = {one.actor async for one in empty.engine.audit.iter_all(workspace.id) if one.action != "campaign.start"}
    assert actors == {f"user:{user.id}"}
    stranger = empty.browser()
    assert (await stranger.get("/setup")).headers["location"] == f"{MOUNT}/login"
    assert (await stranger.post("/setup", setup_form(made, email="eve@acme.example"), of="/login")).status_code == 303
    assert len([one async for one in empty.engine.users.iter_all()]) == 1


async def test_the_set_up_makes_a_live_workspace_where_that_is_chosen(empty: House) -> None:
    """With nothing made up in it; the choice stays when something else was wrong."""
    browser = empty.browser()
    page = await browser.page("/setup")
    assert "checked" in page.by_id("mode").attributes
    made = await empty.engine.users.open_setup()
    wrong = parse((await browser.post("/setup", setup_form(made, mode="live", password="short"))).text)
    assert "checked" in wrong.by_id("mode-live").attributes
    assert "checked" not in wrong.by_id("mode").attributes
    answer = await browser.post("/setup", setup_form(made, mode="live", workspace=""))
    assert (await browser.client.get(answer.headers["location"])).status_code == 200
    [workspace] = [one async for one in empty.engine.workspaces.iter_all()]
    assert (workspace.name, workspace.mode) == ("Live", "live")
    for service in (empty.engine.agents, empty.engine.numbers, empty.engine.campaigns):
        assert (await service.list(workspace.id)).items == []


async def test_no_public_page_names_anything_but_this_origin(house: House) -> None:
    """Nor is any kept by a cache."""
    for path in PUBLIC:
        answer = await house.browser().get(path)
        assert answer.headers["cache-control"] == "no-store"
        assert not re.findall(r'(?:href|src|action|content)="(?:https?:)?//', answer.text)


async def test_a_person_is_erased_only_after_the_password_was_given_lately(house: House) -> None:
    """Later the page asks for it beside the number, and a wrong one erases nothing."""
    browser, phone, path = house.browser(), "+14155550102", f"/w/{house.workspace}/contacts/14155550102"
    await browser.sign_in()
    await house.engine.messages.receive(house.workspace, from_number=phone, to="+12025550100", body="Hi")
    form = {"action": "erase", "number": phone, "key": "k"}
    assert "Your password" not in (await browser.page(path)).root.text
    house.clock.advance(15 * 60)
    assert "Your password" in (await browser.page(path)).root.text
    for given in ({}, {"current": OTHER}):
        answer = await browser.post(path, {**form, **given})
        assert answer.status_code == 422
        assert parse(answer.text).by_id("current-problem").text
    assert len((await house.engine.messages.list_inbound(house.workspace)).items) == 1
    assert (await browser.post(path, {**form, "current": PASSWORD})).status_code == 303
    assert "Hi" not in [one.body for one in await house.engine.messages.list_inbound(house.workspace)]


async def test_an_export_takes_the_password_again(house: House) -> None:
    """After 15 minutes a page asks for it, and leads on to the file; nothing is exported before."""
    new = NewSmsCampaign(name="Autumn", body="Hi", carrier="twilio", from_number="+12025550100")
    people = [NewRecipient(phone_number="+13035550140")]
    campaign = (await house.engine.campaigns.create_sms(house.workspace, new, people)).campaign
    browser, path = house.browser(), f"/w/{house.workspace}/campaigns/{campaign.id}/export?format=jsonl"
    await browser.sign_in()
    assert (await browser.get(path)).headers["content-type"].startswith("application/")
    house.clock.advance(15 * 60)
    for given in ({}, {"current": OTHER}):
        answer = await browser.post(path, {"action": "export", **given})
        assert answer.status_code == 422
        assert parse(answer.text).by_id("current-problem").text
    assert "Your password" in (await browser.page(path)).root.text
    exports = house.engine.audit.list(house.workspace, action="campaign.export")
    assert [one.detail for one in (await exports).items] == ["jsonl, rows: 1"]
    answer = await browser.post(path, {"action": "export", "current": PASSWORD})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{MOUNT}{path}")
    assert b"+13035550140" in (await browser.get(path)).content
