"""The overview: what runs and why, and what is done from there; and the search that opts a number out."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from outreach import CampaignStatus, WorkspaceUpdate
from outreach.models import CampaignProgress, ProgressPoint
from outreach_server.console.access import Right, Role, may
from outreach_server.console.figures import FigureReader
from outreach_server.console.running import MAX_SHOWN
from outreach_server.console.words import visible
from tests.console.conftest import House
from tests.console.page import Element, Page
from tests.console.story import BEN, CLEO, SENDER, STOPPED, tell
from tests.console.test_hostile import NAMES

pytestmark = pytest.mark.anyio


def running(page: Page) -> list[Element]:
    """Return the campaigns that run."""
    return page.by_id("running").all("li")


async def test_each_campaign_that_runs_says_what_it_waits_for(house: House) -> None:
    """In the words of its own page; of many only the oldest say it, as each takes look-ups."""
    campaigns = [await house.campaign(f"Visits {number}") for number in range(MAX_SHOWN + 1)]
    for one in campaigns:
        await house.engine.campaigns.start(house.workspace, one.id)
    said = (await house.engine.campaigns.now(house.workspace, campaigns[0].id)).message
    found = running(await house.page(""))
    assert len(found) == len(campaigns)
    assert [said in one.text for one in found] == [True] * MAX_SHOWN + [False]


@pytest.mark.parametrize("role", Role)
async def test_who_waits_for_an_answer_needs_those_who_may_answer(house: House, role: Role) -> None:
    """With a link to the replies; two messages of one number are one."""

    async def says() -> tuple[bool, bool]:
        house.app.state.console._kept.pop("unanswered", None)
        needs = (await house.page("", person=role)).by_id("needs")
        links = [one.attributes["href"].rpartition("/")[2] for one in needs.all("a")]
        return "1 number wrote back, and waits for an answer." in needs.text, "inbox" in links

    assert await says() == (False, False)
    for body in ("Is it at 4?", "Or at 5?"):
        await house.engine.messages.receive(house.workspace, from_number=BEN, to=SENDER, body=body)
    assert await says() == (may(role, Right.REPLY),) * 2


async def test_each_campaign_that_runs_has_a_curve(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn once for each width, with a sentence; before its first request it has none."""
    campaign = await house.campaign()
    await house.engine.campaigns.start(house.workspace, campaign.id)

    async def drawings() -> list[str]:
        [one] = running(await house.page(""))
        found = [each.attributes for each in one.all("svg") if "curve" in each.attributes["class"].split()]
        assert {each["aria-label"] for each in found} <= {"Requests by time: 0 of 3 done."}
        return [each["class"] for each in found]

    assert await drawings() == []
    begun = house.app.state.console.now() - timedelta(minutes=5)
    point = ProgressPoint(at=begun, requests=2)
    sent = CampaignProgress(campaign_id=campaign.id, at=begun + timedelta(minutes=5), step_seconds=60, points=[point])

    async def progress(*_: object) -> CampaignProgress:
        return sent

    monkeypatch.setattr(FigureReader, "progress", progress)
    house.app.state.console._kept.pop("activities")
    assert await drawings() == ["curve large", "curve small"]


@pytest.mark.parametrize("role", Role)
async def test_a_campaign_is_paused_from_the_overview_by_those_who_may(house: House, role: Role) -> None:
    """The button belongs to a form outside of the part that is the same for all who watch."""
    campaign = await house.campaign()
    await house.engine.campaigns.start(house.workspace, campaign.id)
    page = await house.page("", person=role)
    buttons = [one for one in page.all("button") if one.attributes.get("value") == "pause"]
    assert bool(buttons) is may(role, Right.PAUSE)
    if not buttons:
        return
    [button] = buttons
    form = page.by_id(button.attributes["form"])
    assert form not in list(page.by_id("live"))
    assert button.attributes["formaction"] == house.url(f"campaigns/{campaign.id}")
    sent = {one.attributes["name"]: one.attributes["value"] for one in form.all("input")}
    answer = await house.post(f"campaigns/{campaign.id}", {**sent, "action": "pause"}, person=role)
    assert answer.status_code == 303
    assert (await house.engine.campaigns.get(house.workspace, campaign.id)).status is CampaignStatus.PAUSED


