"""The storage keeps the contract, and its file tells nothing without the key."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from encrypted_storage import EncryptedStorage

from outreach import NewRecipient, NewSmsCampaign, NewWorkspace, Outreach, WorkspaceMode
from outreach.errors import StorageError
from outreach.testing.storage_contract import StorageContract

HERE = Path(__file__).parent

RAW_KEY = "raw:" + "5a" * 32
"""A key of 32 bytes in hexadecimal: it is not derived from a passphrase, which takes long on purpose."""


@pytest.mark.anyio
class TestContract(StorageContract):
    @pytest.fixture
    def open_storage(self, tmp_path: Path) -> Callable[[], EncryptedStorage]:
        return lambda: EncryptedStorage(tmp_path / "outreach.db", key=RAW_KEY)


TAKE_LOCK = """
import asyncio, sys
from pathlib import Path
from encrypted_storage import EncryptedStorage

async def take():
    async with EncryptedStorage(Path(sys.argv[1]), key=sys.argv[2]) as storage:
        print(await storage.lock.acquire())

asyncio.run(take())
"""


@pytest.mark.anyio
async def test_the_lock_is_held_against_another_process(tmp_path: Path) -> None:
    path = tmp_path / "outreach.db"
    command = [sys.executable, "-c", TAKE_LOCK, str(path), RAW_KEY]
    async with EncryptedStorage(path, key=RAW_KEY) as storage:
        assert await storage.lock.acquire() == 1
        assert (await anyio.run_process(command, cwd=HERE)).stdout.split() == [b"0"]
        await storage.lock.release()
        assert (await anyio.run_process(command, cwd=HERE)).stdout.split() == [b"1"]


@pytest.mark.anyio
async def test_a_campaign_runs_and_its_contacts_are_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "outreach.db"
    people = [NewRecipient(phone_number="+14155550102", first_name="Wilhelmina")]
    async with Outreach(storage=EncryptedStorage(path, key="correct horse"), dispatch=True) as engine:
        workspace = await engine.workspaces.create(
            NewWorkspace(name="Shop", default_region="US", mode=WorkspaceMode.SANDBOX)
        )
        sale = NewSmsCampaign(name="Sale", body="Hi {{first_name}}", carrier="twilio", from_number="+14155550199")
        created = await engine.campaigns.create_sms(workspace.id, sale, people)
        running = await engine.campaigns.start(workspace.id, created.campaign.id)
        while not running.is_terminal:
            await anyio.sleep(0.05)
            running = await engine.campaigns.get(workspace.id, running.id)
    assert running.counters.successful == 1
    stored = content_of(tmp_path)
    assert b"Wilhelmina" not in stored
    assert b"4155550102" not in stored


def content_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("outreach.db*"))


@pytest.mark.anyio
async def test_a_wrong_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "outreach.db"
    async with EncryptedStorage(path, key="correct horse"):
        pass
    with pytest.raises(StorageError, match="key is wrong"):
        async with EncryptedStorage(path, key="wrong"):
            pass


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
