"""docs/secret-key.md: where the key comes from, and how it is changed."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from cryptography.fernet import Fernet

from outreach import ConfigError, NewWorkspace, Outreach, WorkspaceMode
from outreach.core.secret_keys import CREDENTIAL_NAME
from outreach.core.vault import Vault
from outreach.models import Account, NewWebhook, RekeyResult
from outreach.server_support import derived_keys_of
from outreach.services.tenants import account_rekeying
from outreach.storage.maintenance import backup_database
from outreach.storage.opening import key_file_for
from outreach.storage.sqlite import SqliteStorage
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.rig import stored_account
from tests.fake_provider import CREDENTIALS, FakeAdapter

pytestmark = pytest.mark.virtual_time

OLD: Final = "A" * 43 + "="
NEW: Final = "B" * 43 + "="
STRANGE: Final = "C" * 43 + "="


def vault(**environment: object) -> Vault:
    """Return the vault of an environment, for a database in memory."""
    given = {name: str(value) for name, value in environment.items()}
    return Vault.from_environment(given, key_file=None, required=False)


def opens(holder: Vault, sealed: str) -> bool:
    """Return whether a vault opens what another one encrypted."""
    try:
        return holder.open("a", sealed, provider="twilio") == CREDENTIALS
    except ConfigError:
        return False


def put_keys(path: Path, *keys: str, mode: int = 0o600) -> None:
    """Put a file of keys into its place, as `mv` does."""
    draft = path.with_name("draft")
    draft.write_text("\n".join(keys))
    draft.chmod(mode)
    draft.replace(path)


def test_a_key_comes_from_the_first_place_that_has_one(tmp_path: Path) -> None:
    """The variable or the file, then the systemd credential, then the file beside the database."""
    file, credential, own = tmp_path / "key", tmp_path / CREDENTIAL_NAME, tmp_path / "o.db.key"
    for path, key in ((file, NEW), (credential, OLD), (own, STRANGE)):
        path.write_text(f"# a comment, with blanks\n\n{key}\n")
        path.chmod(0o600)
    sealed = {key: Vault(keys=key).encrypt("a", CREDENTIALS) for key in (OLD, NEW, STRANGE)}

    def key_of(**environment: object) -> str:
        given = {name: str(value) for name, value in environment.items()}
        holder = Vault.from_environment(given, key_file=own, required=False)
        (found,) = [key for key in sealed if opens(holder, sealed[key])]
        return found

    systemd = {"CREDENTIALS_DIRECTORY": tmp_path}
    assert key_of() == STRANGE
    assert key_of(CREDENTIALS_DIRECTORY=tmp_path / "none") == STRANGE
    assert key_of(**systemd) == OLD
    assert key_of(**systemd, OUTREACH_SECRET_KEY_FILE=file) == NEW
    assert key_of(**systemd, OUTREACH_SECRET_KEY=NEW, OUTREACH_SECRET_KEY_FILE="") == NEW
    with pytest.raises(ConfigError, match="both set"):
        key_of(OUTREACH_SECRET_KEY=NEW, OUTREACH_SECRET_KEY_FILE=file)


@pytest.mark.parametrize("separator", [",", "\n", " , \n"])
def test_the_first_of_several_keys_encrypts_and_all_decrypt(separator: str, tmp_path: Path) -> None:
    """In a file as in a variable."""
    file = tmp_path / "key"
    file.write_text(f"{NEW}{separator}{OLD}\n")
    file.chmod(0o600)
    for both in (vault(OUTREACH_SECRET_KEY_FILE=file), vault(OUTREACH_SECRET_KEY=f"{NEW}{separator}{OLD}")):
        assert opens(both, Vault(keys=OLD).encrypt("a", CREDENTIALS))
        assert opens(Vault(keys=NEW), both.encrypt("a", CREDENTIALS))


@pytest.mark.parametrize("as_credential", [False, True])
def test_what_is_wrong_with_a_file_is_named_and_no_key_is_shown(as_credential: bool, tmp_path: Path) -> None:
    """Missing, unreadable, empty, no key, and which of several is none."""
    file = tmp_path / CREDENTIAL_NAME
    name = "systemd credential outreach-secret-key" if as_credential else f"file {file} (OUTREACH_SECRET_KEY_FILE)"

    def problem() -> str:
        holder = vault(CREDENTIALS_DIRECTORY=tmp_path) if as_credential else vault(OUTREACH_SECRET_KEY_FILE=file)
        with pytest.raises(ConfigError) as caught:
            holder.encrypt("a", CREDENTIALS)
        return caught.value.message

    if not as_credential:
        assert problem() == f"The key cannot be read from the {name}: No such file or directory."
    file.mkdir()
    assert f"cannot be read from the {name}: Is a directory" in problem()
    file.rmdir()
    file.write_text("# nothing\n")
    assert f"The {name} is empty." in problem()
    file.write_text("tooshort-secret\n")
    assert f"The {name} holds no key." in problem()
    assert "tooshort" not in problem()
    file.write_text(f"{NEW}\nschlüssel\n", encoding="utf-8")
    assert "at place 2 of 2" in problem()
    assert NEW not in problem()


def test_a_file_that_others_may_read_is_used_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Said once; of a systemd credential nothing is said, whose access list shows as a group's right."""
    file = tmp_path / CREDENTIAL_NAME
    file.write_text(NEW)
    file.chmod(0o640)
    with caplog.at_level(logging.WARNING):
        vault(CREDENTIALS_DIRECTORY=tmp_path).encrypt("a", CREDENTIALS)
        assert not caplog.records
        holder = vault(OUTREACH_SECRET_KEY_FILE=file)
        holder.encrypt("a", CREDENTIALS)
        file.write_text(f"{NEW}\n{OLD}")
        holder.encrypt("a", CREDENTIALS)
    (record,) = caplog.records
    assert (record.levelname, getattr(record, "action", "")) == ("WARNING", "key_exposed")
    assert f"chmod 600 {file}" in record.getMessage()
    assert NEW not in record.getMessage()


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """A server that runs takes the new key without a restart; a file that is gone leaves the keys that it knows."""
    file = tmp_path / "o.db.key"
    holder = Vault(key_file=file)
    first = holder.encrypt("a", CREDENTIALS)
    made = file.read_text()
    put_keys(file, NEW, made)
    second = holder.encrypt("a", CREDENTIALS)
    assert opens(Vault(keys=NEW), second)
    assert not opens(Vault(keys=NEW), first)
    assert opens(holder, first)
    file.unlink()
    assert opens(holder, first)
    assert opens(holder, second)
    file.write_text("no key")
    file.chmod(0o600)
    assert opens(holder, second)


