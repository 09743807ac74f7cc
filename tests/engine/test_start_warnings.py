from __future__ import annotations

from typing import Any

import attrs
import pytest

from outreach import (
    BusinessHours,
    Campaign,
    NewNumber,
    NewWorkspace,
    Outreach,
    SmsSettingsUpdate,
    Workspace,
    WorkspaceMode,
)
from outreach.errors import CannotStart, Conflict
from outreach.ledger.sending.intents import sender_paces
from outreach.models import CallerIdAllocation, Holiday, HolidayCalendar, PreparedRecipient, RecipientStatus
from outreach.rules.column_names import other_reading
from outreach.rules.readiness import wording_warnings
from outreach.services.campaigns import moves
from outreach.testing.builders import NOW
from tests.engine.calling import given_calls
from tests.engine.rig import given_campaign, given_workspace
from tests.rules.test_spellings import PAIRS

pytestmark = pytest.mark.virtual_time

SENDER = "+14155550199"
FOOTER = "Reply STOP to opt out"
_SPELLINGS = [(PAIRS[0][0], PAIRS[0][1]), (PAIRS[-1][1], PAIRS[-1][0])]
TWILIO = {"account_sid": "AC" + "0" * 32, "auth_token": "token"}


async def given(engine: Outreach, mode: WorkspaceMode, **changes: Any) -> tuple[Workspace, Campaign]:
    """Make a campaign of a workspace without numbers, which has an account where it is live."""
    workspace = await given_workspace(engine, mode=mode, contact_hours=False)
    if mode is WorkspaceMode.LIVE:
        await engine.accounts.connect(workspace.id, "twilio", TWILIO)
    return workspace, await given_campaign(engine, workspace, add_sender=False, **changes)


async def warned(engine: Outreach, workspace: Workspace, campaign: Campaign) -> list[str]:
    """Return the fields that preflight and start check warn of."""
    before = await engine.campaigns.preflight(workspace.id, campaign.id)
    checked = await engine.campaigns.check_start(workspace.id, campaign.id)
    assert before.warnings == checked.warnings
    return [one.path for one in before.warnings]


@pytest.mark.parametrize("mode", WorkspaceMode)
@pytest.mark.parametrize("whose", ["nobody", "another", "own"])
async def test_a_sending_number_of_another_workspace_is_reported_before_the_start(
    engine: Outreach, whose: str, mode: WorkspaceMode
) -> None:
    """A sandbox only warns, and starts: nothing reaches anybody. A live campaign is refused, before the carrier does.

    A number of another workspace is none of this one.
    """
    workspace, campaign = await given(engine, mode, from_number="(415) 555-0199")
    assert campaign.status == "ready"
    holder = await given_workspace(engine) if whose == "another" else workspace
    if whose != "nobody":
        await engine.numbers.create(holder.id, NewNumber(phone=SENDER))
    wrong = [] if whose == "own" else ["from_number"]
    refused = mode is WorkspaceMode.LIVE and whose != "own"
    assert await warned(engine, workspace, campaign) == ([] if refused else wrong)
    problems = (await engine.campaigns.preflight(workspace.id, campaign.id)).problems
    assert [one.path for one in problems] == (wrong if refused else [])
    if refused:
        with pytest.raises(CannotStart, match="not a number of the workspace"):
            await engine.campaigns.start(workspace.id, campaign.id)
    else:
        assert (await engine.campaigns.start(workspace.id, campaign.id)).status == "active"


@pytest.mark.parametrize("written", [SENDER[1:], SENDER, "+1 415 555 0199"])
async def test_a_sending_number_without_its_plus_is_looked_up_where_there_is_no_region(
    engine: Outreach, written: str
) -> None:
    """Its pace and the carrier read it as international; so a number of another workspace is refused."""
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme", mode=WorkspaceMode.LIVE, contact_hours=False))
    await engine.accounts.connect(workspace.id, "twilio", TWILIO)
    campaign = await given_campaign(engine, workspace, add_sender=False, from_number=written)
    holder = await given_workspace(engine)
    await engine.numbers.create(holder.id, NewNumber(phone=SENDER))
    with pytest.raises(CannotStart, match="not a number of the workspace"):
        await engine.campaigns.start(workspace.id, campaign.id)
    await engine.numbers.create(workspace.id, NewNumber(phone=SENDER))
    assert (await engine.campaigns.start(workspace.id, campaign.id)).status == "active"


