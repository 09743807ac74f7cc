"""Record what a checkout answers and shows: `python tests/recorded.py DIRECTORY [--of PATH]`.

An arrangement without a change of behaviour leaves the record as it is: record before and after, and compare with
`diff -r BEFORE AFTER`. Two records of one commit are the same bytes. The checkout is this one by default; an older one
is recorded by this script too. Nothing of the inside is used: HTTP, the command line, public names, and of the
checkout's tests `tests.surface` and `tests.postgres`.

In the directory:

- `http/OPERATION/LABEL`: request and response (status, headers, body) of each operation of `openapi.yaml`; a label is
  the status of an answer that is wanted, or the kind of a request that is refused. One engine sends in virtual time,
  with seeded randomness and simulators. Ids are numbered in the order in which they are first seen.
- `commands/COMMAND.txt`: `--help` of each command and group, in 80 columns.
- `surface.txt`: the public names.
- `schema/sqlite.txt`, `schema/postgres.txt`: tables with their columns, indexes, triggers and functions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PARTS: Final = ("http", "commands", "surface", "schema")

START: Final = datetime(2026, 3, 2, 15, tzinfo=UTC)
"""A Monday, ten in the morning in New York."""

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_SECRET: Final = re.compile(r"whsec_[A-Za-z0-9+/=]+")
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UNKNOWN: Final = {"id": "01932f6e-7a10-7c31-9d5e-0c7a2f1b4e01", "position": "77", "phone": "+14155550166"}
_WRONG: Final = {"name": 5, "phone": 5, "to": 5, "opted_out": 5, "phone_numbers": 5, "recipients": 5, "unknown": 5}


class Step(NamedTuple):
    """A request whose answer counts.

    Attributes:
        operation: Its `operationId`.
        place: What its path names, parts separated by `/`, and a query; `$NAME` is an id that was kept.
        body: Its body.
        keep: The name under which the id in the answer is kept.
        wait: Seconds until it is sent.
    """

    operation: str
    place: str = ""
    body: Any = None
    keep: str = ""
    wait: float = 1.0


_PEOPLE: Final = [
    {"phone_number": "+14155550102", "first_name": "Ana", "custom_variables": {"plan": "Comfort"}},
    {"phone_number": "(415) 555-0103", "first_name": "Ben"},
    {"phone_number": "12"},
    {"phone_number": "+14155550177"},
]
_SENDER: Final = {"sms_carrier": "twilio", "sms_from_number": "+14155550100"}
_SMS: Final = {"name": "Autumn", "message_body": "Hi {{first_name|there}}", "recipients": _PEOPLE, **_SENDER}
_CALLS: Final = {"channel": "call", "agent_id": "$agent", "name": "Renewals", "recipients": _PEOPLE[:2]}
_PRICES: Final = {"currency": "USD", "prices": [{"kind": "sms", "amount": "0.0079"}, {"kind": "call", "amount": "0.1"}]}
_WINDOWS: Final = {"monday": [{"start": "10:00", "end": "13:00"}]}
_HOURS: Final = {"narrower_hours": [{"place": "FR", "schedule": _WINDOWS, "source": "A decree"}]}
_LIST: Final = "Phone,First name\n(415) 555-0106,Ida\n12,Jan\n"
_SCHEDULE: Final = {
    "name": "Weekly",
    "template_id": "$campaign",
    "rule": "FREQ=WEEKLY",
    "zone": "America/New_York",
    "starts_on": "2026-03-03",
    "at": "09:30",
}
_FLOW: Final = {"name": "Welcome", "steps": [{"kind": "send", "body": "Hi"}, {"kind": "wait", "wait_minutes": 60}]}


def _plain(text: str, wait: float = 1.0) -> Iterator[Step]:
    """Yield steps that need no body: operations with their places, between semicolons."""
    for one in text.split(";"):
        operation, _, place = one.strip().partition(" ")
        yield Step(operation, place, wait=wait)


STEPS: Final = (
    Step("createAgent", body={"name": "Renewals", "provider": "vapi"}, keep="agent"),
    Step("createAgent", body={"name": "Reception", "direction": "inbound"}, keep="inbound_agent"),
    Step("updateAgent", "$agent", {"name": "Renewals 2"}),
    Step("addNumber", body={"phone": "+14155550100", "carrier": "twilio", "rate_per_minute": 60}, keep="number"),
    Step("addNumber", body={"phone": "+14155550100", "carrier": "twilio"}),
    Step("addNumber", body={"phone": "+14155550101", "carrier": "vonage"}, keep="spare_number"),
    Step("updateNumber", "$number", {"rate_per_minute": 30}),
    Step("createFlow", body=_FLOW, keep="flow"),
    Step("createFlow", body={**_FLOW, "name": "Spare"}, keep="spare_flow"),
    Step("updateFlow", "$spare_flow", {"name": "Welcome again"}),
    *_plain("listAgents; getAgent $agent; listNumbers; getNumber $number; listFlows; getFlow $flow"),
    *_plain("countFlowContacts $flow"),
    *_plain("removeNumber $spare_number; removeFlow $spare_flow"),
    Step("createSchedule", body={**_SCHEDULE, "template_id": _UNKNOWN["id"]}),
    Step("createWebhook", body={"url": "https://hooks.example.com/events", "types": ["campaign.*"]}, keep="webhook"),
    *_plain("listWebhookAttempts $webhook; getWebhookProgress $webhook"),
    Step("updateWebhook", "$webhook", {"concurrency": 2}),
    *_plain("listWebhooks; getWebhook $webhook; pauseWebhook $webhook; testWebhook $webhook; enableWebhook $webhook"),
    *_plain("testWebhook $webhook; rotateWebhook $webhook"),
    Step("replayWebhook", "$webhook", {"number": 1}),
    *_plain("removeWebhook $webhook"),
    Step("updateSmsSettings", body={"footer_text": "Reply STOP to opt out", "retry_enabled": True}),
    Step("updateCallSettings", body={"retry_max_attempts": 2, "retry_delay_minutes": 60}),
    Step("updateReplySettings", body={"help_text": "Write to help@example.com."}),
    Step("setContactHours", body=_HOURS),
    Step("setPrices", body=_PRICES),
    Step("listAccounts", keep="account"),
    Step("addUnsubscribes", body={"phone_numbers": ["+14155550177"], "evidence": "Phoned."}),
    Step("resolveUnsubscribe", "+14155550188", {"opted_out": True}),
    Step("resolveUnsubscribe", "+14155550188", {"opted_out": True}),
    Step("listInbound", keep="inbound"),
    Step("countAudience", body={"recipients": [{"phone_number": "+14155550188"}], "leave_out": {}}),
    *_plain("getContactHistory +14155550188; getPrices; getSettings; getAccount $account; checkCallback $account"),
    *_plain("listUnsubscribes; getUnsubscribe +14155550177"),
    Step("createCall", body={"agent_id": "$agent", "to": "+14155550104", "variables": {"vip": True}}, keep="call"),
    Step("createCall", body={"agent_id": "$agent", "to": "+14155550104"}, wait=0.0),
    Step("createCall", body={"agent_id": "$inbound_agent", "to": "+14155550104"}),
    *_plain("getInbound $inbound; getCall $call"),
    Step("getCall", "$call", wait=60.0),
    *_plain("getCallDetails $call"),
    Step("setCallOutcome", "$call", {"outcome": "callback", "summary": "Asks for Monday."}),
    Step("setCallOutcome", "$call", {"outcome": "negative"}),
    *_plain("listUnreachableNumbers; removeUnreachableNumber +14155550166"),
    Step("decideDispatches", body={"decision": "retry", "dry_run": True, "which": {"provider": "twilio"}}),
    *_plain("lookUpDispatch 01932f75-6c13-7f77-a2b0-3e7f1d9f5b48"),
    Step("erasePerson", body={"phone_number": "+14155550104", "confirm": False}),
    Step("sendSms", body={"to": "+14155550102", "body": "Your table is ready."}, keep="sms"),
    Step("sendSms", body={"to": "+14155550177", "body": "Your table is ready."}),
    Step("simulateEvent", body={"event": "receipt", "phone_number": "+14155550102", "status": "delivered"}),
    Step("simulateEvent", body={"event": "busy", "phone_number": "+14155550166"}),
    Step(
        "simulateEvent",
        body={"event": "receipt", "phone_number": "+14155550166", "status": "failed", "reason": "invalid_number"},
    ),
    Step("sendSms", body={"to": "+14155550166", "body": "Your table is ready."}),
    *_plain("listUnreachableNumbers; removeUnreachableNumber +14155550166", wait=60.0),
    Step("createSmsCampaign", body=_SMS, keep="campaign"),
    Step("createSmsCampaign", body={**_SMS, "name": "With a flow", "sms_flow_id": "$flow"}, keep="flow_campaign"),
    Step("createCampaign", body=_CALLS, keep="calls"),
    Step("createCampaign", body={**_CALLS, "agent_id": "$inbound_agent"}),
    Step("updateCampaign", "$campaign", {"message_body": "Hi {{first_name|you}}, see you."}),
    *_plain("listManagedCampaigns; listManagedCampaigns ?external_id=none; listSms; listSms ?external_id=none"),
    *_plain("getSms $sms; getCampaign $campaign; preflightCampaign $campaign; forecastCampaign $calls"),
    Step("sendTestMessage", "$campaign", {"contact": "+14155550102", "to": "+14155550199", "at_any_hour": True}),
    Step("sendTestMessage", "$campaign", {"contact": "+14155550102", "to": "+14155550177", "at_any_hour": True}),
    *_plain("pauseCampaign $campaign; resumeCampaign $campaign; unscheduleCampaign $campaign"),
    Step("followUpCampaign", "$campaign", {"results": ["failed"]}),
    Step("previewSchedule", body=_SCHEDULE),
    Step("createSchedule", body=_SCHEDULE, keep="schedule"),
    Step("updateSchedule", "$schedule", {"at": "10:00", "not_again_within_days": 30}),
    *_plain("listSchedules; getSchedule $schedule; listNextRuns $schedule; skipNextRun $schedule"),
    *_plain("listOccurrences $schedule; pauseSchedule $schedule; runSchedule $schedule; skipNextRun $schedule"),
    *_plain("resumeSchedule $schedule; removeSchedule $schedule"),
    *_plain("startCampaign $campaign; startCampaign $campaign; startCampaign $calls", wait=0.0),
    *_plain("deleteCampaign $campaign; archiveCampaign $campaign; pauseCampaign $calls", wait=0.0),
    *_plain("resumeCampaign $calls"),
    *_plain(
        "getCampaignNow $campaign; listForecasts $campaign; getCampaignApproval $campaign; getCampaignClock $campaign"
    ),
    Step("countRecipients", "$campaign", wait=300.0),
    *_plain("getCampaignProgress $campaign; getCampaignProgress $calls?since=2026-03-01T00:00:00Z"),
    *_plain("getCampaign $calls; listRecipients $campaign; listRecipients $campaign?limit=1; getRecipient $campaign/0"),
    *_plain("getRecipientTrail $campaign/0; getRecipientTrail $calls/0; listCalls; listCalls ?campaign_id=$calls"),
    *_plain("reportCampaign $campaign; reportCampaign $calls; reportCampaign $calls?format=html"),
    *_plain("exportCampaign $campaign; exportCampaign $calls; exportCampaign $calls?format=jsonl"),
    Step("cloneCampaign", "$campaign", {"name": "Autumn again"}, keep="clone"),
    Step("followUpCampaign", "$campaign", {"results": ["completed"], "include": ["reached"]}),
    Step("addRecipients", "$clone", {"recipients": [{"phone_number": "+14155550108"}]}),
    *_plain("closeCampaign $clone"),
    Step("skipRecipient", "$clone/0", {"reason": "Asked by phone."}),
    *_plain("skipRecipient $campaign/0"),
    Step("updateCampaign", "$clone", {"scheduled_start_at": "2026-04-01T10:00:00Z"}),
    *_plain("startCampaign $clone; unscheduleCampaign $clone; cancelCampaign $clone; cancelCampaign $clone"),
    Step("updateCampaign", "$clone", {"name": "Too late"}),
    *_plain("archiveCampaign $clone; unarchiveCampaign $clone; removeFlow $flow; deleteCampaign $flow_campaign"),
    *_plain("removeFlow $flow; removeNumber $number; listCampaigns; listSmsCampaigns ?page_size=2"),
    *_plain("listSmsCampaigns ?status=completed&search=aut; removeUnsubscribe +14155550177; removePrices"),
    Step("erasePerson", body={"phone_number": "+14155550104", "confirm": True}),
    *_plain("listEvents ?limit=100"),
    Step("createUpload", body={"file_name": "list.csv", "size_bytes": len(_LIST)}, keep="upload"),
    Step("checkUpload", "$upload"),
    Step("addUploadChunk", "$upload", _LIST),
    Step("addUploadChunk", "$upload?offset=1", _LIST),
    *_plain("getUpload $upload; listUploads; checkUpload $upload; listUploadRejects $upload"),
    Step(
        "loadUpload",
        "$upload",
        {"region": "US", "campaign": {"channel": "sms", "name": "List", "message_body": "Hi", **_SENDER}},
        keep="loaded",
    ),
    Step("addUpload", "$upload", {"region": "US", "campaign_id": "$loaded"}),
    Step("removeUpload", "$upload"),
)


# ---------------------------------------------------------------------------------------------------------- HTTP


class _Clock:
    """The loop's time alone: how often the code looks at the clock changes nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        """Return the time in UTC."""
        return START + timedelta(seconds=round(self.monotonic(), 3))

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self._loop.time()


