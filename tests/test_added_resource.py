"""docs/adding-a-resource.md: its edits make a service, a table, operations under /manage, commands and sync."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import server

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "adding-a-resource.md"

TRIAL = """
import sys
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
    print(result.output.strip())


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

command("greetings", "create", "Shop", "Morning", "--text", "x" * 81)
command("greetings", "update", "Shop", "hello", "--name", "Hey", "--json")
command("greetings", "list", "Nobody")
"""

PRINTED = r"""
Hello
Greeting 'Hello' is in use by campaign 'Spring' \(\w+\)\. Cancel that campaign first\.
422
\['Hello', 'So long'\] \['created_at', 'id', 'name', 'text'\]
Bye 404
"""


def edit(page: str, root: Path) -> list[str]:
    """Make the edits of a page's blocks in a tree; return the names of the files."""
    names = []
    for block in re.findall(r"^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        head, _, changes = block.partition("\n")
        names.append(head.removeprefix("+++ "))
        file = root / names[-1]
        text = file.read_text("utf-8") if file.exists() else ""
        for change in changes.split("@@\n"):
            lines = change.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] == " ")
            assert not before or text.count(before) == 1, f"{file.name} does not have once:\n{before}"
            text = text.replace(before, "".join(line[1:] for line in lines), 1)
        file.write_text(text, "utf-8")
    return names


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the URL of a database that has nothing yet."""
    if request.param == "sqlite":
        yield "sqlite:///resource.db"
        return
    with server().database() as name:
        yield server().url(name)


def test_a_resource_is_five_edits(tmp_path: Path, database: str) -> None:
    """Greetings, as an experiment: created, changed, refused, listed and removed, by all four interfaces."""
    for package in ("outreach", "outreach_server"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "openapi.yaml", tmp_path / "outreach_server")
    assert len(edit(PAGE.read_text("utf-8"), tmp_path)) == 5
    done = subprocess.run(
        [sys.executable, "-c", TRIAL, database],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(PRINTED.strip(), done.stdout.strip()), done.stdout
