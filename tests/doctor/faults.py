"""Faults, each with the code of its finding: one thing of a healthy system is broken."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import sys
import zoneinfo
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import attrs
import httpx
import pytest
from cryptography.fernet import Fernet

from outreach.insight.diagnosis import accounts, query
from outreach.ledger.campaigns.transitions import move
from outreach.models.campaign import PreparedRecipient
from outreach.models.states import APPROVAL_ENDED, CampaignAction, CampaignStatus, DispatchState, RecipientStatus
from outreach.models.work import COPIED_TO, Claim, DatabaseHome, HighWaterMark, WorkUnit
from outreach.providers.carriers.twilio import TwilioAdapter
from outreach.storage.sqlite import diagnosis, schema, watch
from outreach.storage.sqlite.lock import Mount, SqliteDispatchLock
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    make_dispatch,
    make_message,
    make_occurrence,
    make_schedule,
    make_unsubscribe,
    make_webhook,
    make_webhook_attempt,
    make_webhook_cursor,
    make_worker,
)
from tests.doctor.system import DAY, HOST, PUBLIC_URL, System, no_dispatcher
from tests.listening.certificates import write_pair
from tests.migrations import with_later_migrations

Patch = pytest.MonkeyPatch
Plant = Callable[[System, Patch], Awaitable[None]]


@attrs.frozen
class Fault:
    """A fault.

    Attributes:
        code: Of its finding.
        plant: Breaks one thing.
        implied: Codes of what goes wrong with it.
        name: What tells faults of one code apart.
    """

    code: str
    plant: Plant
    implied: Sequence[str] = ()
    name: str = ""

    @property
    def id(self) -> str:
        """Its code and its name, in one word."""
        return f"{self.code} {self.name}".strip().replace(" ", "-")


FAULTS: Final[list[Fault]] = []


def fault(code: str, *implied: str, name: str = "") -> Callable[[Plant], Plant]:
    """Add a function to the faults."""

    def add(plant: Plant) -> Plant:
        FAULTS.append(Fault(code, plant, implied, name))
        return plant

    return add


# ------------------------------------------------------------------------------------------------ the database's file


@fault("database_missing")
async def _(system: System, _: Patch) -> None:
    system.database.unlink()


@fault("database_missing", name="in an empty file")
async def _(system: System, _: Patch) -> None:
    system.database.write_bytes(b"")


@fault("database_not_writable")
async def _(system: System, patch: Patch) -> None:
    system.database.chmod(0o400)
    # Root may write everything, and the tests may run as root.
    allowed = os.access

    def access(path: Any, mode: int, **more: Any) -> bool:
        is_read_only = path == system.database and not system.database.stat().st_mode & stat.S_IWUSR
        return allowed(path, mode, **more) and not (is_read_only and mode & os.W_OK)

    patch.setattr(os, "access", access)


@fault("database_not_writable", name="a state directory that is missing")
async def _(system: System, patch: Patch) -> None:
    patch.setenv("OUTREACH_STATE_DIR", str(system.directory / "state"))


@fault("database_not_writable", name="a state directory of another user")
async def _(system: System, patch: Patch) -> None:
    state = system.directory / "state"
    state.mkdir(mode=0o500)
    patch.setenv("OUTREACH_STATE_DIR", str(state))
    # As above, for root.
    allowed = os.access

    def access(path: Any, mode: int, **more: Any) -> bool:
        is_read_only = path == state and not state.stat().st_mode & stat.S_IWUSR
        return allowed(path, mode, **more) and not (is_read_only and mode & os.W_OK)

    patch.setattr(os, "access", access)


@fault("database_exposed")
async def _(system: System, _: Patch) -> None:
    system.directory.chmod(0o755)
    system.database.chmod(0o644)


@fault("directory_exposed")
async def _(system: System, _: Patch) -> None:
    system.directory.chmod(0o770)


@fault("key_exposed")
async def _(system: System, _: Patch) -> None:
    key_file(system).chmod(0o644)


def key_file(system: System) -> Path:
    """Return the file with the key of the credentials."""
    return system.directory / "outreach.db.key"


@fault("key_exposed", name="in a file of one's own")
async def _(system: System, patch: Patch) -> None:
    file = system.directory / "secret-key"
    key_file(system).rename(file)
    file.chmod(0o640)
    patch.setenv("OUTREACH_SECRET_KEY_FILE", str(file))


@fault("rekey_unfinished")
async def _(system: System, _: Patch) -> None:
    file = key_file(system)
    file.write_text(f"{Fernet.generate_key().decode()}\n{file.read_text('ascii')}", encoding="ascii")


@fault("disk_low")
async def _(system: System, patch: Patch) -> None:
    """Rows were deleted, and the file has kept their room."""
    before = system.database.stat().st_size
    with closing(sqlite3.connect(system.database)) as raw, raw:
        raw.execute("CREATE TABLE ballast AS SELECT randomblob(1000000) AS bytes")
        raw.execute("DROP TABLE ballast")

    def usage(_: object) -> object:
        is_large = system.database.stat().st_size > before + 500_000
        return SimpleNamespace(free=50 * 1024**2 if is_large else 50 * 1024**3)

    patch.setattr(shutil, "disk_usage", usage)


@fault("log_large")
async def _(system: System, patch: Patch) -> None:
    patch.setattr(diagnosis, "LARGE_LOG_BYTES", -1)


@fault("network_file_system")
async def _(_: System, patch: Patch) -> None:
    patch.setattr(diagnosis, "system_mounts", lambda: [Mount("/", "nfs4")])


@fault("database_damaged")
async def _(system: System, _: Patch) -> None:
    with system.database.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size // 2)
        file.write(b"\xff" * (size // 4))


@fault("database_damaged", name="no database at all")
async def _(system: System, _: Patch) -> None:
    system.database.write_bytes(b"This is a text." * 1000)


@fault("integrity_not_checked")
async def _(_: System, patch: Patch) -> None:
    patch.setattr(diagnosis, "INTEGRITY_SECONDS", -1.0)
    patch.setattr(diagnosis, "_CHECK_EVERY", 1)


@fault("database_foreign")
async def _(system: System, _: Patch) -> None:
    system.database.unlink()
    with closing(sqlite3.connect(system.database)) as raw:
        raw.execute("CREATE TABLE songs (name TEXT)")
    system.database.chmod(0o600)


@fault("database_newer")
async def _(system: System, _: Patch) -> None:
    with closing(sqlite3.connect(system.database)) as raw, raw:
        raw.execute("INSERT INTO _sqlite_migrations (migration_set, name) VALUES ('outreach', '9999_later')")


@fault("database_older")
async def _(_: System, patch: Patch) -> None:
    later = with_later_migrations()
    patch.setattr(schema, "scripts", lambda: later)


@fault("database_replaced")
async def _(system: System, _: Patch) -> None:
    """The file of another moment lies beside a log that was left."""
    older = system.directory / "older"
    shutil.copyfile(system.database, older)
    system.database.unlink()
    with closing(sqlite3.connect(system.database)) as raw:
        raw.execute("PRAGMA journal_mode = WAL")
        raw.execute("CREATE TABLE x (y)")
        raw.execute("PRAGMA user_version = 2000000000")
        log = system.directory / "outreach.db-wal"
        left = log.read_bytes()
        SqliteDispatchLock(system.database).record_high_water(HighWaterMark(database="x", epoch=1, change=1))
    note = system.directory / "outreach.db.dispatch-note"
    footprint = {"page": "0" * 32, "written_at": 1, "latest": 2_000_000_000, "salts": None}
    note.write_text(f'{{"file": {str(footprint).replace(chr(39), chr(34)).replace("None", "null")}}}', "utf-8")
    older.replace(system.database)
    log.write_bytes(left)


@fault("database_log_deleted")
async def _(system: System, patch: Patch) -> None:
    """As if another process had the file open: its lock is not to be had in this one."""
    patch.setattr(watch, "_is_used_with_log_elsewhere", lambda _: True)
    patch.setattr(watch, "_OPENING_SECONDS", 0.0)


@fault("database_copied", "no_dispatcher")
async def _(system: System, _: Patch) -> None:
    def operation(tx: Transaction) -> None:
        no_dispatcher(tx)
        tx.leases.set_home(DatabaseHome(host=COPIED_TO, path="sqlite:////srv/outreach.db"))

    await system.write(operation)


@fault("database_moved", "no_dispatcher")
async def _(system: System, _: Patch) -> None:
    def operation(tx: Transaction) -> None:
        no_dispatcher(tx)
        tx.leases.set_home(DatabaseHome(host="another", path=str(system.database)))

    await system.write(operation)


@fault("database_restored", "no_dispatcher")
async def _(system: System, _: Patch) -> None:
    def operation(tx: Transaction) -> None:
        no_dispatcher(tx)
        mark = HighWaterMark(database=tx.leases.database_id(), epoch=9, change=1)
        SqliteDispatchLock(system.database).record_high_water(mark, ended=True)

    await system.write(operation)


# -------------------------------------------------------------------------------------------------- keys and accounts


@fault("key_not_usable", name="missing")
async def _(system: System, _: Patch) -> None:
    key_file(system).unlink()


@fault("key_not_usable", name="not a key")
async def _(system: System, patch: Patch) -> None:
    patch.setenv("OUTREACH_SECRET_KEY", "not-a-key")


@fault("account_not_usable")
async def _(system: System, patch: Patch) -> None:
    patch.setenv("OUTREACH_SECRET_KEY", Fernet.generate_key().decode())


@fault("account_refused")
async def _(system: System, _: Patch) -> None:
    system.provider.refuses = True


@fault("account_without_funds")
async def _(system: System, _: Patch) -> None:
    system.provider.status = 402


@fault("account_disabled")
async def _(system: System, _: Patch) -> None:
    system.provider.account["status"] = "suspended"


@fault("provider_unreachable")
async def _(system: System, _: Patch) -> None:
    system.provider.status = 503


@fault("provider_unreachable", name="it hangs")
async def _(system: System, patch: Patch) -> None:
    patch.setattr(accounts, "REQUEST_SECONDS", 0.2)
    system.provider.answers.clear()
    system.closing.append(system.provider.answers.set)


@fault("provider_unreachable", name="it hangs, and its client waits")
async def _(system: System, patch: Patch) -> None:
    patch.setattr(accounts, "ACCOUNT_SECONDS", 0.2)
    system.provider.answers.clear()
    system.closing.append(system.provider.answers.set)


@fault("clock_wrong")
async def _(system: System, _: Patch) -> None:
    system.provider.clock_ahead = 90


@fault("clock_wrong", name="ahead, and far")
async def _(system: System, _: Patch) -> None:
    system.provider.clock_ahead = -3600


@fault("callback_elsewhere")
async def _(system: System, _: Patch) -> None:
    system.provider.sms_url = "https://demo.twilio.com/welcome/sms/reply"


@fault("callback_misdirected")
async def _(system: System, _: Patch) -> None:
    await system.within(lambda engine: engine.callbacks.misdirected(system.account_id, "method"))


@fault("callback_misdirected", name="another path")
async def _(system: System, _: Patch) -> None:
    await system.within(lambda engine: engine.callbacks.misdirected(system.account_id, "path"))


@fault("callback_not_set")
async def _(system: System, _: Patch) -> None:
    system.provider.sms_url = ""


@fault("adapter_not_usable")
async def _(system: System, patch: Patch) -> None:
    from tests.own_adapter import package

    points = {"outreach.adapters": {"gone": "own_things:GONE"}}
    installed = package(system.directory, patch, points)
    installed.__enter__()
    system.closing.append(lambda: installed.__exit__(None, None, None))


# ---------------------------------------------------------------------------------------------------- the environment


@fault("public_url_missing")
async def _(system: System, _: Patch) -> None:
    del system.settings["public_url"]


@fault("public_url_local", "callback_elsewhere", "certificate_of_another_name")
async def _(system: System, _: Patch) -> None:
    system.settings["public_url"] = "http://127.0.0.1:8000"


@fault("public_url_local", name="a private address")
async def _(system: System, _: Patch) -> None:
    system.addresses = ["10.0.0.7"]


@fault("public_url_unresolvable")
async def _(system: System, _: Patch) -> None:
    system.addresses = []


@fault("public_url_unanswered")
async def _(system: System, _: Patch) -> None:
    system.answer = httpx.Response(404, text="nginx")


@fault("time_zones_missing")
async def _(system: System, patch: Patch) -> None:
    # Its parts too: one that another test has loaded would still be found.
    for name in {"tzdata", *(name for name in sys.modules if name.startswith("tzdata."))}:
        patch.setitem(sys.modules, name, None)
    known = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=())
    system.closing.append(lambda: zoneinfo.reset_tzpath(to=known))


@fault("sender_takes_no_replies")
async def _(system: System, _: Patch) -> None:
    await system.campaign(from_number="CLINIC")


@fault("numbers_misread")
async def _(system: System, _: Patch) -> None:
    campaign = await system.campaign()
    row = PreparedRecipient("4915123456701", "+494915123456701", None, None, None, None, None, None)
    people = [(1, row, RecipientStatus.PENDING, None)]
    await system.write(lambda tx: tx.recipients.insert(system.workspace_id, campaign.id, people, now=datetime.now(UTC)))


# ------------------------------------------------------------------------------------------------------------ the work


@fault("no_dispatcher")
async def _(system: System, _: Patch) -> None:
    await system.write(no_dispatcher)


@fault("behind")
async def _(system: System, _: Patch) -> None:
    queued = make_message(workspace_id=system.workspace_id)
    unit = WorkUnit("message", system.workspace_id, queued.id)

    def operation(tx: Transaction) -> None:
        tx.messages.insert(queued)
        tx.work.schedule(unit, datetime.now(UTC) - timedelta(minutes=5))

    await system.write(operation)


@fault("schedule_paused")
async def _(system: System, _: Patch) -> None:
    campaign = await system.campaign()
    schedule = make_schedule(workspace_id=campaign.workspace_id, template_id=campaign.id, state="paused", reason="cost")
    await system.write(lambda tx: tx.schedules.insert(schedule))


@fault("run_blocked")
async def _(system: System, _: Patch) -> None:
    campaign = await system.campaign(status=CampaignStatus.READY)
    schedule = make_schedule(workspace_id=campaign.workspace_id, template_id=campaign.id, blocked=1)
    run = make_occurrence(
        workspace_id=campaign.workspace_id,
        schedule_id=schedule.id,
        run_id=campaign.id,
        state="blocked",
        reason="readiness",
        detail="Nothing is set up.",
    )

    def operation(tx: Transaction) -> None:
        tx.schedules.insert(schedule)
        tx.occurrences.insert(run)

    await system.write(operation)


@fault("webhook_disabled")
async def _(system: System, _: Patch) -> None:
    webhook = make_webhook(workspace_id=system.workspace_id, state="disabled", reason="gone")

    def operation(tx: Transaction) -> None:
        tx.webhooks.insert(webhook)
        tx.webhook_cursors.put(make_webhook_cursor(workspace_id=system.workspace_id, webhook_id=webhook.id))

    await system.write(operation)


@fault("webhook_failing")
async def _(system: System, _: Patch) -> None:
    webhook, place = make_webhook(workspace_id=system.workspace_id), {"workspace_id": system.workspace_id}
    since = datetime.now(UTC) - timedelta(hours=2)
    attempt = make_webhook_attempt(webhook_id=webhook.id, number=1, status=503, **place)

    def operation(tx: Transaction) -> None:
        tx.webhooks.insert(webhook)
        cursor = make_webhook_cursor(
            webhook_id=webhook.id, failures=5, failing_since=since, probe_at=since + DAY, **place
        )
        tx.webhook_cursors.put(cursor)
        tx.webhook_attempts.insert(attempt)

    await system.write(operation)


@fault("campaign_paused")
async def _(system: System, _: Patch) -> None:
    campaign = await system.campaign()
    await system.write(
        lambda tx: move(
            tx, campaign, CampaignAction.PAUSE, now=datetime.now(UTC), actor="engine", pause_reason="error_budget"
        )
    )


@fault("start_taken_back")
async def _(system: System, _: Patch) -> None:
    campaign = await system.campaign()
    await system.write(
        lambda tx: move(
            tx, campaign, CampaignAction.UNSCHEDULE, now=datetime.now(UTC), actor="user:ann", detail=APPROVAL_ENDED
        )
    )


@fault("campaign_overdue")
async def _(system: System, _: Patch) -> None:
    await system.campaign(scheduled_start_at=datetime.now(UTC) - timedelta(minutes=5))


@fault("orphaned_claims")
async def _(system: System, _: Patch) -> None:
    def operation(tx: Transaction) -> None:
        tx.workers.put(make_worker(epoch=5))
        tx.claims.put(Claim(workspace_id=system.workspace_id, subject="singles", epoch=3, held=True))

    await system.write(operation)


@fault("archive_missing")
async def _(system: System, _: Patch) -> None:
    with closing(sqlite3.connect(system.database)) as raw, raw:
        row = ("a", "/nowhere/archive.db", "2026-01-01T00:00:00.000000Z")
        raw.execute("INSERT INTO archives (id, file, created_at) VALUES (?, ?, ?)", row)


@fault("requests_overdue")
async def _(system: System, _: Patch) -> None:
    def operation(tx: Transaction) -> None:
        message = make_message(workspace_id=system.workspace_id)
        tx.messages.insert(message)
        dispatch = make_dispatch(
            workspace_id=system.workspace_id,
            message_id=message.id,
            state=DispatchState.UNKNOWN,
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        tx.dispatches.insert(dispatch)

    await system.write(operation)


@fault("number_held")
async def _(system: System, _: Patch) -> None:
    held = make_unsubscribe(workspace_id=system.workspace_id, scope="held", source="unclear", evidence="bus stop?")
    await system.write(lambda tx: tx.register.put(held))


@fault("check_failed")
async def _(_: System, patch: Patch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    patch.setattr(query, "of_clock", broken)


@fault("check_failed", name="in an adapter")
async def _(_: System, patch: Patch) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("broken")

    patch.setattr(TwilioAdapter, "check", broken)


# ---------------------------------------------------------------------------------------------------------- the server


@fault("certificate_expired")
async def _(system: System, _: Patch) -> None:
    write_pair(*system.certificate, name=HOST, host=HOST, since=-9 * DAY, until=-DAY)


@fault("certificate_expires_soon")
async def _(system: System, _: Patch) -> None:
    write_pair(*system.certificate, name=HOST, host=HOST, since=-80 * DAY, until=9 * DAY)


@fault("certificate_not_valid_yet")
async def _(system: System, _: Patch) -> None:
    write_pair(*system.certificate, name=HOST, host=HOST, since=DAY, until=90 * DAY)


@fault("certificate_of_another_name")
async def _(system: System, _: Patch) -> None:
    write_pair(*system.certificate, name=HOST, host="*.example.org", since=-DAY, until=90 * DAY)


@fault("certificate_key_mismatch")
async def _(system: System, _: Patch) -> None:
    certificate, _key = system.certificate
    write_pair(certificate, system.directory / "other.pem", name=HOST, host=HOST, since=-DAY, until=90 * DAY)


@fault("certificate_not_usable")
async def _(system: System, _: Patch) -> None:
    system.certificate[0].write_text("-----BEGIN CERTIFICATE-----\n", encoding="utf-8")


@fault("certificate_not_usable", name="missing")
async def _(system: System, _: Patch) -> None:
    system.certificate[1].unlink()


@fault("certificate_key_exposed")
async def _(system: System, _: Patch) -> None:
    system.certificate[1].chmod(0o644)


@fault("listens_in_plain")
async def _(system: System, _: Patch) -> None:
    system.settings.update(listen_host="0.0.0.0", tls_certificate=None, tls_key=None)  # noqa: S104 - not bound


@fault("proxies_too_wide")
async def _(system: System, _: Patch) -> None:
    system.settings["proxy_headers"] = "127.0.0.1, 0.0.0.0/0"


@fault("root_path_differs")
async def _(system: System, _: Patch) -> None:
    system.settings["root_path"] = "/outreach"


@fault("root_path_differs", name="the address has one")
async def _(system: System, _: Patch) -> None:
    system.settings["public_url"] = f"{PUBLIC_URL}/outreach"
    system.provider.sms_url = f"{PUBLIC_URL}/outreach/webhooks/{system.account_id}"


@fault("spool_not_writable")
async def _(system: System, _: Patch) -> None:
    system.settings["spool_directory"] = system.directory / "nowhere"


@fault("spool_not_writable", name="of another user")
async def _(system: System, patch: Patch) -> None:
    spool = system.directory / "spool"
    spool.mkdir(mode=0o500)
    system.settings["spool_directory"] = spool
    # As above, for root.
    allowed = os.access

    def access(path: Any, mode: int, **more: Any) -> bool:
        is_read_only = path == spool and not spool.stat().st_mode & stat.S_IWUSR
        return allowed(path, mode, **more) and not (is_read_only and mode & os.W_OK)

    patch.setattr(os, "access", access)