def test_a_file_that_was_refused_is_read_when_that_is_put_right(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As by chmod, which changes neither its time nor its size: or a rekey would leave this process outside."""
    file = tmp_path / "o.db.key"
    put_keys(file, OLD)
    holder = Vault(key_file=file)
    first, second = (Vault(keys=key).encrypt("a", CREDENTIALS) for key in (OLD, NEW))
    assert opens(holder, first)
    put_keys(file, NEW, OLD, mode=0o644)
    with caplog.at_level(logging.WARNING):
        assert opens(holder, first)
        assert not opens(holder, second)
    (record,) = caplog.records
    assert getattr(record, "action", "") == "key_not_read"
    assert f"chmod 600 {file}" in record.getMessage()
    file.chmod(0o600)
    assert opens(holder, second)
    assert opens(holder, first)


def test_who_has_lost_the_file_of_its_keys_makes_no_other_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It would open nothing of what is stored; what is known goes on, and so does everything when the file is back."""
    file = tmp_path / "o.db.key"
    holder = Vault(key_file=file)
    first = holder.encrypt("a", CREDENTIALS)
    assert opens(holder, first)
    made = file.read_text()
    for _ in range(2):
        file.unlink()
        with pytest.raises(ConfigError, match=r"Nothing was stored\. The key file \S+ is gone\. Put it back"):
            holder.encrypt("a", CREDENTIALS)
        with caplog.at_level(logging.WARNING):
            assert opens(holder, first)
            assert opens(holder, first)
        assert [getattr(record, "action", "") for record in caplog.records] == ["key_not_read"]
        caplog.clear()
        assert not file.exists()
        put_keys(file, made)
        assert opens(Vault(key_file=file), holder.encrypt("a", CREDENTIALS))
    put_keys(file, "nokey")
    with pytest.raises(ConfigError, match=r"Nothing was stored\. The key file \S+ holds no key"):
        holder.encrypt("a", CREDENTIALS)


def test_forms_go_on_with_the_keys_that_are_known(tmp_path: Path) -> None:
    """A page that is opened after the loss of the file is shown, and makes no other key."""
    file = tmp_path / "o.db.key"
    holder = Vault(key_file=file)
    holder.encrypt("a", CREDENTIALS)
    before = holder._derived_keys("forms", make=True)
    file.unlink()
    assert [holder._derived_keys("forms", make=make) for make in (False, True)] == [before, before]
    assert not file.exists()


async def _connect(engine: Outreach, workspace_id: str) -> None:
    await engine.accounts.connect(workspace_id, "twilio", CREDENTIALS)


async def _add_webhook(engine: Outreach, workspace_id: str) -> None:
    await engine.webhooks.create(workspace_id, NewWebhook(url="https://app.example/hook"))


@pytest.mark.parametrize("store", [_connect, _add_webhook])
async def test_forms_make_no_key_where_accounts_or_webhooks_need_one(
    store: Callable[[Outreach, str], Awaitable[None]], tmp_path: Path, fake: FakeAdapter
) -> None:
    """It would hide that theirs is lost; without them, forms make the first one."""
    url, file = f"sqlite:///{tmp_path}/o.db", tmp_path / "o.db.key"
    async with Outreach.open(url, clock=clock_of_loop()) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", mode=WorkspaceMode.LIVE))
    for _ in range(2):
        async with Outreach.open(url, clock=clock_of_loop()) as engine:
            assert derived_keys_of(engine, "forms")
        file.unlink()
    async with Outreach.open(url, clock=clock_of_loop()) as engine:
        await store(engine, workspace.id)
    async with Outreach.open(url, clock=clock_of_loop()) as engine:
        file.unlink()
        with pytest.raises(ConfigError, match="There is no key to open credentials with"):
            derived_keys_of(engine, "forms")
    async with Outreach.open(url, clock=clock_of_loop()) as engine:
        with pytest.raises(ConfigError, match="Give the key that they were encrypted with"):
            derived_keys_of(engine, "forms")
    assert not file.exists()


@attrs.frozen
class Rotation:
    """A database with accounts, and engines over it with different keys."""

    path: Path

    async def engine_with(self, keys: str, work: Callable[[Outreach], Awaitable[Any]]) -> Any:
        """Run work in an engine that has these keys."""
        storage = SqliteStorage(self.path, clock=clock_of_loop())
        async with Outreach(storage, clock=clock_of_loop(), vault=Vault(keys=keys)) as engine:
            return await work(engine)

    async def connect(self, keys: str, count: int) -> None:
        """Make so many workspaces with an account each."""

        async def work(engine: Outreach) -> None:
            for _ in range(count):
                workspace = await engine.workspaces.create(NewWorkspace(name="Acme", mode=WorkspaceMode.LIVE))
                await engine.accounts.connect(workspace.id, "twilio", CREDENTIALS)

        await self.engine_with(keys, work)

    async def rekey(self, keys: str, **given: Any) -> RekeyResult:
        """Encrypt with the first of these keys."""
        result: RekeyResult = await self.engine_with(keys, lambda engine: engine.accounts.rekey(**given))
        return result

    async def problems(self, keys: str) -> list[str | None]:
        """Return what is wrong with each account for who has these keys."""

        async def work(engine: Outreach) -> list[str | None]:
            return [
                account.problem
                for workspace in await engine.workspaces.list()
                for account in await engine.accounts.list(workspace.id)
            ]

        found: list[str | None] = await self.engine_with(keys, work)
        return found


@pytest.fixture
def rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeAdapter) -> Rotation:
    """Slices of two accounts."""
    monkeypatch.setattr(account_rekeying, "_SLICE", 2)
    return Rotation(tmp_path / "o.db")