class _Record:
    """Writes requests with their answers, and keeps ids."""

    def __init__(self, directory: Path, document: Mapping[str, Any], client: Any) -> None:
        self._directory = directory
        self._client = client
        self._seen = {_UNKNOWN["id"]: _UNKNOWN["id"]}
        self.ids: dict[str, str] = {}
        self.operations = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, item in document["paths"].items()
            for method, operation in item.items()
            if method in _METHODS
        }

    async def ask(self, name: str, path: str, key: str | None, content: bytes | None, label: str = "") -> Any:
        """Send a request, write it down with its answer, and return the answer."""
        headers = {"X-Request-Id": "recorded"} | ({} if key is None else {"Authorization": f"Bearer {key}"})
        headers |= {} if content is None else {"Content-Type": "application/json"}
        method = self.operations[name][0]
        answer = await self._client.request(method, path, content=content, headers=headers)
        lines = [f"{method} {path}".encode(), content or b"", b"", str(answer.status_code).encode()]
        lines += [b"%s: %s" % header for header in answer.headers.raw]
        file = self._directory / "http" / name / (label or str(answer.status_code))
        file.parent.mkdir(parents=True, exist_ok=True)
        others = len(list(file.parent.glob(f"{file.name}*")))
        whole = b"\n".join([*lines, b"", answer.content])
        text = _SECRET.sub("whsec_", _ID.sub(self._numbered, whole.decode("utf-8", "surrogateescape")))
        file.with_name(f"{file.name}-{others + 1}" if others else file.name).write_bytes(
            text.encode("utf-8", "surrogateescape")
        )
        return answer

    def _numbered(self, found: re.Match[str]) -> str:
        number = f"00000000-0000-7000-8000-{len(self._seen):012}"
        return self._seen.setdefault(found[0], number)

    def path(self, name: str, place: str) -> str:
        """Return the path of an operation with the ids that a step names."""
        parts, mark, query = re.sub(r"\$(\w+)", lambda found: self.ids[found[1]], place).partition("?")
        left = iter(parts.split("/"))
        return re.sub(r"\{\w+\}", lambda _: next(left), self.operations[name][1]) + mark + query

    async def step(self, step: Step, key: str) -> None:
        """Do a step."""
        await asyncio.sleep(step.wait)
        text = step.body if isinstance(step.body, str | None) else json.dumps(step.body)
        content = text and re.sub(r"\$(\w+)", lambda found: self.ids[found[1]], text).encode()
        answer = await self.ask(step.operation, self.path(step.operation, step.place), key, content or None)
        if step.keep:
            assert answer.is_success, f"{step}: {answer.text}"
            body = answer.json()
            one = body["data"][0] if "data" in body else body
            self.ids[step.keep] = one["id"] if "id" in one else answer.headers["Location"].rpartition("/")[2]

    async def refused(self, name: str, keys: Mapping[str, str]) -> None:
        """Send an operation what it refuses: without a key, with one that may not, of something unknown, malformed."""
        method, path, operation = self.operations[name]
        place = re.sub(r"\{(\w+)\}", lambda found: _UNKNOWN[found[1]], path)
        example = _example(operation)
        content = None if example is None else json.dumps(example).encode()
        await self.ask(name, place, None, content, "without-a-key")
        await self.ask(name, place, keys["suspended"], content, "workspace-suspended")
        await self.ask(name, place, keys["send" if method == "GET" else "read"], content, "other-scope")
        await self.ask(name, f"{place}?page=x&limit=x&format=x&unknown=x", keys["all"], content, "wrong-query")
        if "{" in path:
            await self.ask(name, place, keys["all"], content, "unknown")
        if content is not None:
            await self.ask(name, place, keys["all"], b"{", "no-json")
            await self.ask(name, place, keys["all"], json.dumps(_WRONG).encode(), "wrong-body")


