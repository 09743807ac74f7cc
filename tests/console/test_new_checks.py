"""What the steps of a new campaign say before it is sent: hours, holidays, the forecast's curve and the last run."""

from __future__ import annotations

from decimal import Decimal

import pytest

from outreach import CampaignUpdate, NewAgent, NewCallCampaign, NewNumber, NewRecipient
from outreach.http import parse_holidays
from outreach.models import DAYS, Price, PriceTable
from tests.console.conftest import House
from tests.console.test_new_campaign import submit, values, where

pytestmark = pytest.mark.anyio


async def test_hours_in_which_contacts_can_be_reached_are_drawn(house: House) -> None:
    """A strip and its table, by what was saved."""
    campaign = await house.campaign()
    path = f"campaigns/new/when?campaign={campaign.id}"
    page = await house.page(path)
    assert page.problems == []
    assert "All contacts can be reached from" in page.root.text
    drawings = [one for one in page.all("svg") if "can be reached" in one.attributes.get("aria-label", "")]
    assert [one.attributes["class"] for one in drawings] == ["curve large", "curve small"]
    assert len(drawings[0].all("rect", **{"class": "reach"})) == 24
    days = {f"day_{day}": "yes" for day in DAYS}
    answer = await submit(
        house,
        path,
        {**days, "opens": "10:00", "closes": "12:00", "action": "save"},
    )
    assert where(answer)[0] == "new/when"
    page = await house.page(path)
    [drawing] = page.all("svg", **{"class": "curve large"})
    assert len(drawing.all("rect", **{"class": "reach"})) == 2
    assert len(drawing.all("rect", **{"class": "shut"})) == 22
    notes = [one.text for one in page.by_id("reach").parent.all("td")]  # type: ignore[union-attr]
    assert notes.count("closed: business hours") == 22


async def test_nobody_who_is_left_out_is_drawn(house: House) -> None:
    """Contacts who have opted out are not counted."""
    campaign = await house.campaign(contacts=1)
    [contact] = (await house.engine.campaigns.list_recipients(house.workspace, campaign.id)).items
    await house.engine.unsubscribes.add(house.workspace, contact.phone or "")
    page = await house.page(f"campaigns/new/when?campaign={campaign.id}")
    assert page.problems == []
    assert "Nobody is left to be contacted." in page.root.text


async def test_holidays_and_the_switch_are_saved_and_shown(house: House) -> None:
    """A country's, and dates of one's own; emptied, there are none."""
    campaign = await house.campaign()
    place = (house.workspace, campaign.id)
    path = f"campaigns/new/when?campaign={campaign.id}"
    typed = {"country": "GB-SCT", "dates": "2031-05-02\r\n2031-05-03", "stay_open": "yes"}
    where(await submit(house, path, typed))
    saved = await house.engine.campaigns.get(*place)
    assert saved.holidays is not None
    assert (saved.holidays.country, saved.holidays.subdivision, saved.stay_open) == ("GB", "SCT", True)
    assert [one.date.isoformat() for one in saved.holidays.holidays if not one.name] == ["2031-05-02", "2031-05-03"]
    found = values(await house.page(path))
    assert (found["country"], found["dates"], found["stay_open"]) == ("GB-SCT", "2031-05-02\n2031-05-03", "yes")
    page = await house.page(path)
    cleared = {name: value for name, value in values(page).items() if name != "stay_open"}
    where(await house.post(path, {**cleared, "country": "", "dates": "", "key": "k2"}))
    saved = await house.engine.campaigns.get(*place)
    assert (saved.holidays, saved.stay_open) == (None, False)


@pytest.mark.parametrize(
    ("typed", "field"),
    [({"country": "Narnia"}, "country"), ({"dates": "christmas"}, "dates"), ({"dates": "9 " * 101}, "dates")],
)
async def test_wrong_holidays_are_named(house: House, typed: dict[str, str], field: str) -> None:
    """What was typed stays, and nothing is saved."""
    campaign = await house.campaign()
    answer = await submit(house, f"campaigns/new/when?campaign={campaign.id}", typed)
    assert (answer.status_code, f'id="{field}-problem"' in answer.text) == (422, True)
    assert (await house.engine.campaigns.get(house.workspace, campaign.id)).revision == campaign.revision


