"""docs/adding-a-resource.md: its edits make a service, a table, operations under /manage, commands and sync."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.edited_copy import ROOT, apply_page, copy_packages, run_trial

PAGE = ROOT / "docs" / "adding-a-resource.md"

TRIAL = """
import json, sys
from click.testing import CliRunner
from starlette.testclient import TestClient
from outreach import Conflict, NewRecipient, NewSmsCampaign, NewWorkspace
from outreach.models import GreetingUpdate, NewGreeting
from outreach.sync import Outreach
from outreach_server import create_app
from outreach_server.cli import main

URL = sys.argv[1]


def command(*arguments):
    result = CliRunner(env={"OUTREACH_DATABASE_URL": URL}).invoke(main, arguments, prog_name="outreach-server")
    return result.output.strip()


with Outreach.open(URL) as engine:
    workspace = engine.workspaces.create(NewWorkspace(name="Shop", default_region="US"))
    key = engine.api_keys.create(workspace.id, scopes=("read", "manage")).api_key
    made = engine.greetings.create(workspace.id, NewGreeting(name="Hello", text="Hi"))
    print(engine.greetings.update(workspace.id, made.id, GreetingUpdate(text="Hello")).text)
    campaign = NewSmsCampaign(name="Spring", body="Hello Ana", from_number="+14155550101", carrier="twilio")
    engine.campaigns.create_sms(workspace.id, campaign, [NewRecipient(phone_number="+14155550102")])
    try:
        engine.greetings.remove(workspace.id, made.id)
    except Conflict as error:
        print(error)

with TestClient(create_app(URL, dispatch=False), headers={"Authorization": f"Bearer {key}"}) as client:
    path = "/manage/greetings"
    other = client.post(path, json={"name": "Bye", "text": "So long"}).json()
    print(client.patch(f"{path}/{other['id']}", json={"text": ""}).status_code)
    print([one["text"] for one in client.get(path).json()["data"]], sorted(other))
    print(client.delete(f"{path}/{other['id']}").json()["name"], client.get(f"{path}/{other['id']}").status_code)

print(command("greetings", "create", "Shop", "Morning", "--text", "x" * 81).splitlines()[-1])
print(json.loads(command("greetings", "update", "Shop", "hello", "--name", "Hey", "--json"))["name"])
print(command("greetings", "remove", "Shop", "Hi"))
"""

PRINTED = [
    "Hello",
    "Greeting 'Hello' is in use by campaign 'Spring' (ready). Cancel that campaign first.",
    "400",
    "['Hello', 'So long'] ['created_at', 'id', 'name', 'text']",
    "Bye 404",
    "Error: Invalid value for '--text': has 81 characters; it must have 1 to 80.",
    "Hey",
    "Error: There is no greeting 'Hi'. List them with: outreach-server greetings list WORKSPACE_ID",
]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_resource_is_four_edits(tmp_path: Path, kind: str) -> None:
    """Greetings, as an experiment: created, changed, refused, listed and removed, by all four interfaces."""
    copy_packages(tmp_path)
    assert len(apply_page(PAGE.read_text("utf-8"), tmp_path)) == 4
    assert run_trial(tmp_path, TRIAL, kind).splitlines() == PRINTED
