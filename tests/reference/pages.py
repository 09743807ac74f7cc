"""The pages, by the names of their files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

import yaml

from outreach import EngineConfig, SimulatorConfig
from outreach.core.config import Setting
from outreach.integrations.prometheus.families import ENGINE_FAMILIES
from outreach.models import EngineCode, campaign, diagnosis, states
from outreach.models.campaign import PauseReason
from outreach.models.diagnosis import DatabaseCode
from outreach.models.states import (
    CALL_STATUS_RANK,
    CAMPAIGN_TRANSITIONS,
    ENDED_CALL_STATUSES,
    MESSAGE_STATUS_RANK,
    OPEN_RECIPIENT_STATUSES,
    DispatchState,
    RecipientStatus,
)
from outreach.rules.settlement import may_settle
from outreach_server.auth import scopes_of
from outreach_server.cli.doctor import findings
from outreach_server.cli.doctor.findings import ServerCode
from outreach_server.cli.setup.setting_flags import shown
from outreach_server.config import ServerConfig
from outreach_server.monitoring import log_lines
from outreach_server.monitoring.server_metrics import SERVER_FAMILIES
from tests.contract.document import operations
from tests.monitoring.log_actions import lines
from tests.reference.codes import codes_page
from tests.reference.commands import commands_page
from tests.reference.markdown import code, meanings, page, plain, table
from tests.reference.names import testing_page, trail_page
from tests.reference.readiness import readiness_page

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "docs" / "reference"

MESSAGES_OF_VARIABLES: Final = {
    "account_in_trouble": "why a provider fails, or refuses for a reason that is not the contact's",
    "account_not_usable": "why a provider rejects an account's credentials, or why they cannot be used here",
    "adapter_not_usable": "why the adapter of an installed package cannot be used",
    "archive_missing": "which archive cannot be read or written, and the command for it",
    "command_failed": "why the server or the worker could not begin, or ended (`json` only)",
    "crashed": "an error that nothing catches: the process or a thread ends, or the error cannot be raised anywhere",
    "database_migrating": "how far an upgrade of the database is",
    "lease_lost": "why this process may not dispatch any more: another has the lease, or it ran out",
    "note_failed": "why the note beside the database could not be written",
    "serving": "the address at which the server answers, and its database (`json` only)",
}
"""What lines say of which the code has no message: all of it is filled in."""


def settings_page() -> str:
    """Return the page of the settings, from the classes that read them."""
    engine = {setting.name for setting in EngineConfig.settings()}
    groups = {
        "Server": [setting for setting in ServerConfig.settings() if setting.name not in engine],
        "Engine": EngineConfig.settings(),
        "Simulators": SimulatorConfig.settings(),
    }
    head = ("Variable, flag of `serve`", "Key of the file", "Kind", "Default", "Meaning")
    return page(
        "Settings",
        "Every setting, with its sources. [configuration.md](../configuration.md) says which source counts.",
        *(part for name, group in groups.items() for part in (f"## {name}", table(head, map(_setting, group)))),
    )


def _setting(setting: Setting) -> Sequence[str]:
    values = f" {setting.values.capitalize()}." if setting.values else ""
    flag = f"{setting.flag}`, `--no-{setting.flag[2:]}" if setting.kind == "boolean" else setting.flag
    names = f"`{setting.variable}`<br>`{flag}`"
    return names, f"`{setting.key}`", setting.kind, shown(setting.default), f"{setting.meaning}{values}"


def metrics_page() -> str:
    """Return the page of the metrics and of the alerts that come with the project."""
    rules = yaml.safe_load((ROOT / "examples" / "monitoring" / "outreach.rules.yaml").read_text("utf-8"))
    alerts = [
        (f"`{rule['alert']}`", rule["labels"]["severity"], rule.get("for", "at once"),
         plain(re.sub(r"{{.*?}}", "…", rule["annotations"]["summary"])), rule["annotations"]["action"])
        for group in rules["groups"]
        for rule in group["rules"]
    ]  # fmt: skip
    return page(
        "Metrics and alerts",
        "What `/metrics` shows, and the rules of `examples/monitoring/outreach.rules.yaml`. "
        "[monitoring.md](../monitoring.md) says how to use both.",
        "## Metrics",
        table(
            ("Metric", "Type", "Labels", "Meaning"),
            [(f"`{one.name}`", one.kind, code(one.labels), one.help) for one in (*SERVER_FAMILIES, *ENGINE_FAMILIES)],
        ),
        "`prometheus-client` adds `process_…` and `python_…`: memory, processor, open files, garbage collection.",
        "## Alerts",
        table(("Alert", "Severity", "After", "What it says", "What to do"), alerts),
    )


def log_page() -> str:
    """Return the page of the fields and lines of the log."""
    named = {line.action for line in lines() if not line.message}
    assert named == MESSAGES_OF_VARIABLES.keys(), named ^ MESSAGES_OF_VARIABLES.keys()
    return page(
        "Log lines",
        "The fields of a line as JSON, and every action. [logging.md](../logging.md) says how the log behaves.",
        "## Fields",
        table(("Field", "Meaning"), [(f"`{name}`", text) for name, text in meanings(log_lines, "FIELDS").items()]),
        "## Actions",
        "`…` is filled in. The words of a message may change, its action does not. Lines of other libraries have the "
        "action `other`. A storage error has the action of what failed, and the database's message.",
        table(
            ("Action", "Level", "Message"),
            [
                (f"`{line.action}`", ", ".join(line.levels), plain(line.message) or MESSAGES_OF_VARIABLES[line.action])
                for line in lines()
            ],
        ),
    )


def diagnosis_page() -> str:
    """Return the page of the codes that `doctor` reports."""
    parts = []
    for title, module, name, codes in (
        ("The database", diagnosis, "DatabaseCode", DatabaseCode),
        ("The engine", diagnosis, "EngineCode", EngineCode),
        ("The server", findings, "ServerCode", ServerCode),
    ):
        rows = [(*entry.rstrip(")").split(" ("), text) for entry, text in meanings(module, name).items()]
        assert [code for code, *_ in rows] == [*get_args(codes)], name
        parts += [f"## {title}", table(("Code", "Severity", "Meaning"), [(f"`{row[0]}`", *row[1:]) for row in rows])]
    return page(
        "Diagnosis codes",
        "What `outreach-server doctor` and `engine.diagnose()` report. [doctor.md](../doctor.md) says how to read it. "
        "Some codes are found by the engine and by the server.",
        *parts,
    )


def states_page() -> str:
    """Return the page of the states, from their tables of transitions."""
    causes = meanings(states, "CampaignAction")
    recipients, dispatches = meanings(states, "RecipientStatus"), meanings(states, "DispatchState")
    modes = meanings(states, "WorkspaceMode")
    reasons = meanings(campaign, "PauseReason")
    assert tuple(reasons) == get_args(PauseReason)
    assert recipients.keys() == {*RecipientStatus}
    assert dispatches.keys() == {*DispatchState}
    return page(
        "States",
        "Every state, and what may follow it. [states.md](../states.md) explains them.",
        "## Campaigns",
        table(
            ("From", "Move", "To", "Cause"),
            [(f"`{a}`", f"`{move}`", f"`{b}`", causes[move]) for (a, move), b in CAMPAIGN_TRANSITIONS.items()],
        ),
        "A new campaign is `ready` or `draft`. The engine pauses a campaign with one of these reasons:",
        table(("Reason", "Why"), [(f"`{reason}`", text) for reason, text in reasons.items()]),
        "## Recipients",
        table(
            ("State", "Open", "Meaning"),
            [(f"`{one}`", _yes(one in OPEN_RECIPIENT_STATUSES), recipients[one]) for one in RecipientStatus],
        ),
        "## Dispatches",
        table(
            ("State", "Meaning", "May become"),
            [
                (f"`{one}`", dispatches[one], code(after for after in DispatchState if may_settle(one, after)))
                for one in DispatchState
            ],
        ),
        "## Calls",
        "The status moves to a higher rank only.",
        table(
            ("Status", "Rank", "Ended"),
            [(f"`{one}`", str(rank), _yes(one in ENDED_CALL_STATUSES)) for one, rank in CALL_STATUS_RANK.items()],
        ),
        "## Messages",
        "The status moves to a higher rank only.",
        table(("Status", "Rank"), [(f"`{one}`", str(rank)) for one, rank in MESSAGE_STATUS_RANK.items()]),
        "## Workspaces",
        table(("Status", "Effect"), [(f"`{one}`", text) for one, text in meanings(states, "WorkspaceStatus").items()]),
        table(("Mode", "Where messages and calls go"), [(f"`{one}`", text) for one, text in modes.items()]),
    )


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def operations_page() -> str:
    """Return the page of the HTTP operations and the scopes that they need."""
    return page(
        "HTTP operations",
        "Every operation of `openapi.yaml`, and the scopes of which a key needs one.",
        table(
            ("Request", "Operation", "Effect", "Scopes"),
            [
                (f"`{method.upper()} {path}`", f"`{one['operationId']}`", one["summary"],
                 code(scopes_of(one["operationId"], method.upper())))
                for path, method, one in operations()
            ],
        ),
    )  # fmt: skip


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "codes.md": codes_page,
    "commands.md": commands_page,
    "diagnosis.md": diagnosis_page,
    "log.md": log_page,
    "metrics.md": metrics_page,
    "operations.md": operations_page,
    "readiness.md": readiness_page,
    "settings.md": settings_page,
    "states.md": states_page,
    "testing.md": testing_page,
    "trail.md": trail_page,
}
"""What makes each page."""