def _example(operation: Mapping[str, Any]) -> Any:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return next((one["value"] for one in content.get("examples", {}).values()), {} if content else None)


async def _record_http(checkout: Path, directory: Path) -> None:
    import httpx
    import yaml

    from outreach import NewWorkspace, Outreach, SimulatorConfig
    from outreach.models import API_SCOPES, WorkspaceStatus, WorkspaceUpdate
    from outreach_server import create_app

    document = yaml.load((checkout / "openapi.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader)
    engine = Outreach.open(
        "memory://",
        dispatch=True,
        clock=_Clock(asyncio.get_running_loop()),
        rng=random.Random(1),
        simulator=SimulatorConfig(seed=1),
    )
    async with engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", default_region="US", contact_hours=False))
        other = await engine.workspaces.create(NewWorkspace(name="Suspended"))
        keys = {"all": (await engine.api_keys.create(workspace.id, scopes=API_SCOPES)).api_key}
        for scope in API_SCOPES:
            keys[scope] = (await engine.api_keys.create(workspace.id, scopes=[scope])).api_key
        keys["suspended"] = (await engine.api_keys.create(other.id, scopes=API_SCOPES)).api_key
        await engine.workspaces.update(other.id, WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED))
        credentials = {"account_sid": f"AC{'0' * 32}", "auth_token": "0" * 32}
        await engine.accounts.connect(workspace.id, "twilio", credentials)
        for number, text in (("+14155550188", "do not stop"), ("+14155550189", "Hello")):
            await engine.messages.receive(workspace.id, from_number=number, to="+14155550100", body=text)
        transport = httpx.ASGITransport(create_app(engine=engine))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            record = _Record(directory, document, client)
            for step in STEPS:
                await record.step(step, keys["all"])
            for name in record.operations:
                await asyncio.sleep(10)
                await record.refused(name, keys)


# ---------------------------------------------------------------------------------------------- command, schema


def _record_commands(directory: Path) -> None:
    import click
    from click.testing import CliRunner

    from outreach_server.cli import main

    def visit(command: click.Command, path: Sequence[str]) -> Iterator[Sequence[str]]:
        yield path
        for name, child in command.commands.items() if isinstance(command, click.Group) else ():
            yield from visit(child, [*path, name])

    runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"})
    for path in visit(main, []):
        shown = runner.invoke(main, [*path, "--help"], prog_name="outreach-server", terminal_width=80)
        _write(directory / "commands" / f"{' '.join(['outreach-server', *path])}.txt", shown.output)


async def _record_schema(directory: Path) -> None:
    from outreach import Outreach

    with tempfile.TemporaryDirectory() as place:
        async with Outreach.open(f"sqlite:///{place}/one.db"):
            pass
        with sqlite3.connect(f"{place}/one.db") as file:
            rows = file.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
            lines = [" ".join(str(one).split()) for row in rows for one in [" ".join(map(str, row))]]
            for kind, name, *_ in rows:
                if kind == "table":
                    lines += [f"{name}: {column}" for column in file.execute(f'PRAGMA table_xinfo("{name}")')]
        file.close()
    _write(directory / "schema/sqlite.txt", "\n".join(lines))

    import psycopg

    from tests import postgres

    with psycopg.connect(postgres.empty_database()) as server:
        found = [" ".join(" ".join(map(str, row)).split()) for query in _POSTGRES for row in server.execute(query)]
    _write(directory / "schema/postgres.txt", "\n".join(found))


_POSTGRES: Final = (
    "SELECT table_name, ordinal_position, column_name, data_type, is_nullable, column_default, collation_name"
    " FROM information_schema.columns WHERE table_schema = 'outreach' ORDER BY 1, 2",
    "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'outreach' ORDER BY 1, 2",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = 'outreach'::regnamespace ORDER BY 1, 2",
    "SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid"
    " WHERE NOT tgisinternal AND relnamespace = 'outreach'::regnamespace ORDER BY 1",
    "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'outreach'::regnamespace ORDER BY 1",
)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.rstrip("\n") + "\n", "utf-8")


