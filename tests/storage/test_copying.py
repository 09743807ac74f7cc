"""Copying a whole database from SQLite to PostgreSQL and back."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from outreach.core.clock import SystemClock
from outreach.database import check_database, copy_database
from outreach.errors import DatabaseInUse, DatabaseMissing, StorageError
from outreach.models.prices import Price, PriceTable
from outreach.models.schedule import ScheduleApproval
from outreach.models.settings import CallSettings, ReplySettings, SmsSettings
from outreach.models.unreachable import UnreachableNumber
from outreach.models.upload import Upload
from outreach.models.user import LoginFailures, RecoveryCode
from outreach.models.work import Claim, DatabaseHome, WorkUnit
from outreach.protocols.storage import Storage
from outreach.storage.base import transfer
from outreach.storage.opening import storage_from_url
from outreach.storage.postgres import transfer as postgres_transfer
from outreach.storage.postgres.transfer import PostgresEndpoint
from outreach.storage.sqlite import schema
from outreach.storage.sqlite.transfer import SqliteEndpoint, copied_tables
from outreach.storage.unit_of_work import Transaction
from outreach.testing import builders
from outreach.testing.builders import NOW, WORKSPACE_ID, new_id
from outreach.testing.storage_tables.base_contract import AWKWARD_TEXTS, OTHER_WORKSPACE, pending, publish
from tests import postgres
from tests.cli.conftest import Cli

AWKWARD = "".join(text for text in AWKWARD_TEXTS.values() if len(text) < 1_000)


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A SQLite database that is not there yet."""
    return f"sqlite:///{tmp_path / 'outreach.db'}"


@pytest.fixture
def back(tmp_path: Path) -> str:
    """Another one."""
    return f"sqlite:///{tmp_path / 'back.db'}"


@pytest.fixture
def server_url() -> Iterator[str]:
    """A PostgreSQL database without the schema."""
    with postgres.server().database() as name:
        yield postgres.server().url(name)


def opened(url: str) -> Storage:
    """Return a storage, not yet entered."""
    return storage_from_url(url, clock=SystemClock(), host="test")


