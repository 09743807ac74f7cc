from __future__ import annotations

import errno
import gc
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import click
import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from outreach.errors import DatabaseNewer
from outreach_server.cli.serving import demo_story
from outreach_server.cli.serving.serving import Server, bind, bind_near, run_fast, url_of
from outreach_server.cli.sigint import EXIT_INTERRUPTED
from tests.cli.conftest import ROOT, STOP_SIGNALS, Cli, Start, Write, until

STOP_SECONDS = 10.0


def get(url: str, key: str | None = None) -> Any:
    """Return the JSON answer to a GET."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    response = httpx.get(url, headers=headers, trust_env=False, timeout=30.0)
    assert response.status_code == 200, response.text
    return response.json()


def logged(log: Path) -> list[dict[str, Any]]:
    """Return what the simulators have accepted so far."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_serve_runs_until_a_signal_stops_it(database: str, start: Start, number: signal.Signals) -> None:
    """It says where, answers there, and ends cleanly within ten seconds; here with a new database."""
    Path(database.removeprefix("sqlite:///")).unlink()
    process = start("serve", "--port", "0", "--json")
    document = process.document()
    assert document["dispatch"] is True
    assert document["database_is_new"] is True
    process.says(f"New database {document['database_path']}.")
    assert Path(document["database_path"]).is_absolute()
    get(document["url"] + "/healthz")
    process.says(f"Serving {document['url']}")
    assert httpx.get(document["url"] + "/docs", trust_env=False).status_code == 200
    began = time.monotonic()
    process.signal(number)
    assert process.wait() == 0
    assert time.monotonic() - began < STOP_SECONDS
    assert "Traceback" not in process.stderr
    with pytest.raises(httpx.ConnectError):
        get(document["url"] + "/healthz")


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_while_serve_opens_the_database_ends_it_in_order(
    database: str, start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    """As Ctrl-C does: a migration that runs then is rolled back, and not cut off."""
    path = tmp_path / "http.sock"
    with closing(sqlite3.connect(database.removeprefix("sqlite:///"), isolation_level=None)) as raw:
        raw.execute("PRAGMA locking_mode = EXCLUSIVE")
        raw.execute("BEGIN EXCLUSIVE")
        process = start("serve", "--uds", str(path))
        until(path.exists, "it listens before it opens the database")
        process.signal(number)
    assert process.wait() == EXIT_INTERRUPTED
    assert "Traceback" not in process.stderr


def test_serve_says_nothing_on_stdout_without_json(start: Start) -> None:
    """The banner is for people, on stderr."""
    process = start("serve", "--port", "0", "--no-dispatch", "--log-level", "error")
    process.says("without dispatch. Ctrl-C stops it.")
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    assert process.stdout == ""


def test_a_taken_port_is_reported_in_words(cli: Cli) -> None:
    """Before anything is opened."""
    file = Path(cli.database.removeprefix("sqlite:///"))
    file.unlink()
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        told = cli.refuse("serve", "--port", str(port))
        told_of_metrics = cli.refuse("serve", "--port", "0", "--metrics", f"127.0.0.1:{port}")
    assert f"Port {port} on 127.0.0.1 is taken. Choose another with --port" in told
    assert f"Port {port} on 127.0.0.1 is taken. Choose another with --metrics" in told_of_metrics
    assert not file.exists()


def test_a_host_of_another_machine_is_reported_in_words(cli: Cli) -> None:
    """Whether it is no name at all, or an address of somebody else."""
    assert "is not an address of this machine" in cli.refuse("serve", "--host", "no.such.host.invalid")
    assert "Cannot listen on 192.0.2.1" in cli.refuse("serve", "--host", "192.0.2.1")


def test_a_directory_of_large_bodies_that_cannot_be_used_is_reported_in_words(cli: Cli, tmp_path: Path) -> None:
    """At the start, and not at the first large request."""
    missing, file = tmp_path / "missing", tmp_path / "file"
    file.touch()
    for path in (missing, file):
        told = cli.refuse("serve", "--port", "0", "--spool-directory", str(path))
        assert f"spool_directory is {path}, which is no directory that this user may write" in told


def test_the_next_free_port_is_taken() -> None:
    """Two demonstrations can run beside each other."""
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with bind_near("127.0.0.1", port) as beside:
            assert beside.getsockname()[1] != port
        with pytest.raises(click.ClickException):
            bind("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "family", "url"),
    [
        ("127.0.0.1", socket.AF_INET, "http://127.0.0.1:"),
        ("0.0.0.0", socket.AF_INET, "http://127.0.0.1:"),  # noqa: S104 - it listens for a moment
        ("::1", socket.AF_INET6, "http://[::1]:"),
        ("[::1]", socket.AF_INET6, "http://[::1]:"),
    ],
)
def test_the_url_can_be_opened(host: str, family: int, url: str) -> None:
    """Listening everywhere is shown as this machine, and IPv6 has its brackets."""
    try:
        listener = bind(host, 0)
    except click.ClickException:
        pytest.skip("this machine has no IPv6")
    with listener:
        assert listener.family == family
        assert url_of(listener) == f"{url}{listener.getsockname()[1]}"


@pytest.mark.parametrize("error", [DatabaseNewer("It is newer."), OSError("The disk is gone.")])
def test_an_application_that_cannot_open_fails_with_its_own_error(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller of the server gets the error, and the log has no traceback."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        raise error
        yield

    async def run(listener: socket.socket) -> None:
        await Server(Starlette(lifespan=lifespan), listener, level="error", on_started=lambda: None).serve()

    with bind("127.0.0.1", 0) as listener, pytest.raises(type(error), match=str(error)):
        anyio.run(run, listener)
    assert "Traceback" not in caplog.text


def test_an_application_that_is_broken_is_a_bug(caplog: pytest.LogCaptureFixture) -> None:
    """Its traceback is what helps then."""

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    async def run(listener: socket.socket) -> None:
        await Server(broken, listener, level="error", on_started=lambda: None).serve()

    with bind("127.0.0.1", 0) as listener, pytest.raises(SystemExit):
        anyio.run(run, listener)
    assert "ZeroDivisionError" in caplog.text


def test_a_port_that_needs_rights_is_reported_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user of the tests may well have the rights, so that the bind is made to fail."""

    def refuse(self: socket.socket, address: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(click.ClickException, match="from 1024 on"):
        bind("127.0.0.1", 80)


def test_a_campaign_started_beside_a_running_server_is_sent(
    cli: Cli, workspace_id: str, csv_file: Write, start: Start, tmp_path: Path
) -> None:
    """The server notices by itself; `watch` ends with the campaign, and stopping and revoking are noticed too."""
    log = tmp_path / "simulator.jsonl"
    server = start("serve", "--port", "0", "--json", OUTREACH_SIMULATOR_LOG=str(log))
    url = server.document()["url"]
    key = cli.ask("keys", "create", workspace_id)
    made = cli.ask(
        "campaigns", "import", workspace_id, csv_file("phone,n\n+14155550101,Ann\n+14155550102,Bob\n"),
        "--name", "C", "--message", "Hi {{n}}", "--from", "+14155550100", "--rate", "600",
    )  # fmt: skip
    assert logged(log) == []
    cli.ask("campaigns", "start", made["id"])
    until(lambda: len(logged(log)) == 2, "two messages in the simulator's log")
    assert [entry["body"].splitlines()[0] for entry in logged(log)] == ["Hi Ann", "Hi Bob"]

    end = cli.ask("campaigns", "watch", made["id"])
    assert end["status"] == "completed"
    (group,) = end["groups"]
    assert (group["status"], group["reason"], group["count"], group["until"]) == ("completed", None, 2, None)
    assert group["why"].startswith("sent")
    told = cli.tell("campaigns", "watch", made["id"])
    assert "completed  2/2 ended  2 completed" in told
    until(lambda: cli.ask("campaigns", "show", made["id"])["messages"]["delivered"] == 2, "two receipts")
    for command in ("watch", "show"):
        told = cli.tell("campaigns", command, made["id"])
        assert "sent and confirmed" in told
        assert "Messages: 2 delivered" in told
    assert {one["why"] for one in cli.ask("campaigns", "recipients", made["id"])} == {"delivered"}

    assert get(url + "/sms-campaigns", key["api_key"])["pagination"]["total"] == 1
    cli.ask("keys", "revoke", key["id"])
    bearer = {"Authorization": f"Bearer {key['api_key']}"}
    until(
        lambda: httpx.get(url + "/sms-campaigns", headers=bearer, trust_env=False).status_code == 401,
        "a revoked key is refused",
    )
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    for secret in ("+14155550101", "4155550101", "Hi Ann", key["api_key"]):
        assert secret not in server.stderr


def test_a_sandbox_has_everything_and_leaves_nothing(start: Start) -> None:
    """What it prints works, there is no request limit, and its database is deleted."""
    process = start("sandbox", "--json")
    box = process.document()
    database = box["database"]
    directory = Path(database.removeprefix("sqlite:///")).parent
    assert directory.is_dir()
    cli = Cli(database)
    assert cli.ask("workspaces", "show", box["workspace_id"])["request_limit"] is None

    headers = {"Authorization": f"Bearer {box['api_key']}"}
    body = {"agent_id": box["agent_id"], "to": "+14155550142"}
    answer = httpx.post(box["url"] + "/calls", json=body, headers=headers, trust_env=False, timeout=30.0)
    assert answer.status_code == 201
    call_id = answer.headers["Location"].rsplit("/", 1)[1]
    assert cli.ask("calls", "show", call_id)["to"] == "+14155550142"
    assert "+14155550142" in cli.tell("calls", "show", call_id)

    process.signal(signal.SIGINT)
    assert process.wait() == 0
    assert not directory.exists()
    assert json.loads(process.stdout) == box


def test_a_sandbox_prints_what_a_client_needs(start: Start) -> None:
    """URL, key, workspace and agent."""
    process = start("sandbox")
    process.says("Ctrl-C stops it and deletes the database.")
    until(lambda: "carrier" in process.stdout, "what it prints")
    for name in ("url", "api_key", "workspace_id", "agent_id", "from_number", "carrier"):
        assert f"\n{name} " in "\n" + process.stdout
    process.signal(signal.SIGTERM)
    assert process.wait() == 0


@pytest.mark.soak("a demonstration takes its time")
def test_a_demo_shows_what_happened_to_everybody(start: Start) -> None:
    """All groups of the sample are there, each with its reason, and it leaves nothing behind."""
    process = start("demo", "--exit", "--port", "0", OUTREACH_SIMULATOR_CALL_SECONDS="0.1")
    assert process.wait() == 0, process.stderr
    for words in (
        "completed",
        "skipped: duplicate",
        "skipped: invalid_number",
        "left out: opted_out",
        "Hi Ada, your check-up is on Mon 9:00.",
        "Reply STOP to opt out",
        "answered by",
        "Try it: without --exit the server stays",
        "curl -s http://127.0.0.1:",
    ):
        assert words in process.stdout
    assert process.stderr == ""


@pytest.mark.soak("a demonstration takes its time")
def test_a_demo_leaves_a_server_running(start: Start) -> None:
    """With --json the document comes when the story is told; what it names works until Ctrl-C."""
    process = start("demo", "--port", "0", "--json", OUTREACH_SIMULATOR_CALL_SECONDS="0.1")
    document = process.document()
    assert document["campaign"]["status"] == "completed"
    groups = {(group["status"], group["reason"]): group["count"] for group in document["groups"]}
    assert groups == {("completed", None): 42, ("skipped", "duplicate"): 1, ("skipped", "invalid_number"): 1}
    assert (document["rows"], document["sms_opted_out_excluded"]) == (45, 1)
    assert document["call"]["status"] == "completed"
    listed = get(document["url"] + "/sms-campaigns", document["api_key"])
    assert [each["name"] for each in listed["data"]] == ["Reminders", "Check-ups"]
    with httpx.Client(trust_env=False, follow_redirects=True, timeout=30.0) as browser:
        page = browser.get(document["console_url"])
        assert page.url.path == f"/console/w/{document['workspace_id']}/campaigns/{listed['data'][0]['id']}"
        assert "Pause" in page.text
        # It was used.
        assert httpx.get(document["console_url"], trust_env=False).status_code == 404
        assert browser.get(str(page.url)).status_code == 200
    process.says("The server keeps running")
    process.signal(signal.SIGINT)
    assert process.wait() == 0
    assert not Path(document["database"].removeprefix("sqlite:///")).parent.exists()


def test_a_demo_that_fails_says_why(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends with it, in order."""
    monkeypatch.setattr(demo_story, "SAMPLE", "lost.csv")
    result = cli.run("demo", "--port", "0")
    assert result.exit_code == 1
    assert "lost.csv: No such file or directory." in result.stderr


def test_a_demo_that_is_interrupted_ends_at_once(start: Start) -> None:
    """In the middle of the story too, with the status that shells expect."""
    process = start("demo", "--port", "0")
    process.says("Started: at most 600")
    process.signal(signal.SIGINT)
    assert process.wait() == 130
    assert process.stderr.strip() == "Interrupted."


def test_a_demo_whose_request_is_cut_off_by_its_end_is_interrupted(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of such a request is not the reason of the end."""

    async def cut_off(_: demo_story.Story) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        raise httpx.ReadError("")

    monkeypatch.setattr(demo_story, "run_story", cut_off)
    result = cli.run("demo", "--port", "0")
    assert (result.exit_code, result.stderr.strip()) == (EXIT_INTERRUPTED, "Interrupted.")


HANGING = """
import sys, time
import anyio
from outreach_server.cli.serving import serving
from outreach_server.monitoring import log_lines

serving.END_SECONDS = 0.5

async def app(scope, receive, send):
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            time.sleep(600)  # what nothing can interrupt

listener = serving.bind("127.0.0.1", 0)
server = serving.Server(app, listener, level="info", on_started=lambda: print("up", flush=True))
log_lines.log_to_stderr("info")
anyio.run(server.serve)
"""


@pytest.mark.soak("waits until it ends")
def test_a_server_in_which_something_hangs_ends_all_the_same() -> None:
    """A disk that does not answer, or the code of others: it says so, with a status that is not 0."""
    with subprocess.Popen(
        [sys.executable, "-c", HANGING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "ending the process now" in told


def test_a_server_under_nohup_goes_on_when_its_terminal_ends(start: Start) -> None:
    """What it inherits as ignored it ignores."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = start("serve", "--port", "0", "--json")
    finally:
        signal.signal(signal.SIGHUP, before)
    url = process.document()["url"]
    process.signal(signal.SIGHUP)
    get(url + "/healthz")
    process.signal(signal.SIGTERM)
    assert process.wait() == 0


@pytest.mark.soak("starts a server")
@pytest.mark.parametrize("apart_seconds", [0.0, 0.001, 0.05])
def test_a_second_signal_does_not_keep_a_server_from_closing_its_database(
    cli: Cli, start: Start, apart_seconds: float
) -> None:
    """It ends as at one, and leaves no write-ahead log behind."""
    process = start("serve", "--port", "0")
    process.says("Ctrl-C stops it.")
    process.signal(signal.SIGINT)
    time.sleep(apart_seconds)  # what is tried is how far apart they are
    process.signal(signal.SIGINT)
    assert process.wait() == 0
    database = cli.database.removeprefix("sqlite:///")
    assert not Path(f"{database}-wal").exists()


def test_signals_that_break_into_one_another_do_not_keep_a_server_from_ending(start: Start) -> None:
    """A handler that took a lock or started a thread would stand still for ever, or raise, at one of these."""
    process = start("serve", "--port", "0")
    process.says("Ctrl-C stops it.")
    for number in range(400):
        process.signal(signal.SIGINT)
        for _ in range(number * 3):
            pass
    assert process.wait() == 0


def test_a_file_configures_the_server_and_the_other_commands(start: Start, tmp_path: Path) -> None:
    """Both work on the database that it names; a flag wins over it."""
    file = tmp_path / "outreach.toml"
    file.write_text(
        f'database_url = "sqlite:///{tmp_path / "named.db"}"\nlisten_port = 0\ndispatch = false\nlog_level = "error"\n',
        "utf-8",
    )
    made = start("workspaces", "create", "Acme", "--json", "--config", str(file), OUTREACH_DATABASE_URL="")
    assert made.wait() == 0
    server = start(
        "serve", "--json", "--change-poll-seconds", "0.1", OUTREACH_DATABASE_URL="", OUTREACH_CONFIG=str(file)
    )
    shown = server.document()
    assert (shown["database_path"], shown["dispatch"]) == (str(tmp_path / "named.db"), False)
    assert shown["database_is_new"] is False
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    wrong = start("serve", "--change-poll-seconds", "soon", OUTREACH_DATABASE_URL="", OUTREACH_CONFIG=str(file))
    assert wrong.wait() == 1
    assert "--change-poll-seconds is 'soon'; it must be a number above 0" in wrong.stderr


def test_the_garbage_collector_looks_rarely_while_a_server_command_runs() -> None:
    """docs/performance.md: it would take a sixth of all computing. The caller has its own settings back."""
    before, meanwhile = gc.get_threshold(), []

    async def work() -> None:
        meanwhile.append((gc.get_threshold()[0] >= 10 * before[0], gc.get_freeze_count() > 0))

    run_fast(work)
    assert meanwhile == [(True, True)]
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


HANGING_LOG = """
import logging
import sys
import threading
from outreach_server.cli.serving import serving

handler = logging.StreamHandler(sys.stderr)
logging.basicConfig(handlers=[handler])
handler.acquire()  # as a thread has it that writes into a pipe which nobody reads
serving.END_SECONDS = 0.1
end = serving.EndForSure()
end.start()
end.begin()
threading.Event().wait()
"""


def test_a_log_that_hangs_does_not_keep_the_process_from_its_end() -> None:
    """The last line is for nobody then."""
    ended = subprocess.run([sys.executable, "-c", HANGING_LOG], cwd=ROOT, timeout=60, check=False, capture_output=True)
    assert ended.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is always full")
def test_a_log_on_a_full_disk_keeps_no_server_from_starting(database: str) -> None:
    """Nor from ending in order."""
    with (
        open("/dev/full", "w", encoding="utf-8") as full,
        subprocess.Popen(
            [sys.executable, "-m", "outreach_server", "serve", "--port", "0", "--json", "--database", database],
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            cwd=ROOT,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            told = ""
            while not told.endswith("}\n"):
                told += process.stdout.readline()
            get(json.loads(told)["url"] + "/healthz")
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
