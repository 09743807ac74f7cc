"""What follows a campaign: its report and exports, a follow-up, a clone, and changes while it runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import attrs
import pytest

from outreach import Campaign, CampaignStatus, NewNumber, NewRecipient, NewSmsCampaign, RecipientStatus
from outreach.campaigns import Campaigns
from outreach.ledger.campaigns.recipients import put_recipient
from outreach.models import CampaignReport, TrailRule
from outreach.models.campaign import Counters
from outreach.models.campaign_report import SenderFigures
from outreach.storage.unit_of_work import Transaction
from outreach_server.console.access import Right, Role, may
from outreach_server.console.pages import report
from outreach_server.fair_semaphore import FairSemaphoreTimeout
from tests.console.conftest import SENDER, House
from tests.console.page import Page, parse

pytestmark = pytest.mark.anyio

RESULTS: tuple[tuple[RecipientStatus, str | None], ...] = (
    (RecipientStatus.FAILED, "unreachable"),
    (RecipientStatus.FAILED, "invalid_number"),
    (RecipientStatus.UNCONFIRMED, "no_evidence"),
    (RecipientStatus.COMPLETED, None),
)


@pytest.fixture
async def ended(house: House) -> Campaign:
    """A campaign that has started, whose contacts have ended."""
    campaign = await house.campaign("Autumn", contacts=len(RESULTS))
    await house.engine.campaigns.start(house.workspace, campaign.id)

    def write(tx: Transaction) -> None:
        now, change = house.engine.now(), Counters()
        for before in tx.recipients.page(house.workspace, campaign.id):
            status, reason = RESULTS[before.position]
            after = attrs.evolve(before, status=status, reason=reason, attempts=1, ended_at=now, due_at=None)
            change += put_recipient(tx, house.workspace, before, after, rule=TrailRule.OPERATOR, now=now)
        tx.campaigns.add_counters(house.workspace, campaign.id, change)

    await house.engine._storage.write(write)
    return await house.engine.campaigns.get(house.workspace, campaign.id)


def chosen(page: Page) -> dict[str, str]:
    """Return the checked boxes of a page."""
    boxes = page.all("input", type="checkbox")
    return {one.attributes["name"]: one.attributes["value"] for one in boxes if "checked" in one.attributes}


async def test_the_report_says_what_became_of_the_contacts(house: House, ended: Campaign) -> None:
    """With its figures; beside another campaign's, if the address names one."""
    page = await house.page(f"campaigns/{ended.id}/report", person="viewer")
    text = page.root.text
    assert "Failed the phone or its network could not be reached" in text
    assert "4" in page.all("dd")[0].text
    assert not [one for one in page.all("a") if "format=" in one.attributes["href"]]
    other = await house.campaign("Spring", contacts=1)
    both = await house.page(f"campaigns/{ended.id}/report?with={other.id}")
    assert [one.text for one in both.all("tr")[1].all("td")] == ["4", "1"]
    theirs = await house.campaign(workspace=house.foreign)
    assert (await house.get(f"campaigns/{ended.id}/report?with={theirs.id}")).status_code == 404
    assert "It has not started" in (await house.page(f"campaigns/{other.id}/report")).root.text


@pytest.mark.parametrize(("kind", "begins"), [("csv", b"position,"), ("xlsx", b"PK"), ("jsonl", b"{")])
async def test_contacts_are_exported_by_those_who_may(house: House, ended: Campaign, kind: str, begins: bytes) -> None:
    """As a file with its name, and nothing for another role or kind."""
    path = f"campaigns/{ended.id}/export?format={kind}"
    answer = await house.get(path, person="manager")
    assert answer.status_code == 200
    assert answer.content.removeprefix(b"\xef\xbb\xbf").startswith(begins)
    assert answer.content.count(b"\n") >= 4 or kind == "xlsx"
    assert answer.headers["content-disposition"] == f'attachment; filename="campaign-{ended.id}.{kind}"'
    entries = (await house.engine.audit.list(house.workspace)).items
    assert (entries[0].actor, entries[0].action, entries[0].subject) == ("host:manager", "campaign.export", ended.id)
    assert entries[0].detail == f"{kind}, rows: {len(RESULTS)}"
    for role in Role:
        assert (await house.get(path, person=role)).status_code == (200 if may(role, Right.EXPORT) else 403)
    assert (await house.get(f"campaigns/{ended.id}/export?format=pdf")).status_code == 404


