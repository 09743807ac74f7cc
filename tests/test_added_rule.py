"""docs/adding-a-rule.md: its edits make a rule that holds contacts back, with its setting, option and texts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.edited_copy import ROOT, apply_page, copy_packages

PAGE = ROOT / "docs" / "adding-a-rule.md"

TRIAL = '''
from collections import Counter
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import anyio
import pytest

from outreach import NewRecipient, NewSmsCampaign, Outreach, Workspace, WorkspaceUpdate
from outreach.reasons import CLOSING_RULES, describe_reason
from outreach.testing.scripted import ScriptedCarrier
from outreach.testing.waiting import campaign_ended

NEW_YORK = ZoneInfo("America/New_York")
CONTACTS = [NewRecipient(phone_number=f"+1212555{number:04d}") for number in range(100, 300)]


async def given(engine: Outreach, workspace: Workspace) -> str:
    await engine.workspaces.update(workspace.id, WorkspaceUpdate(contact_hours=True, quiet_days=["sunday"]))
    sms = {"carrier": "twilio", "from_number": "+14155550199"}
    new = NewSmsCampaign(name="Sale", body="Hi", rate_per_minute=1, **sms)
    return (await engine.campaigns.create_sms(workspace.id, new, CONTACTS)).campaign.id


@pytest.mark.virtual_time(start=datetime(2026, 3, 7, 20, 0, tzinfo=NEW_YORK))
async def test_a_wave(
    outreach_engine: Outreach, outreach_workspace: Workspace, outreach_carrier: ScriptedCarrier
) -> None:
    """On Saturday until nine in the evening; the others on Monday from eight on."""
    campaign = await given(outreach_engine, outreach_workspace)
    await outreach_engine.campaigns.start(outreach_workspace.id, campaign)
    await campaign_ended(outreach_engine, await outreach_engine.campaigns.get(outreach_workspace.id, campaign))
    times = [moment.astimezone(NEW_YORK) for moment in outreach_carrier.requested_at]
    assert Counter(moment.day for moment in times) == {7: 60, 9: 140}
    assert all(8 <= moment.hour < 21 for moment in times)


@pytest.mark.virtual_time(start=datetime(2026, 3, 8, 12, 0, tzinfo=NEW_YORK))
async def test_the_rule_is_named_everywhere(
    outreach_engine: Outreach, outreach_workspace: Workspace, outreach_carrier: ScriptedCarrier
) -> None:
    """Preflight, forecast and trail name the rule; a changed setting releases."""
    campaigns, workspace = outreach_engine.campaigns, outreach_workspace
    campaign = await given(outreach_engine, workspace)
    (held,) = (await campaigns.preflight(workspace.id, campaign)).held_back
    monday = datetime(2026, 3, 9, 8, 0, tzinfo=NEW_YORK)
    assert (held.rule, held.count, held.first_at) == ("quiet_days", 200, monday)
    forecast = await campaigns.forecast(workspace.id, campaign)
    assert (forecast.starts_at, forecast.hours[0].bound_by) == (monday, "quiet_days")
    await campaigns.start(workspace.id, campaign)
    await anyio.sleep(60)
    history = await campaigns.recipient_history(workspace.id, campaign, 0)
    assert (history.reason, history.due_at, history.steps[-1].rule) == ("quiet_days", monday, "quiet_days")
    assert describe_reason("waiting", "quiet_days")
    assert "quiet_days" in CLOSING_RULES
    assert outreach_carrier.requests == []
    await outreach_engine.workspaces.update(workspace.id, WorkspaceUpdate(quiet_days=None))
    await anyio.sleep(600)
    assert 8 <= len(outreach_carrier.requests) <= 11
'''


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the packages with the edits of the page."""
    tree = tmp_path_factory.mktemp("rule")
    copy_packages(tree)
    assert len(apply_page(PAGE.read_text("utf-8"), tree)) <= 6
    (tree / "test_trial.py").write_text(TRIAL, "utf-8")
    return tree


def run(tree: Path, *command: str) -> str:
    """Run a command with the packages of a tree and return its output."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_rule_is_an_edit_of_six_files(tree: Path) -> None:
    """Days of the week on which nobody is contacted: waves, preflight, forecast, trail and texts go by them."""
    run(tree, "-m", "pytest", "-p", "outreach.testing.plugin", "-p", "no:xdist", "-q", "test_trial.py")


def test_the_rule_is_spelled_five_times() -> None:
    """Its reason in `HeldBackRule`, its name and value in `TrailRule`, and both in its entry.

    The setting of the same name is a field of three models, which the entry reads.
    """
    page = PAGE.read_text("utf-8")
    blocks = re.findall(r"^```diff\n\+{3} outreach/(?:models|rules)/.*?^```$", page, re.MULTILINE | re.DOTALL)
    added = "\n".join(line for block in blocks for line in block.splitlines() if line.startswith("+"))
    assert len(re.findall(r'"quiet_days"|QUIET_DAYS', added)) <= 5
    assert len(re.findall(r'(?<!")\bquiet_days\b', added)) <= 4


def test_its_setting_is_an_option(tree: Path) -> None:
    """It is stored and shown."""
    server = ("-m", "outreach_server", "--database", "sqlite:///rule.db", "--json", "workspaces")
    made = run(tree, *server, "create", "Shop", "--quiet-day", "sunday")
    assert json.loads(made)["quiet_days"] == ["sunday"]
    assert json.loads(run(tree, *server, "update", "Shop", "--no-quiet-days"))["quiet_days"] is None
