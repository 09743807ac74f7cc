"""docs/archiving.md#archiving: contacts and requests of ended campaigns in a file of their own."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from outreach import InvalidRequest, NewRecipient, NotFound, Outreach, WorkspaceUpdate
from outreach.database import (
    backup_database,
    check_database,
    compact_database,
    copy_database,
    diagnose_database,
    migrate_database,
    restore_database,
)
from outreach.errors import ArchiveUnavailable, ConfigError, DatabaseMissing, DatabaseOlder, StorageError
from outreach.integrations.archives import archive_ledgers, files, ledgers, list_archives, move_archive, mover
from outreach.models import NewFollowUp, TrailStepKind
from outreach.models.archive import Archive, ArchiveResult
from outreach.models.audience import LeaveOut
from outreach.models.campaign import Campaign
from outreach.models.states import DispatchState, TrailEntry, TrailRule
from outreach.protocols.ledger_archives import LedgerArchives
from outreach.services.registers import erasure
from outreach.storage.sqlite import SqliteStorage, schema
from outreach.storage.sqlite.copying import mark_as_archive
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.tables import erasures
from outreach.testing.builders import (
    NOW,
    make_campaign,
    make_dispatch,
    make_inbound,
    make_occurrence,
    make_prepared,
    make_schedule,
    make_unsubscribe,
)
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE, pending, publish
from tests.engine.all_endings import given_endings
from tests.engine.conftest import given_workspaces
from tests.migrations import LATER, later_version

pytestmark = pytest.mark.anyio

DAY: Final = timedelta(days=1)
HOUR: Final = timedelta(hours=1)
LEDGER: Final = ("recipients", "calls", "transcripts", "dispatches", "trail")


@attrs.frozen
class Place:
    """A database, its archive and a clock that stands 100 days after everything happened."""

    path: Path
    file: Path
    clock: ManualClock

    @property
    def url(self) -> str:
        """The URL of the database."""
        return f"sqlite:///{self.path}"

    def engine(self) -> Outreach:
        """Return an engine that does not dispatch."""
        return Outreach(SqliteStorage(self.path, clock=self.clock), clock=self.clock)

    def archive(self, file: Path | None = None, **given: Any) -> ArchiveResult:
        """Move what ended 40 days ago."""
        before = given.pop("before", self.clock.now() - 40 * DAY)
        return archive_ledgers(self.url, file or self.file, before=before, clock=self.clock, **given)


@pytest.fixture
async def place(tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A database of two workspaces; slices of seven positions."""
    monkeypatch.setattr(mover, "_SLICE", 7)
    clock.advance(100 * DAY.total_seconds())
    made = Place(tmp_path / "main.db", tmp_path / "archive.db", clock)
    async with made.engine() as engine:
        await given_workspaces(engine._storage)
    return made


async def given_campaigns(engine: Outreach) -> Sequence[Campaign]:
    """Write two ended campaigns with everything that can happen, and a trail."""
    found = [
        await given_endings(engine._storage, 3, channel="sms", count=30),
        await given_endings(engine._storage, 4, channel="call", count=20),
    ]

    def tell(tx: Transaction) -> None:
        for campaign in found:
            for position in (None, 0, 3, 8, 15):
                tx.trail.append(
                    TrailEntry(
                        number=0,
                        at=NOW + HOUR,
                        workspace_id=THIS_WORKSPACE,
                        what=TrailStepKind.HELD if position is not None else TrailStepKind.CAMPAIGN,
                        rule=TrailRule.OPERATOR,
                        state="paused",
                        campaign_id=campaign.id,
                        position=position,
                        repeats=0,
                    )
                )

    await engine._storage.write(tell)
    return found


async def told(engine: Outreach, campaign: Campaign) -> dict[str, Any]:
    """Return all that an engine tells of a campaign's contacts."""
    campaigns, where = engine.campaigns, (THIS_WORKSPACE, campaign.id)
    exported = [one async for one in campaigns.iter_export(*where)]
    first = await campaigns.list_recipients(*where, limit=5)
    numbers = [one.recipient.phone for one in exported if one.recipient.phone]
    report = await campaigns.report(*where)
    return {
        "export": exported,
        "csv": b"".join([part async for part in campaigns.export(*where, "csv")]),
        "report": attrs.evolve(report, at=NOW),
        "why": [await campaigns.contact_history(*where, number) for number in numbers[:12]],
        "external": await campaigns.contact_history(*where, external_id="=crm-3"),
        "history": await campaigns.recipient_history(*where, 8),
        "failures": [await campaigns.recipient_failures(*where, position) for position in range(12)],
        "recipients": [one async for one in campaigns.iter_recipients(*where)],
        "listed": await campaigns.list_recipients(*where, after=first.next, limit=6),
        "one": await campaigns.get_recipient(*where, 5),
        "counts": await campaigns.count_recipients(*where),
        "recount": await campaigns.recount(*where),
        "outcomes": [one async for one in campaigns.iter_outcomes(*where)],
        "known as": await campaigns.list_recipients(*where, external_id="=crm-2"),
        "dispatches": await campaigns.list_dispatches(*where, 2),
        "provider failures": await campaigns.provider_failures(*where),
    }