@pytest.mark.parametrize(("own", "written"), _SPELLINGS)
async def test_a_live_campaign_sends_from_its_number_in_any_spelling(engine: Outreach, own: str, written: str) -> None:
    """One line: it starts, has the pace of the number, and keeps the number in use."""
    workspace, campaign = await given(engine, WorkspaceMode.LIVE, from_number=written)
    number = await engine.numbers.create(workspace.id, NewNumber(phone=own, carrier="twilio", rate_per_minute=6))
    assert list((await engine.campaigns.preflight(workspace.id, campaign.id)).problems) == []
    assert (await engine.campaigns.start(workspace.id, campaign.id)).status == "active"
    [pace] = (await engine._storage.read(lambda tx: sender_paces(tx, campaign, NOW))).values()
    assert pace is not None
    assert pace.phone == own
    with pytest.raises(Conflict, match="in use by campaign"):
        await engine.numbers.remove(workspace.id, number.id)


@pytest.mark.parametrize(("own", "written"), _SPELLINGS)
async def test_a_caller_id_may_be_in_another_spelling_than_the_number(engine: Outreach, own: str, written: str) -> None:
    """Those who are called see one line."""
    workspace = await given_workspace(engine)
    number = await engine.numbers.create(workspace.id, NewNumber(phone=own))
    for number_id in (number.id, "0195554e-0000-7000-8000-0000000000ac"):
        entry = CallerIdAllocation(number_id=number_id, phone=written, count=1)
        campaign = await given_calls(engine, workspace, cli_mode="group", cli_group=[entry])
        assert await warned(engine, workspace, campaign) == []


@pytest.mark.parametrize("sender", ["ACME", "22395", "MG" + "0" * 32])
async def test_names_and_short_codes_are_not_looked_up(engine: Outreach, sender: str) -> None:
    """They cannot be added as numbers."""
    workspace, campaign = await given(engine, WorkspaceMode.LIVE, from_number=sender)
    assert (await engine.campaigns.start(workspace.id, campaign.id)).status == "active"


async def test_a_paused_campaign_whose_number_was_removed_is_not_resumed(engine: Outreach) -> None:
    """It would fail contact by contact."""
    workspace, campaign = await given(engine, WorkspaceMode.LIVE, from_number=SENDER)
    number = await engine.numbers.create(workspace.id, NewNumber(phone=SENDER))
    await engine.campaigns.start(workspace.id, campaign.id)
    await engine.campaigns.pause(workspace.id, campaign.id)
    await engine._storage.write(lambda tx: tx.numbers.delete(workspace.id, number.id))
    with pytest.raises(CannotStart, match="not a number of the workspace"):
        await engine.campaigns.resume(workspace.id, campaign.id)


@pytest.mark.parametrize("channel", ["sms", "call"])
async def test_holidays_without_a_time_zone_are_warned_of(engine: Outreach, channel: str) -> None:
    """They are days of UTC; a zone that is set, `UTC` too, is no mistake, nor is a date that does not count."""
    workspace = await given_workspace(engine)
    day = Holiday(date=NOW.date(), name="", enabled=True)
    zone = BusinessHours(enabled=False, timezone="UTC", schedule={})
    for enabled, hours, expected in ((True, None, ["holidays"]), (True, zone, []), (False, None, [])):
        holidays = HolidayCalendar(country=None, holidays=(attrs.evolve(day, enabled=enabled),))
        fields: dict[str, Any] = {"business_hours": hours, "holidays": holidays}
        if channel == "call":
            campaign = await given_calls(engine, workspace, **fields)
        else:
            campaign = await given_campaign(engine, workspace, from_number="22395", **fields)
        assert await warned(engine, workspace, campaign) == expected


async def test_a_sandbox_warns_of_caller_ids_that_are_not_its_own(engine: Outreach) -> None:
    """A live campaign refuses them."""
    workspace = await given_workspace(engine)
    entry = CallerIdAllocation(number_id="0195554e-0000-7000-8000-0000000000ac", phone=SENDER, count=1)
    campaign = await given_calls(engine, workspace, cli_mode="group", cli_group=[entry])
    assert await warned(engine, workspace, campaign) == ["cli_group_config[0]"]


@pytest.mark.parametrize(
    ("written", "phone", "other"),
    [
        ("4915123456701", "+494915123456701", "+4915123456701"),
        ("49 1512 3456701", "+494915123456701", "+4915123456701"),
        # As somebody meant it.
        ("+494915123456701", "+494915123456701", None),
        ("+49 4915123456701", "+494915123456701", None),
        ("04915123456701", "+494915123456701", None),
        # Read by this version.
        ("4915123456701", "+4915123456701", None),
        ("0151 23456701", "+4915123456701", None),
        ("9123456789", "+919123456789", None),
        ("(55) 99123-4567", "+5555991234567", None),
        ("415 555 0102", "+14155550102", None),
        ("not a number", "+14155550102", None),
    ],
)
def test_a_calling_code_that_was_read_as_an_area_code_is_known(written: str, phone: str, other: str | None) -> None:
    """The digits as supplied would be a mobile number, and stand behind their calling code once more."""
    assert other_reading(written, phone) == other


