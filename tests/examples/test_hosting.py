"""The files of examples/hosting fit the server, and hold what they promise."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from cryptography.fernet import Fernet

from outreach_server.cli.serving.serving import END_SECONDS
from outreach_server.config import ServerConfig
from tests.cli.conftest import until
from tests.documents.commands import PROGRAM, check
from tests.examples.running import EXAMPLES
from tests.listening.certificates import write_pair

HOSTING = EXAMPLES / "hosting"
BACKUP = HOSTING / "backup.sh"
DOCKERFILE = (HOSTING / "Dockerfile").read_text("utf-8")
PAGE = (EXAMPLES.parent / "docs" / "hosting.md").read_text("utf-8")
VARIABLES = {setting.variable for setting in ServerConfig.settings()}
SOCKET = "/run/outreach/http.sock"
MOST_EXPOSED = 2.5


def unit(name: str) -> dict[str, list[str]]:
    """Return the values of each key of a unit, in their order."""
    found: dict[str, list[str]] = {}
    for line in (HOSTING / name).read_text("utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


SERVICE = unit("outreach.service")


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skip a test where one of these programs is missing."""
    missing = [program for program in programs if shutil.which(program, path=search_path()) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed here: {', '.join(missing)}")


def search_path() -> str:
    """Return where programs are: this environment's too, which need not be active, and those for root."""
    return f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"


def run(*command: str | Path) -> str:
    """Run a program, which must succeed, and return what it says."""
    program = shutil.which(str(command[0]), path=search_path())
    assert program is not None
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_service_starts_a_command_that_there_is(tmp_path: Path) -> None:
    """With settings that there are."""
    (command,) = SERVICE["ExecStart"]
    program, *words = shlex.split(command)
    assert Path(program).name == PROGRAM
    check(shlex.join(words), tmp_path)
    assert {one.partition("=")[0] for one in SERVICE["Environment"]} <= VARIABLES


def test_the_service_waits_for_what_the_server_promises() -> None:
    """It is killed after the server has ended by itself."""
    assert float(SERVICE["TimeoutStopSec"][0]) > END_SECONDS
    assert float(SERVICE["WatchdogSec"][0]) >= ServerConfig().lease_seconds
    assert SERVICE["Type"] == ["notify"]


def test_the_service_is_started_again_for_as_long_as_it_fails() -> None:
    """By default systemd gives a unit up that fails five times within ten seconds."""
    assert SERVICE["Restart"] == ["always"]
    assert SERVICE["StartLimitIntervalSec"] == ["0"]


def test_the_service_and_its_socket_and_both_proxies_agree_on_a_path() -> None:
    """And on a directory that stays while the service restarts."""
    assert unit("outreach.socket")["ListenStream"] == [SOCKET]
    assert f"--uds {SOCKET} " in SERVICE["ExecStart"][0]
    assert SERVICE["RuntimeDirectory"] == [Path(SOCKET).parent.name]
    assert SERVICE["RuntimeDirectoryPreserve"] == ["yes"]
    assert f"server unix:{SOCKET};" in (HOSTING / "nginx.conf").read_text("utf-8")
    assert f"reverse_proxy unix/{SOCKET}\n" in (HOSTING / "Caddyfile").read_text("utf-8")


def test_the_service_is_hardened() -> None:
    """It needs the network, its own directories, and nothing else."""
    switched_on = {key for key, values in SERVICE.items() if values == ["yes"]}
    assert switched_on >= {
        "NoNewPrivileges", "LockPersonality", "PrivateDevices", "PrivateTmp", "ProtectClock", "ProtectControlGroups",
        "ProtectHome", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables",
        "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID",
    }  # fmt: skip
    assert (SERVICE["ProtectSystem"], SERVICE["CapabilityBoundingSet"]) == (["strict"], [""])
    assert (SERVICE["UMask"], SERVICE["StateDirectoryMode"]) == (["0077"], ["0700"])


@needs("systemd-analyze")
def test_systemd_finds_the_service_hardened() -> None:
    """Its own measure: 0 is closed, 10 open."""
    told = run("systemd-analyze", "security", "--offline=yes", HOSTING / "outreach.service")
    level = re.search(r"exposure level for \S+: ([\d.]+)", told)
    assert level is not None
    assert float(level[1]) <= MOST_EXPOSED


@needs("systemd-analyze")
def test_systemd_can_read_both_units(tmp_path: Path) -> None:
    """With a program in the place of the real one."""
    units = "outreach.service", "outreach.socket"
    for name in units:
        text = (HOSTING / name).read_text("utf-8")
        (tmp_path / name).write_text(text.replace("/opt/outreach/outreach-server", "/bin/true"), "utf-8")
    assert run("systemd-analyze", "verify", "--man=no", *(tmp_path / name for name in units)) == ""


@needs("hadolint")
def test_the_dockerfile_passes_its_linter() -> None:
    """hadolint, which comes with the development tools."""
    assert run("hadolint", HOSTING / "Dockerfile") == ""


def test_the_container_is_nobody_and_tells_its_health(tmp_path: Path) -> None:
    """A number for the user, because `runAsNonRoot` looks at that; and commands and settings that there are."""
    assert re.search(r"^USER \d{4,}:\d{4,}$", DOCKERFILE, re.MULTILINE)
    (health,) = re.findall(r"^HEALTHCHECK [^\[]*(\[.*\])$", DOCKERFILE.replace("\\\n", " "), re.MULTILINE)
    (entry,) = re.findall(r"^ENTRYPOINT (\[.*\])$", DOCKERFILE, re.MULTILINE)
    (serve,) = re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    assert json.loads(health)[:1] == json.loads(entry)
    for words in (json.loads(health)[1:], json.loads(serve)):
        check(shlex.join(words), tmp_path)
    assert set(re.findall(r"\b(OUTREACH_\w+)=", DOCKERFILE)) <= VARIABLES | {"OUTREACH_HOST_ID"}


def test_nginx_passes_everything_on_as_it_is() -> None:
    """No path behind the upstream's name, bodies as large as the server takes, and no probes from outside."""
    text = (HOSTING / "nginx.conf").read_text("utf-8")
    assert re.findall(r"proxy_pass (\S+);", text) == ["http://outreach"]
    (megabytes,) = re.findall(r"client_max_body_size (\d+)m;", text)
    assert int(megabytes) * 2**20 == ServerConfig().max_body_bytes
    # Not what the client has sent: the server takes the last address that is no proxy's.
    assert "X-Forwarded-For $remote_addr;" in text
    for probe in ("healthz", "readyz"):
        assert f"location = /{probe} {{ return 404; }}" in text
        assert f"/{probe}" in (HOSTING / "Caddyfile").read_text("utf-8")


@needs("nginx")
def test_nginx_can_read_its_example(tmp_path: Path) -> None:
    """With a certificate, and ports that need no rights."""
    certificate, key = tmp_path / "fullchain.pem", tmp_path / "privkey.pem"
    write_pair(certificate, key, name="outreach.example.com")
    text = (HOSTING / "nginx.conf").read_text("utf-8").replace("listen 80;", "listen 18080;")
    text = text.replace("/etc/letsencrypt/live/outreach.example.com", str(tmp_path)).replace("443 ssl", "18443 ssl")
    (tmp_path / "site.conf").write_text(text, "utf-8")
    web = f"http {{ access_log off; include {tmp_path}/site.conf; }}"
    main = f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\n{web}\n"
    (tmp_path / "nginx.conf").write_text(main, "utf-8")
    run("nginx", "-t", "-q", "-p", tmp_path, "-c", tmp_path / "nginx.conf")


@needs("caddy")
def test_caddy_can_read_its_example() -> None:
    """And finds it formatted."""
    run("caddy", "validate", "--adapter", "caddyfile", "--config", HOSTING / "Caddyfile")
    run("caddy", "fmt", "--diff", HOSTING / "Caddyfile")


def test_the_key_that_the_page_makes_is_one() -> None:
    """docs/hosting.md: what an operator types gives what credentials are encrypted with."""
    (command,) = re.findall(r"key=\$\((.*)\)$", PAGE, re.MULTILINE)
    made = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    Fernet(made.stdout.strip())


def test_the_backup_runs_each_hour_as_the_server_does() -> None:
    """The same user and database; the timer starts the service of its name, and the script lies where both look."""
    backup = unit("outreach-backup.service")
    assert backup["User"] == SERVICE["User"]
    assert backup["Environment"][0] == SERVICE["Environment"][0]
    script, directory, keep = shlex.split(backup["ExecStart"][0])
    assert Path(script).name == BACKUP.name
    assert directory in backup["ReadWritePaths"][0].split()
    assert unit("outreach-backup.timer")["OnCalendar"] == ["hourly"]
    (cron,) = re.findall(r"^# +17 \* \* \* \*  (.+)$", BACKUP.read_text("utf-8"), re.MULTILINE)
    assert f"{script} {directory} {keep}" in cron
    assert SERVICE["Environment"][0] in cron


@needs("systemd-analyze")
def test_systemd_can_read_the_timer_of_the_backup(tmp_path: Path) -> None:
    """With a program in the place of the script."""
    units = "outreach-backup.service", "outreach-backup.timer"
    for name in units:
        text = (HOSTING / name).read_text("utf-8")
        (tmp_path / name).write_text(text.replace("/opt/outreach/backup.sh", "/bin/true"), "utf-8")
    assert run("systemd-analyze", "verify", "--man=no", *(tmp_path / name for name in units)) == ""


def back_up(database: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the script as cron does."""
    environment = {"PATH": search_path(), "OUTREACH_DATABASE_URL": database}
    return subprocess.run([BACKUP, *arguments], env=environment, capture_output=True, text=True, check=False)


def test_the_script_backs_up_checks_and_keeps_the_newest(tmp_path: Path) -> None:
    """Each run removes what is older than the newest two, and nothing else; one that fails removes nothing."""
    url, kept = f"sqlite:///{tmp_path}/outreach.db", tmp_path / "kept"
    run("outreach-server", "--database", url, "workspaces", "create", "Acme")
    kept.mkdir()
    earlier = [kept / f"outreach-2026-01-0{day}T00-00-00Z.db" for day in (1, 2, 3)]
    other = kept / "outreach-before-upgrade.db"
    left = kept / f"{earlier[-1].name}.{'a' * 32}.part"
    for file in (*earlier, other, left):
        file.touch()
    # A day ago: no running backup writes it any more.
    os.utime(left, (0, 0))
    assert back_up(f"sqlite:///{tmp_path}/nothing.db", kept, "2").returncode != 0
    assert {*kept.iterdir()} == {*earlier, other, left}
    done = back_up(url, kept, "2")
    assert done.returncode == 0, done.stderr
    (made,) = {*kept.iterdir()} - {*earlier, other, left}
    assert {*kept.iterdir()} == {made, earlier[-1], other}
    assert "Acme" in run("outreach-server", "--database", f"sqlite:///{made}", "workspaces", "list")
    for wrong in (["kept"], [kept, "0"], [kept, "-1"], [kept, "many"], []):
        assert back_up(url, *wrong).returncode != 0
    assert made.exists()


@contextmanager
def appending(log: Path, database: Path) -> Iterator[str]:
    """Serve as the example of the rotation says, and yield the server's address."""
    command = [sys.executable, "-m", "outreach_server", "serve", "--json", "--no-dispatch", "--port", "0"]
    environment = {**os.environ, "OUTREACH_DATABASE_URL": f"sqlite:///{database}"}
    with (
        log.open("ab") as end,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=end) as server,
    ):
        try:
            assert server.stdout is not None
            # One document on several lines.
            yield json.loads(b"".join(iter(server.stdout.readline, b"}\n")) + b"}")["url"]
        finally:
            server.terminate()


def log_has(log: Path, words: str) -> bool:
    """Wait for a line of a log, and return True."""
    return bool(until(lambda: words in log.read_text("utf-8"), words))


@pytest.mark.parametrize("rotate", [pytest.param("logrotate", marks=needs("logrotate")), "as it does"])
def test_the_log_is_rotated_while_the_server_writes_it(tmp_path: Path, rotate: str) -> None:
    """Earlier lines are in the rotated file, later ones in the log, from its beginning."""
    log = tmp_path / "outreach.log"
    rules = (HOSTING / "outreach.logrotate").read_text("utf-8").replace("/var/log/outreach", str(tmp_path))
    (tmp_path / "rules").write_text(rules, "utf-8")
    assert "    copytruncate\n" in rules
    with appending(log, tmp_path / "outreach.db") as address:
        httpx.get(f"{address}/nowhere", trust_env=False, headers={"X-Request-Id": "before"})
        assert log_has(log, "request before")
        if rotate == "logrotate":
            run("logrotate", "--force", "--state", tmp_path / "state", tmp_path / "rules")
        else:
            shutil.copyfile(log, tmp_path / "outreach.log.1")
            os.truncate(log, 0)
        assert "request before" in (tmp_path / "outreach.log.1").read_text("utf-8")
        httpx.get(f"{address}/nowhere", trust_env=False, headers={"X-Request-Id": "after"})
        assert log_has(log, "request after")
    written = log.read_bytes()
    assert b"\0" not in written
    assert b"request before" not in written
