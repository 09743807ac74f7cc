"""The approval of a start by a second person."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from outreach import Campaign, CampaignStatus, CampaignUpdate, WorkspaceUpdate
from outreach_server.console import words
from outreach_server.console.access import Role
from tests.console.conftest import House
from tests.console.page import Page

pytestmark = pytest.mark.anyio

WAITS = "It waits for approval by another manager or owner."


async def waiting(house: House) -> Campaign:
    """Return a campaign that the owner has made and another person has to approve."""
    await house.engine.workspaces.update(house.workspace, WorkspaceUpdate(approve_over_contacts=0))
    campaign = await house.campaign()
    change = CampaignUpdate(body="Hi {{first_name}}!")
    return await house.engine.campaigns.update(house.workspace, campaign.id, change, actor="host:owner")


def check(campaign: Campaign) -> str:
    """Return the path of its check."""
    return f"campaigns/new/check?campaign={campaign.id}"


def form(campaign: Campaign, action: str, key: str = "k") -> Mapping[str, str]:
    """Return the form of a button of the check."""
    return {"action": action, "key": key, "revision": str(campaign.revision)}


def buttons(page: Page) -> list[str]:
    """Return the words of the buttons of the check."""
    return [one.text for one in page.all("button", name="action")]


async def test_another_person_approves_what_the_first_one_sees(house: House) -> None:
    """The same figures for both; then either may start it."""
    campaign = await waiting(house)
    mine = await house.page(check(campaign))
    theirs = await house.page(check(campaign), person="manager")
    assert mine.problems == theirs.problems == []
    assert (WAITS in mine.root.text, buttons(mine)) == (True, [])
    [approve] = buttons(theirs)
    assert approve.startswith("Approve: Send 3 messages, done ")
    answer = await house.post(check(campaign), form(campaign, "approve"), person="manager")
    assert answer.status_code == 303
    for person in ("owner", "manager"):
        page = await house.page(check(campaign), person=person)
        assert WAITS not in page.root.text
        assert "Approved by manager, " in page.root.text
        assert buttons(page) == [approve.removeprefix("Approve: ")]
    answer = await house.post(check(campaign), form(campaign, "start", "k2"))
    assert answer.headers["location"].endswith("done=start")
    entries = (await house.engine.audit.list(house.workspace)).items
    assert [(one.action, one.actor) for one in entries][:2] == [
        ("campaign.start", "host:owner"),
        ("campaign.approve", "host:manager"),
    ]


@pytest.mark.parametrize("role", [*Role, "operator"])
async def test_only_who_may_start_may_approve(house: House, role: str) -> None:
    """And not the person who changed it last; nothing changes for the others."""
    campaign = await waiting(house)
    answer = await house.post(check(campaign), form(campaign, "approve"), person=role)
    allowed = role in {"manager", "operator"}
    assert answer.status_code == (303 if allowed else 409 if role == "owner" else 403)
    found = await house.engine.campaigns.approval(house.workspace, campaign.id)
    assert (found.approval is not None) is allowed
    if role == "owner":
        assert "another person has to" in answer.text


async def test_nobody_starts_it_by_another_way(house: House) -> None:
    """The check, the campaign's page and the list refuse; its page says what it waits for and has no such button."""
    campaign = await waiting(house)
    for path, fields in (
        (check(campaign), form(campaign, "start")),
        (f"campaigns/{campaign.id}", form(campaign, "start")),
        ("campaigns", {**form(campaign, "start"), "campaign": campaign.id}),
    ):
        for person in ("owner", "manager"):
            answer = await house.post(path, fields, person=person)
            assert (answer.status_code, "need approval by a second person" in answer.text) == (409, True), path
    page = await house.page(f"campaigns/{campaign.id}")
    assert WAITS in page.by_id("now").text
    assert "start" not in page.buttons
    assert any("/new/check?" in one.attributes["href"] for one in page.all("a"))
    assert (await house.engine.campaigns.get(house.workspace, campaign.id)).status is CampaignStatus.READY


async def test_the_form_says_that_the_text_stays_while_the_campaign_is_under_way(house: House) -> None:
    """Before anything is typed; not where no start takes approval, nor before the start."""
    campaign = await house.campaign()
    path = f"campaigns/{campaign.id}/edit"

    async def is_said() -> bool:
        return "the text stays" in (await house.page(path)).root.text

    await house.engine.campaigns.start(house.workspace, campaign.id)
    assert not await is_said()
    await house.engine.workspaces.update(house.workspace, WorkspaceUpdate(approve_over_contacts=2))
    assert await is_said()
    path = f"campaigns/{(await house.campaign()).id}/edit"
    assert not await is_said()


async def test_a_change_meanwhile_is_not_approved(house: House) -> None:
    """Neither one before the form was sent, nor one after the approval."""
    campaign = await waiting(house)
    change = CampaignUpdate(body="Other")
    changed = await house.engine.campaigns.update(house.workspace, campaign.id, change, actor="host:owner")
    answer = await house.post(check(campaign), form(campaign, "approve"), person="manager")
    assert (answer.status_code, "changed since" in answer.text) == (409, True)
    await house.post(check(campaign), form(changed, "approve", "k2"), person="manager")
    await house.engine.campaigns.update(house.workspace, campaign.id, CampaignUpdate(name="New"), actor="host:owner")
    page = await house.page(check(campaign))
    assert (WAITS in page.root.text, buttons(page)) == (True, [])


async def test_the_line_goes_with_the_approval(house: House) -> None:
    """And campaigns that need none have no such line."""
    plain = await house.campaign("Plain")
    assert words.WAITS_FOR_APPROVAL not in (await house.page(f"campaigns/{plain.id}")).root.text
    campaign = await waiting(house)
    await house.engine.campaigns.approve(house.workspace, campaign.id, revision=campaign.revision, actor="host:manager")
    page = await house.page(f"campaigns/{campaign.id}")
    assert WAITS not in page.root.text
    assert "start" in page.buttons


async def test_forms_of_strangers_and_without_token_approve_nothing(house: House) -> None:
    """Ids of other workspaces are not there."""
    campaign = await waiting(house)
    assert (await house.post(check(campaign), {**form(campaign, "approve"), "token": ""})).status_code == 403
    assert (await house.post(check(campaign), form(campaign, "approve"), person="stranger")).status_code == 404
    theirs = await house.campaign(workspace=house.foreign)
    assert (await house.post(check(theirs), form(theirs, "approve"))).status_code == 404
    assert (await house.engine.campaigns.approval(house.workspace, campaign.id)).approval is None


async def test_the_overview_leads_to_a_campaign_whose_start_was_taken_back(house: House) -> None:
    """A program has changed it after its approval, before it began."""
    await house.engine.workspaces.update(house.workspace, WorkspaceUpdate(approve_over_contacts=0))
    campaign = await house.campaign(starts_at=house.engine.now() + timedelta(days=1))
    place = (house.workspace, campaign.id)
    await house.engine.campaigns.approve(*place, revision=campaign.revision, actor="host:owner")
    await house.engine.campaigns.start(*place)
    await house.engine.campaigns.update(*place, CampaignUpdate(body="Hello"), actor="api:1")
    page = await house.page("")
    assert "waits to be started again, because what was approved has changed" in page.root.text
    needs = [one for one in page.all("ul") if "needs" in one.attributes.get("class", "")]
    assert [one.attributes["href"] for need in needs for one in need.all("a")] == [
        house.url(f"campaigns/{campaign.id}")
    ]
