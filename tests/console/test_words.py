"""What pages say: who did something, what a campaign waits for, the text of a contact, and figures that add up."""

from __future__ import annotations

import re

import attrs
import pytest

from outreach import CampaignUpdate, NewRecipient, NewSmsCampaign
from outreach.models import CampaignAction, NewUser
from outreach.reasons import PAUSE_REASONS
from outreach_server.console import words
from outreach_server.console.clocks import Clocks
from outreach_server.console.pages.campaign_progress import progress_view
from outreach_server.console.pages.campaign_regions import detail_of
from outreach_server.console.people import names_of
from tests.console.conftest import SENDER, House

pytestmark = pytest.mark.anyio


async def test_a_contact_that_waits_shows_the_text_that_it_would_get(house: House) -> None:
    """With its own values, not the template; a contact that has ended gets none."""
    campaign = await house.campaign(contacts=2)
    page = await house.page(f"campaigns/{campaign.id}/contacts/1")
    assert [one.text for one in page.all("div", **{"class": "bubble"})] == ["Hi Ana 1 Reply STOP to opt out"]
    await house.engine.campaigns.start(house.workspace, campaign.id)
    await house.engine.campaigns.cancel(house.workspace, campaign.id)
    page = await house.page(f"campaigns/{campaign.id}/contacts/1")
    assert page.all("div", **{"class": "bubble"}) == []


async def test_people_are_named_and_the_host_names_its_own(house: House) -> None:
    """In the events of a campaign and in the trail of a contact."""
    ann = await house.engine.users.create(NewUser(email="ann@acme.example", name="Ann <b>Miller</b>"))
    campaign = await house.campaign()
    await house.engine.campaigns.start(house.workspace, campaign.id, actor=f"user:{ann.id}")
    for path in (f"campaigns/{campaign.id}", f"campaigns/{campaign.id}/contacts/0"):
        text = (await house.page(path)).root.text
        assert "by Ann <b>Miller</b>" in text
        assert ann.id not in text
    names = await names_of(house.engine, ["user:gone", "host:A 7", "cli:root", "api", "library", "engine", "other"])
    assert list(names.values()) == [
        "a person who was removed (gone)",
        "A 7",
        "root, by a command",
        "a program with an API key",
        "an application",
        "the engine",
        "other",
    ]


async def test_the_events_of_a_campaign_are_in_words(house: House) -> None:
    """Without names of fields, or of the engine's steps."""
    campaign = await house.campaign()
    change = CampaignUpdate(body="Hi", rate_per_minute=60, from_number=SENDER)
    await house.engine.campaigns.update(house.workspace, campaign.id, change)
    await house.engine.campaigns.start(house.workspace, campaign.id)
    await house.engine.campaigns.pause(house.workspace, campaign.id)
    events = (await house.page(f"campaigns/{campaign.id}")).by_id("events").text
    assert "Changed: number, rate, text by" in events
    assert "Paused by" in events
    assert detail_of("pause", "provider_funds") == PAUSE_REASONS["provider_funds"]
    assert {str(one) for one in CampaignAction} <= set(words.DONE)


async def test_the_line_of_a_draft_says_what_it_needs(house: House) -> None:
    """In words for people, without names of fields, in one sentence."""
    new = NewSmsCampaign(name="Draft", body="Hi", carrier=None, from_number=None)
    made = await house.engine.campaigns.create_sms(house.workspace, new, [NewRecipient(phone_number="+13035550100")])
    page = await house.page(f"campaigns/{made.campaign.id}")
    assert page.by_id("now").text == "Waits for a number to send from and a carrier, before it can start: 1 contact."
    await house.engine.campaigns.update(house.workspace, made.campaign.id, CampaignUpdate(carrier="twilio"))
    page = await house.page(f"campaigns/{made.campaign.id}")
    assert page.by_id("now").text == "Waits for a number to send from, before it can start: 1 contact."


async def test_what_a_ready_campaign_lacks_follows_its_line(house: House) -> None:
    """As the engine says it, with one full stop."""
    new = NewSmsCampaign(name="Ready", body="Hi {{shoe_size}}", carrier="twilio", from_number=SENDER)
    made = await house.engine.campaigns.create_sms(house.workspace, new, [NewRecipient(phone_number="+13035550100")])
    line = (await house.page(f"campaigns/{made.campaign.id}")).by_id("now")
    assert line.all("strong")[0].text == "Waits to be started: 1 contact."
    text = line.text
    assert "shoe_size" in text
    assert ".." not in text


async def test_the_sentence_of_the_curve_adds_up_beside_an_older_forecast(house: House) -> None:
    """It has the figures of the report alone; the forecast's view goes on from what has happened."""
    campaign = await house.campaign(contacts=300)
    await house.engine.campaigns.start(house.workspace, campaign.id)
    read = house.app.state.console.figures.read
    figures = await read(house.engine, await house.engine.campaigns.get(house.workspace, campaign.id))
    later = attrs.evolve(figures, report=attrs.evolve(figures.report, still_open=285))
    says = progress_view(later, Clocks("UTC")).curve.label
    ended, contacts, to_come = (int(one) for one in re.findall(r"(\d+) (?:of|contacts had|are)", says))
    assert (ended, contacts, to_come) == (15, 300, 285)


def test_the_reason_of_a_pause_has_no_marks_of_code() -> None:
    """A reason may name a command, which the terminal sets in backticks."""
    for reason in ("moved", "restored"):
        assert words.pause_reason(reason).endswith(
            "campaigns resume --skip-contacted-in goes on without contacting anybody twice"
        )
    assert words.pause_reason("nonsense") == words.pause_reason(None) == ""
