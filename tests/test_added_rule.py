"""One more rule that holds contacts back is an edit of six files.

They are its setting, a migration, its name, its entry in the table of rules, its option and openapi.yaml.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FIELD = "    quiet_days: Sequence[str] | None = ruled(ListOf(OneOf(DAYS), maximum=7), default=None)\n"
EDITS = {
    "outreach/models/workspace.py": (
        ("    frequency_cap: int | None = None\n", "    quiet_days: Sequence[str] | None = None\n"),
        ("    frequency_cap: int | None = bounded(", FIELD),
        ("    frequency_cap: int | Unset | None = UNSET\n", "    quiet_days: Sequence[str] | Unset | None = UNSET\n"),
        (
            "from outreach.models.fields import Checked, ListOf, Model, Refused, bounded, ruled, sized\n",
            "from outreach.models.fields import OneOf\nfrom outreach.models.settings import DAYS\n",
        ),
    ),
    "outreach/models/states.py": (
        ('"frequency_cap", "unclear_reply"]', '"quiet_days", '),
        (
            "    FREQUENCY_CAP = (",
            '    QUIET_DAYS = "quiet_days", "Nobody is contacted on the quiet days."\n',
        ),
    ),
    "outreach/rules/deciding.py": (
        (
            "            FREQUENCY_CAP,\n",
            """            HoldingRule(
                name="quiet_days",
                trail_rule=TrailRule.QUIET_DAYS,
                meaning="a quiet day of the workspace at a place where the number may be",
                why="It is a quiet day where they may be.",
                limit="quiet days",
                local_hours=lambda workspace, _: _except(tuple(workspace.quiet_days or ())),
            ),
""",
        ),
        (
            "FREQUENCY_CAP: Final = HoldingRule(",
            '''@functools.lru_cache
def _except(days: tuple[str, ...]) -> tuple[LocalHours, ...]:
    """Return the hours of all other days; none without any."""
    all_day = TimeWindow(start_minute=0, end_minute=MINUTES_A_DAY)
    return (LocalHours({day: (all_day,) for day in DAYS if day not in days}),) if days else ()


''',
        ),
        (
            "from outreach.models.plans import",
            "from outreach.models.settings import DAYS, MINUTES_A_DAY, TimeWindow\nimport functools\n",
        ),
    ),
    "outreach_server/cli/setup/workspaces.py": (
        (
            "@click.group(cls=Group)\ndef workspaces",
            """_QUIET_DAYS = click.option(
    "--quiet-day",
    "quiet_days",
    multiple=True,
    type=OneOf(DAYS),
    callback=lambda _, __, days: days or None,
    help="Contact nobody on this day of the week, in their own time zones.",
)


""",
        ),
        ("@_SAME_NAME\ndef create", "@_QUIET_DAYS\n"),
        (
            "@_SAME_NAME\ndef update",
            '@_QUIET_DAYS\n@with_params(ClearOption("quiet_days", "No quiet days."))\n',
        ),
        (
            "from outreach_server.cli import documents\n",
            "from outreach.models import DAYS\nfrom outreach_server.cli.model_options import ClearOption\n"
            "from outreach_server.cli.values import OneOf\n",
        ),
    ),
    "outreach_server/openapi.yaml": (
        (
            "        frequency_cap:\n          type: [integer, 'null']\n          minimum: 1\n"
            "          description: Requests to one number in 24",
            "        quiet_days: {type: [array, 'null'], items: {type: string}, description: Days without contacts.}\n",
        ),
    ),
}
MIGRATION = "ALTER TABLE workspaces ADD COLUMN quiet_days TEXT;\n"

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
async def test_what_is_told(
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
    """Return a copy of the packages with the edits."""
    tree = tmp_path_factory.mktemp("rule")
    for package in ("outreach", "outreach_server"):
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "openapi.yaml", tree / "outreach_server")
    for name, edits in EDITS.items():
        file = tree / name
        text = file.read_text("utf-8")
        for place, added in edits:
            assert place in text, (name, place)
            text = text.replace(place, added + place, 1)
        file.write_text(text, "utf-8")
    (tree / "outreach/storage/base/schema/9999_quiet_days.sql").write_text(MIGRATION, "utf-8")
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


def test_its_setting_is_an_option(tree: Path) -> None:
    """It is stored and shown."""
    server = ("-m", "outreach_server", "--database", "sqlite:///rule.db", "--json", "workspaces")
    made = run(tree, *server, "create", "Shop", "--quiet-day", "sunday")
    assert json.loads(made)["quiet_days"] == ["sunday"]
    assert json.loads(run(tree, *server, "update", "Shop", "--no-quiet-days"))["quiet_days"] is None
