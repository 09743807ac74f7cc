from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import AsyncIterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import attrs
import pytest
from openpyxl import load_workbook

from outreach import InvalidRequest, NewRecipient, NewSmsCampaign, Outreach
from outreach.http import EXPORT_CONTENT_TYPES
from outreach.models.campaign import Campaign
from outreach.models.campaign_report import ExportedContact, ExportFormat
from outreach.models.settings import BusinessHours
from outreach.protocols.storage import Storage
from outreach.serialization.exports import workbook
from outreach.serialization.exports.columns import Table
from outreach.server_support import escape_formula
from outreach.testing.builders import make_call, make_recipient
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests.engine.all_endings import given_endings
from tests.engine.conftest import OpenStorage, given_workspaces

pytestmark = pytest.mark.virtual_time


@pytest.fixture
def storage(open_storage: OpenStorage, clock: ManualClock) -> Storage:
    """Return a database that the engine opens."""
    return open_storage(clock)


@pytest.fixture
async def reading(storage: Storage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """Open an engine on a database of two workspaces, a day after everything happened."""
    clock.advance(86_400)
    async with Outreach(storage, clock=clock) as engine:
        await given_workspaces(storage)
        yield engine


async def file_of(engine: Outreach, campaign: Campaign, kind: ExportFormat) -> bytes:
    """Return an export."""
    return b"".join([part async for part in engine.campaigns.export(THIS_WORKSPACE, campaign.id, kind)])


@pytest.mark.parametrize("channel", ["sms", "call"])
async def test_all_formats_hold_the_same(reading: Outreach, storage: Storage, channel: str) -> None:
    """One row a contact, in the order of the list; what CSV defuses is the only difference."""
    campaign = await given_endings(storage, 3, channel=channel, count=30)
    contacts = [one async for one in reading.campaigns.iter_export(THIS_WORKSPACE, campaign.id)]
    lines = [json.loads(line) for line in (await file_of(reading, campaign, "jsonl")).splitlines()]
    assert [line["phone"] for line in lines] == [one.recipient.phone for one in contacts]
    assert [line["external_id"] for line in lines] == [f"=crm-{position}" for position in range(30)]
    assert [len(line["requests"]) for line in lines] == [len(one.dispatches) for one in contacts]
    assert [line["replies"] for line in lines if line["replies"]]
    table = Table(campaign.channel, campaign.variable_names)
    text = (await file_of(reading, campaign, "csv")).decode("utf-8-sig")
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert tuple(header) == table.header
    assert len(rows) == len(contacts) == 30
    assert [row[header.index("external_id")] for row in rows] == [f"'=crm-{position}" for position in range(30)]
    sheet = load_workbook(io.BytesIO(await file_of(reading, campaign, "xlsx"))).active
    assert sheet is not None
    cells = [list(row) for row in sheet.iter_rows(values_only=True)]
    assert tuple(cells[0]) == table.header
    with pytest.raises(InvalidRequest):
        await file_of(reading, campaign, "pdf")  # type: ignore[arg-type]
    for contact, row, found in zip(contacts, rows, cells[1:], strict=True):
        expected = table.row(contact)
        # An empty text is an empty cell.
        assert found == [None if value == "" else value for value in expected]
        shown = ["" if value is None else str(value) for value in expected]
        shown = [value.lower() if value in {"True", "False"} else escape_formula(value) for value in shown]
        assert row == shown


@pytest.mark.parametrize("channel", ["sms", "call"])
async def test_times_in_tables_are_by_the_campaigns_clocks_and_name_its_zone(
    reading: Outreach, storage: Storage, channel: str
) -> None:
    """With their offset from UTC, so that programs read the same moment; lines of JSON stay in UTC."""
    campaign = await given_endings(storage, 3, channel=channel, count=30)
    hours = BusinessHours(enabled=False, timezone="Asia/Kolkata", schedule={}, batch_concurrency=10)
    campaign = attrs.evolve(campaign, business_hours=hours)
    await storage.write(lambda tx: tx.campaigns.update(campaign))
    text = (await file_of(reading, campaign, "csv")).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    lines = [json.loads(line) for line in (await file_of(reading, campaign, "jsonl")).splitlines()]
    assert {row["timezone"] for row in rows} == {"Asia/Kolkata"}
    moments = re.findall(r"\d{4}-\d\d-\d\dT\S+", text)
    assert len(moments) > 30
    assert {re.sub(r".*T\d\d:\d\d:\d\d", "", one)[:6] for one in moments} == {"+05:30"}
    ended = [(row["ended_at"], line["ended_at"]) for row, line in zip(rows, lines, strict=True) if line["ended_at"]]
    assert ended
    for shown, stored in ended:
        assert stored.endswith("Z")
        assert datetime.fromisoformat(shown) == datetime.fromisoformat(stored).replace(microsecond=0)


async def test_what_was_said_and_what_it_cost_is_exported(reading: Outreach, storage: Storage) -> None:
    """As lines of JSON for each call; in tables for the last call, and the cost of all as a number."""
    campaign = await given_endings(storage, 3, channel="call", count=150)
    lines = [json.loads(line) for line in (await file_of(reading, campaign, "jsonl")).splitlines()]
    text = (await file_of(reading, campaign, "csv")).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    sheet = load_workbook(io.BytesIO(await file_of(reading, campaign, "xlsx"))).active
    assert sheet is not None
    header, *cells = sheet.iter_rows(values_only=True)
    told = 0
    for line, row, cell in zip(lines, rows, cells, strict=True):
        calls = line["calls"]
        said = [one["transcript"] for one in calls]
        assert [one is None for one in said] == [one["answered_at"] is None for one in calls]
        last = said[-1] if said else None
        assert (row["transcript"], cell[header.index("transcript")]) == (last or "", last)
        costs = [Decimal(one["cost"]) for one in calls if one["cost"] is not None]
        assert row["cost_currency"] == ("USD" if costs else "")
        assert cell[header.index("cost")] == (float(sum(costs)) if costs else None)
        assert row["cost"] == (str(float(sum(costs))) if costs else "")
        assert all(f"{cost:f} USD" in row["calls"] for cost in costs)
        told += len(costs)
    assert told > 10


def test_a_cost_in_several_currencies_is_no_sum() -> None:
    """Each stands with its call."""
    calls = [make_call(cost=Decimal(1), cost_currency=one) for one in ("USD", "EUR")]
    contact = ExportedContact(
        recipient=make_recipient(),
        meaning=None,
        failure=None,
        dispatches=[],
        calls=calls,
        replies=[],
        opted_out_at=None,
    )
    assert contact.cost is None


async def test_nothing_in_a_spreadsheet_runs(reading: Outreach, storage: Storage) -> None:
    """Names, variables, replies and summaries that begin a formula: text in XLSX, behind an apostrophe in CSV."""
    campaign = await given_endings(storage, 5, channel="call", count=40)
    text = (await file_of(reading, campaign, "csv")).decode("utf-8-sig")
    _, *rows = csv.reader(io.StringIO(text, newline=""))
    values = [value for row in rows for value in row]
    assert "'=1+1" in values
    assert "'@SUM(A1)" in values
    assert "'-cmd|' /C calc'!A0" in values
    assert not [value for value in values if value[:1] in "=@\t\r-" and value]
    # A phone number does nothing, and stays one.
    assert {value[:5] for value in values if value.startswith("+")} == {"+1415"}
    book = load_workbook(io.BytesIO(await file_of(reading, campaign, "xlsx")))
    kinds = {cell.data_type for row in book.active.iter_rows() for cell in row}  # type: ignore[union-attr]
    assert "f" not in kinds
    assert "=1+1" in [cell.value for row in book.active.iter_rows() for cell in row]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=1", "'=1"),
        ("+1-SUM(A1)", "'+1-SUM(A1)"),
        ("@x", "'@x"),
        ("-x", "'-x"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        (" =1", "' =1"),
        ("＝1", "'＝1"),
        ("+14155550102", "+14155550102"),
        ("-5", "-5"),
        ("x;=1+1", "x;'=1+1"),
        ("=1; -x", "'=1;' -x"),
        ("+14155550102; +14155550103", "+14155550102; +14155550103"),
        ("See you ;-)", "See you ;-)"),
        ("plain = text", "plain = text"),
        ("", ""),
    ],
)
def test_a_cell_is_defused_only_where_a_spreadsheet_would_run_it(text: str, shown: str) -> None:
    """docs/reports.md#exports."""
    assert escape_formula(text) == shown


