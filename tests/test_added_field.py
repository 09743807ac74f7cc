"""One more stored field is four edits: its model, a migration for every database, the answer, openapi.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.edited_copy import ROOT, copy_packages, run_trial

FIELD = "    priority: int = bounded(1, 9, default=5)\n"
EDITS = {
    "outreach/models/campaign.py": (
        ("    rate_per_minute: int = bounded(1, 600, default=60)\n", FIELD),
        ("    rate_per_minute: int | None = None\n", FIELD),
    ),
    "outreach/serialization/json_responses.py": (
        (
            '        "sms_rate_per_minute": campaign.rate_per_minute,\n',
            '        "priority": campaign.priority,\n',
        ),
    ),
    "outreach_server/openapi.yaml": (
        (
            "        sms_rate_per_minute:\n          type: integer\n          minimum: 1\n",
            "        priority: {type: integer, minimum: 1, maximum: 9, description: Who goes first.}\n",
        ),
    ),
}
MIGRATION = "ALTER TABLE campaigns ADD COLUMN priority INTEGER NOT NULL DEFAULT 5;\n"

TRIAL = """
import asyncio, json, sys
from outreach import NewWorkspace, Outreach
from outreach.errors import InvalidRequest
from outreach.http import read_sms_campaign, write_campaign
from outreach.core.clock import SystemClock

BODY = {"channel": "sms", "name": "Sale", "message_body": "Hi", "recipients": [{"phone_number": "+14155550102"}]}


async def main():
    clock = SystemClock()
    async with Outreach.open(sys.argv[1], dispatch=False) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Shop"))
        for given in ({}, {"priority": 7}):
            new, contacts = read_sms_campaign(BODY | given, this_year=2026)
            await engine.campaigns.create_sms(workspace.id, new, contacts)
    try:
        read_sms_campaign(BODY | {"priority": 10}, this_year=2026)
    except InvalidRequest as error:
        print([(one.path, one.message) for one in error.details])
    async with Outreach.open(sys.argv[1], dispatch=False) as engine:
        page = await engine.campaigns.list(workspace.id)
        print(sorted(write_campaign(one, now=clock.now())["priority"] for one in page.items))


asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_stored_field_is_four_edits(tmp_path: Path, kind: str) -> None:
    """A `priority` of campaigns, as an experiment: it is read, checked, stored, migrated and shown."""
    copy_packages(tmp_path)
    for name, edits in EDITS.items():
        file = tmp_path / name
        text = file.read_text("utf-8")
        for place, added in edits:
            assert place in text
            text = text.replace(place, added + place, 1)
        file.write_text(text, "utf-8")
    (tmp_path / "outreach/storage/base/schema/9999_priority.sql").write_text(MIGRATION, "utf-8")
    printed = run_trial(tmp_path, TRIAL, kind)
    assert printed.splitlines() == ["[('priority', 'must be between 1 and 9')]", "[5, 7]"]


def test_migrations_of_all_databases_have_one_order() -> None:
    """No number is given twice, so that a shared migration comes after those of each database that it needs."""
    numbers: dict[str, str] = {}
    for file in sorted((ROOT / "outreach" / "storage").glob("*/schema/*.sql")):
        number = file.name.partition("_")[0]
        if number == "0001":
            assert file.parent.parent.name != "base"
            continue
        assert number not in numbers, f"{file} and {numbers[number]}"
        numbers[number] = str(file)