def ledger(path: Path) -> dict[tuple[str, int], list[Any]]:
    """Return the rows of both campaigns in a file, by table."""
    found: dict[tuple[str, int], list[Any]] = {(table, number): [] for table in LEDGER for number in (1, 2)}
    if not path.exists():
        return found
    with closing(sqlite3.connect(path)) as raw:
        if raw.execute("SELECT 1 FROM sqlite_schema WHERE name = 'recipients'").fetchone() is None:
            return found
        for table, number in found:
            query = f"SELECT * FROM {table} WHERE campaign_number = ? ORDER BY rowid"  # noqa: S608
            found[table, number] = raw.execute(query, (number,)).fetchall()
    return found


async def test_everything_of_an_archived_campaign_is_read_as_before(place: Place) -> None:
    """History, export, report, lists and counts; the rows are in the archive alone, and both files are whole."""
    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        before = [await told(engine, campaign) for campaign in campaigns]
    assert before[0]["csv"] != before[1]["csv"]
    assert any(one.replies for one in before[0]["export"])
    assert any(one.opted_out_at for one in before[0]["export"])
    kept = ledger(place.path)
    done = place.archive()
    assert (done.file, done.campaigns, done.kept_back) == (str(place.file), 2, {})
    assert dict(done.rows) == {table: sum(len(kept[table, number]) for number in (1, 2)) for table in LEDGER}
    assert not any(ledger(place.path).values())
    assert ledger(place.file) == kept
    async with place.engine() as engine:
        for campaign, expected in zip(campaigns, before, strict=True):
            found = await told(engine, campaign)
            for what, value in expected.items():
                assert found[what] == value, what
        with pytest.raises(NotFound):
            await engine.campaigns.contact_history(THIS_WORKSPACE, campaigns[0].id, "+14155550000")
    for file in (place.path, place.file):
        assert check_database(f"sqlite:///{file}").problems == []
    assert place.archive().campaigns == 0


def killed_at(monkeypatch: pytest.MonkeyPatch, step: int, *, after_commit: bool = True) -> None:
    """Kill the run at so many of its transactions, after the commit or before it."""
    real, left = schema.transaction, step

    @contextmanager
    def counting(raw: sqlite3.Connection, begin: Any = "BEGIN IMMEDIATE") -> Iterator[None]:
        nonlocal left
        left -= 1
        with real(raw, begin):
            yield
            if left == 0 and not after_commit:
                raise KeyboardInterrupt
        if left == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(mover, "transaction", counting)


@pytest.mark.parametrize("after_commit", [True, False])
async def test_a_crash_at_any_step_loses_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch, after_commit: bool
) -> None:
    """Killed at the first transaction, the second, and so on: each row is in a file, all is told as before."""
    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        before = [await told(engine, campaign) for campaign in campaigns]
    monkeypatch.setattr(mover, "_SLICE", 16)
    kept, image = ledger(place.path), place.path.read_bytes()

    async def assert_told() -> None:
        async with place.engine() as engine:
            assert [await told(engine, campaign) for campaign in campaigns] == before

    step = 0
    while True:
        step += 1
        for path in place.path.parent.iterdir():
            path.unlink()
        place.path.write_bytes(image)
        with monkeypatch.context() as patch:
            killed_at(patch, step, after_commit=after_commit)
            try:
                place.archive()
                break
            except KeyboardInterrupt:
                pass
        here, there = ledger(place.path), ledger(place.file)
        assert all({*here[key], *there[key]} >= {*expected} for key, expected in kept.items()), step
        await assert_told()
        place.archive()
        assert not any(ledger(place.path).values()), step
        assert ledger(place.file) == kept, step
    await assert_told()
    assert step > 15


