"""Schedules in the console: rules in words, the dates before saving, the search, and the next runs on the overview."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import attrs
import pytest

from outreach.models import (
    CampaignUpdate,
    Holiday,
    HolidayCalendar,
    NewScheduleApproval,
    Occurrence,
    Schedule,
    ScheduleUpdate,
)
from outreach.server_support import read_recurrence
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_occurrence
from outreach_server.console import Role
from outreach_server.console.access import Right, may
from outreach_server.console.clocks import DateStyle
from outreach_server.console.recurrence_words import rule_words
from tests.console.conftest import House
from tests.console.furniture import recurring
from tests.console.page import Page, parse

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("rule", "style", "said"),
    [
        ("FREQ=DAILY", "", "Every day"),
        ("FREQ=WEEKLY;INTERVAL=2", "", "Every 2 weeks on Monday"),
        ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "", "Every week on Monday to Friday"),
        ("FREQ=MONTHLY;BYDAY=-1FR;COUNT=3", "", "Every month on the last Friday of the month, 3 times"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,-1", "", "Every month on day 1 and the last day of the month"),
        ("FREQ=YEARLY;UNTIL=20300101", "", "Every year on 4 January, until 1 January 2030"),
        ("FREQ=YEARLY;UNTIL=20300101", "us", "Every year on January 4, until January 1, 2030"),
        ("FREQ=YEARLY;UNTIL=20300101", "iso", "Every year on 01-04, until 2030-01-01"),
    ],
)
def test_a_rule_is_said_in_words(rule: str, style: str, said: str) -> None:
    """With the day that it takes from its first one."""
    read_recurrence(rule)
    assert rule_words(rule, date(2027, 1, 4), DateStyle(style)) == said


async def made(house: House, name: str) -> Schedule:
    """Return a schedule that runs tomorrow."""
    campaign = await house.campaign()
    soon = attrs.evolve(
        recurring(campaign.id, name), rule="FREQ=DAILY", starts_on=(house.engine.now() + timedelta(days=1)).date()
    )
    return await house.engine.schedules.create(house.workspace, soon)


async def test_the_next_dates_are_shown_before_anything_is_saved(house: House) -> None:
    """Five of them; the form that was shown with them saves it."""
    campaign = await house.campaign()
    form = {
        "action": "create",
        "name": "Calls",
        "template_id": campaign.id,
        "every": "1",
        "repeats": "MONTHLY",
        "weekdays_MO": "yes",
        "which": "-1",
        "starts_on": "2127-01-01",
        "at": "09:30",
        "zone": "Europe/Lisbon",
        "holidays": "skip",
        "overlap": "skip",
    }
    answer = await house.post("schedules", form)
    assert "Monday 27 January 2127, 09:30 (Lisbon time)" in answer.text
    assert (await house.engine.schedules.list(house.workspace)).items == []
    digest = answer.text.partition('name="previewed" value="')[2].partition('"')[0]
    assert (await house.post("schedules", {**form, "previewed": digest})).status_code == 303
    [one] = (await house.engine.schedules.list(house.workspace)).items
    assert one.rule == "FREQ=MONTHLY;BYDAY=-1MO"


async def test_the_preview_says_which_holidays_are_left_out(house: House) -> None:
    """Between the dates that remain; a schedule that ignores holidays has them marked."""
    campaign = await house.campaign()
    feast = Holiday(date=date(2127, 1, 2), name="Feast", enabled=True)
    change = CampaignUpdate(holidays=HolidayCalendar(country=None, holidays=(feast,)))
    await house.engine.campaigns.update(house.workspace, campaign.id, change)
    form = {
        "action": "create",
        "name": "Calls",
        "template_id": campaign.id,
        "every": "1",
        "repeats": "DAILY",
        "starts_on": "2127-01-01",
        "at": "09:30",
        "zone": "Europe/Lisbon",
        "overlap": "skip",
    }
    for holidays, said in {
        "skip": "Thursday 2 January 2127: left out, a holiday",
        "ignore": "Thursday 2 January 2127, 09:30 (Lisbon time), a holiday",
        "next_day": "Friday 3 January 2127, 09:30 (Lisbon time), instead of Thursday 2 January 2127, a holiday",
    }.items():
        text = (await house.post("schedules", {**form, "holidays": holidays})).text
        assert said in text, holidays


async def test_the_page_has_a_table_of_runs(house: House) -> None:
    """The latest first: its time, what became of it, its campaign, contacts and cost, and why it was not started."""
    one = await made(house, "Daily calls")
    campaign = await house.campaign()
    at = datetime(2026, 11, 2, 9, tzinfo=UTC)
    run = Occurrence(
        workspace_id=house.workspace,
        schedule_id=one.id,
        at=at,
        run_id=campaign.id,
        state="started",
        reason=None,
        detail=None,
        contacts=1200,
        amount=Decimal("34.5"),
        decided_at=at,
    )
    blocked = attrs.evolve(
        run, at=at + timedelta(days=1), state="blocked", reason="preflight", detail="The sender is gone."
    )
    missed = attrs.evolve(blocked, at=at + timedelta(days=2), run_id=None, state="missed", contacts=None, amount=None)

    def write(tx: Transaction) -> None:
        for each in (run, blocked, missed):
            tx.occurrences.insert(each)

    assert "No run was due yet." in (await house.page(f"schedules/{one.id}")).root.text
    await house.engine.schedules._context.storage.write(write)
    page = await house.page(f"schedules/{one.id}")
    rows = [row.text for row in page.by_id("rows").all("tbody")[0].all("tr")]
    assert len(rows) == 3
    for text, said in zip(
        rows, (("Missed",), ("Not started", "The sender is gone."), ("Started", "1,200", "34.50")), strict=True
    ):
        assert all(part in text for part in said)
    assert "Contacts in its list" in page.by_id("rows").all("thead")[0].text
    links = page.by_id("rows").all("a", href=house.url(f"campaigns/{campaign.id}"))
    assert len(links) == 2


async def test_run_now_on_an_older_page_makes_no_second_run(house: House) -> None:
    """The page names the run that was made meanwhile, and its button makes another one."""
    one = await made(house, "Daily calls")
    path = f"schedules/{one.id}"

    def button(page: Page) -> dict[str, str]:
        [form] = [form for form in page.all("form") if form.all("button", value="run-now")]
        hidden = {field.attributes["name"]: field.attributes["value"] for field in form.all("input")}
        return {"action": "run-now", **hidden}

    old = button(await house.page(path))
    await house.engine.schedules.run_now(house.workspace, one.id)
    await house.engine.campaigns._run_schedule(house.workspace, one.id)
    [run] = (await house.engine.schedules.list_occurrences(house.workspace, one.id)).items
    answer = await house.post(path, old)
    assert answer.status_code == 409
    page = parse(answer.text)
    said = page.root.text.partition("The latest run was made for ")[2].partition(".")[0]
    assert said.endswith(f"{run.at.astimezone(ZoneInfo(one.zone)):%H:%M}")
    assert (await house.engine.schedules.get(house.workspace, one.id)).run_now_at is None
    assert (await house.post(path, button(page))).status_code == 303


async def test_an_approval_that_a_change_has_ended_is_said_to_count_no_longer(house: House) -> None:
    """A change of the schedule, and one of the campaign that its runs are like."""
    campaign = await house.campaign()
    schedule = await house.engine.schedules.create(house.workspace, recurring(campaign.id, "Weekly"), actor="ann")
    new = NewScheduleApproval(revision=schedule.revision, most_contacts=9)
    for change in (
        house.engine.campaigns.update(house.workspace, campaign.id, CampaignUpdate(name="Other"), actor="ann"),
        house.engine.schedules.update(house.workspace, schedule.id, ScheduleUpdate(name="Other"), actor="ann"),
    ):
        await house.engine.schedules.approve(house.workspace, schedule.id, new, actor="ben")
        text = (await house.page(f"schedules/{schedule.id}")).root.text
        assert "for up to 9 contacts a run" in text
        assert "no longer counts" not in text
        await change
        assert "no longer counts" in (await house.page(f"schedules/{schedule.id}")).root.text


@pytest.mark.parametrize("role", Role)
async def test_the_overview_has_the_next_run(house: House, role: Role) -> None:
    """With a link for those who may see schedules."""
    one = await made(house, "Daily calls")
    page = await house.page("", person=role)
    assert "Daily calls" in page.root.text
    links = [each for each in page.all("a") if each.attributes["href"] == house.url(f"schedules/{one.id}")]
    assert bool(links) is may(role, Right.FLOWS)


async def test_the_overview_names_a_run_that_was_not_started(house: House) -> None:
    """With a link to its schedule; its campaign has a time, and does not start by itself."""
    one = await made(house, "Daily calls")
    run = await house.campaign(starts_at=house.engine.now() + timedelta(minutes=10))
    blocked = make_occurrence(
        workspace_id=house.workspace,
        schedule_id=one.id,
        run_id=run.id,
        state="blocked",
        reason="awaits_approval",
        detail="A second person has to approve.",
    )

    def write(tx: Transaction) -> None:
        tx.schedules.update(attrs.evolve(one, blocked=1))
        tx.occurrences.insert(blocked)

    await house.engine._storage.write(write)
    page = await house.page("")
    [need] = [each for each in page.by_id("needs").all("li") if "Daily calls" in each.text]
    assert "A second person has to approve." in need.text
    assert need.all("a", href=house.url(f"schedules/{one.id}"))
    assert ("Planned" in page.root.text, "Starts" in page.root.text) == (True, False)


async def test_a_schedule_is_found_by_its_name(house: House) -> None:
    """By any part, in either case."""
    for name in ("Visits", "Recalls"):
        await made(house, name)
    text = (await house.page("schedules?q=VISI")).all("tbody")[0].text
    assert ("Visits" in text, "Recalls" in text) == (True, False)


async def test_a_campaign_that_is_made_to_recur_lends_its_name(house: House) -> None:
    """As much as fits into that of a schedule; a campaign of another workspace lends none."""
    ours, theirs = await house.campaign("x" * 100), await house.campaign("Theirs", workspace=house.foreign)
    for campaign, name, chosen in ((ours, "x" * 80, ours.id), (theirs, "", "")):
        page = await house.page(f"schedules?like={campaign.id}")
        [form] = [one for one in page.all("form") if one.all("button", value="create")]
        assert form.all("input", name="name")[0].attributes.get("value", "") == name
        options = [one for one in form.all("select", name="template_id")[0].all("option") if one.text]
        assert [one.attributes["value"] for one in options if "selected" in one.attributes] == [chosen] * bool(chosen)