async def test_the_report_shows_the_numbers_of_a_pool(house: House) -> None:
    """Messages, delivered, failed and opt-outs of each; a campaign of one number has no such table."""
    second = "+12025550101"
    await house.engine.numbers.create(house.workspace, NewNumber(phone=second, carrier="twilio"))
    new = NewSmsCampaign(name="Pool", body="Hi", carrier="twilio", from_numbers=[SENDER, second])
    people = [NewRecipient(phone_number=f"+1303555{number:04d}") for number in range(2)]
    made = (await house.engine.campaigns.create_sms(house.workspace, new, people)).campaign
    report_of = Campaigns.report

    async def with_senders(self: Campaigns, workspace_id: str, campaign_id: str) -> CampaignReport:
        found = await report_of(self, workspace_id, campaign_id)
        figures = SenderFigures(
            from_number=second, requests=1200, accepted=1000, delivered=900, undelivered=60, refused=7, opt_outs=5
        )
        return attrs.evolve(found, senders=(figures,)) if campaign_id == made.id else found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Campaigns, "report", with_senders)
        page = await house.page(f"campaigns/{made.id}/report", person="viewer")
    [table] = [one for one in page.all("table") if "number that they came from" in one.text]
    [row] = table.all("tr")[1:]
    assert [one.text for one in (*row.all("th"), *row.all("td"))] == [second, "1,200", "900 90.0 %", "67", "5"]
    other = await house.campaign("Spring")
    assert "By sender" not in (await house.page(f"campaigns/{other.id}/report")).root.text