async def test_a_full_sheet_is_followed_by_another_one(
    reading: Outreach, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Excel has 1,048,576 rows a sheet."""
    monkeypatch.setattr(workbook, "_MAX_ROWS", 11)
    campaign = await given_endings(storage, 3, count=25)
    book = load_workbook(io.BytesIO(await file_of(reading, campaign, "xlsx")))
    assert [(sheet.title, sheet.max_row) for sheet in book] == [("Contacts", 11), ("Contacts 2", 11), ("Contacts 3", 6)]
    assert len({sheet.cell(1, 1).value for sheet in book}) == 1


async def test_an_export_that_is_given_up_leaves_no_file(
    reading: Outreach, storage: Storage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was written for the sheets goes with it."""
    sheets = tmp_path / "sheets"
    sheets.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(sheets))
    campaign = await given_endings(storage, 3, count=5)

    async def failing() -> AsyncIterator[ExportedContact]:
        async for contact in reading.campaigns.iter_export(THIS_WORKSPACE, campaign.id):
            yield contact
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError, match="gone"):
        [part async for part in workbook.workbook_bytes(failing(), Table("sms", None))]
    assert list(sheets.iterdir()) == []


async def test_impossible_characters_and_endless_texts_do_not_stop_a_workbook(
    reading: Outreach, storage: Storage
) -> None:
    """XML has no control characters, and a cell 32,767 characters."""
    book = workbook._Book(Table("sms", None))
    book.append([["a\x07b", "x" * 40_000, "#N/A", 5, True, None]])
    file = io.BytesIO()
    book.save(file)
    [_, row] = list(load_workbook(file).active.iter_rows(values_only=True))  # type: ignore[union-attr]
    assert row[0] == "a\ufffdb"
    assert len(str(row[1])) == 32_767
    assert row[2:6] == ("#N/A", 5, True, None)


