"""The examples for synchronous code run, and docs/sync.md quotes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.documents.blocks import PYTHON, ROOT, blocks

EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "sync.md"

VISIT = """
import time
from flask_shop.shop import app, engine

assert app.test_cli_runner().invoke(args=["init"]).exit_code == 0
engine.close()
import flask_shop.wsgi
client = app.test_client()

def post(path, **body):
    answer = client.post(path, json=body)
    return answer.status_code, answer.json

first = post("/orders", number="1", name="Ada", phone="+14155550102")
print(first[0], post("/orders", number="1", name="Ada", phone="+14155550102") == first)
print(post("/orders", number="2", name="Grace", phone="+14155550103")[0])
print(post("/orders", number="3", name="Nobody", phone="none"))
status, campaign = post("/campaigns", text="Hi {{first_name}}, we have news.")
print(status, campaign["recipients"])
deadline = time.monotonic() + 60
while sum(row[1] == "RecipientEnded" for row in client.get("/events").json) < 2:
    assert time.monotonic() < deadline
    time.sleep(0.02)
print(sorted(row[2] for row in client.get("/events").json if row[1] == "RecipientEnded"))
(workspace,) = engine.workspaces.list()
found = engine.campaigns.get(workspace.id, campaign["campaign"])
print(found.status, found.counters.successful)
"""


def run(*arguments: str, place: Path) -> tuple[str, str]:
    """Run Python in a directory; return what it prints, and its errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=place,
        env={"PYTHONPATH": f"{ROOT}:{EXAMPLES}", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_the_script_follows_its_campaign_to_the_end(tmp_path: Path) -> None:
    """What a reader of the page gets who runs it first."""
    assert run(str(EXAMPLES / "sync_script.py"), place=tmp_path) == ("campaign active\ncampaign completed\n", "")


def test_the_flask_shop_confirms_orders_and_keeps_what_became_of_its_campaign(tmp_path: Path) -> None:
    """A visit from the first order to the exit, at which the thread that listens ends by itself."""
    said, errors = run("-c", VISIT, place=tmp_path)
    lines = said.splitlines()
    assert lines[:2] == ["201 True", "201"]
    assert lines[2].startswith("(400, {'error': ")
    assert lines[3:] == ["201 2", "['completed', 'completed']", "completed 2"]
    assert errors == ""
    assert not (tmp_path / "outreach.db-wal").exists()


def test_the_page_begins_with_the_script() -> None:
    """To the letter, so that what is run above is what a reader copies."""
    first = next(block for block in blocks(PAGE) if block.language in PYTHON)
    assert first.text == (EXAMPLES / "sync_script.py").read_text("utf-8")
