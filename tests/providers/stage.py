"""A server in a process of its own, a live workspace, and a provider on the loopback that calls the server back."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Generic, TypeVar

import anyio
import attrs
import httpx
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from outreach import EngineConfig, NewWorkspace, Outreach, WorkspaceMode
from outreach.testing.fault_server import FaultServer
from tests.process.place import Place
from tests.process.server import ServerProcess
from tests.process.waiting import PATIENCE
from tests.providers.parts import PUBLIC_URL, Event, Part, Provider, Taken, call_back

P = TypeVar("P", bound=Part)


@attrs.define(kw_only=True)
class Stage(Generic[P]):
    """What a test of a whole campaign holds.

    Attributes:
        part: The provider's.
        place: The database.
        engine: An engine on it that does not dispatch: the operator's hand, and the test's eyes.
        server: The server that does, in a process of its own.
        workspace_id: Live, and without contact hours.
        account_id: Its account at the provider.
        provider: What the provider has taken.
        statuses: How often the server answered a callback with what.
    """

    part: P
    place: Place
    engine: Outreach
    server: ServerProcess
    workspace_id: str
    account_id: str
    provider: Provider
    statuses: Counter[int] = attrs.field(factory=Counter)
    _client: httpx.AsyncClient
    _tasks: TaskGroup
    _calling: int = 0

    @property
    def taken(self) -> Sequence[Taken]:
        """What the provider has taken, in order."""
        return self.provider.taken

    def tell(self, events: Sequence[Event]) -> None:
        """Have the provider call back with events, one after the other."""
        self._calling += 1
        self._tasks.start_soon(self._tell, events)

    async def told(self) -> None:
        """Wait until the server has answered all callbacks."""
        await self.until(lambda: _now(not self._calling))

    async def until(self, condition: Callable[[], Awaitable[Any]]) -> Any:
        """Wait until a condition gives something true, and return that.

        Raises:
            TimeoutError: It never did.
        """
        with anyio.fail_after(PATIENCE * 2):
            while not (found := await condition()):  # noqa: ASYNC110 - it is asked of another process
                await anyio.sleep(0.05)
        return found

    async def reaches(self, campaign_id: str, status: str) -> None:
        """Wait until a campaign has a status."""

        async def there() -> bool:
            return (await self.engine.campaigns.get(self.workspace_id, campaign_id)).status == status

        await self.until(there)

    async def _tell(self, events: Sequence[Event]) -> None:
        url = f"{PUBLIC_URL}/webhooks/{self.account_id}"
        for event in events:
            callback = self.part.sign(event, url=url, at=datetime.now(UTC))
            self.statuses[await call_back(self._client, self.server.url, callback)] += 1
        self._calling -= 1

    def check_callbacks(self) -> None:
        """Check that every callback was taken in."""
        assert set(self.statuses) == {HTTPStatus.NO_CONTENT}, self.statuses


@asynccontextmanager
async def staged(place: Place, part: P, notice: Callable[[Stage[P], Taken], None]) -> AsyncIterator[Stage[P]]:
    """Run a server and a provider, with a live workspace that has an account there.

    Args:
        place: Where the database is.
        part: The provider's.
        notice: Called with each message or call that the provider takes, before it answers.
    """
    stages: list[Stage[P]] = []
    provider = Provider(part, lambda taken: notice(stages[0], taken))
    async with (
        FaultServer(provider.answer) as listening,
        Outreach.open(place.url, config=EngineConfig(public_url=PUBLIC_URL)) as engine,
        httpx.AsyncClient(timeout=PATIENCE) as client,
        anyio.create_task_group() as tasks,
    ):
        workspace = await engine.workspaces.create(
            NewWorkspace(
                name="Live",
                mode=WorkspaceMode.LIVE,
                sms_campaigns_enabled=True,
                contact_hours=False,
                request_limit=None,
                default_region="US",
            )
        )
        credentials = {**part.credentials, "api_base": listening.url}
        account = await engine.accounts.connect(workspace.id, part.name, credentials)
        server = await run_sync(partial(place.serve, "--public-url", PUBLIC_URL))
        stage = Stage(
            part=part,
            place=place,
            engine=engine,
            server=server,
            workspace_id=workspace.id,
            account_id=account.id,
            provider=provider,
            client=client,
            tasks=tasks,
        )
        stages.append(stage)
        yield stage
        assert await run_sync(server.stop) == 0, server.errors()
        stage.check_callbacks()


async def _now(value: object) -> object:
    return value
