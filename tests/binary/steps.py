"""What is tried with the executable, one step after the other."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Final

import attrs
import httpx
import psutil
from cryptography.fernet import Fernet

from outreach.storage.sqlite.schema import run_migrations
from outreach_server.cli.serving.serving import bind, url_of
from tests import postgres
from tests.binary.place import SECONDS, Place, Running
from tests.documents.provider import CREDENTIALS, Provider
from tests.listening.certificates import write_pair
from tests.migrations import record_migrations
from tests.process.waiting import wait_for

ROOT: Final = Path(__file__).resolve().parents[2]
SENDER: Final = "+14155550100"
LARGE: Final = 100_000
SENT: Final = 150
SENT_BEFORE_THE_KILL: Final = 40


def tells_what_it_is(place: Place) -> None:
    """Commit, parts and licences; and what lies outside its directory cannot be written."""
    told = place.run("--version")
    assert "commit " in told, told
    for part in ("uvicorn", "cryptography", "holidays", "tzdata", "SQLite"):
        assert f"{part} " in told, told
    licences = place.run("--licences")
    assert "Apache License" in licences
    for part in ("psycopg", "psycopg-binary", "psycopg-pool"):
        assert re.search(rf"(?m)^{part} [\d.]+\nLicence: LGPL-3.0-only$", licences), part
    assert re.search(r"(?m)^psycopg_binary.libs/libpq-\S+\nLicence: PostgreSQL$", licences)
    assert "The text of the GPL-3.0" in licences
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in licences.upper()
    if place.jail.enter:
        place.run("workspaces", "create", "Nowhere", "--database", "sqlite:////app/x.db", status=1)


def says_that_there_is_no_space(place: Place) -> None:
    """To unpack the one file, on a disk that is too small for it."""
    if place.jail.enter:
        small = 'mount -t tmpfs -o size=20m,mode=1777 small "$root/data/tmp"\nmount -o remount,bind,ro "$root"'
        words = [word.replace('mount -o remount,bind,ro "$root"', small) for word in place.jail.enter]
        told = Place(jail=attrs.evolve(place.jail, enter=words)).run("--version", status=1)
        assert re.search(r"/outreach-server-\d+: no space: 2\d\.\d MB", told), told
        assert "XDG_CACHE_HOME" in told, told


def demonstrates(place: Place) -> None:
    """`demo --exit`, with its sample data."""
    assert "42" in Place(jail=place.jail, name="demo").run("demo", "--exit", "--port", "0")


def goes_an_operators_round(place: Place) -> None:
    """From a workspace to a campaign that was sent, with what an operator looks at on the way."""
    workspace = place.ask("workspaces", "create", "Clinic", "--default-region", "US")["id"]
    place.ask("numbers", "create", workspace, SENDER, "--carrier", "twilio")
    agent = place.ask("agents", "create", workspace, "Ann", "--provider", "simulator")["id"]
    place.ask("unsubscribes", "add", workspace, "+12015550001")
    (place.jail.data / "contacts.csv").write_text(
        "phone,first_name\n" + "".join(f"+1201555{number:04},P{number}\n" for number in range(50)), "utf-8"
    )
    with _provider() as address:
        credentials = {**CREDENTIALS["twilio"], "api_base": address}
        (place.jail.data / "account.json").write_text(json.dumps(credentials), "utf-8")
        place.jail.give()
        given = ("--file", f"{place.jail.seen}/account.json")
        account = place.ask("accounts", "connect", workspace, "twilio", *given)["id"]
        place.run("accounts", "check", account)
    key = place.ask("keys", "create", workspace)["api_key"]
    with place.serving() as server:
        assert server.get("/openapi.yaml").content == (ROOT / "openapi.yaml").read_bytes()
        assert server.get("/docs").status_code == 200
        assert len(server.get("/docs/swagger-ui.js").content) > 100_000
        imported = ("campaigns", "import", workspace, f"{place.jail.seen}/contacts.csv", "--from", SENDER)
        # Of another name, not started: whether it may send depends on the day.
        closed = place.ask(
            *(*imported, "--name", "Open", "--message", "Hi", "--holidays", "FR"),
            *("--hours", "mon-fri 09:00-17:00", "--timezone", "Europe/Paris"),
        )["id"]
        assert "Europe/Paris" in place.run("campaigns", "show", closed)
        made = place.ask(*imported, "--name", "Spring", "--message", "Hi {{first_name}}", "--rate", "600")["id"]
        place.ask("campaigns", "start", made)
        end = place.ask("campaigns", "watch", made)
        assert end["status"] == "completed"
        assert place.books.sent() == 49
        assert len(place.ask("campaigns", "why", made, "+12015550003")) > 0
        call = httpx.post(
            f"{server.url}/calls",
            json={"agent_id": agent, "to": "+12015550150"},
            headers={"Authorization": f"Bearer {key}"},
            trust_env=False,
            timeout=SECONDS,
        )
        assert call.status_code == 201, call.text
        assert place.ask("status")["dispatching"]["by"] == "another_process"
        place.ask("stop", workspace)
        server.stop()


def examines_itself(place: Place) -> None:
    """`doctor` finds that nobody dispatches, and nothing while somebody does."""
    place = Place(jail=place.jail, name="examined")
    place.ask("workspaces", "create", "Examined")
    told = json.loads(place.run("doctor", "--offline", "--json", status=3))
    assert [finding["code"] for finding in told["findings"]] == ["no_dispatcher"], told
    # As it is printed: the host has no Python, and the program need not be on its path.
    assert told["findings"][0]["commands"] == [f"{place.jail.program} serve"], told
    with place.serving() as server:
        assert place.ask("doctor", "--offline")["findings"] == []
        server.stop()


def answers_a_scrape(place: Place) -> None:
    """`--metrics` on an address of its own."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    with Place(jail=place.jail, name="measured").serving("--metrics", f"127.0.0.1:{port}") as server:
        answer = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False, timeout=SECONDS)
        assert answer.status_code == 200
        assert re.search(r"(?m)^outreach_build_info\{", answer.text), answer.text
        server.stop()