async def test_what_changes_while_it_is_moved_is_moved_as_it_is(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A late receipt between the copy and the comparison: the slice is copied again."""
    async with place.engine() as engine:
        await given_campaigns(engine)
    copy, changed = mover.Mover._copy_slice, False

    def then_a_receipt(self: Any, campaign: Any, first: int, last: int) -> None:
        nonlocal changed
        copy(self, campaign, first, last)
        if not changed:
            changed = True
            with closing(sqlite3.connect(place.path)) as raw, raw:
                raw.execute("UPDATE dispatches SET report = 'failed' WHERE position = 0 AND campaign_number = 1")
                raw.execute("UPDATE recipients SET reason = 'late' WHERE position = 1 AND campaign_number = 1")

    monkeypatch.setattr(mover.Mover, "_copy_slice", then_a_receipt)
    place.archive()
    assert not any(ledger(place.path).values())
    assert [row for row in ledger(place.file)["recipients", 1] if "late" in row]


async def test_rows_that_stay_different_are_not_deleted(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive's disk lies, say: they stay in the database, and the error says so."""
    async with place.engine() as engine:
        await given_campaigns(engine)
    kept = ledger(place.path)
    monkeypatch.setattr(mover.Mover, "_same", lambda *_: None)
    with pytest.raises(StorageError, match="They stay in the database"):
        place.archive()
    assert ledger(place.path) == kept


async def test_only_what_ended_long_ago_and_is_settled_is_moved(place: Place) -> None:
    """Running, recent and doubtful campaigns stay; so does what a named subscription has not read."""
    recent = place.clock.now() - 35 * DAY
    async with place.engine() as engine:
        old = await given_endings(engine._storage, 1)
        late = await given_endings(engine._storage, 2)
        doubtful = await given_endings(engine._storage, 5)
        running = make_campaign()

        def write(tx: Transaction) -> None:
            tx.campaigns.update(attrs.evolve(late, completed_at=recent))
            publish(tx, running, pending(make_prepared()))
            place_of = {"campaign_id": doubtful.id, "position": 0, "created_at": NOW}
            tx.dispatches.insert(make_dispatch(**place_of, state=DispatchState.UNKNOWN))

        await engine._storage.write(write)
        done = place.archive()
        assert (done.campaigns, dict(done.kept_back)) == (
            1,
            {doubtful.id: "it has requests whose outcome nobody knows"},
        )
        for campaign in (late, doubtful, running):
            assert [one async for one in engine.campaigns.iter_recipients(THIS_WORKSPACE, campaign.id)]
        assert ledger(place.path)["recipients", 1] == []
        assert (await engine.campaigns.get(THIS_WORKSPACE, old.id)).counters == old.counters
    with pytest.raises(InvalidRequest, match="at least 31 days back"):
        place.archive(before=place.clock.now() - 30 * DAY)


async def test_events_that_a_subscription_has_not_read_are_kept(place: Place) -> None:
    """It is named; once it has read them, the campaign is moved."""
    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        async with engine.events.subscribe(name="billing", since=0):
            pass
        done = place.archive()
        assert done.campaigns == 0
        assert set(done.kept_back) == {campaign.id for campaign in campaigns}
        assert set(done.kept_back.values()) == {"the subscription 'billing' has not read all its events"}
        await engine.events.remove_subscription("billing")
    assert place.archive().campaigns == 2


async def test_a_run_whose_contacts_a_schedule_leaves_out_is_kept(place: Place) -> None:
    """It is named; once these days are over, the campaign is moved."""
    async with place.engine() as engine:
        run = await given_endings(engine._storage, 1, count=5)
        schedule = make_schedule(name="Weekly", not_again_within_days=110)
        one = make_occurrence(schedule_id=schedule.id, run_id=run.id)
        await engine._storage.write(lambda tx: (tx.schedules.insert(schedule), tx.occurrences.insert(one)))
        assert place.archive().kept_back == {run.id: "the schedule 'Weekly' still leaves out whom it has reached"}
        place.clock.advance(11 * DAY.total_seconds())
    assert place.archive().campaigns == 1


async def test_another_campaigns_figures_do_not_change(place: Place) -> None:
    """A reply to the archived campaign is none to an earlier one that is still there, nor once its sender is purged."""
    contact = make_prepared()
    first = make_campaign(started_at=NOW)
    second = make_campaign(started_at=NOW, completed_at=NOW + 5 * HOUR, status="completed")
    async with place.engine() as engine:

        def write(tx: Transaction) -> None:
            for campaign, at in ((first, NOW), (second, NOW + 2 * HOUR)):
                publish(tx, campaign, pending(contact))
                told_of = {"campaign_id": campaign.id, "position": 0, "to": contact.phone, "created_at": at}
                tx.dispatches.insert(make_dispatch(**told_of, state=DispatchState.ACCEPTED))
            for at in (NOW + HOUR, NOW + 3 * HOUR):
                tx.inbound.insert(make_inbound(from_number=contact.phone, received_at=at))
            tx.register.put(make_unsubscribe(phone=contact.phone, source="keyword", created_at=NOW + 4 * HOUR))

        await engine._storage.write(write)
        with closing(sqlite3.connect(place.path)) as raw, raw:
            raw.execute("UPDATE campaigns SET recipients_open = 0 WHERE id = ?", (second.id,))
            raw.execute("UPDATE recipients SET dispatched = 1")
        before = [await engine.campaigns.report(THIS_WORKSPACE, one.id) for one in (first, second)]
        assert [(one.replies, one.opt_outs) for one in before] == [(1, 0), (1, 1)]
        assert place.archive().campaigns == 1
        after = [await engine.campaigns.report(THIS_WORKSPACE, one.id) for one in (first, second)]
        assert [(one.replies, one.opt_outs) for one in after] == [(1, 0), (1, 1)]
        (exported,) = [one async for one in engine.campaigns.iter_export(THIS_WORKSPACE, second.id)]
        assert (len(exported.replies), exported.opted_out_at) == (1, NOW + 4 * HOUR)
        (exported,) = [one async for one in engine.campaigns.iter_export(THIS_WORKSPACE, first.id)]
        assert (len(exported.replies), exported.opted_out_at) == (1, None)
        await engine.erasure.purge(THIS_WORKSPACE, contact.phone or "")
        after = [await engine.campaigns.report(THIS_WORKSPACE, one.id) for one in (first, second)]
        assert [(one.replies, one.opt_outs) for one in after] == [(1, 0), (1, 1)]


async def test_a_reply_after_the_last_day_is_no_other_campaigns_either(place: Place) -> None:
    """It came later than the archived campaign counts replies, and an earlier one had not ended then."""
    contact, late = make_prepared(), NOW + 35 * DAY
    first = make_campaign(started_at=NOW)
    second = make_campaign(started_at=NOW, completed_at=NOW + HOUR, status="completed")
    async with place.engine() as engine:

        def write(tx: Transaction) -> None:
            for campaign, at in ((first, NOW), (second, NOW + HOUR)):
                publish(tx, campaign, pending(contact))
                told_of = {"campaign_id": campaign.id, "position": 0, "to": contact.phone, "created_at": at}
                tx.dispatches.insert(make_dispatch(**told_of, state=DispatchState.ACCEPTED))
            tx.inbound.insert(make_inbound(from_number=contact.phone, received_at=late))
            tx.register.put(make_unsubscribe(phone=contact.phone, source="keyword", created_at=late))

        await engine._storage.write(write)
        with closing(sqlite3.connect(place.path)) as raw, raw:
            raw.execute("UPDATE campaigns SET recipients_open = 0 WHERE id = ?", (second.id,))
        assert place.archive().campaigns == 1
        for campaign in (first, second):
            report = await engine.campaigns.report(THIS_WORKSPACE, campaign.id)
            assert (report.replies, report.opt_outs) == (0, 0)
    assert secrets_in(place.file, "Yes, please") == []


async def test_an_archive_that_is_not_there_is_named(place: Place, tmp_path: Path) -> None:
    """The report is there all the same; the rest says which file, and `--moved-to` finds it again."""
    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        before = await told(engine, campaigns[0])
        place.archive()
        moved = tmp_path / "elsewhere.db"
        place.file.rename(moved)
        where = (THIS_WORKSPACE, campaigns[0].id)
        for ask in (
            lambda: engine.campaigns.contact_history(*where, "+14155550101"),
            lambda: engine.campaigns.list_recipients(*where),
            lambda: engine.campaigns.clone(*where),
            lambda: engine.campaigns.delete(*where),
            lambda: engine.erasure.purge(THIS_WORKSPACE, "+14155550101"),
        ):
            with pytest.raises(ArchiveUnavailable, match=f"{place.file} is not there"):
                await ask()
        assert (await engine.campaigns.report(*where)).contacts == 30
        assert (await engine.campaigns.get(*where)).erased_at is None
        (listed,) = list_archives(place.url)
        assert listed.problem is not None
        assert "is not there" in listed.problem
        with pytest.raises(ArchiveUnavailable, match="is not there"):
            place.archive()
        assert move_archive(place.url, moved) == listed.archive.id
        assert await told(engine, campaigns[0]) == before
        (listed,) = list_archives(place.url)
        assert (listed.problem, listed.archive.file, listed.archive.campaigns) == (None, str(moved), 2)


async def test_only_an_archive_of_this_database_is_taken(place: Place, tmp_path: Path, clock: ManualClock) -> None:
    """Not the database itself, a copy of it, another database's, or what is none."""
    async with place.engine() as engine:
        await given_campaigns(engine)
    copy, foreign, text, unused = (tmp_path / f"{name}.db" for name in ("copy", "foreign", "text", "unused"))
    with closing(sqlite3.connect(place.path)) as raw:
        raw.execute("VACUUM INTO ?", (str(copy),))
    text.write_text("no database at all, but a text that is longer than a header " * 20)
    other = Place(tmp_path / "other.db", foreign, clock)
    async with other.engine() as engine:
        await given_workspaces(engine._storage)
        await given_campaigns(engine)
    other.archive()
    async with Place(tmp_path / "unused.db", foreign, clock).engine() as engine:
        await given_workspaces(engine._storage)
    for file, said in (
        (place.path, "is the database itself"),
        (copy, "is a database or a backup of one, and no archive"),
        (unused, "is a database or a backup of one, and no archive"),
        (foreign, "of another database"),
        (text, "Name another file for the archive"),
        (tmp_path / "none" / "archive.db", "Create it first"),
    ):
        with pytest.raises(StorageError, match=said):
            place.archive(file)
    # Beside the files of others nothing is left, not even a lock.
    assert {file.name for file in tmp_path.glob("*.lock")} == {f"{foreign.name}.lock"}
    assert not (tmp_path / "text.db-wal").exists()
    with pytest.raises(StorageError, match="no archive of this database"):
        move_archive(place.url, foreign)
    place.archive()
    place.file.unlink()
    foreign.rename(place.file)
    (listed,) = list_archives(place.url)
    assert "is not the archive that was there" in str(listed.problem)
    for url, error in (("postgresql://localhost/x", ConfigError), (f"sqlite:///{tmp_path}/no.db", DatabaseMissing)):
        with pytest.raises(error):
            archive_ledgers(url, place.file, before=NOW, clock=clock)
    empty, new = tmp_path / "empty.db", tmp_path / "new.db"
    empty.touch()
    with pytest.raises(DatabaseMissing, match="it is empty"):
        archive_ledgers(f"sqlite:///{empty}", new, before=NOW, clock=clock)
    with pytest.raises(DatabaseMissing, match="it is empty"):
        move_archive(f"sqlite:///{empty}", place.file)
    assert (empty.stat().st_size, new.exists()) == (0, False)


@pytest.fixture
async def archived(place: Place) -> Place:
    """A database whose campaigns are archived."""
    async with place.engine() as engine:
        await given_campaigns(engine)
    place.archive()
    return place


async def test_an_archive_is_not_opened_as_a_database(archived: Place, tmp_path: Path) -> None:
    """Neither it nor a copy of it by SQLite's tools is served, copied or archived from; both stay as they were."""
    copies = [tmp_path / f"{name}.db" for name in ("backup", "vacuumed", "compacted", "copied")]
    backup_database(f"sqlite:///{archived.file}", copies[0])
    with closing(sqlite3.connect(archived.file)) as raw:
        raw.execute("VACUUM INTO ?", (str(copies[1]),))
    shutil.copy(copies[0], copies[2])
    compact_database(f"sqlite:///{copies[2]}", clock=archived.clock)
    shutil.copy(copies[0], copies[3])
    assert migrate_database(f"sqlite:///{copies[3]}") == []
    for file in (archived.file, *copies):
        url, kept = f"sqlite:///{file}", ledger(file)
        assert check_database(url).is_archive
        for ask in (
            lambda url=url: copy_database(url, f"sqlite:///{tmp_path}/other.db"),
            lambda url=url: archive_ledgers(url, tmp_path / "more.db", before=NOW, clock=archived.clock),
            lambda url=url: list_archives(url),
            lambda url=url: move_archive(url, archived.file),
        ):
            with pytest.raises(StorageError, match=f"'{file}' is an archive of ended campaigns"):
                ask()
        for dispatch in (False, True):
            with pytest.raises(StorageError, match="Name the database that it was made from"):
                async with Outreach.open(url, dispatch=dispatch):
                    raise AssertionError
        [finding] = diagnose_database(url)
        assert finding.code == "database_foreign"
        assert "is an archive of ended campaigns" in finding.message
        assert ledger(file) == kept
    assert not check_database(archived.url).is_archive


async def test_an_archive_and_a_database_do_not_replace_each_other(archived: Place, tmp_path: Path) -> None:
    """`restore` takes neither from nor to an archive, and `backup` does not overwrite one by a database."""
    backup, again, archive = tmp_path / "backup.db", tmp_path / "again.db", f"sqlite:///{archived.file}"
    backup_database(archived.url, backup)
    kept = ledger(archived.file)
    with pytest.raises(StorageError, match=r"no backup of a database.*`db archives` names"):
        restore_database(archived.url, archived.file)
    with pytest.raises(StorageError, match="Name the database to replace"):
        restore_database(archive, backup)
    with pytest.raises(StorageError, match="Name another file for the backup"):
        backup_database(archived.url, archived.file, overwrite=True)
    assert ledger(archived.file) == kept
    assert list_archives(archived.url)[0].problem is None
    # An archive is backed up like a database.
    backup_database(archive, again)
    backup_database(archive, again, overwrite=True)
    shutil.move(again, archived.file)
    assert list_archives(archived.url)[0].problem is None


async def test_a_database_that_appears_meanwhile_is_not_made_an_archive(place: Place) -> None:
    """After the file was looked at; and an archive of which a killed run has left the mark alone is completed."""
    with pytest.raises(StorageError, match="is a database, and no archive"):
        files.make_archive(place.path)
    assert not check_database(place.url).is_archive
    with closing(sqlite3.connect(place.file)) as raw:
        mark_as_archive(raw)
    with pytest.raises(StorageError, match="is an archive of ended campaigns"):
        async with Outreach.open(f"sqlite:///{place.file}"):
            raise AssertionError
    async with place.engine() as engine:
        await given_campaigns(engine)
    assert place.archive().campaigns == 2


async def test_an_archive_of_an_older_version_names_the_command_that_migrates_it(archived: Place) -> None:
    """Neither a run that would move into it nor one that compacts it changes it; what reads it says the same."""
    with later_version():
        migrate_database(archived.url)
        for ask in (archived.archive, lambda: compact_database(f"sqlite:///{archived.file}")):
            with pytest.raises(DatabaseOlder, match=f"--database sqlite:///{archived.file} db migrate"):
                ask()
        (listed,) = list_archives(archived.url)
    assert listed.command == f"outreach-server --database sqlite:///{archived.file} db migrate"
    assert str(listed.problem).endswith(listed.command)


async def test_an_archive_of_a_newer_version_is_not_read(archived: Place) -> None:
    """Its rows may mean something else."""
    with closing(sqlite3.connect(archived.file)) as raw, raw:
        raw.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('outreach', '9999', 'x')")
    (listed,) = list_archives(archived.url)
    assert "newer version of this package: it has 9999. Install that version." in str(listed.problem)
    assert listed.command is None


async def test_what_dispatches_names_unreadable_archives_at_its_start(
    archived: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """And starts all the same; a process that only reads says it when it is asked."""
    with later_version():
        migrate_database(archived.url)
        async with archived.engine():
            pass
        assert "archive_missing" not in actions(caplog)
        async with Outreach(SqliteStorage(archived.path, clock=archived.clock), clock=archived.clock, dispatch=True):
            assert actions(caplog).count("archive_missing") == 1
    assert f"outreach-server --database sqlite:///{archived.file} db migrate" in caplog.text


def actions(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the actions that were logged."""
    return [getattr(record, "action", "") for record in caplog.records]


async def test_an_older_archive_is_migrated_and_stays_one(archived: Place) -> None:
    """By the command that the error names."""
    file = f"sqlite:///{archived.file}"
    with later_version():
        assert migrate_database(file) == [LATER]
        found = check_database(file)
    assert (found.is_archive, found.pending_migrations, found.problems) == (True, [], [])


async def test_only_one_run_moves_into_an_archive(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure in it also waits for a while, and then fails with the same error."""
    monkeypatch.setattr(files, "_LOCK_SECONDS", 0.1)
    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        person = await engine.campaigns.get_recipient(THIS_WORKSPACE, campaigns[0].id, 0)
        assert person.phone is not None
        with files.lock_archive(str(place.file)), pytest.raises(ArchiveUnavailable, match="in use"):
            place.archive()
        place.archive(before=NOW)
        with closing(sqlite3.connect(place.path)) as raw, raw:
            raw.execute("INSERT INTO archived_campaigns SELECT 1, id, 'copying', 0, '{}', 0, created_at FROM archives")
        with files.lock_archive(str(place.file)), pytest.raises(ArchiveUnavailable, match="in use"):
            await engine.erasure.purge(THIS_WORKSPACE, person.phone)
        assert await engine.campaigns.get_recipient(THIS_WORKSPACE, campaigns[0].id, 0) == person


@pytest.mark.parametrize("killed", [True, False])
async def test_two_runs_into_two_files_do_not_move_the_same_campaign(
    place: Place, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """What the other run took after this one had listed it is left to that, also where that was killed in between."""
    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        before = [await told(engine, campaign) for campaign in campaigns]
    second, copy, begun = place.file.with_name("second.db"), mover.Mover._copy_slice, False

    def meanwhile(self: Any, campaign: Any, first: int, last: int) -> None:
        nonlocal begun
        copy(self, campaign, first, last)
        if not begun:
            begun = True
            with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
                if killed:
                    killed_at(patch, 4)
                place.archive(second)

    with monkeypatch.context() as patch:
        patch.setattr(mover.Mover, "_copy_slice", meanwhile)
        done = place.archive()
    assert done.campaigns == 1
    assert dict(done.kept_back) == {campaigns[1].id: f"another run moves it into {second}"}
    assert place.archive(second).campaigns == int(killed)
    assert not any(ledger(place.path).values())
    async with place.engine() as engine:
        for campaign, known in zip(campaigns, before, strict=True):
            assert (await told(engine, campaign)) == known


def secrets_in(path: Path, *secrets: str) -> list[str]:
    """Return which of these texts a file holds, without what SQLite has freed but not overwritten."""
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.execute("VACUUM")
    content = path.read_bytes()
    return [secret for secret in secrets if secret.encode() in content]


async def test_transcripts_move_with_their_calls_and_are_erased_there(place: Place) -> None:
    """Both with the person and with the campaign; nothing of them stays in the database."""
    async with place.engine() as engine:
        _, campaign = await given_campaigns(engine)
        calls = [one async for one in engine.calls.iter_all(THIS_WORKSPACE, campaign_id=campaign.id)]
        await engine._storage.write(lambda tx: [tx.calls.put_transcript(call, "He said it.") for call in calls])
        assert place.archive().rows["transcripts"] == len(calls) > 1
        assert secrets_in(place.path, "He said it.") == []
        assert secrets_in(place.file, "He said it.") == ["He said it."]
        of_person = (await engine.erasure.purge(THIS_WORKSPACE, calls[0].to)).calls
        with closing(sqlite3.connect(place.file)) as raw:
            assert raw.execute("SELECT COUNT(*) FROM transcripts").fetchone() == (len(calls) - of_person,)
        await engine.campaigns.delete(THIS_WORKSPACE, campaign.id)
    assert secrets_in(place.file, "He said it.") == []


@pytest.mark.parametrize("unfinished", [None, 4, 12])
async def test_a_purge_reaches_the_archives(
    place: Place, monkeypatch: pytest.MonkeyPatch, unfinished: int | None
) -> None:
    """No byte of either file tells the number, also where a run was killed; the export stays, without the person."""
    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        exported = [one async for one in engine.campaigns.iter_export(THIS_WORKSPACE, campaigns[0].id)]
        person = next(one.recipient for one in exported if one.opted_out_at and one.replies)
        assert person.phone is not None
        with monkeypatch.context() as patch:
            if unfinished is not None:
                killed_at(patch, unfinished)
            with suppress(KeyboardInterrupt):
                place.archive()
        result = await engine.erasure.purge(THIS_WORKSPACE, person.phone)
        assert result.contacts >= 1
        assert result.still_opted_out
        again = [one async for one in engine.campaigns.iter_export(THIS_WORKSPACE, campaigns[0].id)]
        assert again[person.position].recipient.phone != person.phone
        assert [one.recipient.status for one in again] == [one.recipient.status for one in exported]
    for file in (place.path, place.file):
        assert secrets_in(file, person.phone, person.phone[1:]) == []
    place.archive()
    assert secrets_in(place.file, person.phone) == []


async def test_a_purge_reaches_an_archive_that_is_made_meanwhile(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The campaigns were in the database when the purge looked which archives there are."""
    look = erasure._require_archives

    def then_archive(tx: Transaction, files: LedgerArchives, workspace_id: str) -> Sequence[Archive]:
        found = look(tx, files, workspace_id)
        place.archive()
        return found

    monkeypatch.setattr(erasure, "_require_archives", then_archive)
    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        person = await engine.campaigns.get_recipient(THIS_WORKSPACE, campaigns[0].id, 0)
        assert person.phone is not None
        assert (await engine.erasure.purge(THIS_WORKSPACE, person.phone)).contacts >= 1
    assert secrets_in(place.file, person.phone) == []


@pytest.mark.parametrize("turn", [1, 2])
async def test_a_purge_that_cannot_reach_an_archive_is_repeated(
    place: Place, monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    """It is away at one of both looks at it, before the database is done and after it."""
    away, erase, turns = place.file.with_name("away.db"), ledgers.erase_person, 0

    def away_in_its_turn(*args: Any, **given: Any) -> Any:
        nonlocal turns
        turns += 1
        if turns == turn:
            place.file.rename(away)
        return erase(*args, **given)

    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        person = await engine.campaigns.get_recipient(THIS_WORKSPACE, campaigns[0].id, 0)
        assert person.phone is not None
        place.archive()
        with monkeypatch.context() as patch:
            patch.setattr(ledgers, "erase_person", away_in_its_turn)
            with pytest.raises(ArchiveUnavailable, match=r"is not there.*not erased everywhere: purge again"):
                await engine.erasure.purge(THIS_WORKSPACE, person.phone)
        away.rename(place.file)
        assert (secrets_in(place.file, person.phone) == []) is (turn == 2)
        await engine.erasure.purge(THIS_WORKSPACE, person.phone)
    assert secrets_in(place.file, person.phone) == []


async def test_a_purge_that_is_killed_after_the_archives_is_not_recorded(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person is still in the database, and is erased everywhere when the purge is repeated."""
    erase = ledgers.erase_person

    def then_killed(*args: Any, **given: Any) -> None:
        erase(*args, **given)
        raise RuntimeError("power cut")

    async def purges() -> int:
        return sum(one.action == "person.purge" for one in await engine.audit.list(THIS_WORKSPACE))

    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        person = await engine.campaigns.get_recipient(THIS_WORKSPACE, campaigns[0].id, 0)
        phone = person.phone or ""
        place.archive()
        await engine.messages.receive(THIS_WORKSPACE, from_number=phone, to="+14155550199", body="Hello")
        with monkeypatch.context() as patch:
            patch.setattr(ledgers, "erase_person", then_killed)
            with pytest.raises(RuntimeError, match="power cut"):
                await engine.erasure.purge(THIS_WORKSPACE, phone)
        assert await purges() == 0
        await engine.erasure.purge(THIS_WORKSPACE, phone)
        assert await purges() == 1
    for file in (place.path, place.file):
        assert secrets_in(file, phone, phone[1:]) == []


async def test_a_report_that_is_kept_does_not_name_anybody(place: Place) -> None:
    """Providers' words may: a purge takes the number out of an archived campaign's report, an erasure all words."""
    async with place.engine() as engine:
        campaign, _ = await given_campaigns(engine)
        with closing(sqlite3.connect(place.path)) as raw, raw:
            raw.execute("UPDATE dispatches SET error_message = 'The number ' || to_number || ' is wrong'")
        named = (await engine.campaigns.report(THIS_WORKSPACE, campaign.id)).failures
        words = named[0].failure.error_message or ""
        place.archive()
        assert (await engine.campaigns.report(THIS_WORKSPACE, campaign.id)).failures == named
        phone = words.split()[2]
        await engine.erasure.purge(THIS_WORKSPACE, phone)
        purged = (await engine.campaigns.report(THIS_WORKSPACE, campaign.id)).failures
        assert [one.requests for one in purged] == [one.requests for one in named]
        assert phone[1:] not in str(purged)
        assert "The number" in (purged[0].failure.error_message or "")
        await engine.campaigns.delete(THIS_WORKSPACE, campaign.id)
        erased = (await engine.campaigns.report(THIS_WORKSPACE, campaign.id)).failures
        assert [(one.requests, one.failure.error_message) for one in erased] == [(one.requests, None) for one in named]
    with closing(sqlite3.connect(place.path)) as raw:
        query = "SELECT instr(figures, 'The number') FROM archived_campaigns JOIN campaigns ON number = campaign_number"
        assert raw.execute(f"{query} WHERE erased_at IS NOT NULL").fetchall() == [(0,)]


async def test_an_archive_that_was_removed_half_written_is_begun_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is in it alone; until then erasing is refused, because a copy of it may be somewhere."""
    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        before = [await told(engine, campaign) for campaign in campaigns]
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            killed_at(patch, 3)
            place.archive()
        place.file.unlink()
        with pytest.raises(ArchiveUnavailable, match="is not there"):
            await engine.campaigns.delete(THIS_WORKSPACE, campaigns[0].id)
        assert place.archive().campaigns == 2
        assert [await told(engine, campaign) for campaign in campaigns] == before
        assert [one.problem for one in list_archives(place.url)] == [None]


async def test_an_older_copy_of_an_archive_is_not_taken_for_it(place: Place) -> None:
    """It lacks what was moved since: that is said, and not shown as a campaign without contacts."""
    older = place.file.with_name("older.db")
    async with place.engine() as engine:
        first = await given_endings(engine._storage, 1, count=5)
        place.archive()
        shutil.copy(place.file, older)
        second = await given_endings(engine._storage, 2, count=5)
        place.archive()
        older.replace(place.file)
        assert len([one async for one in engine.campaigns.iter_recipients(THIS_WORKSPACE, first.id)]) == 5
        with pytest.raises(ArchiveUnavailable, match=f"does not hold campaign {second.id}: it is an older copy"):
            _ = [one async for one in engine.campaigns.iter_export(THIS_WORKSPACE, second.id)]
        with pytest.raises(StorageError, match="is an older copy of the archive"):
            place.archive()


async def test_an_archive_from_after_a_backup_is_not_gone_on_with(place: Place) -> None:
    """Its campaigns have numbers that the restored database gives to others: both would be lost."""
    async with place.engine() as engine:
        first = await given_endings(engine._storage, 1, count=5)
    place.archive()
    image = place.path.read_bytes()
    async with place.engine() as engine:
        await given_endings(engine._storage, 2, count=5)
    place.archive()
    kept = ledger(place.file)
    place.path.write_bytes(image)
    async with place.engine() as engine:
        after = await given_endings(engine._storage, 3, count=6)
        with pytest.raises(StorageError, match="holds campaigns that this database does not know"):
            place.archive()
        assert ledger(place.file) == kept
        assert place.archive(place.file.with_name("new.db")).campaigns == 1
        for campaign, count in ((first, 5), (after, 6)):
            found = [one async for one in engine.campaigns.iter_recipients(THIS_WORKSPACE, campaign.id)]
            assert len(found) == count


async def test_the_retention_and_a_deletion_reach_the_archives(place: Place) -> None:
    """Contacts and texts go from the archive; figures stay. An archive that is away is done when it is back."""
    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        before = [await engine.campaigns.report(THIS_WORKSPACE, one.id) for one in campaigns]
        phones = [
            one.recipient.phone or ""
            for campaign in campaigns
            async for one in engine.campaigns.iter_export(THIS_WORKSPACE, campaign.id)
        ]
        place.archive()
        await engine.campaigns.delete(THIS_WORKSPACE, campaigns[0].id)
        exported = [one async for one in engine.campaigns.iter_export(THIS_WORKSPACE, campaigns[0].id)]
        assert {one.recipient.phone for one in exported} == {None}
        assert len(exported) == 30
        away = place.file.with_name("away.db")
        place.file.rename(away)
        await engine.workspaces.update(THIS_WORKSPACE, WorkspaceUpdate(retention_days=50))
        result = await engine.erasure.apply_retention()
        assert result.campaigns == 1
        assert [str(place.file) in problem for problem in result.unreachable] == [True]
        away.rename(place.file)
        assert secrets_in(place.file, *phones) != []
        assert (await engine.erasure.apply_retention()).unreachable == []
        assert secrets_in(place.file, *phones) == []
        after = [await engine.campaigns.report(THIS_WORKSPACE, one.id) for one in campaigns]
        assert [attrs.evolve(one, at=NOW, erased_at=None) for one in after] == [
            attrs.evolve(one, at=NOW) for one in before
        ]


async def test_an_erased_campaign_keeps_no_more_in_its_archive_than_in_the_database(place: Place) -> None:
    """Each column of the campaign is as empty, and nothing is left of its replies."""
    filled: dict[str, Any] = {
        "description": "Spring",
        "body": "Hi",
        "csv_column_headers": ("phone",),
        "metadata": {"patient": "Ann"},
    }
    async with place.engine() as engine:
        campaign = await given_endings(engine._storage, 3, count=30, **filled)
        with closing(sqlite3.connect(place.path)) as raw, raw:
            raw.execute("UPDATE inbound_messages SET media = '[\"https://media.example.com/ann.jpg\"]'")
        place.archive()
        await engine.campaigns.delete(THIS_WORKSPACE, campaign.id)
    query = f"SELECT {', '.join(filled)}, variable_names FROM campaigns"  # noqa: S608 - names of the schema
    for file in (place.path, place.file):
        with closing(sqlite3.connect(file)) as raw:
            assert raw.execute(query).fetchall() == [(None, None, "[]", None, None)]
    with closing(sqlite3.connect(place.file)) as raw:
        replies = raw.execute("SELECT DISTINCT from_number, body, media FROM inbound_messages").fetchall()
    assert replies == [("", "", "[]")]


async def test_an_archive_that_is_away_does_not_hold_up_the_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many campaigns it has to erase: all of those in an archive that is there are erased in one run."""
    monkeypatch.setattr(erasures, "_LIMIT", 2)
    away = place.file.with_name("away.db")
    async with place.engine() as engine:
        for file, count in ((away, 2), (place.file, 3)):
            for number in range(count):
                await given_endings(engine._storage, number + 1, count=5)
            place.archive(file)
        away.unlink()
        await engine.workspaces.update(THIS_WORKSPACE, WorkspaceUpdate(retention_days=50))
        result = await engine.erasure.apply_retention()
        assert [str(away) in problem for problem in result.unreachable] == [True]
    with closing(sqlite3.connect(place.file)) as raw:
        assert raw.execute("SELECT COUNT(*), COUNT(phone) FROM recipients").fetchall() == [(15, 0)]


async def test_a_follow_up_of_an_archived_campaign_reads_the_archive(place: Place) -> None:
    """Its contacts are those that it would have had before."""
    async with place.engine() as engine:
        campaigns = await given_campaigns(engine)
        place.archive()
        made = await engine.campaigns.follow_up(THIS_WORKSPACE, campaigns[0].id, NewFollowUp(results=["failed"]))
        assert made.created.campaign.counters.total > 0


async def test_moved_contacts_are_not_left_out_by_mistake(place: Place) -> None:
    """A campaign in an archive cannot be named, and is not counted."""
    async with place.engine() as engine:
        moved = (await given_campaigns(engine))[0]
    place.archive()
    given = [NewRecipient(phone_number="+14155550101")]
    async with place.engine() as engine:
        counts = await engine.campaigns.count_audience(THIS_WORKSPACE, given)
        assert counts.campaigns == ()
        with pytest.raises(InvalidRequest, match="archive"):
            await engine.campaigns.count_audience(THIS_WORKSPACE, given, leave_out=LeaveOut(campaigns=[moved.id]))