def test_a_variable_that_is_named_as_a_column_has_another_name() -> None:
    """No column is hidden by a contact's own."""
    header = Table("sms", ("city", "status", "phone")).header
    assert len(set(header)) == len(header)
    assert {"city", "custom_variables.status", "custom_variables.phone"} < set(header)
    several = Table("sms", ("status", "custom_variables.status")).header
    assert len(set(several)) == len(several) == len(header) - 1


async def test_a_variable_with_spaces_around_its_name_has_its_value(reading: Outreach) -> None:
    """A template finds it too; the exact name takes precedence."""
    new = NewSmsCampaign(name="Spring", body="At {{slot}}", carrier="twilio", from_number="+14155550100")
    contacts = [
        NewRecipient(phone_number="+14155550101", custom_variables={" slot ": "9:00"}),
        NewRecipient(phone_number="+14155550102", custom_variables={" slot ": "9:00", "slot": "9:30"}),
    ]
    made = await reading.campaigns.create_sms(THIS_WORKSPACE, new, contacts)
    text = (await file_of(reading, made.campaign, "csv")).decode("utf-8-sig")
    assert [row["slot"] for row in csv.DictReader(io.StringIO(text, newline=""))] == ["9:00", "9:30"]
    told = await reading.campaigns.preflight(THIS_WORKSPACE, made.campaign.id)
    assert [one.messages[0].text.splitlines()[0] for one in told.samples] == ["At 9:00", "At 9:30"]


async def test_a_long_number_keeps_all_its_digits_in_a_workbook(reading: Outreach) -> None:
    """A spreadsheet keeps fifteen; an account's number of more is text, as in the message."""
    new = NewSmsCampaign(name="Spring", body="{{account}}", carrier="twilio", from_number="+14155550100")
    accounts = [999_999_999_999_999, 1_234_567_890_123_456, 1_234_567_890_123_456_789, -(10**15)]
    contacts = [
        NewRecipient(phone_number=f"+1415555010{n}", custom_variables={"account": account})
        for n, account in enumerate(accounts)
    ]
    made = await reading.campaigns.create_sms(THIS_WORKSPACE, new, contacts)
    sheet = load_workbook(io.BytesIO(await file_of(reading, made.campaign, "xlsx"))).active
    assert sheet is not None
    header, *rows = sheet.iter_rows(values_only=True)
    place = header.index("account")
    assert [row[place] for row in rows] == [accounts[0], *map(str, accounts[1:])]


def test_every_format_has_a_content_type() -> None:
    """For those who serve it."""
    assert set(EXPORT_CONTENT_TYPES) == {"csv", "jsonl", "xlsx"}
