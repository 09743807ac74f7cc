from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

import anyio
import attrs
import httpx
import pytest

from outreach import EngineConfig, NewWorkspace, NotFound, Outreach, WorkspaceMode
from outreach.errors import CallbackRejected
from outreach.ledger.settling import callback_checks
from outreach.models import Account, CallbackCheck
from outreach.protocols.adapter import Callback, Connection
from outreach.services.tenants import callback_checking
from outreach.testing.virtual_time import clock_of_loop
from outreach_server import create_app
from tests.engine.conftest import OpenStorage
from tests.fake_provider import CREDENTIALS, FakeAdapter

pytestmark = pytest.mark.virtual_time

URL = "https://o.example"

Transport = Callable[[httpx.Request], Any]


@attrs.define
class Scene:
    """An account whose callback URL leads wherever a test says: by default to this deployment's server."""

    engine: Outreach
    workspace_id: str
    account: Account
    serve: Transport
    seen: list[httpx.Request]

    async def check(self) -> CallbackCheck:
        """Test the callback URL; nothing stays of the test, and nothing else changes."""
        before = await self.engine.callbacks.list(self.workspace_id)
        found = await self.engine.accounts.check_callback(self.workspace_id, self.account.id)
        assert await self.engine.callbacks.list(self.workspace_id) == before
        assert found.url == f"{URL}/webhooks/{self.account.id}"
        return found


