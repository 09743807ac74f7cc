from __future__ import annotations

from pathlib import Path

from encrypted_storage import EncryptedStorage

from outreach import Outreach


async def count_workspaces(key: str) -> int:
    async with Outreach(storage=EncryptedStorage(Path("outreach.db"), key=key)) as engine:
        return len(await engine.workspaces.list())
