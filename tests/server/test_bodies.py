from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from filelock import FileLock

from outreach import ConfigError, InvalidRequest, NewSmsCampaign
from outreach_server import create_app
from outreach_server.bodies import body as parser_client
from outreach_server.bodies.body import (
    MAX_IN_MEMORY,
    MAX_SMALL_BYTES,
    ParserProcessFailed,
    default_command,
    helper_frames,
    parse_in_subprocess,
)
from outreach_server.bodies.reading import CHUNK, ParseOptions
from outreach_server.bodies.spool import spool_directory, sweep
from outreach_server.cli.base import parser_command
from tests.process.waiting import wait_for
from tests.server.conftest import Service, Tenant, serve, sms_body
from tests.server.test_errors import check_envelope

JSON = {"Content-Type": "application/json"}
READING = ParseOptions(channel_from_body=False, sms_campaigns_enabled=True, default_region=None, this_year=2026)


def large_body(count: int = 4 * CHUNK + 1, **fields: Any) -> bytes:
    """Return a body of many contacts, which is too large to be kept in memory."""
    recipients = [
        {"phone_number": f"+1415{index:07d}", "custom_variables": {"filling": "x" * 150, "n": index}}
        for index in range(count)
    ]
    raw = json.dumps(sms_body(recipients=recipients, **fields)).encode()
    assert len(raw) > MAX_IN_MEMORY
    return raw


def recipients_of(service: Service, workspace_id: str, campaign_id: str) -> list[Any]:
    """Return the recipients of a campaign, in order."""

    async def collect() -> list[Any]:
        return [recipient async for recipient in service.engine.campaigns.iter_recipients(workspace_id, campaign_id)]

    return service.run(collect)


serving = contextmanager(serve)


def helper(directory: Path, *lines: str) -> tuple[str, ...]:
    """Return the command of a helper of our own; what it is told is in `sys.argv[1:]`."""
    script = directory / "helper.py"
    script.write_text("\n".join(["import sys", *lines]), encoding="utf-8")
    return sys.executable, str(script)


@pytest.fixture
def spooling(tmp_path: Path) -> Iterator[Service]:
    """Run a server with a spool directory of its own."""
    (tmp_path / "spool").mkdir()
    yield from serve("memory://", spool_directory=tmp_path / "spool")


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", 'APPLICATION/JSON;charset="UTF-8"', None]
)
def test_json_is_taken(memory_tenant: Tenant, kind: str | None) -> None:
    """Bodies are JSON in UTF-8; one that is not announced is taken for it."""
    headers = {} if kind is None else {"Content-Type": kind}
    answer = memory_tenant.post("/sms-campaigns", content=json.dumps(sms_body()).encode(), headers=headers)
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize(
    ("headers", "path"),
    [
        ({"Content-Type": "text/plain"}, "Content-Type"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, "Content-Type"),
        ({"Content-Type": ""}, "Content-Type"),
        ({"Content-Type": "application/json; charset=latin-1"}, "Content-Type"),
        (JSON | {"Content-Encoding": "gzip"}, "Content-Encoding"),
    ],
)
@pytest.mark.parametrize("operation", ["/sms-campaigns", "/campaigns", "/calls", "/sms"])
def test_what_is_announced_as_something_else_is_refused(
    memory_tenant: Tenant, operation: str, headers: dict[str, str], path: str
) -> None:
    """docs/interface.md#statuses: what another API would call 415 is a 400 here."""
    answer = memory_tenant.post(operation, content=b"{}", headers=headers)
    assert [detail["path"] for detail in check_envelope(answer, 400, "invalid_request")["details"]] == [path]


def test_nothing_may_be_announced_as_anything(memory_tenant: Tenant) -> None:
    """A cancellation is not refused for what `curl -d ''` writes above an empty body."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": "0"}
    path = f"/manage/campaigns/{memory_tenant.create()['id']}/cancel"
    assert memory_tenant.post(path, content=b"", headers=headers).json()["status"] == "cancelled"
    answer = memory_tenant.post("/sms", content=b"", headers=headers)
    assert "is empty" in check_envelope(answer, 400, "invalid_request")["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b'"text"', b"NaN", b"\xff", b"\xef\xbb\xbf{}", b"[" * 100_000, b'{"a":1,"a":2}',
        b'{"name": "\\ud800"}', b'{"name": "\\u0000"}', "{}".encode("utf-16"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/sms-campaigns"),
        ("POST", "/campaigns"),
        ("POST", "/calls"),
        ("POST", "/sms"),
        ("PATCH", "/sms/settings"),
    ],
)
def test_broken_bodies_are_refused(memory_tenant: Tenant, method: str, path: str, body: bytes) -> None:
    """docs/interface.md#types and #text: malformed is a 400 in the envelope, whatever is wrong."""
    check_envelope(memory_tenant.request(method, path, content=body, headers=JSON), 400, "invalid_request")