async def test_an_export_without_a_turn_is_refused(
    house: House, ended: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says to try again."""

    async def busy(*_: Any) -> AsyncGenerator[bytes]:
        raise FairSemaphoreTimeout
        yield b""

    monkeypatch.setattr(report, "made_in_turn", busy)
    answer = await house.get(f"campaigns/{ended.id}/export?format=xlsx")
    assert answer.status_code == 429
    assert "Try again in a minute" in answer.text


async def test_who_was_not_reached_is_followed_up(house: House, ended: Campaign) -> None:
    """The results that another message may change are chosen; what is created is not started."""
    path = f"campaigns/{ended.id}/follow-up"
    page = await house.page(path)
    assert set(chosen(page).values()) == {"unreachable", "no_evidence"}
    form = {**chosen(page), "action": "follow-up", "name": "", "body": "Hi {{first_name}}", "key": "f"}
    answer = await house.post(path, form)
    made = (await house.engine.campaigns.list(house.workspace)).items[0]
    assert answer.headers["location"].endswith(f"/campaigns/new/text?campaign={made.id}")
    assert (made.name, made.counters.total, made.status) == ("Autumn (follow-up)", 2, CampaignStatus.READY)
    assert (await house.post(path, form)).headers["location"] == answer.headers["location"]
    assert (await house.engine.campaigns.list(house.workspace)).total == 2


async def test_contacts_of_a_state_are_followed_up(house: House, ended: Campaign) -> None:
    """The link on the list chooses them alone: a state with all its reasons, or one reason."""
    for query, values in (
        ("status=failed", {"unreachable", "invalid_number"}),
        ("status=failed&reason=unreachable", {"unreachable"}),
        ("status=completed", {"completed"}),
    ):
        page = await house.page(f"campaigns/{ended.id}/contacts?{query}")
        [link] = [one for one in page.all("a") if one.text == "Follow up these"]
        path = link.attributes["href"].partition(f"/w/{house.workspace}/")[2]
        assert set(chosen(await house.page(path)).values()) == values, query
    for path, person in (
        ("contacts", "owner"),
        ("contacts?status=failed&q=A9", "owner"),
        ("contacts?status=failed", "agent"),
    ):
        page = await house.page(f"campaigns/{ended.id}/{path}", person=person)
        assert "Follow up these" not in page.root.text


async def test_a_follow_up_of_nobody_says_so(house: House, ended: Campaign) -> None:
    """Without a result, with one that nobody has, and for those who are all left out; what was chosen stays."""
    path, form = f"campaigns/{ended.id}/follow-up", {"action": "follow-up", "name": "Next", "body": ""}
    answer = await house.post(path, form)
    assert answer.status_code == 422
    assert parse(answer.text).by_id("results-problem").text
    assert parse(answer.text).by_id("name").attributes["value"] == "Next"
    assert (await house.post(path, {**form, "result-0": "expired"})).status_code == 409
    assert (await house.post(path, {**form, "result-0": "no result"})).status_code == 422
    fresh = await house.campaign("Spring")
    assert "there is nobody to follow up" in (await house.page(f"campaigns/{fresh.id}/follow-up")).root.text


async def test_a_campaign_is_cloned_with_one_click(house: House, ended: Campaign) -> None:
    """With all its contacts, once for a form; then its text is shown."""
    path = f"campaigns/{ended.id}"
    for role in Role:
        assert ("clone" in (await house.page(path, person=role)).buttons) is may(role, Right.DRAFT)
    assert (await house.post(path, {"action": "clone"}, person="agent")).status_code == 403
    answers = [await house.post(path, {"action": "clone", "key": "c"}) for _ in range(2)]
    made = (await house.engine.campaigns.list(house.workspace)).items[0]
    assert {one.headers["location"].rpartition("/new/")[2] for one in answers} == {f"text?campaign={made.id}"}
    assert (made.name, made.counters.total) == ("Autumn (copy)", len(RESULTS))


async def test_what_was_not_sent_can_be_changed(house: House) -> None:
    """Only the fields that were changed; times by the zone of the form."""
    starts_at = house.engine.now().replace(microsecond=0) + timedelta(days=2)
    campaign = await house.campaign("Spring", starts_at=starts_at)
    await house.engine.campaigns.start(house.workspace, campaign.id)
    path = f"campaigns/{campaign.id}/edit"
    page = await house.page(path)
    form = {one.attributes["name"]: one.attributes.get("value", "") for one in page.all("input")}
    form |= {"action": "edit", "body": "Hi {{first_name}},\r\nbye", "rate": "30"}
    assert (await house.post(path, form, person="agent")).status_code == 403
    assert (await house.post(path, form)).headers["location"].endswith(f"/campaigns/{campaign.id}?done=edit")
    found = await house.engine.campaigns.get(house.workspace, campaign.id)
    assert (found.body, found.rate_per_minute, found.status) == ("Hi {{first_name}},\nbye", 30, "scheduled")
    assert found.scheduled_start_at == starts_at
    stale = await house.post(path, {**form, "name": "Other"})
    assert stale.status_code == 409
    assert parse(stale.text).by_id("name").attributes["value"] == "Other"
    form["revision"] = str(found.revision)
    for wrong in ({"rate": "fast"}, {"zone": "Mars/Base"}, {"expires_at": "soon"}, {"name": ""}, {"body": ""}):
        answer = await house.post(path, {**form, **wrong})
        assert answer.status_code == 422, wrong
        assert "problem" in answer.text
    later = {**form, "zone": "America/Denver", "expires_at": "2099-03-01T12:00"}
    assert (await house.post(path, later)).status_code == 303
    found = await house.engine.campaigns.get(house.workspace, campaign.id)
    assert found.scheduled_expires_at is not None
    assert found.scheduled_expires_at.hour == 19
    assert found.name == "Spring"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"body": ""}, "It has no text yet."),
        ({"body": "Hi {{nope}}"}, "No value for {{nope}}: a blank would be sent in its place."),
        ({"expires_at": "2020-01-01T10:00"}, "Its end has passed."),
    ],
)
async def test_what_a_campaign_under_way_would_lack_is_said_in_a_sentence(
    house: House, wrong: dict[str, str], said: str
) -> None:
    """Without a label before it, or names of fields."""
    campaign = await house.campaign("Spring")
    await house.engine.campaigns.start(house.workspace, campaign.id)
    path = f"campaigns/{campaign.id}/edit"
    form = {one.attributes["name"]: one.attributes.get("value", "") for one in (await house.page(path)).all("input")}
    answer = await house.post(path, {**form, "action": "edit", "body": "Hi", **wrong})
    assert answer.status_code == 422
    assert said in {one.text for one in parse(answer.text).by_id("problems")}


async def test_a_campaign_that_has_ended_is_not_changed(house: House, ended: Campaign) -> None:
    """Its page has no such link, and the form leads back."""
    path = f"campaigns/{ended.id}/edit"
    form = {"action": "edit", "name": "Other", "revision": "99"}
    await house.engine.campaigns.cancel(house.workspace, ended.id)
    assert (await house.get(path)).status_code == 303
    links = {one.attributes["href"].rpartition("/")[2] for one in (await house.page(f"campaigns/{ended.id}")).all("a")}
    assert {"report", "follow-up"} <= links
    assert "edit" not in links
    assert (await house.post(path, form)).status_code == 409
    assert (await house.engine.campaigns.get(house.workspace, ended.id)).name == "Autumn"
