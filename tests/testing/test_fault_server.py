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


async def test_an_answer_that_is_cut_resets_the_connection() -> None:
    """The client has sent its whole request, and gets an error where the answer was to be read."""
    async with FaultServer(lambda _: Answer(body=b"{}")) as server:
        server.fault = "cut_answer"
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        writer.write(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
        assert len(server.requests) == 1
