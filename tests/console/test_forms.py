"""Forms are of a page of this console, of this session, and do what they say once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import anyio
import attrs
import pytest

from outreach import CampaignStatus, Outreach, WorkspaceStatus, WorkspaceUpdate
from outreach.core.vault import Vault
from outreach_server.console.security import forms, uploads
from outreach_server.console.security.forms import FormTokens
from tests.console.conftest import ORIGIN, House
from tests.console.page import parse
from tests.console.test_new_campaign import values

pytestmark = pytest.mark.anyio

PAUSE = {"action": "pause"}


@pytest.fixture
async def active(house: House) -> str:
    """Return the page of a campaign that is active."""
    campaign = await house.campaign("Reminders")
    await house.engine.campaigns.start(house.workspace, campaign.id)
    return f"campaigns/{campaign.id}"


async def _status(house: House, page: str) -> CampaignStatus:
    found = await house.engine.campaigns.get(house.workspace, page.rpartition("/")[2])
    return found.status


@pytest.mark.parametrize(
    ("headers", "accepted"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "cross-site", "origin": ORIGIN}, False),
        ({"origin": ORIGIN}, True),
        ({"origin": "https://host.example"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://evil.example", "host": "evil.example.com"}, False),
        ({}, False),
    ],
)
async def test_forms_come_from_this_origin(house: House, active: str, headers: dict[str, str], accepted: bool) -> None:
    """Browsers say where a form comes from; a request that does not say so is refused."""
    fields = {"token": await house.token("owner"), "key": "k", **PAUSE}
    answer = await house.client.post(house.url(active), data=fields, headers={"x-test-person": "owner", **headers})
    assert answer.status_code == (303 if accepted else 403)
    assert await _status(house, active) == ("paused" if accepted else "active")


async def test_behind_a_proxy_the_public_address_decides(house: House, active: str) -> None:
    """The proxy may name another host."""
    house.engine._config = attrs.evolve(house.engine._config, public_url="https://shown.example/outreach")
    fields = {"token": await house.token("owner"), "key": "k", **PAUSE}
    for origin, status in ((ORIGIN, 403), ("https://shown.example", 303)):
        headers = {"x-test-person": "owner", "origin": origin}
        assert (await house.client.post(house.url(active), data=fields, headers=headers)).status_code == status


async def test_a_form_needs_the_token_of_its_own_session(house: House, active: str) -> None:
    """Neither no token nor a wrong one nor one of another person or session does anything."""
    house.people["owner2"] = attrs.evolve(house.people["owner"], session="another")
    for token in ("", "x", "ü", await house.token("manager"), await house.token("owner2")):
        answer = await house.post(active, {**PAUSE, "token": token})
        assert answer.status_code == 403
        assert "Open the page again" in answer.text
    assert await _status(house, active) == "active"
    page = await house.page(active)
    [token] = {one.attributes["value"] for one in page.all("input", name="token")}
    assert (await house.post(active, {**PAUSE, "token": token})).status_code == 303


async def test_a_token_is_good_for_its_day_and_the_next(house: House) -> None:
    """So that a page that was open at midnight works."""
    now = house.app.state.console.now()
    tokens = FormTokens(keys=[b"new", b"old"])
    token = tokens.token("session:1", now)
    assert tokens.accepts(token, "session:1", now + timedelta(days=1))
    assert not tokens.accepts(token, "session:1", now + timedelta(days=2))
    assert not tokens.accepts(token, "session:1", now - timedelta(days=1))
    assert not tokens.accepts(token, "session:2", now)
    # After a change of keys the pages that are open go on.
    assert tokens.accepts(FormTokens(keys=[b"old"]).token("s", now), "s", now)
    assert not tokens.accepts(FormTokens(keys=[b"other"]).token("s", now), "s", now)


def test_the_key_of_tokens_is_the_same_in_all_processes() -> None:
    """It is derived of the key of credentials, which says nothing about it, and differs by purpose."""
    text = "mJ3aGrtRjj_q5VNfJgf3Zp8N2aE3bqH4J2Z0b2v5KcE="
    other = "aGrtRjj_q5VNfJgf3Zp8N2aE3bqH4J2Z0b2v5KcEmJ3="
    one, two = Vault(keys=text), Vault(keys=f"{other},{text}")
    assert one._derived_keys("console forms", make=False) == [two._derived_keys("console forms", make=False)[1]]
    assert one._derived_keys("console forms", make=False) != one._derived_keys("something else", make=False)
    assert len(one._derived_keys("console forms", make=False)[0]) == 32


async def test_a_form_that_is_sent_twice_does_one_thing(house: House, active: str) -> None:
    """Its key is the idempotency key: Back and send again replays the answer."""
    form = {**PAUSE, "key": "same"}
    assert [(await house.post(active, form)).status_code for _ in range(2)] == [303, 303]
    entries = (await house.engine.audit.list(house.workspace)).items
    assert [one.action for one in entries].count("campaign.pause") == 1


async def test_a_form_that_comes_too_late_gets_an_error(house: House, active: str) -> None:
    """The page shows the present state, and what it allows."""
    await house.engine.campaigns.cancel(house.workspace, active.rpartition("/")[2])
    answer = await house.post(active, PAUSE)
    assert answer.status_code == 409
    assert "cannot pause" in answer.text
    assert "Cancelled" in answer.text


async def test_a_suspended_workspace_offers_no_start(house: House, active: str) -> None:
    """Who sends the form all the same is told why, and not to ask for another role."""
    ready = await house.campaign(name="Ready")
    await house.post(active, PAUSE)
    await house.engine.workspaces.update(house.workspace, WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED))
    assert "resume" not in (await house.page(active)).buttons
    assert "start" not in (await house.page(f"campaigns/{ready.id}")).buttons
    assert (await house.page(f"campaigns/new/check?campaign={ready.id}")).buttons == set()
    answer = await house.post(active, {**PAUSE, "action": "resume"})
    assert answer.status_code == 403
    assert "The workspace is suspended." in answer.text
    assert "role" not in parse(answer.text).all("main")[0].text


async def test_each_form_has_a_key_of_its_own(house: House, active: str) -> None:
    """Two buttons of a page are not one request."""
    page = await house.page(active)
    keys = [one.attributes["value"] for one in page.all("input", name="key")]
    assert len(keys) == len(set(keys)) >= 2


async def test_cancelling_takes_the_name(house: House, active: str) -> None:
    """Another name leaves the campaign as it is, and what was typed in its field."""
    answer = await house.post(active, {"action": "cancel", "name": "Reminder<s"})
    assert answer.status_code == 422
    assert 'value="Reminder&lt;s"' in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert await _status(house, active) == "active"
    assert (await house.post(active, {"action": "cancel", "name": "Reminders"})).status_code == 303
    assert await _status(house, active) == "cancelled"


@pytest.mark.parametrize("form", [{"action": "explode"}, {"action": "__init__"}, {}, {"action": "pause", "key": ""}])
async def test_a_form_asks_for_what_there_is(house: House, active: str, form: dict[str, str]) -> None:
    """Anything else is refused."""
    assert (await house.post(active, form)).status_code == 400
    assert await _status(house, active) == "active"


async def test_large_forms_are_refused(house: House, active: str) -> None:
    """A form without files is small."""
    assert (await house.post(active, {**PAUSE, "name": "x" * 70_000})).status_code == 413
    many = {f"f{number}": "1" for number in range(600)}
    assert (await house.post(active, {**PAUSE, **many})).status_code == 400


async def test_without_a_key_of_credentials_pages_say_that_something_is_wrong(house: House) -> None:
    """A page without a token would not work: there is none."""
    house.app.state.console._kept.clear()
    house.engine._vault = Vault(required=True)
    assert isinstance(house.engine, Outreach)
    assert (await house.get("")).status_code == 500


@pytest.mark.parametrize(
    ("kind", "begin"),
    [("application/x-www-form-urlencoded", b"action=pau"), ("multipart/form-data; boundary=b", b"--b\r\n")],
)
async def test_a_form_that_stops_arriving_is_given_up(
    house: House, active: str, monkeypatch: pytest.MonkeyPatch, kind: str, begin: bytes
) -> None:
    """It changes nothing, and holds no connection for ever."""
    monkeypatch.setattr(forms, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(uploads, "IDLE_SECONDS", 0.01)

    async def stops() -> AsyncIterator[bytes]:
        yield begin
        await anyio.sleep_forever()

    headers = {"x-test-person": "owner", "sec-fetch-site": "same-origin", "content-type": kind}
    answer = await house.client.post(house.url(active), content=stops(), headers=headers)
    assert answer.status_code == 408
    assert "took too long" in answer.text
    assert await _status(house, active) == "active"


async def test_a_form_in_no_charset_is_refused(house: House, active: str) -> None:
    """Python has codecs that decode nothing."""
    body = b'--b\r\nContent-Disposition: form-data; name="action"\r\n\r\npause\r\n--b--\r\n'
    kind = "multipart/form-data; boundary=b; charset=undefined"
    headers = {"x-test-person": "owner", "sec-fetch-site": "same-origin", "content-type": kind}
    assert (await house.client.post(house.url(active), content=body, headers=headers)).status_code == 400


async def test_a_form_after_the_way_back_with_something_else_says_what_was_done(house: House) -> None:
    """Nobody but a program knows of keys: the sentence says what to do, and the form keeps what was typed."""
    form = {"action": "opt-out", "numbers": "+14155550170", "scope": "all"}
    assert (await house.post("register", form)).status_code == 303
    other = {**form, "numbers": "+14155550171", "evidence": "By phone"}
    answer = await house.post("register", other)
    assert answer.status_code == 422
    page = parse(answer.text)
    assert "was sent before with something else" in page.by_id("problems").text
    assert "idempotency" not in answer.text
    sent = values(page)
    assert (sent["numbers"], sent["evidence"]) == ("+14155550171", "By phone")
    keys = {one.attributes["value"] for one in page.all("input", name="key")}
    assert "k1" not in keys
    assert (await house.post("register", {**other, "key": keys.pop()})).status_code == 303
    assert {one.phone async for one in house.engine.unsubscribes.iter_all(house.workspace)} == {
        *("+14155550170", "+14155550171"),
    }
