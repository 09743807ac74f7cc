"""One action on many campaigns: on chosen ones, and on all that a filter matches."""

from __future__ import annotations

from typing import Any

import pytest

from outreach import Campaign, CampaignStatus, Conflict
from outreach.campaigns import Campaigns
from outreach.ledger.campaigns.transitions import move
from outreach.models import CampaignAction
from outreach.models.campaign import PauseReason
from outreach_server.console.pages import many_campaigns
from outreach_server.words import CONTACTED_TWICE
from tests.console.conftest import House
from tests.console.page import parse

pytestmark = pytest.mark.anyio


async def _running(house: House, *names: str) -> list[Campaign]:
    made = [await house.campaign(name) for name in names]
    return [await house.engine.campaigns.start(house.workspace, one.id) for one in made]


async def _states(house: House) -> dict[str, str]:
    page = await house.engine.campaigns.list(house.workspace)
    return {one.name: str(one.status) for one in page.items}


async def test_all_that_match_are_paused_at_once(house: House) -> None:
    """The button says how many; the other campaigns stay as they are."""
    await _running(house, "May east", "May west", "June")
    shown = await house.page("campaigns/many?q=May")
    assert "Pause 2 campaigns" in [button.text for button in shown.all("button")]
    answer = await house.post("campaigns/many?q=May", {"action": "pause", "number": "2"})
    assert answer.status_code == 200
    assert "Paused: 2 campaigns" in answer.text
    assert await _states(house) == {"May east": "paused", "May west": "paused", "June": "active"}


async def test_chosen_ones_are_archived(house: House) -> None:
    """Only those that were chosen, and of them only those whose state allows it."""
    running, other = await _running(house, "Running"), await house.campaign("Other")
    ready = await house.campaign("Ready")
    path = f"campaigns/many?campaign={running[0].id}&campaign={ready.id}"
    shown = await house.page(path)
    assert {"Pause 1 campaign", "Archive 1 campaign"} <= {button.text for button in shown.all("button")}
    answer = await house.post(path, {"action": "archive", "number": "1"})
    assert "Archived: 1 campaign" in answer.text
    assert set(await _states(house)) == {"Running", "Other"}
    assert (await house.engine.campaigns.get(house.workspace, other.id)).archived_at is None


@pytest.mark.parametrize(("reason", "place"), [("restored", "REPLACED_DATABASE"), ("moved", "provider")])
async def test_a_campaign_of_a_copied_database_is_resumed_by_who_is_sure(
    house: House, reason: PauseReason, place: str
) -> None:
    """Its page asks, with what the command says; lists and the page of several ones leave it out."""
    restored, paused = await _running(house, "May east", "May west")
    now = house.engine.now()
    await house.engine.campaigns._context.storage.write(
        lambda tx: move(tx, restored, CampaignAction.PAUSE, now=now, actor="engine", pause_reason=reason)
    )
    await house.engine.campaigns.pause(house.workspace, paused.id)
    path = f"campaigns/{restored.id}"
    [ask] = [one for one in (await house.page(path)).all("details") if one.all("button", value="resume")]
    assert CONTACTED_TWICE in ask.text
    assert f"outreach-server campaigns resume {restored.id} --skip-contacted-in {place}" in ask.text
    listed = await house.page("campaigns")
    rows = {one.all("th")[0].text.removeprefix("Choose "): one for one in listed.all("tr") if one.all("td")}
    assert [bool(row.all("button", value="resume")) for row in rows.values()] == [True, False]
    many = "campaigns/many?q=May"
    shown = await house.page(many)
    assert "Resume 1 campaign" in [button.text for button in shown.all("button")]
    assert "one by one" in shown.root.text
    assert (await house.post(many, {"action": "resume", "number": "1"})).status_code == 200
    for where, more in ((path, {}), ("campaigns", {"campaign": restored.id})):
        answer = await house.post(where, {"action": "resume", **more})
        assert (answer.status_code, CONTACTED_TWICE in answer.text) == (409, True)
    assert await _states(house) == {"May east": "paused", "May west": "active"}
    sent = {one.attributes["name"]: one.attributes["value"] for one in ask.all("input", type="hidden")}
    assert (await house.post(path, {**sent, "action": "resume"})).status_code == 303
    assert (await _states(house))["May east"] == "active"


async def test_another_number_than_the_one_shown_does_nothing(house: House) -> None:
    """A campaign that matches only since the page was shown is not paused unseen."""
    await _running(house, "May east", "May west")
    answer = await house.post("campaigns/many?q=May", {"action": "pause", "number": "1"})
    assert answer.status_code == 409
    assert "2 campaigns" in answer.text
    assert set((await _states(house)).values()) == {"active"}


async def test_what_the_engine_refuses_is_named_and_the_rest_is_done(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One refusal does not keep the others from it."""
    first, _ = await _running(house, "May east", "May west")
    pause = Campaigns.pause

    async def refused(self: Campaigns, workspace_id: str, campaign_id: str, **more: Any) -> Campaign:
        if campaign_id == first.id:
            raise Conflict("It is being changed by somebody else.")
        return await pause(self, workspace_id, campaign_id, **more)

    monkeypatch.setattr(Campaigns, "pause", refused)
    answer = await house.post("campaigns/many?q=May", {"action": "pause", "number": "2"})
    assert answer.status_code == 200
    assert "Paused: 1 campaign" in answer.text
    problems = parse(answer.text).by_id("problems").text
    assert "May east" in problems
    assert "It is being changed by somebody else." in problems
    assert await _states(house) == {"May east": "active", "May west": "paused"}


async def test_too_many_are_not_begun(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that is longer than one request can do is narrowed first."""
    monkeypatch.setattr(many_campaigns, "MOST", 2)
    for name in "abc":
        await house.campaign(name)
    shown = await house.page("campaigns/many")
    assert "3 campaigns match" in shown.root.text
    assert not shown.buttons
    assert (await house.post("campaigns/many", {"action": "archive", "number": "3"})).status_code == 409
    assert len(await _states(house)) == 3


async def test_rights_and_other_workspaces(house: House) -> None:
    """A viewer changes nothing; ids of others are not there; a start or a cancel is not offered."""
    (running,) = await _running(house, "Mine")
    theirs = await house.campaign("Theirs", workspace=house.foreign)
    assert not (await house.page("campaigns/many", person="viewer")).buttons
    answer = await house.post("campaigns/many", {"action": "pause", "number": "1"}, person="viewer")
    assert answer.status_code == 403
    assert (await house.get(f"campaigns/many?campaign={theirs.id}")).status_code == 404
    for name in ("start", "cancel", "nothing"):
        assert (await house.post("campaigns/many", {"action": name, "number": "1"})).status_code == 400
    assert (await house.engine.campaigns.get(house.workspace, running.id)).status is CampaignStatus.ACTIVE


async def test_the_list_leads_to_it(house: House) -> None:
    """Its rows can be chosen, and its filters go along."""
    campaign = await house.campaign("May")
    page = await house.page("campaigns?q=May")
    boxes = [one for one in page.all("input") if one.attributes.get("type") == "checkbox"]
    assert [one.attributes["value"] for one in boxes] == [campaign.id]
    assert boxes[0].attributes["form"] == "many"
    none = await house.page("campaigns/many?rows=yes")
    assert ("No campaign was chosen" in none.root.text, none.buttons) == (True, set())
    assert house.url("campaigns/many?q=May") in [one.attributes.get("href") for one in page.all("a")]
    assert house.url("campaigns/many") in [one.attributes.get("action") for one in page.all("form")]