# ------------------------------------------------------------------------------------------------------- command


def record(directory: Path, checkout: Path = ROOT, parts: Sequence[str] = PARTS) -> None:
    """Write the record of a checkout, each part in a process that imports its packages."""
    if directory.exists() and any(directory.iterdir()):
        sys.exit(f"{directory} has files already: name a new directory.")
    own = checkout / ".venv/bin/python"
    python = own if own.exists() else sys.executable
    with tempfile.TemporaryDirectory() as place:
        for part in parts:
            command = [python, "-P", __file__, directory.resolve(), "--of", checkout.resolve(), "--part", part]
            environment = {name: value for name, value in os.environ.items() if not name.startswith("OUTREACH_")}
            subprocess.run(command, env=environment | {"PYTHONPATH": str(checkout)}, cwd=place, check=True)


def main() -> None:
    """Record, or record one part in this process."""
    parser = argparse.ArgumentParser(description="Record what a checkout answers and shows.")
    parser.add_argument("directory", type=Path, help="a new directory")
    parser.add_argument("--of", type=Path, default=ROOT, help="the checkout; this one by default")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    match arguments.part:
        case "http":
            from outreach.testing.virtual_time import VirtualTimeLoop

            with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
                runner.run(_record_http(arguments.of, arguments.directory))
        case "commands":
            _record_commands(arguments.directory)
        case "surface":
            from tests.surface import surface

            _write(arguments.directory / "surface.txt", surface())
        case "schema":
            asyncio.run(_record_schema(arguments.directory))
        case None:
            record(arguments.directory, arguments.of)


if __name__ == "__main__":
    main()