def takes_a_large_body_by_its_helper(place: Place) -> None:
    """A hundred thousand contacts; the executable starts itself to read them."""
    workspace = place.ask("workspaces", "create", "Large", "--no-request-limit")["id"]
    key = place.ask("keys", "create", workspace)["api_key"]
    recipients = [
        {"phone_number": f"+1{2_015_000_000 + number}", "name": f"Person {number}"} for number in range(LARGE)
    ]
    body = json.dumps({"name": "Large", "message_body": "Hi", "recipients": recipients}).encode()
    with place.serving() as server:
        helpers, done = _watching_for_helpers(server)
        try:
            answer = httpx.post(
                f"{server.url}/sms-campaigns",
                content=body,
                headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
                trust_env=False,
                timeout=SECONDS,
            )
        finally:
            done()
        assert answer.status_code == 201, answer.text
        assert answer.json()["total_recipients"] == LARGE
        assert helpers, "no helper process was seen"
        server.stop()


def goes_on_after_it_was_killed(place: Place) -> None:
    """Nobody is reached twice, and what was under way is sent or unknown; it finds what it has unpacked."""
    place = Place(jail=place.jail, name="killed")
    workspace = place.ask("workspaces", "create", "Killed", "--default-region", "US")["id"]
    place.ask("numbers", "create", workspace, SENDER, "--carrier", "twilio")
    (place.jail.data / "many.csv").write_text(
        "phone\n" + "".join(f"+1{3_015_550_000 + number}\n" for number in range(SENT)), "utf-8"
    )
    place.jail.give()
    made = place.ask(
        *("campaigns", "import", workspace, f"{place.jail.seen}/many.csv", "--name", "Many", "--message", "Hi"),
        *("--from", SENDER, "--rate", "600"),
    )["id"]
    place.ask("campaigns", "start", made)
    with place.serving() as server:
        wait_for("messages", lambda: place.books.sent() >= SENT_BEFORE_THE_KILL, seconds=SECONDS)
        server.kill()
    assert place.books.sent() < SENT, "everything was sent before it was killed"
    with place.serving() as server:
        wait_for("its end", lambda: not place.books.unfinished(), seconds=SECONDS)
        server.stop()
    assert len(list((place.jail.data / "tmp").glob("*/*"))) == 1, "not one unpacked program"
    place.books.check()
    assert place.books.sent() + len(place.books.dispatches("unknown")) >= SENT


def backs_up_and_restores(place: Place) -> None:
    """What was deleted since is there again."""
    copy = f"{place.jail.seen}/backup.db"
    place.run("db", "backup", copy)
    place.ask("workspaces", "create", "Later")
    place.run("db", "restore", copy)
    assert "Later" not in [one["name"] for one in place.ask("workspaces", "list")]
    place.run("db", "check")


def keeps_to_versions_of_the_schema(place: Place) -> None:
    """A file with all migrations that the first ones replace is used as it is; older and newer ones are refused."""
    old = Place(jail=place.jail, name="old")
    with closing(sqlite3.connect(old.database)) as raw:
        run_migrations(raw)
        raw.execute(
            "INSERT INTO workspaces (id, name, mode, status, sms_campaigns_enabled, contact_hours, revision,"
            " created_at, updated_at)"
            " VALUES ('019aa000-0000-7000-8000-000000000001', 'Old', 'sandbox', 'active', 1, 1, 0,"
            " '2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z')"
        )
        raw.commit()
    for name, words in (("0051_exports_of_managers", "too old"), ("9999_later", "9999_later")):
        record_migrations(old.database, name)
        place.jail.give()
        assert words in old.run("workspaces", "list", status=1)
    record_migrations(old.database, "0052_lists_by_metadata")
    place.jail.give()
    with old.serving() as server:
        assert server.get("/readyz").status_code == 200
        server.stop()
    assert [one["name"] for one in old.ask("workspaces", "list")] == ["Old"]