async def test_all_credentials_get_the_newest_key(rotation: Rotation) -> None:
    """Then the new one alone opens them; a second run finds nothing to do."""
    await rotation.connect(OLD, 5)
    assert await rotation.problems(f"{NEW},{OLD}") == [None] * 5
    assert await rotation.rekey(f"{NEW},{OLD}") == RekeyResult(rekeyed=5, already_current=0, left=0)
    assert await rotation.problems(NEW) == [None] * 5
    assert all(await rotation.problems(OLD))
    assert await rotation.rekey(NEW) == RekeyResult(rekeyed=0, already_current=5, left=0)


async def test_an_interrupted_run_goes_on(rotation: Rotation) -> None:
    """After each slice everything opens with both keys, and it says how many are left."""
    await rotation.connect(OLD, 5)
    both = f"{NEW},{OLD}"
    for rekeyed, before, left in ((2, 0, 3), (2, 2, 1), (1, 4, 0)):
        result = await rotation.rekey(both, max_slices=1)
        assert result == RekeyResult(rekeyed=rekeyed, already_current=before, left=left)
        assert await rotation.problems(both) == [None] * 5


async def test_a_crash_within_a_slice_leaves_each_account_with_one_key_or_the_other(
    rotation: Rotation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slice is done or not; run again it goes on."""
    await rotation.connect(OLD, 5)
    both = f"{NEW},{OLD}"
    rekeyed, count = Vault.rekeyed, 0

    def fail_at_the_fourth(self: Vault, *args: Any, **given: Any) -> str:
        nonlocal count
        count += 1
        if count == 4:
            raise RuntimeError("the power is cut")
        return rekeyed(self, *args, **given)

    monkeypatch.setattr(Vault, "rekeyed", fail_at_the_fourth)
    with pytest.raises(RuntimeError, match="power"):
        await rotation.rekey(both)
    assert sum(problem is None for problem in await rotation.problems(NEW)) == 2
    assert await rotation.problems(both) == [None] * 5
    assert await rotation.rekey(both) == RekeyResult(rekeyed=3, already_current=2, left=0)


async def test_nothing_is_changed_while_one_account_can_be_opened_by_no_key(rotation: Rotation) -> None:
    """It is named; once its key is given too, all go on."""
    await rotation.connect(OLD, 2)
    await rotation.connect(STRANGE, 1)
    with pytest.raises(ConfigError, match=r"secrets of account \S+ at twilio\. Nothing was changed") as caught:
        await rotation.rekey(f"{NEW},{OLD}")
    assert not any(key in caught.value.message for key in (OLD, NEW, STRANGE))
    assert (await rotation.problems(OLD)).count(None) == 2
    assert await rotation.rekey(f"{NEW},{OLD},{STRANGE}") == RekeyResult(rekeyed=3, already_current=0, left=0)


async def test_a_server_that_knows_both_keys_works_meanwhile(rotation: Rotation) -> None:
    """Its account keeps its revision, and its connection; what happened is in the audit trail."""
    await rotation.connect(OLD, 1)
    both = f"{NEW},{OLD}"

    async def work(server: Outreach) -> None:
        (workspace,) = await server.workspaces.list()
        (before,) = await server.accounts.list(workspace.id)
        assert (await server.accounts.check(workspace.id, before.id)).ok
        assert (await rotation.rekey(both, actor="olga")).rekeyed == 1
        assert (await server.accounts.check(workspace.id, before.id)).ok
        assert list(await server.accounts.list(workspace.id)) == [before]
        assert await server.accounts.get(workspace.id, before.id) == before
        assert (await server._storage.read(lambda tx: stored_account(tx, before))).revision == 0
        (entry, *_) = await server.audit.list(workspace.id)
        assert (entry.action, entry.actor, entry.subject) == ("account.rekey", "olga", before.id)

    await rotation.engine_with(both, work)


async def test_what_an_older_server_connects_meanwhile_is_counted_as_left(
    rotation: Rotation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run takes it."""
    await rotation.connect(OLD, 1)
    slice_of = account_rekeying.AccountRekeying._rekey_slice
    sealed = Vault(keys=OLD)

    def connected_anew(self: Any, tx: Any, accounts: Any, actor: str) -> int:
        done = slice_of(self, tx, accounts, actor)
        account = tx.accounts.get(accounts[0].workspace_id, accounts[0].id)
        tx.accounts.update(attrs.evolve(account, sealed=sealed.encrypt(account.id, CREDENTIALS)))
        return done

    both = f"{NEW},{OLD}"
    with monkeypatch.context() as patch:
        patch.setattr(account_rekeying.AccountRekeying, "_rekey_slice", connected_anew)
        assert await rotation.rekey(both) == RekeyResult(rekeyed=1, already_current=0, left=1)
    assert await rotation.rekey(both) == RekeyResult(rekeyed=1, already_current=0, left=0)


def test_the_key_file_of_a_relative_url_is_named_with_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `doctor` shows as a command works in any directory."""
    monkeypatch.chdir(tmp_path)
    assert key_file_for("sqlite:///o.db") == tmp_path / "o.db.key"
    assert key_file_for("memory://") is None


async def test_a_second_key_is_not_made_in_silence(
    tmp_path: Path, fake: FakeAdapter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who lacks the variable that the servers have would leave them an account that they cannot open."""
    url, file = f"sqlite:///{tmp_path}/o.db", tmp_path / "o.db.key"

    async def connect(name: str) -> Account:
        async with Outreach.open(url, clock=clock_of_loop()) as engine:
            workspace = await engine.workspaces.create(NewWorkspace(name=name, mode=WorkspaceMode.LIVE))
            return await engine.accounts.connect(workspace.id, "twilio", CREDENTIALS)

    with caplog.at_level(logging.WARNING):
        with monkeypatch.context() as patch:
            patch.setenv("OUTREACH_SECRET_KEY", OLD)
            await connect("One")
        assert not caplog.records
        account = await connect("Two")
        (record,) = caplog.records
        assert getattr(record, "action", "") == "key_made"
        assert (
            f"Account {account.id} at twilio is encrypted with a key that was made now ({file})" in record.getMessage()
        )
        assert file.read_text().strip() not in record.getMessage()
        await connect("Three")
        assert len(caplog.records) == 1


async def test_a_link_to_a_database_has_the_key_of_the_database(tmp_path: Path, fake: FakeAdapter) -> None:
    """A second key would be made in silence, and open nothing of what the server has stored."""
    (tmp_path / "data").mkdir()
    (tmp_path / "o.db").symlink_to(tmp_path / "data" / "o.db")
    async with Outreach.open(f"sqlite:///{tmp_path}/data/o.db", clock=clock_of_loop()) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", mode=WorkspaceMode.LIVE))
        await engine.accounts.connect(workspace.id, "twilio", CREDENTIALS)
    link = f"sqlite:///{tmp_path}/o.db"
    async with Outreach.open(link, clock=clock_of_loop()) as engine:
        (shown,) = await engine.accounts.list(workspace.id)
        assert shown.problem is None
    made = backup_database(link, tmp_path / "backup.db")
    assert made.key_file == tmp_path / "data" / "o.db.key"


def test_a_key_is_made_also_where_a_process_of_the_same_number_was_killed_at_that(tmp_path: Path) -> None:
    """In a container each process has the number of the one before, whose half-written file is no obstacle."""
    file = tmp_path / "o.db.key"
    file.with_name(f"o.db.key.{os.getpid()}").touch()
    holder = Vault(key_file=file)
    assert opens(holder, holder.encrypt("a", CREDENTIALS))
    Fernet(file.read_text().strip())


def test_a_key_that_is_made_is_on_the_disk_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is committed that needs it: or a power cut would leave credentials that nobody can open."""
    file, synced, fsync = tmp_path / "o.db.key", [], os.fsync

    def watched(opened: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(opened).st_mode), file.exists()))
        fsync(opened)

    monkeypatch.setattr(os, "fsync", watched)
    Vault(key_file=file).encrypt("a", CREDENTIALS)
    assert synced == [(False, False), (True, True)]


def test_a_key_that_is_made_is_random(tmp_path: Path) -> None:
    """Each database has its own, and it is one that the library takes."""
    made = []
    for name in ("a.key", "b.key"):
        Vault(key_file=tmp_path / name).encrypt("a", CREDENTIALS)
        made.append((tmp_path / name).read_text().strip())
        Fernet(made[-1])
    assert made[0] != made[1]