def fill(tx: Transaction) -> None:
    """Write at least one row of every kind."""
    tx.workspaces.insert(builders.make_workspace())
    tx.workspaces.insert(builders.make_workspace(id=OTHER_WORKSPACE, name=AWKWARD))
    agent, trunk, flow = builders.make_agent(), builders.make_trunk(), builders.make_flow()
    tx.keys.insert(builders.make_key())
    tx.agents.insert(agent)
    tx.trunks.insert(trunk)
    tx.numbers.insert(builders.make_number())
    tx.flows.insert(flow)
    tx.accounts.insert(builders.make_account())
    tx.provider_throttles.put(builders.make_provider_throttle())
    tx.callbacks.insert(builders.make_callback(body=b"\x00\xff{}", report=builders.make_message_report()))
    tx.settings.put(WORKSPACE_ID, SmsSettings())
    tx.call_settings.put(WORKSPACE_ID, CallSettings())
    tx.price_tables.put(WORKSPACE_ID, PriceTable(currency="EUR", prices=(Price(kind="sms", amount=Decimal("0.07")),)))
    tx.reply_settings.put(WORKSPACE_ID, ReplySettings())
    tx.register.put(builders.make_unsubscribe(evidence=AWKWARD))
    tx.register.hash_number(builders.make_unsubscribe(phone="+15550000002"), salt="salt")
    tx.requests.put_window(builders.make_window())
    tx.requests.put_stored(builders.make_stored_request(answer=b"\x00\x01"))
    campaigns = [
        publish(tx, builders.make_campaign(name=name), pending(builders.make_prepared(), builders.make_prepared()))
        for name in ("Spring sale", AWKWARD)
    ]
    loading = builders.make_campaign(workspace_id=OTHER_WORKSPACE)
    tx.campaigns.insert_loading(loading, loading_until=NOW + timedelta(days=1))
    tx.recipients.insert(OTHER_WORKSPACE, loading.id, pending(builders.make_prepared()), now=NOW)
    campaign = campaigns[0]
    tx.erasures.begin(WORKSPACE_ID, campaigns[1].id, figures="{}")
    message, call = builders.make_message(body=AWKWARD), builders.make_call(agent_id=agent.id, variables={"a": AWKWARD})
    tx.messages.insert(message)
    tx.calls.insert(call)
    tx.calls.put_transcript(call, AWKWARD)
    tx.dispatches.insert(builders.make_dispatch(message_id=message.id))
    tx.dispatches.insert(builders.make_dispatch(call_id=call.id))
    for position in (1, 0):
        tx.dispatches.insert(builders.make_dispatch(campaign_id=campaign.id, position=position))
    tx.inbound.insert(builders.make_inbound(provider="p", provider_id="i"))
    tx.work.schedule(WorkUnit("campaign", WORKSPACE_ID, campaign.id), NOW)
    tx.runs.put(builders.make_run(campaign_id=campaign.id))
    assert tx.forecasts.keep(WORKSPACE_ID, "1", builders.make_kept_forecast(campaign_id=campaign.id), most=9)
    tx.approvals.put(WORKSPACE_ID, campaign.id, builders.make_approval(approved_by=AWKWARD))
    tx.runs.put_sender_slot(WORKSPACE_ID, "+15550000001", NOW)
    tx.leases.put(builders.make_lease(home=DatabaseHome(host="test", path="/x")))
    tx.leases.set_home(DatabaseHome(host="test", path="/x"))
    tx.workers.put(builders.make_worker())
    tx.claims.put(Claim(workspace_id=WORKSPACE_ID, subject=campaign.id, epoch=1, held=True))
    tx.subscriptions.put(builders.make_subscription())
    user = builders.make_user(name=AWKWARD, totp_step=7)
    tx.users.insert(user)
    tx.memberships.put(builders.make_membership(user_id=user.id))
    tx.sessions.insert(builders.make_session(user_id=user.id, agent=AWKWARD))
    tx.invitations.insert(builders.make_invitation(user_id=user.id))
    tx.recovery_codes.replace(user.id, [RecoveryCode(user_id=user.id, digest="d")])
    tx.login_failures.put(LoginFailures(bucket="b", count=1, last_at=NOW))
    tx.audit.append(builders.make_audit_entry(detail=AWKWARD))
    approval = ScheduleApproval(
        revision=1, template_revision=1, most_contacts=9, most_amount=None, approved_by=AWKWARD, approved_at=NOW
    )
    schedule = builders.make_schedule(name=AWKWARD, except_dates=(NOW.date(),), ends_on=NOW.date(), approval=approval)
    tx.schedules.insert(schedule)
    tx.occurrences.insert(builders.make_occurrence(schedule_id=schedule.id, detail=AWKWARD, amount=Decimal("0.07")))
    webhook = builders.make_webhook(description=AWKWARD, types=("campaign.completed",))
    tx.webhooks.insert(webhook)
    tx.webhook_cursors.put(builders.make_webhook_cursor(webhook_id=webhook.id, probe_at=NOW))
    tx.webhook_holds.put(builders.make_webhook_hold(webhook_id=webhook.id))
    tx.webhook_attempts.insert(builders.make_webhook_attempt(webhook_id=webhook.id, answer=AWKWARD))
    tx.trail.append(builders.make_trail_entry(campaign_id=campaign.id, schedule_id=schedule.id))
    tx.trail.append(builders.make_trail_entry())
    upload = Upload(
        id=new_id(),
        workspace_id=WORKSPACE_ID,
        file_name=AWKWARD,
        size_bytes=2,
        received_bytes=2,
        created_at=NOW,
        expires_at=NOW + timedelta(days=1),
    )
    tx.unreachable_numbers.put(
        UnreachableNumber(
            workspace_id=WORKSPACE_ID,
            phone="+14155550188",
            channel="sms",
            provider="twilio",
            error_code=AWKWARD,
            reported_at=NOW,
        )
    )
    tx.uploads.insert(upload)
    tx.uploads.add_chunk(upload, 0, b"\x00\xff")


async def filled(url: str) -> None:
    """Make a database with all kinds of rows, of which some were deleted or changed again."""
    async with opened(url) as storage:
        await storage.write(fill)
        agents = await storage.read(lambda tx: tx.agents.list(WORKSPACE_ID))
        await storage.write(lambda tx: tx.agents.update(attrs.evolve(agents[0], name="New")))
        await storage.write(lambda tx: tx.work.schedule(WorkUnit("message", WORKSPACE_ID, new_id()), None))
        await storage.write(lambda tx: tx.work.delete_idle(limit=9))
    if url.startswith("sqlite:"):
        # Only files have archives.
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as raw, raw:
            raw.execute("INSERT INTO archives VALUES ('one', '/archive.db', '2026-01-01T00:00:00.000000Z')")
            raw.execute(
                "INSERT INTO archived_campaigns SELECT number, 'one', 'archived', 2, '{}', 0, created_at "
                "FROM campaigns LIMIT 1"
            )