async def test_contacts_that_an_earlier_version_misread_are_warned_of(engine: Outreach) -> None:
    """Before a start and a resume, with their number and an example; those that have ended are not counted."""
    workspace, campaign = await given(engine, WorkspaceMode.SANDBOX, from_number="22395", body="Hi")
    assert await warned(engine, workspace, campaign) == []
    misread = PreparedRecipient("4915123456701", "+494915123456701", None, None, None, None, None, None)
    right = PreparedRecipient("04915123456701", "+494915123456701", None, None, None, None, None, None)
    pending, waiting, ended = RecipientStatus.PENDING, RecipientStatus.WAITING, RecipientStatus.FAILED
    rows = [
        (3, misread, pending, None),
        (4, misread, waiting, None),
        (5, misread, ended, None),
        (6, right, pending, None),
    ]
    await engine._storage.write(lambda tx: tx.recipients.insert(workspace.id, campaign.id, rows, now=NOW))
    assert await warned(engine, workspace, campaign) == ["recipients"]
    [found] = await engine.campaigns.start_warnings(workspace.id, campaign.id)
    assert found.message.startswith(
        "2 of 6 contacts may have been loaded under a wrong number by an earlier version, such as +494915123456701 in "
        "place of +4915123456701. "
    )
    assert (await engine.campaigns.preflight(workspace.id, campaign.id)).warnings == (found,)
    few = await moves.find_misread_numbers(engine.campaigns._moves._context, workspace.id, campaign.id, limit=4)
    assert (few.checked, few.count) == (4, 1)


@pytest.mark.parametrize(
    ("sender", "body", "footer", "paths"),
    [
        ("ACME", "Hi", FOOTER, ["from_number"]),
        ("ACME", "Hi. Reply STOP to end.", None, ["from_number"]),
        ("ACME", "Hi. Antworten Sie STOP.", None, ["from_number"]),
        ("ACME", "Hi", None, []),
        ("ACME", "Hi. acme.example/stop ends it.", None, []),
        (SENDER, "Hi", FOOTER, []),
        ("22395", "Hi", FOOTER, []),
        ("MG" + "0" * 32, "Hi", FOOTER, []),
        (SENDER, "Hi. Reply STOP to opt-out!", FOOTER, ["body"]),
        (SENDER, "Hi. Text STOP to end.", FOOTER, ["body"]),
        (SENDER, "Hi. Reply YES or NO.", FOOTER, []),
        (SENDER, "Greetings from Acme Ltd", "Acme Ltd", ["body"]),
        (SENDER, "Greetings from Acme", "Acme Ltd", []),
        (SENDER, "Hi", "–", []),
        ("ACME", "Hi. Reply STOP to opt out", FOOTER, ["from_number", "body"]),
    ],
)
def test_wording_that_cannot_work_is_warned_of(sender: str, body: str, footer: str | None, paths: list[str]) -> None:
    """Nobody can reply to a name, and nobody needs the footer twice."""
    assert [one.path for one in wording_warnings([body], footer, sender)] == paths


async def test_preflight_and_start_check_warn_of_the_wording(engine: Outreach) -> None:
    """By the workspace's footer; of every message of a campaign."""
    workspace, campaign = await given(engine, WorkspaceMode.LIVE, from_number="ACME", body="Hi. Reply STOP to opt out")
    assert await warned(engine, workspace, campaign) == ["from_number", "body"]
    await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(footer_enabled=False))
    assert await warned(engine, workspace, campaign) == ["from_number"]
    assert (await engine.campaigns.start(workspace.id, campaign.id)).status == "active"


async def test_placeholders_of_the_footer_are_named(engine: Outreach) -> None:
    """They are sent as they are, while those of the text have values."""
    workspace, campaign = await given(engine, WorkspaceMode.LIVE, from_number=SENDER, body="Hi {{first_name}}")
    assert (await engine.campaigns.check_start(workspace.id, campaign.id)).text_warnings == ()
    await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(footer_text="{{first_name}}, reply STOP"))
    (warning,) = (await engine.campaigns.check_start(workspace.id, campaign.id)).text_warnings
    assert warning.written == "{{first_name}}"
    assert warning.message == "{{first_name}} is sent as it is: a footer has no placeholders."
