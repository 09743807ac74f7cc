from __future__ import annotations

import asyncio
import gc
import socket

import pytest

from outreach.testing.fault_server import Answer, FaultServer

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("rounds", range(5))
async def test_a_server_that_is_closed_while_somebody_connects_leaves_nothing_open(rounds: int) -> None:
    """However far a connection has come, the server's end closes it: one that is left is a warning, and an error."""
    async with FaultServer(lambda _: Answer()) as server:
        with socket.socket() as client:
            client.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
            for _ in range(rounds):
                await asyncio.sleep(0)
    gc.collect()
