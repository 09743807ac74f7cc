"""Opening the engine when the app starts, and closing it when the app ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from anyio import to_thread
from starlette.applications import Starlette

from outreach import ConfigError, Outreach
from outreach.server_support import import_services, leave_services
from outreach_server.bodies.spool import sweep
from outreach_server.context import Server


def make_lifespan(
    server: Server, make_engine: Callable[[], Outreach] | None
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    """Return the lifespan of an app.

    Args:
        server: The server that gets the engine.
        make_engine: Creates the engine; None if the host opens and closes it.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        server.streams.begin()
        await to_thread.run_sync(sweep, server.spool_root)
        if make_engine is None:
            try:
                async with _watching(server, server.open_engine), _importing(server.open_engine):
                    yield
            finally:
                server.streams.end()
            return
        async with leave_services(make_engine()) as engine, _watching(server, engine):
            check_carriers(server, engine)
            server.open_engine = engine
            try:
                async with _importing(engine):
                    yield
            finally:
                server.streams.end()
                server.open_engine = None

    return lifespan


@asynccontextmanager
async def _importing(engine: Outreach | None) -> AsyncIterator[None]:
    """Import the engine's services while the server begins to listen and answers its first requests."""
    if engine is None:
        yield
        return
    importing = asyncio.create_task(import_services(engine), name="outreach imports")
    try:
        yield
    finally:
        importing.cancel()
        await asyncio.gather(importing, return_exceptions=True)


def _watching(server: Server, engine: Outreach | None) -> AbstractAsyncContextManager[None]:
    """Return the time during which the metrics look at the engine, where there are any."""
    return nullcontext() if server.metrics is None or engine is None else server.metrics.engine.watching(engine)


def check_carriers(server: Server, engine: Outreach) -> None:
    """Check that the engine has adapters for the carriers that bodies may name.

    Raises:
        ConfigError: It lacks one.
    """
    known = [one.name for one in engine.accounts.providers() if one.kind == "carrier"]
    for name in server.carriers:
        if name not in known:
            raise ConfigError(f"carriers: {name!r} is no carrier of the engine. It has: {', '.join(known)}.")


def running(app: Starlette) -> AbstractAsyncContextManager[object]:
    """Run the lifespan of an app that is mounted in another one, which Starlette does not do by itself.

        api = create_app("sqlite:///outreach.db")

        @asynccontextmanager
        async def lifespan(app):
            async with running(api):
                yield

        host = Starlette(routes=[Mount("/outreach", api)], lifespan=lifespan)

    Args:
        app: What `create_app` returned.
    """
    return app.router.lifespan_context(app)