def reads_a_changed_certificate(place: Place) -> None:
    """HTTPS by files, and what systemd is told."""
    data, seen = place.jail.data, place.jail.seen
    files = data / "certificate.pem", data / "key.pem"
    write_pair(*files, name="first")
    place.jail.give()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(data / "notify"))
        manager.settimeout(SECONDS)
        place.jail.give()
        with place.serving(
            *("--tls-certificate", f"{seen}/certificate.pem", "--tls-key", f"{seen}/key.pem"),
            NOTIFY_SOCKET=f"{seen}/notify",
            WATCHDOG_USEC="30000000",
        ) as server:
            assert manager.recv(4096).startswith(b"READY=1")
            assert manager.recv(4096) == b"WATCHDOG=1"
            port = int(server.url.rpartition(":")[2])
            first = ssl.get_server_certificate(("127.0.0.1", port))
            write_pair(*files, name="second")
            place.jail.give()
            wait_for("another certificate", lambda: ssl.get_server_certificate(("127.0.0.1", port)) != first)
            server.stop()


def sends_by_a_worker_on_postgresql(place: Place) -> None:
    """Jobs of Procrastinate, a worker that answers no requests, and a server that does not dispatch."""
    postgresql = postgres.server()
    with postgresql.database() as name:
        url = postgresql.url(name)
        here = Place(
            jail=place.jail,
            name="cluster",
            settings={
                "OUTREACH_DATABASE_URL": url,
                "OUTREACH_DISPATCHER": "procrastinate",
                "OUTREACH_SECRET_KEY": Fernet.generate_key().decode(),
            },
        )
        with here.serving("--no-dispatch") as server:
            workspace = here.ask("workspaces", "create", "Cluster", "--default-region", "US")["id"]
            here.ask("numbers", "create", workspace, SENDER, "--carrier", "twilio")
            contacts = place.jail.data / "cluster.csv"
            contacts.write_text("phone\n" + "".join(f"+1{4_155_550_100 + number}\n" for number in range(50)), "utf-8")
            place.jail.give()
            made = here.ask(
                *("campaigns", "import", workspace, f"{place.jail.seen}/cluster.csv", "--name", "All"),
                *("--message", "Hi", "--from", SENDER, "--rate", "600"),
            )["id"]
            here.ask("campaigns", "start", made)
            with here.running("worker") as worker:
                assert here.ask("campaigns", "watch", made)["status"] == "completed"
                worker.stop()
            server.stop()
        # It has a complaint: this server forgets what it was told in a power cut.
        assert json.loads(here.run("db", "check", "--json", status=1))["pending_migrations"] == []
    sent = [json.loads(line) for line in here.books.log.read_text("utf-8").splitlines()]
    assert len({one["to"] for one in sent}) == len(sent) == 50


@contextmanager
def _provider() -> Iterator[str]:
    """Serve a stand-in for every provider; yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


def listens_on_what_systemd_hands_over(place: Place) -> None:
    """The process that systemd names is the one that listens."""
    with bind("127.0.0.1", 0) as handed, place.serving(handed=handed) as server:
        assert server.url == url_of(handed)
        assert server.get("/healthz").status_code == 200
        server.stop()


def _watching_for_helpers(server: Running) -> tuple[list[str], Callable[[], None]]:
    """Return what fills with the command lines of helpers, and what ends the watch."""
    seen: list[str] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            for process in server.family()[1:]:
                try:
                    words = process.cmdline()
                except psutil.Error:
                    continue
                if "read-body" in words:
                    seen.append(" ".join(words))
                    return

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()

    def end() -> None:
        ended.set()
        watching.join()

    return seen, end


ALL: Final[Sequence[Callable[[Place], None]]] = (
    says_that_there_is_no_space,
    tells_what_it_is,
    demonstrates,
    goes_an_operators_round,
    examines_itself,
    answers_a_scrape,
    takes_a_large_body_by_its_helper,
    goes_on_after_it_was_killed,
    backs_up_and_restores,
    keeps_to_versions_of_the_schema,
    reads_a_changed_certificate,
    listens_on_what_systemd_hands_over,
    sends_by_a_worker_on_postgresql,
)
SHORT: Final[Sequence[Callable[[Place], None]]] = (tells_what_it_is, demonstrates, takes_a_large_body_by_its_helper)
"""What the directory does otherwise than the one file."""