def rows_of(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table of a SQLite file, the index of names and the numbers to come included."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as raw:
        tables = [name for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        # `home` says which database is the copy.
        own = ("_sqlite_migrations", "home")
        kept = [name for name in tables if name not in own and not name.startswith("campaign_names_")]
        found = {name: sorted(raw.execute(f"SELECT * FROM {name}"), key=repr) for name in kept}  # noqa: S608
        found["dispatches"] = raw.execute("SELECT rowid, * FROM dispatches ORDER BY rowid").fetchall()
        found["campaign_names"] = raw.execute("SELECT rowid, name FROM campaign_names ORDER BY rowid").fetchall()
        found["found"] = raw.execute(
            "SELECT rowid FROM campaign_names WHERE campaign_names MATCH '\"spring\"'"
        ).fetchall()
        return found


def what_is_copied(rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """Return these rows without those of who dispatches, and without uploads."""
    return {**rows, "workers": [], "claims": [], "uploads": [], "upload_chunks": []}


@pytest.mark.anyio
async def test_there_and_back_every_row_is_the_same(file: str, back: str, server_url: str) -> None:
    """But for who dispatched; also the numbers that come next, and what is written then follows on."""
    await filled(file)
    before = rows_of(file)
    told: list[str] = []
    there = copy_database(file, server_url, on_progress=told.append)
    assert set(there.rows) == {table.name for table in copied_tables()} >= {"recipients", "trail"}
    assert min(there.rows.values()) > 0, there.rows
    assert rows_of(file) == before
    assert [one for one in check_database(server_url).problems if "server" not in one] == []
    copied = copy_database(server_url, back)
    assert copied.rows == there.rows
    with pytest.raises(StorageError, match="To go back, name a new file") as refused:
        copy_database(server_url, file)
    assert f"was itself copied to {server_url.replace('postgres@', '')}" in refused.value.message
    assert rows_of(file) == before
    assert before["workers"]
    assert before["claims"]
    assert before["upload_chunks"]
    assert rows_of(back) == what_is_copied(before)
    assert check_database(back).problems == []
    for url in (file, server_url, back):
        async with opened(url) as storage:
            await storage.write(write_more)
    assert await looked_at(file) == await looked_at(server_url) == await looked_at(back)


def write_more(tx: Transaction) -> None:
    """Write rows that get numbers."""
    tx.trail.append(builders.make_trail_entry())
    tx.audit.append(builders.make_audit_entry(subject="more"))
    tx.work.schedule(WorkUnit("message", WORKSPACE_ID, "later"), NOW)
    publish(tx, builders.make_campaign(id="0195554e-0000-7000-8000-0000000000ca", name="Spring again"))


async def looked_at(url: str) -> list[object]:
    """Return what a storage says of what was copied and written then."""

    def read(tx: Transaction) -> list[object]:
        found, total = tx.campaign_lists.page(
            WORKSPACE_ID, channel=None, status=None, search="spring", offset=0, limit=9
        )
        return [
            tx.trail.last_number(),
            list(tx.trail.between(None, 0, 99)),
            [entry.subject for entry in tx.audit.list(None)],
            list(tx.work.since(0)),
            tx.campaign_lists.revision(WORKSPACE_ID),
            [stored.id for stored in found],
            total,
            list(tx.inbound.list(WORKSPACE_ID)),
            tx.price_tables.get(WORKSPACE_ID),
            [tx.forecasts.of_campaign(WORKSPACE_ID, one) for one in sorted(one.id for one in found)],
            [tx.approvals.get(WORKSPACE_ID, one.id, 1) for one in found],
            tx.register.get(WORKSPACE_ID, "+15550000002"),
            tx.leases.database_id(),
        ]

    async with opened(url) as storage:
        return await storage.read(read)


@pytest.mark.anyio
async def test_a_database_in_use_is_not_copied(
    file: str, back: str, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither from it nor into it, while any process has it open."""
    monkeypatch.setattr(schema, "_LOG_SECONDS", 0.1)
    await filled(file)
    async with opened(file):
        with pytest.raises(DatabaseInUse):
            copy_database(file, server_url)
    copy_database(file, server_url)
    async with opened(server_url):
        with monkeypatch.context() as patch:
            patch.setattr(postgres_transfer, "_WAIT_SECONDS", 0.1)
            with pytest.raises(DatabaseInUse, match="is open in another process"):
                copy_database(server_url, back)
    with pytest.raises(StorageError, match="holds data already"):
        copy_database(file, server_url)
    with pytest.raises(DatabaseMissing):
        copy_database(f"{file}.missing", server_url)


class Killed(BaseException):
    """What ends a copy at once."""


def kill_after(steps: int, patch: pytest.MonkeyPatch) -> None:
    """Have the copy end before one of its steps, with transactions of one row."""
    left = iter(range(steps))
    patch.setattr(transfer, "_SLICE", 1)

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any) -> Any:
            if next(left, None) is None:
                raise Killed
            return function(*given)

        return counted

    for kind in (PostgresEndpoint, SqliteEndpoint):
        for name in ("insert", "clear", "note", "finish", "set_home"):
            patch.setattr(kind, name, counting(getattr(kind, name)))


@pytest.mark.anyio
async def test_a_copy_that_was_interrupted_goes_on(file: str, back: str, server_url: str) -> None:
    """At any point; until it is finished nobody can open what is there."""
    await filled(file)
    before = rows_of(file)
    for source, target in ((file, server_url), (server_url, back)):
        kills = 0
        while True:
            try:
                with pytest.MonkeyPatch.context() as patch:
                    kill_after(1 + kills * 3, patch)
                    copy_database(source, target)
                break
            except Killed:
                kills += 1
            if kills > 1:
                with pytest.raises(StorageError, match="was not finished"):
                    async with opened(target):
                        pass
        assert kills >= 5
    assert rows_of(back) == what_is_copied(before)


KILLED = """
import os, sys
from outreach.database import copy_database
from outreach.storage.base import transfer
from outreach.storage.postgres import transfer as postgres_transfer
from outreach.storage.postgres.transfer import PostgresEndpoint

transfer._SLICE, left, insert = 1, int(sys.argv[3]), PostgresEndpoint.insert

def counted(*given):
    global left
    left -= 1
    insert(*given)
    if left < 0:
        os.kill(os.getpid(), 9)

PostgresEndpoint.insert = counted
copy_database(sys.argv[1], sys.argv[2])
"""


def test_a_copy_whose_process_was_killed_goes_on(file: str, back: str, server_url: str) -> None:
    """The server undoes what was not committed."""
    asyncio.run(filled(file))
    before = rows_of(file)
    command = [sys.executable, "-c", KILLED, file, server_url, "20"]
    assert subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == -9
    copy_database(file, server_url)
    copy_database(server_url, back)
    assert rows_of(back) == what_is_copied(before)


@pytest.mark.anyio
async def test_a_source_that_has_changed_since_is_found_out(
    file: str, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy stays unfinished, and takes no other database's rows."""
    await filled(file)
    finish = transfer._compare
    monkeypatch.setattr(transfer, "_compare", interrupt)
    with pytest.raises(KeyboardInterrupt):
        copy_database(file, server_url)
    monkeypatch.setattr(transfer, "_compare", finish)
    async with opened(file) as storage:
        message = builders.make_message()
        agents = await storage.read(lambda tx: tx.agents.list(WORKSPACE_ID))
        await storage.write(lambda tx: tx.agents.update(attrs.evolve(agents[0], name="Newer")))
        await storage.write(lambda tx: tx.messages.insert(message))
    with pytest.raises(StorageError, match="The rows of agents are not the same in both databases"):
        copy_database(file, server_url)
    async with opened(f"{file}.other") as storage:
        await storage.read(lambda tx: tx.workspaces.list())
    with pytest.raises(StorageError, match="unfinished copy of another one"):
        copy_database(f"{file}.other", server_url)


def interrupt(*_: object) -> int:
    """Interrupt the copy."""
    raise KeyboardInterrupt


def test_the_command_copies_and_says_what_follows(file: str, server_url: str) -> None:
    """Without a password in what it prints."""
    asyncio.run(filled(file))
    cli = Cli(file)
    made = cli.ask("db", "copy", server_url.replace("postgres@", "postgres:secret@"))
    assert made["to"] == server_url.replace("postgres@", "")
    assert made["rows"] == sum(made["rows_of_tables"].values()) > 30
    there = Cli(server_url)
    assert {one["name"] for one in there.ask("workspaces", "list")} == {"Acme", AWKWARD}
    assert "holds data already" in cli.refuse("db", "copy", server_url)
    assert there.ask("db", "migrate")["applied"] == []
    result = there.run("db", "check", "--json")
    assert '"ok": false' in result.stdout
    assert "fsync" in result.stdout