@pytest.mark.parametrize("role", Role)
async def test_a_campaign_that_has_ended_is_cloned_from_the_overview(house: House, role: Role) -> None:
    """By those who may draft; it leads to the text of the new one."""
    campaign = await house.campaign("Autumn")
    await house.engine.campaigns.start(house.workspace, campaign.id)
    await house.engine.campaigns.cancel(house.workspace, campaign.id)
    page = await house.page("", person=role)
    forms = [one for one in page.all("form") if one.all("button", value="clone")]
    assert bool(forms) is may(role, Right.DRAFT)
    if forms:
        [form] = forms
        sent = {one.attributes["name"]: one.attributes["value"] for one in form.all("input")}
        answer = await house.post(f"campaigns/{campaign.id}", {**sent, "action": "clone"}, person=role)
        assert "/campaigns/new/text?" in answer.headers["location"]


async def test_what_waits_for_a_person_has_its_times_in_words(house: House) -> None:
    """Also the time in the evidence of a held number, which the engine writes as ISO 8601; a false one stays."""
    await tell(house.engine, house.workspace)
    body = "stop by 2026-99-20T10:00:00Z tomorrow"
    await house.engine.messages.receive(house.workspace, from_number=BEN, to=SENDER, body=body)
    text = (await house.page("")).by_id("live").text
    assert "may have opted out" in text
    assert re.findall(r"\d{4}-\d\d-\d\dT", text) == ["2026-99-20T"]
    for path in ("inbox?folder=held", "register", f"contacts/{CLEO[1:]}"):
        text = (await house.page(path)).root.text
        assert "(unclear; no carrier), " in text
        assert set(re.findall(r"\d{4}-\d\d-\d\dT", text)) <= {"2026-99-20T"}


@pytest.mark.parametrize("name", NAMES)
async def test_hostile_names_of_campaigns_that_run_and_have_ended_are_text(house: House, name: str) -> None:
    """Also in the words of their buttons."""
    running_one, ended = await house.campaign(name), await house.campaign(name)
    for one in (running_one, ended):
        await house.engine.campaigns.start(house.workspace, one.id)
    await house.engine.campaigns.cancel(house.workspace, ended.id)
    page = await house.page("")
    assert page.problems == []
    assert not page.all("img")
    shown = f"{visible(name)}"
    words = [one.text for one in page.all("button") if one.attributes.get("value") in {"pause", "clone"}]
    assert words == [" ".join(f"{word} {shown}".split()) for word in ("Pause", "Clone")]


@pytest.mark.parametrize("role", Role)
async def test_a_number_that_is_found_is_opted_out_by_those_who_may(house: House, role: Role) -> None:
    """In whatever notation it was typed, and known or not."""
    await house.engine.workspaces.update(house.workspace, WorkspaceUpdate(default_region="US"))
    for typed in ("%2B1+303+555+0199", "(303)+555-0199", "13035550199"):
        page = await house.page(f"search?q={typed}", person=role)
        forms = [one for one in page.all("form") if one.all("button", value="opt-out")]
        assert bool(forms) is may(role, Right.DECIDE)
        [link] = [one for one in page.all("a") if one.text == "Everything with this number"]
        assert link.attributes["href"] == house.url("contacts/13035550199")
        assert [one.attributes["action"] for one in forms] == [link.attributes["href"]] * len(forms)


async def test_a_search_of_a_number_without_its_country_asks_for_it(house: House) -> None:
    """Where the workspace names no country for such numbers."""
    for typed, asks in (("303+555+0199", True), ("%2B13035550199", False), ("Spring", False)):
        assert ("country code" in (await house.page(f"search?q={typed}")).root.text) is asks, typed


async def test_a_number_that_is_on_the_register_is_not_offered_again(house: House) -> None:
    """Unless it is only held."""
    await tell(house.engine, house.workspace)
    assert "opt-out" not in (await house.page(f"search?q=%2B{STOPPED[1:]}")).buttons
    assert "opt-out" in (await house.page(f"search?q=%2B{CLEO[1:]}")).buttons
    assert "opt-out" not in (await house.page("search?q=12")).buttons
