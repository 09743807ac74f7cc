"""`worker`: a process that sends, beside servers that answer requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, nullcontext, suppress
from types import FrameType
from typing import Final

import click

from outreach import Outreach
from outreach.database import shown_url
from outreach.errors import StorageUnreachable
from outreach_server.cli.base import state
from outreach_server.cli.output import echo_json
from outreach_server.cli.serving.metrics_address import answering, metrics_of
from outreach_server.cli.serving.serving import EndForSure, bind_metrics, run_fast, url_of
from outreach_server.cli.serving.supervision import Pulse, ServiceManager
from outreach_server.cli.setup.setting_flags import ConfiguredCommand, given, worker_options
from outreach_server.cli.sigint import handling, stop_signals
from outreach_server.cli.upkeep.copied import dispatch_copied_option, reclaim
from outreach_server.cli.upkeep.database_place import place_of

_log = logging.getLogger("outreach_server")

_LOOK_SECONDS: Final = 1.0

_RETRY_SECONDS: Final = 1.0
"""How long after a database could not be reached it is tried again."""

_LOG_INTERVAL_SECONDS: Final = 60.0
"""How often a wait for the database is logged."""


@click.command(cls=ConfiguredCommand)
@dispatch_copied_option
@worker_options
def worker(dispatch_copied: bool, **flags: str | bool | None) -> None:
    """Send what is due, without answering requests, until Ctrl-C or SIGTERM.

    Run as many as OUTREACH_MAX_WORKERS allows, or up to 16 with OUTREACH_DISPATCHER=procrastinate. With --metrics it
    answers /metrics, /healthz and /readyz. Every setting is an option, a variable and a key of the file that --config
    names; the first of them counts.
    """
    from outreach_server.monitoring.instrumentation import instrumentation_of
    from outreach_server.monitoring.log_lines import log_to_stderr
    from outreach_server.monitoring.request_spans import warn_if_spans_are_lost

    config, simulator = state().configuration(given(flags))
    url = config.database_url
    if dispatch_copied:
        reclaim(url)
    log_to_stderr(config.log_level, config.log_format)
    metrics = metrics_of(config, place_of(url).path)
    manager, pulse = ServiceManager.of_environment(), Pulse(config.lease_seconds)
    as_json = state().as_json
    with bind_metrics(config) as listener:
        address = None if listener is None else url_of(listener)

        instrumentation = instrumentation_of((), metrics, traced=config.tracing)
        if config.tracing:
            warn_if_spans_are_lost()

        async def run() -> None:
            stopping = asyncio.Event()
            with _ending(stopping):
                async with AsyncExitStack() as opened:
                    engine = await _enter_when_reachable(
                        opened,
                        lambda: Outreach.open(
                            url,
                            dispatch=True,
                            config=config,
                            simulator=simulator,
                            instrumentation=instrumentation,
                        ),
                        stopping,
                        manager,
                    )
                    if engine is None:
                        return
                    side_app = None
                    if metrics is not None:
                        from outreach_server.worker_app import worker_app

                        side_app = worker_app(engine, metrics)
                    watching = nullcontext() if metrics is None else metrics.engine.watching(engine)
                    async with watching, answering(side_app, listener, level=config.log_level):
                        _announce(url, address, config.dispatcher, as_json=as_json)
                        manager.ready(f"Working on {shown_url(url)}")
                        while not stopping.is_set():
                            if pulse.is_alive(engine.health()):
                                manager.alive()
                            with suppress(TimeoutError):
                                await asyncio.wait_for(stopping.wait(), _LOOK_SECONDS)
                        manager.stopping()

        run_fast(run)


async def _enter_when_reachable(
    opened: AsyncExitStack,
    connect: Callable[[], AbstractAsyncContextManager[Outreach]],
    stopping: asyncio.Event,
    manager: ServiceManager,
) -> Outreach | None:
    """Open the engine as soon as its database can be reached; return None if the process is to end before.

    A machine may start its workers before its database.
    """
    loop, logged_at = asyncio.get_running_loop(), float("-inf")
    while not stopping.is_set():
        try:
            return await opened.enter_async_context(connect())
        except StorageUnreachable as error:
            if loop.time() - logged_at >= _LOG_INTERVAL_SECONDS:
                logged_at = loop.time()
                _log.warning("Waiting for the database: %s", error.message, extra={"action": "database_awaited"})
            manager.waiting("Waiting for the database", seconds=_LOG_INTERVAL_SECONDS)
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), _RETRY_SECONDS)
    return None


def _announce(url: str, address: str | None, dispatcher: str, *, as_json: bool) -> None:
    if as_json:
        echo_json({"database": shown_url(url), "dispatcher": dispatcher, "url": address})
    where = "" if address is None else f" Health and metrics: {address}/metrics"
    _log.info("Working on %s (%s). Ctrl-C stops it.%s", shown_url(url), dispatcher, where, extra={"action": "working"})


@contextmanager
def _ending(stopping: asyncio.Event) -> Iterator[None]:
    """Have `stop_signals` set an event, with a deadline after which the process ends even if something hangs."""
    loop, end = asyncio.get_running_loop(), EndForSure()

    def handle(_number: int, _frame: FrameType | None) -> None:
        end.begin()
        loop.call_soon_threadsafe(stopping.set)

    end.start()
    with handling(stop_signals(), handle):
        try:
            yield
        finally:
            end.cancel()