async def test_a_calendar_that_the_form_cannot_show_stays(house: House) -> None:
    """Its page says so."""
    campaign = await house.campaign()
    own = parse_holidays({"holidays": [{"date": "2031-05-02", "name": "Ours", "enabled": True}]}, this_year=2031)
    await house.engine.campaigns.update(house.workspace, campaign.id, CampaignUpdate(holidays=own))
    path = f"campaigns/new/when?campaign={campaign.id}"
    assert "a calendar of its own, with 1 day" in (await house.page(path)).root.text
    where(await submit(house, path, {}))
    assert (await house.engine.campaigns.get(house.workspace, campaign.id)).holidays == own


async def test_the_switch_for_characters_is_saved(house: House) -> None:
    """Also where no character costs yet."""
    campaign = await house.campaign()
    path = f"campaigns/new/text?campaign={campaign.id}"
    where(await submit(house, path, {"action": "save", "replace_characters": "yes"}))
    assert (await house.engine.campaigns.get(house.workspace, campaign.id)).replace_characters
    page = await house.page(path)
    assert values(page)["replace_characters"] == "yes"
    off = {name: value for name, value in values(page).items() if name != "replace_characters"}
    where(await house.post(path, {**off, "action": "save", "key": "k2"}))
    assert not (await house.engine.campaigns.get(house.workspace, campaign.id)).replace_characters


async def test_the_check_draws_the_forecast(house: House) -> None:
    """With what limits it, as a table too."""
    campaign = await house.campaign(contacts=90)
    page = await house.page(f"campaigns/new/check?campaign={campaign.id}")
    assert page.problems == []
    assert [one.attributes["class"] for one in page.all("svg", role="img")] == ["curve large", "curve small"]
    assert page.by_id("forecast").text == "Forecast"
    assert any("By the forecast 90 messages from" in one.text for one in page.all("caption"))


async def test_the_check_compares_with_the_last_run(house: House) -> None:
    """The run that it is a copy of, or one of the same name; another name has none."""
    price = PriceTable(currency="USD", prices=(Price(kind="sms", amount=Decimal("0.50")),))
    await house.engine.prices.update(house.workspace, price)
    first = await house.campaign(contacts=2)
    assert "Beside the last run" not in (await house.page(f"campaigns/new/check?campaign={first.id}")).root.text
    await house.engine.campaigns.start(house.workspace, first.id)
    other = await house.campaign("Another")
    assert "Beside the last run" not in (await house.page(f"campaigns/new/check?campaign={other.id}")).root.text
    copy = (await house.engine.campaigns.clone(house.workspace, first.id)).campaign
    more = await house.campaign(contacts=5)
    for campaign, row, text in (
        (copy, ["2", "2", "the same"], "The text is the same."),
        (more, ["2", "5", "+3"], "The text is the same."),
    ):
        page = await house.page(f"campaigns/new/check?campaign={campaign.id}")
        assert page.problems == []
        panel = page.by_id("last").parent
        assert panel is not None
        assert text in panel.text
        assert [one.text for one in panel.all("td")][:3] == row
        assert "Cost in USD" in panel.text


async def test_who_calls_and_from_where_is_saved_and_shown(house: House) -> None:
    """Numbers in turn, and whether a voicemail that got the message is called again."""
    agent = await house.engine.agents.create(
        house.workspace, NewAgent(name="Nurse", provider="simulator", direction="outbound")
    )
    second = await house.engine.numbers.create(house.workspace, NewNumber(phone="+12025550101"))
    people = [NewRecipient(phone_number="+13035550140")]
    new = NewCallCampaign(name="Calls", agent_id=agent.id)
    campaign = (await house.engine.campaigns.create_call(house.workspace, new, people)).campaign
    text, when = (f"campaigns/new/{step}?campaign={campaign.id}" for step in ("text", "when"))
    where(await submit(house, text, {"action": "next", "retry_voicemail": "yes"}))
    where(await submit(house, when, {f"caller_{second.id}": "yes"}))
    saved = await house.engine.campaigns.get(house.workspace, campaign.id)
    assert (saved.retry_voicemail, saved.cli_mode) == (True, "group")
    assert [(one.phone, one.count) for one in saved.cli_group or ()] == [("+12025550101", 1)]
    page = await house.page(when)
    assert page.problems == []
    assert values(page)[f"caller_{second.id}"] == "yes"
    assert values(await house.page(text))["retry_voicemail"] == "yes"
    off = {name: value for name, value in values(page).items() if not name.startswith("caller_")}
    where(await house.post(when, {**off, "key": "k3"}))
    saved = await house.engine.campaigns.get(house.workspace, campaign.id)
    assert (saved.cli_group, saved.cli_mode) == (None, "default")