def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    """docs/interface.md#statuses: what another API would call 413 is a 400; bodies are bounded."""
    with serving("memory://", max_body_bytes=1000) as service:
        tenant = service.tenant()
        for path in ("/sms-campaigns", "/calls"):
            answer = tenant.post(path, content=b" " * 1001, headers=JSON)
            assert "larger than 1000 bytes" in check_envelope(answer, 400, "invalid_request")["message"]
            assert answer.headers["Connection"] == "close"
        exact = json.dumps(sms_body()).encode()
        assert tenant.post("/sms-campaigns", content=exact.ljust(1000), headers=JSON).status_code == 201


def test_a_body_that_does_not_tell_its_length_is_counted() -> None:
    """A chunked body is bounded as well."""

    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 100

    with serving("memory://", max_body_bytes=1000) as service:
        answer = service.tenant().post("/sms-campaigns", content=endless(), headers=JSON)
        check_envelope(answer, 400, "invalid_request")
        assert answer.headers["Connection"] == "close"


def test_operations_without_contacts_take_small_bodies_only(memory_tenant: Tenant) -> None:
    """A body of /calls, /sms or /sms/settings has no reason to be large."""
    padded = b'{"to": "14155550102", "body": "x"}'.ljust(MAX_SMALL_BYTES)
    assert memory_tenant.post("/sms", content=padded, headers=JSON).status_code == 201
    check_envelope(memory_tenant.post("/sms", content=padded + b" ", headers=JSON), 400, "invalid_request")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_is_loaded_completely(spooling: Service, tmp_path: Path, *, chunked: bool) -> None:
    """docs/rules.md#loading: every contact arrives, in order; what lay on disk is gone."""
    tenant = spooling.tenant()
    raw = large_body()
    content = iter([raw[start : start + 10_000] for start in range(0, len(raw), 10_000)]) if chunked else raw
    answer = tenant.post("/sms-campaigns", content=content, headers=JSON)
    assert answer.status_code == 201, answer.text
    assert answer.json()["total_recipients"] == 4 * CHUNK + 1
    recipients = recipients_of(spooling, tenant.workspace.id, answer.json()["id"])
    assert [r.custom_variables["n"] for r in recipients] == list(range(4 * CHUNK + 1))
    assert recipients[7].phone == "+14150000007"
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_body_of_medium_size_is_loaded_completely(memory_service: Service) -> None:
    """What is read in a thread ends like what is read at once."""
    tenant = memory_service.tenant()
    recipients = [{"phone_number": f"+1415{index:07d}"} for index in range(CHUNK + 1)]
    assert tenant.create(recipients=recipients)["total_recipients"] == CHUNK + 1


def test_only_large_bodies_are_put_on_disk(tmp_path: Path) -> None:
    """A body of up to 2 MB stays in memory and needs no process: it is taken where neither can be had."""
    with serving("memory://", spool_directory=tmp_path / "missing", parser_command=("/bin/false",)) as service:
        tenant = service.tenant()
        few = large_body()[: MAX_IN_MEMORY - 1000].rpartition(b", {")[0] + b"]}"
        answer = tenant.post("/sms-campaigns", content=few, headers=JSON)
        assert (answer.status_code, answer.json()["total_recipients"]) == (201, few.count(b"phone_number"))
        check_envelope(tenant.post("/sms-campaigns", content=large_body(), headers=JSON), 500, "internal_error")