@pytest.fixture
async def here(open_storage: OpenStorage, fake: FakeAdapter, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """Open an engine with a server over it."""
    clock = clock_of_loop()
    async with Outreach(open_storage(clock), clock=clock, config=EngineConfig(public_url=URL)) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="A", mode=WorkspaceMode.LIVE))
        account = await engine.accounts.connect(workspace.id, "twilio", CREDENTIALS)
        server = httpx.ASGITransport(app=create_app(engine=engine))
        scene = Scene(engine, workspace.id, account, server.handle_async_request, [])

        class Network(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                await request.aread()
                scene.seen.append(request)
                answer: httpx.Response = await scene.serve(request)
                return answer

        monkeypatch.setattr(httpx.AsyncClient, "_init_transport", lambda *_, **__: Network())
        yield scene


def answering(status: int, content: bytes = b"", headers: Mapping[str, str] | None = None) -> Transport:
    """Answer everything in one way."""

    async def serve(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status, content=content, headers=headers)

    return serve


def failing(cause: BaseException) -> Transport:
    """Fail as the network does."""

    async def serve(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("failed", request=request) from cause

    return serve


async def test_a_callback_that_reaches_the_server_is_seen(here: Scene) -> None:
    """Signed as the provider signs, at the account's own URL, with its query."""
    found = await here.check()
    assert found == CallbackCheck(ok=True, message=found.message, url=found.url, signed=True)
    assert "signature was accepted" in found.message
    (request,) = here.seen
    assert (request.method, str(request.url).partition("?")[0]) == ("POST", found.url)


async def test_without_a_secret_to_sign_with_the_way_alone_is_tested(
    here: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with Telnyx, whose account has a public key."""
    monkeypatch.setattr(FakeAdapter, "sign_callback", lambda *_, **__: None)
    found = await here.check()
    assert (found.ok, found.signed) == (True, False)
    assert "only twilio can make one" in found.message


@pytest.mark.parametrize(
    ("serve", "fault"),
    [
        (failing(socket.gaierror(-2, "Name or service not known")), "unresolvable"),
        (failing(ssl.SSLCertVerificationError("self-signed certificate")), "tls"),
        (failing(ConnectionRefusedError()), "connection_refused"),
        (failing(OSError("no route")), "unreachable"),
        (answering(301, headers={"location": "https://www.o.example/"}), "redirected"),
        (answering(404, b"<h1>Not found</h1>"), "not_found"),
        (answering(405), "method_refused"),
        (answering(401, b"Please log in"), "other_server"),
        (answering(502), "other_server"),
        (answering(200, b"Welcome"), "other_database"),
    ],
)
async def test_the_step_that_failed_is_named(serve: Transport, fault: str, here: Scene) -> None:
    """With what to look at."""
    here.serve = serve
    found = await here.check()
    assert (found.ok, found.fault) == (False, fault)
    assert "o.example" in found.message


async def test_a_server_that_does_not_answer_is_not_waited_for_longer(here: Scene) -> None:
    """Fifteen seconds."""

    async def serve(_: httpx.Request) -> httpx.Response:
        await anyio.sleep(3600)
        raise AssertionError

    here.serve = serve
    with anyio.fail_after(callback_checking.REQUEST_SECONDS + 1):
        assert (await here.check()).fault == "timeout"


async def test_a_server_of_another_database_does_not_know_the_account(here: Scene, open_storage: OpenStorage) -> None:
    """Its own answer says so, unlike that of something else."""
    async with Outreach.open("memory://", clock=clock_of_loop()) as other:
        here.serve = httpx.ASGITransport(app=create_app(engine=other)).handle_async_request
        assert (await here.check()).fault == "account_unknown"


async def test_a_path_that_the_server_does_not_have_is_not_another_database(here: Scene) -> None:
    """The proxy passes it on wrongly."""
    inner = here.serve

    async def serve(request: httpx.Request) -> httpx.Response:
        moved = request.url.copy_with(raw_path=b"/outreach" + request.url.raw_path)
        return await inner(httpx.Request("POST", moved, headers=request.headers, content=request.content))

    here.serve = serve
    assert (await here.check()).fault == "not_found"


async def test_the_test_passes_a_proxy_that_strips_a_prefix(
    open_storage: OpenStorage, fake: FakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The public URL has the prefix, and so has the URL that is signed; the server gets the path without it."""
    clock, config = clock_of_loop(), EngineConfig(public_url=f"{URL}/a/b/")
    async with Outreach(open_storage(clock), clock=clock, config=config) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="A", mode=WorkspaceMode.LIVE))
        account = await engine.accounts.connect(workspace.id, "twilio", CREDENTIALS)
        server = httpx.ASGITransport(app=create_app(engine=engine))

        class Proxy(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                path = request.url.raw_path
                assert path.startswith(b"/a/b/webhooks/")
                inner = httpx.URL("http://10.0.0.7:8000").copy_with(raw_path=path.removeprefix(b"/a/b"))
                headers = {**request.headers, "host": "10.0.0.7:8000"}
                passed_on = httpx.Request("POST", inner, headers=headers, content=await request.aread())
                return await server.handle_async_request(passed_on)

        monkeypatch.setattr(httpx.AsyncClient, "_init_transport", lambda *_, **__: Proxy())
        found = await engine.accounts.check_callback(workspace.id, account.id)
        assert found == CallbackCheck(
            ok=True, message=found.message, url=f"{URL}/a/b/webhooks/{account.id}", signed=True
        )


async def test_a_server_that_refuses_the_signature_is_told_apart(here: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where its public URL is another one."""
    signing = FakeAdapter.sign_callback

    def wrongly(adapter: FakeAdapter, connection: Connection, *, url: str, test_id: str) -> Callback | None:
        return signing(adapter, connection, url=url.replace("https:", "http:"), test_id=test_id)

    monkeypatch.setattr(FakeAdapter, "sign_callback", wrongly)
    refused: list[str] = []
    instruments = type(here.engine._instruments)
    monkeypatch.setattr(instruments, "callback_refused", lambda _, provider: refused.append(provider))
    found = await here.check()
    assert (found.ok, found.fault, found.signed) == (False, "signature_refused", True)
    # The alert on refused callbacks is about those of the provider.
    assert refused == []


async def test_a_callback_that_a_queue_holds_back_is_waited_for(here: Scene) -> None:
    """Something between answers at once, and passes it on later."""
    inner = here.serve
    async with anyio.create_task_group() as tasks:

        async def later(request: httpx.Request) -> None:
            await anyio.sleep(3)
            await inner(request)

        async def serve(request: httpx.Request) -> httpx.Response:
            tasks.start_soon(later, request)
            return httpx.Response(202)

        here.serve = serve
        assert (await here.check()).ok


async def test_without_a_public_url_there_is_nothing_to_test(fake: FakeAdapter) -> None:
    """And it is said which variable sets it."""
    async with Outreach.open("memory://", clock=clock_of_loop()) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="A", mode=WorkspaceMode.LIVE))
        account = await engine.accounts.connect(workspace.id, "twilio", CREDENTIALS)
        found = await engine.accounts.check_callback(workspace.id, account.id)
        assert (found.ok, found.fault, found.url) == (False, "no_public_url", None)
        assert "OUTREACH_PUBLIC_URL" in found.message
        with pytest.raises(NotFound):
            await engine.accounts.check_callback("another", account.id)


async def test_a_token_counts_once_for_its_account_and_for_a_minute(here: Scene) -> None:
    """What comes with another one is a callback as any other: verified, and merged."""
    other = await here.engine.accounts.connect(
        (await here.engine.workspaces.create(NewWorkspace(name="B", mode=WorkspaceMode.LIVE))).id, "twilio", CREDENTIALS
    )
    storage, now = here.engine._storage, here.engine.now()
    account = await storage.read(lambda tx: tx.accounts.find(here.account.id))
    assert account is not None
    token = "check_" + "x" * 40
    await storage.write(lambda tx: callback_checks.await_check(tx, account, token, signed=False, now=now))

    async def call(account_id: str, given: str) -> None:
        url = f"{URL}/webhooks/{account_id}?dispatch={given}"
        await here.engine.callbacks.receive(account_id, url=url, headers={}, body=b"{}")

    for account_id, given in ((other.id, token), (account.id, token + "y")):
        with pytest.raises(CallbackRejected):
            await call(account_id, given)
    await call(account.id, token)
    with pytest.raises(CallbackRejected):
        await call(account.id, token)
    assert await storage.read(lambda tx: callback_checks.result_of_check(tx, account, token)) == "arrived"
    late = token + "z"
    await storage.write(lambda tx: callback_checks.await_check(tx, account, late, signed=False, now=now))
    await anyio.sleep(callback_checks.VALID.total_seconds() + 1)
    with pytest.raises(CallbackRejected):
        await call(account.id, late)


async def test_the_token_is_stored_as_its_hash(here: Scene) -> None:
    """Who reads the database cannot pass the test."""
    inner, stored = here.serve, list[str]()

    async def serve(request: httpx.Request) -> httpx.Response:
        stored.extend(one.event_id for one in await here.engine.callbacks.list(here.workspace_id))
        return await inner(request)

    here.serve = serve
    assert (await here.check()).ok
    (token,) = parse_qs(here.seen[0].url.query.decode())["dispatch"]
    assert len(token) > 40
    assert len(stored) == 1
    assert token not in stored[0]
