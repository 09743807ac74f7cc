"""One more stored field is four edits: its model, a migration for every database, the answer, openapi.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from outreach.storage.base.schema import FIRST
from outreach.storage.postgres import schema as postgres
from outreach.storage.sqlite import schema as sqlite
from tests.edited_copy import ROOT, apply_page, copy_packages, run_trial

FIELD = "    priority: int = bounded(1, 9, default=5)\n"
EDITS = {
    "outreach/models/campaign.py": (
        ("    rate_per_minute: int = bounded(1, 600, default=60)\n", FIELD),
        ("    rate_per_minute: int | None = None\n", FIELD),
    ),
    "outreach/serialization/campaigns.py": (
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


PAGE = ROOT / "docs" / "adding-a-field.md"

LABELS_TRIAL = """
import json, sys
from click.testing import CliRunner
from starlette.testclient import TestClient
from outreach import NewRecipient, NewSmsCampaign, NewWorkspace
from outreach.sync import Outreach
from outreach_server import create_app
from outreach_server.cli import main

URL = sys.argv[1]


def command(*arguments):
    result = CliRunner(env={"OUTREACH_DATABASE_URL": URL}).invoke(main, arguments, prog_name="outreach-server")
    return result.output.strip()


with Outreach.open(URL) as engine:
    workspace = engine.workspaces.create(NewWorkspace(name="Shop", default_region="US"))
    key = engine.api_keys.create(workspace.id).api_key
    new = NewSmsCampaign(name="Spring", body="Hi", labels=["new", "loyal"])
    engine.campaigns.create_sms(workspace.id, new, [NewRecipient(phone_number="+14155550102")])
    print([one.labels for one in engine.campaigns.iter_all(workspace.id, labels="loyal", search="spr")])
    print(engine.campaigns.list(workspace.id, labels="lost").total)

with TestClient(create_app(URL, dispatch=False), headers={"Authorization": f"Bearer {key}"}) as client:
    made = {"name": "Autumn", "message_body": "Hi", "recipients": [{"phone_number": "+14155550102"}]}
    print(client.post("/sms-campaigns", json={**made, "labels": ["lost"]}).json()["labels"])
    print(client.post("/sms-campaigns", json={**made, "labels": [1]}).status_code)
    for query in ("labels=lost", "labels=loyal&status=draft", "labels=lost&labels=new"):
        found = client.get(f"/sms-campaigns?{query}").json()
        print([one["name"] for one in found.get("data", ())], found.get("pagination", {}).get("total"))

with open("list.csv", "w") as file:
    file.write("phone\\n+14155550103\\n")
labels = ["--label", "new", "--label", "far"]
command("campaigns", "import", "Shop", "list.csv", "--name", "Winter", "--message", "Hi", *labels)
found = json.loads(command("campaigns", "list", "Shop", "--labels", "far", "--json"))
print([(one["name"], one["labels"]) for one in found])
print([line.split() for line in command("campaigns", "show", found[0]["id"]).splitlines() if "labels" in line])
"""

LABELS = [
    "[('new', 'loyal')]",
    "0",
    "['lost']",
    "400",
    "['Autumn'] 1",
    "['Spring'] 1",
    "[] None",
    "[('Winter', ['new', 'far'])]",
    "[['labels', 'new,', 'far']]",
]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_field_of_texts_with_a_filter_is_eight_edits(tmp_path: Path, kind: str) -> None:
    """Labels of campaigns, as an experiment: set, shown and filtered by library, HTTP and commands."""
    copy_packages(tmp_path)
    page = PAGE.read_text("utf-8")
    assert len(apply_page(page, tmp_path)) == 7
    assert sum("labels" in line for line in page.splitlines() if line.startswith("+") and "+++" not in line) <= 12
    assert run_trial(tmp_path, LABELS_TRIAL, kind).splitlines() == LABELS


def test_migrations_of_all_databases_have_one_order() -> None:
    """A number is one migration's, and none that a replaced migration may have had."""
    names = sorted({file.stem for file in (ROOT / "outreach" / "storage").glob("*/schema/*.sql")})
    assert tuple(names[: len(FIRST)]) == FIRST
    assert len({name.partition("_")[0] for name in names}) == len(names)
    assert names[0] > max(sqlite.LAST_REPLACED, postgres.LAST_REPLACED)