def test_a_large_body_without_room_on_the_disk_is_a_503(spooling: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has to make room, and the client may send it again."""
    tenant = spooling.tenant()

    def full(**_: Any) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("tempfile.mkdtemp", full)
        answer = tenant.post("/sms-campaigns", content=large_body(), headers=JSON)
    check_envelope(answer, 503, "internal_error")
    assert answer.headers["Retry-After"] == "30"
    assert tenant.post("/sms-campaigns", content=large_body(), headers=JSON).status_code == 201


def test_one_workspace_has_one_helper_at_a_time(tmp_path: Path) -> None:
    """Who sends one large body after the other does not keep those of another workspace waiting."""
    begun, go, spool = tmp_path / "begun", tmp_path / "go", tmp_path / "spool"
    begun.mkdir()
    spool.mkdir()
    waiting = [
        "import json, pathlib, time",
        "from outreach_server.bodies import parser_process as helper",
        "body, given = sys.argv[1:]",
        "name = json.loads(pathlib.Path(given).read_text())['default_region'] + pathlib.Path(body).parent.name",
        f"pathlib.Path({str(begun)!r}, name).touch()",
        f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.01)",
        "helper.main(body, given)",
    ]
    raw = large_body()
    with serving("memory://", spool_directory=spool, parser_command=helper(tmp_path, *waiting)) as service:
        busy, other = service.tenant(default_region="US"), service.tenant(default_region="GB")

        def post(tenant: Tenant) -> int:
            status: int = tenant.post("/sms-campaigns", content=raw, headers=JSON).status_code
            return status

        with ThreadPoolExecutor(3) as threads:
            answers = [threads.submit(post, busy) for _ in range(2)]
            try:
                wait_for("one helper, both bodies", lambda: any(begun.iterdir()) and _whole(spool, raw) == len(answers))
                answers.append(threads.submit(post, other))
                wait_for("the other workspace's helper", lambda: list(begun.glob("GB*")))
                assert len(list(begun.glob("US*"))) == 1
            finally:
                go.touch()
            assert [answer.result() for answer in answers] == [201] * 3


def _whole(spool: Path, raw: bytes) -> int:
    """Return how many bodies have come in completely."""
    return sum(path.stat().st_size == len(raw) for path in spool.glob("*/body.json"))


def test_errors_in_a_large_body_come_with_their_places(spooling: Service, tmp_path: Path) -> None:
    """What a helper process finds is told as if it had been found here."""
    tenant = spooling.tenant()
    raw = large_body(name="", holidays_config={"country": "XX"})
    raw = raw.replace(b'"+14150000003"', b"null").replace(b'"+14150002000"', b'"\\ud800"')
    error = check_envelope(tenant.post("/sms-campaigns", content=raw, headers=JSON), 400, "invalid_request")
    assert [detail["path"] for detail in error["details"]] == [
        "name", "holidays_config.country", "recipients[3].phone_number", "recipients[2000].phone_number",
    ]  # fmt: skip
    assert list((tmp_path / "spool").iterdir()) == []
    assert tenant.get("/sms-campaigns").json()["pagination"]["total"] == 0


@pytest.mark.parametrize("tail", [b"}", b"[" * 400_000])
def test_a_large_body_that_is_no_json_is_refused(spooling: Service, tail: bytes) -> None:
    """Also what goes to a helper process is a clear 400."""
    check_envelope(
        spooling.tenant().post("/campaigns", content=large_body() + tail, headers=JSON), 400, "invalid_request"
    )


def test_a_large_body_for_the_other_channel(spooling: Service) -> None:
    """A helper reads both kinds of campaigns, and sees that SMS campaigns are off."""
    tenant = spooling.tenant(sms_campaigns_enabled=False)
    check_envelope(
        tenant.post("/campaigns", content=large_body(channel="sms"), headers=JSON), 403, "sms_campaigns_disabled"
    )
    answer = tenant.post("/campaigns", content=large_body(agent_id=tenant.agent.id), headers=JSON)
    assert (answer.status_code, answer.json()["channel"]) == (201, "call")


HALF = [
    "import io, json, pathlib",
    "from outreach_server.bodies import parser_process as helper, reading",
    "out = io.BytesIO()",
    "given = json.loads(pathlib.Path(sys.argv[2]).read_text())",
    "helper.read_body(pathlib.Path(sys.argv[1]), reading.ParseOptions(**given), out)",
    "sys.stdout.buffer.write(out.getvalue()[:-100_000])",
]


@pytest.mark.parametrize("lines", [["sys.exit('No memory left.')"], [*HALF, "sys.exit('No memory left.')"]])
def test_a_helper_that_dies_is_a_500_and_leaves_nothing(
    tmp_path: Path, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A helper that is killed takes nothing else with it, at its beginning or in the midst of its contacts."""
    (tmp_path / "spool").mkdir()
    with serving("memory://", spool_directory=tmp_path / "spool", parser_command=helper(tmp_path, *lines)) as service:
        tenant = service.tenant()
        check_envelope(tenant.post("/sms-campaigns", content=large_body(), headers=JSON), 500, "internal_error")
        assert list((tmp_path / "spool").iterdir()) == []
        assert tenant.get("/sms-campaigns").json()["data"] == []
        assert tenant.post("/sms-campaigns", sms_body()).status_code == 201
    assert "No memory left." in caplog.text


@pytest.mark.anyio
async def test_a_helper_tells_why_it_died(tmp_path: Path) -> None:
    """The log gets the helper's own words: where, and of which type the error was."""
    command = default_command()
    assert command is not None
    with pytest.raises(ParserProcessFailed, match=r"(?s)in read_body.*FileNotFoundError: \[ENOENT\]"):
        async with parse_in_subprocess(command, tmp_path / "body.json", READING):
            pass


@pytest.mark.anyio
async def test_what_a_helper_reads_with_is_no_argument(tmp_path: Path) -> None:
    """It may be larger than an argument, and have numbers of people, which `ps` would show to everybody."""
    command = helper(
        tmp_path,
        "from outreach_server.bodies.parser_process import LENGTH",
        "for text in (sys.argv[2], open(sys.argv[2]).read(), ''):",
        "    sys.stdout.buffer.write(LENGTH.pack(len(text)) + text.encode())",
    )
    file, options = tmp_path / "body.json", json.dumps({"corrections": {"3": "+12025550177" * 20_000}})
    file.touch()
    async with helper_frames(command, file, options) as frames:
        assert [frame.decode() async for frame in frames] == [str(tmp_path / "options.json"), options]


@pytest.mark.anyio
async def test_a_helper_hands_back_refusals(tmp_path: Path) -> None:
    """Details survive the way between the processes."""
    (tmp_path / "body.json").write_bytes(b"{}")
    command = default_command()
    assert command is not None
    with pytest.raises(InvalidRequest) as caught:
        async with parse_in_subprocess(command, tmp_path / "body.json", READING):
            pass
    assert [detail.path for detail in caught.value.details] == ["name", "recipients"]


def test_an_executable_that_is_no_python_reads_large_bodies_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file that holds Python and a program in it takes no `-m`: without a command of its own, a thread reads."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with serving("memory://", spool_directory=tmp_path) as service:
        answer = service.tenant().post("/sms-campaigns", content=large_body(), headers=JSON)
        assert (answer.status_code, answer.json()["total_recipients"]) == (201, 4 * CHUNK + 1)


def test_the_servers_own_executable_is_its_own_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a program in one file `serve` starts that file again, with a command that nobody sees."""
    script, calls = tmp_path / "outreach-server", tmp_path / "calls"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nfrom outreach_server.cli import main\n"
        f"open({str(calls)!r}, 'a').write(sys.argv[1])\nmain()\n",
        encoding="utf-8",
    )
    script.chmod(0o700)
    (tmp_path / "spool").mkdir()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(script))
    with serving("memory://", spool_directory=tmp_path / "spool", parser_command=parser_command()) as service:
        answer = service.tenant().post("/sms-campaigns", content=large_body(), headers=JSON)
        assert (answer.status_code, answer.json()["total_recipients"]) == (201, 4 * CHUNK + 1)
    assert calls.read_text(encoding="utf-8") == "read-body"


def test_what_a_killed_server_left_behind_is_deleted(tmp_path: Path) -> None:
    """Bodies hold people's data: a server that starts deletes those of servers that are gone, and no others."""
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = tmp_path / f"outreach-body-{int(gone.stdout)}-abc"
    alive, foreign = tmp_path / f"outreach-body-{os.getppid()}-abc", tmp_path / "outreach-body-notes"
    for directory in (left, alive, foreign):
        directory.mkdir()
        (directory / "body.json").write_bytes(b"{}")
    assert sweep(tmp_path) == 1
    assert sorted(tmp_path.iterdir()) == sorted([alive, foreign])


@pytest.mark.anyio
async def test_a_killed_server_of_the_same_number_leaves_no_bodies_behind(tmp_path: Path) -> None:
    """In a container the next server has its number, and keeps only what it works on itself."""
    left = tmp_path / f"outreach-body-{os.getpid()}-abc"
    left.mkdir()
    (left / "body.json").write_bytes(b"{}")
    (left / "in-work").touch()
    async with spool_directory(tmp_path) as directory:
        assert sweep(tmp_path) == 1
        assert list(tmp_path.iterdir()) == [directory]
    assert not any(tmp_path.iterdir())


@pytest.mark.anyio
async def test_a_body_is_deleted_though_its_task_is_cancelled_again_while_that_waits_for_a_thread(
    tmp_path: Path,
) -> None:
    """The end of a server cancels twice what does not end: after its grace, and with the event loop."""

    async def work() -> None:
        async with spool_directory(tmp_path) as directory:
            (directory / "body.json").write_bytes(b"{}")
            await anyio.sleep_forever()

    threads = to_thread.current_default_thread_limiter()
    all_of_them = [object() for _ in range(int(threads.total_tokens))]
    for one in all_of_them:
        threads.acquire_on_behalf_of_nowait(one)
    try:
        task = asyncio.create_task(work())
        await anyio.wait_all_tasks_blocked()
        assert list(tmp_path.iterdir())
        for _ in range(2):
            task.cancel()
            await anyio.wait_all_tasks_blocked()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert list(tmp_path.iterdir()) == []
    finally:
        for one in all_of_them:
            threads.release_on_behalf_of(one)


def test_a_limit_must_be_positive() -> None:
    """An app that could take no body at all is a mistake."""
    with pytest.raises(ConfigError, match="max_body_bytes"):
        create_app("memory://", max_body_bytes=0)


def test_bodies_of_a_server_in_another_container_stay(tmp_path: Path) -> None:
    """Its number says nothing here; that it holds the lock of its directory does."""
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    elsewhere = tmp_path / f"outreach-body-{int(gone.stdout)}-abc"
    elsewhere.mkdir()
    with FileLock(elsewhere / "in-work"):
        assert sweep(tmp_path) == 0
        assert elsewhere.exists()
    assert sweep(tmp_path) == 1


def test_what_cannot_be_looked_into_keeps_no_server_from_starting(tmp_path: Path) -> None:
    """Such as what a server of another user left under the number that this one has."""
    file, locked = tmp_path / f"outreach-body-{os.getpid()}-file", tmp_path / f"outreach-body-{os.getpid()}-locked"
    file.touch()
    (locked / "in-work").mkdir(parents=True)
    assert sweep(tmp_path) == 1
    assert list(tmp_path.iterdir()) == [file]


def test_a_helper_that_stands_still_is_a_500_and_gives_its_turn_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else two of them would keep everybody's large bodies out until the server is started again."""
    monkeypatch.setattr(parser_client, "_SILENT_SECONDS", 0.2)
    (tmp_path / "spool").mkdir()
    command = helper(tmp_path, "import time", "time.sleep(1000)")
    with serving("memory://", spool_directory=tmp_path / "spool", parser_command=command) as service:
        tenant = service.tenant()
        for _ in range(3):
            check_envelope(tenant.post("/sms-campaigns", content=large_body(), headers=JSON), 500, "internal_error")
        assert list((tmp_path / "spool").iterdir()) == []
    assert "It wrote nothing for 0 s." in caplog.text


@pytest.mark.anyio
async def test_a_file_where_the_server_was_started_is_no_module_of_a_helper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server itself does not look there either."""
    (tmp_path / "json.py").write_text("raise SystemExit('not the module')", encoding="utf-8")
    body = tmp_path / "body.json"
    body.write_bytes(json.dumps(sms_body()).encode())
    monkeypatch.chdir(tmp_path)
    command = default_command()
    assert command is not None
    async with parse_in_subprocess(command, body, READING) as (campaign, chunks):
        assert isinstance(campaign, NewSmsCampaign)
        assert campaign.name == "Autumn"
        assert [len(chunk) async for chunk in chunks] == [1]
