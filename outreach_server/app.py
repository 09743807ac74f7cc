"""The Starlette app."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from outreach import ConfigError, EngineConfig, Outreach, OutreachError, SimulatorConfig
from outreach.models import CARRIERS
from outreach.protocols import Instrumentation
from outreach_server.bodies.body import default_command
from outreach_server.config import load, read_origins
from outreach_server.context import Authenticate, Server
from outreach_server.cors import CorsMiddleware
from outreach_server.errors import FaultMiddleware, answer_http_exception, answer_outreach_error, answer_overloaded
from outreach_server.fair_semaphore import FairSemaphoreTimeout
from outreach_server.lifespan import check_carriers, make_lifespan
from outreach_server.monitoring.instrumentation import instrumentation_of
from outreach_server.monitoring.request_spans import request_spans
from outreach_server.request_id import FastListMiddleware, RequestStateMiddleware
from outreach_server.routes import ROUTES

if TYPE_CHECKING:
    from outreach_server.monitoring.server_metrics import ServerMetrics


def create_app(
    database_url: str | None = None,
    *,
    engine: Outreach | None = None,
    dispatch: bool | None = None,
    public_url: str | None = None,
    config: EngineConfig | None = None,
    simulator: SimulatorConfig | None = None,
    max_body_bytes: int | None = None,
    spool_directory: Path | None = None,
    parser_command: Sequence[str] | None = None,
    carriers: Sequence[str] = (),
    authenticate: Authenticate | None = None,
    instrumentation: Sequence[Instrumentation] = (),
    metrics: ServerMetrics | None = None,
    tracing: bool | None = None,
    cors_origins: str | None = None,
    log_client_address: bool | None = None,
) -> Starlette:
    """Return an ASGI app that serves the HTTP interface; it may be mounted in another one.

    It opens an engine of its own in its lifespan, or uses one that its host has opened. A mounted app's lifespan
    does not run by itself: see `running`. What is not given comes from the environment and the file that
    `OUTREACH_CONFIG` names: see `docs/configuration.md`.

    Args:
        database_url: The database of its own engine; `sqlite:///outreach.db` where nothing else is configured.
        engine: An opened engine instead, which the host closes after the app has ended.
        dispatch: Whether its own engine also sends; by default it does.
        public_url: Where its own engine tells providers to call back, such as `https://outreach.example.com`. A mounted
            app's mount path is part of it.
        config: How its own engine behaves, instead of what is configured.
        simulator: How the simulators of its own engine behave, instead of what is configured.
        max_body_bytes: The largest body that is taken.
        spool_directory: Where large bodies are kept while they are worked on; the system's place for temporary
            files by default.
        parser_command: How a program in one file, which holds Python in itself, starts itself to read a large body:
            two arguments are added, with which it calls `outreach_server.bodies.parser_process.main`. Without it large
            bodies are read in a thread there, which slows down other requests. A Python that runs from its own files
            needs none.
        carriers: Carriers of the engine's adapters that bodies may name beside the three of the interface; the contract
            at `/openapi.yaml` names them then too.
        authenticate: The host's own identities in the place of API keys: an async function that gets each request that
            needs a key, without its body, and returns an `Identity` (a workspace and scopes), or only the
            identifier of a workspace, with the scope `send`. None is answered with 401; `Unauthorized` and
            `Forbidden` of `outreach.errors` may be raised with words of one's own. The workspace's
            state, its request limit and all the rest are checked as with a key.
        instrumentation: Observes what its own engine does.
        metrics: Counts requests and what the engine does: `outreach_server.ServerMetrics`, which `serve --metrics`
            shows at an address of its own.
        tracing: Whether spans of requests, and of its own engine's dispatches, are handed to OpenTelemetry.
        cors_origins: The origins whose pages may call from a browser, with commas between them, or `*` for all. A
            mounted app needs none where its host sets the headers of CORS.
        log_client_address: Whether the log line of each request holds the client's address, as its host's server names
            it.

    Raises:
        ConfigError: An engine is given together with what it has itself, or is none; something is of another kind than
            it says; the limit is not positive; the configuration is wrong; a carrier is none of an engine that was
            given.
    """
    given: object = engine
    if given is not None:
        if not isinstance(given, Outreach):
            raise ConfigError(f"engine is {given!r}; it must be an outreach.Outreach.")
        _require_no_engine_options(
            database_url=database_url,
            dispatch=dispatch,
            public_url=public_url,
            config=config,
            simulator=simulator,
            instrumentation=instrumentation or None,
        )
    if authenticate is not None and not callable(authenticate):
        raise ConfigError(f"authenticate is {authenticate!r}; it must be an async function of a request.")
    configured, simulated = load()
    max_body_bytes = configured.max_body_bytes if max_body_bytes is None else max_body_bytes
    _check_kinds(database_url, dispatch=dispatch, max_body_bytes=max_body_bytes, spool_directory=spool_directory)
    traced = configured.tracing if tracing is None else tracing
    server = Server(
        open_engine=engine,
        max_body_bytes=max_body_bytes,
        carriers=_further(carriers),
        authenticate=authenticate,
        spool_root=spool_directory or configured.spool_directory,
        helper=parser_command or default_command(),
        logs_client_addresses=configured.log_client_address if log_client_address is None else log_client_address,
        metrics=metrics,
        spans=request_spans() if traced else None,
    )
    if metrics is not None:
        metrics.start_requests(ROUTES)
    if engine is not None:
        check_carriers(server, engine)
    behaviour = config or configured
    if public_url:
        # Checked now, so that a wrong address raises before anything is opened.
        behaviour = attrs.evolve(behaviour, public_url=public_url)
    make_engine = (
        None
        if engine is not None
        else partial(
            Outreach.open,
            database_url or configured.database_url,
            dispatch=configured.dispatch if dispatch is None else dispatch,
            config=behaviour,
            simulator=simulator or simulated,
            instrumentation=instrumentation_of(instrumentation, metrics, traced=traced),
        )
    )
    origins = configured.cors_origins if cors_origins is None else cors_origins
    app = Starlette(
        routes=list(ROUTES),
        middleware=[
            Middleware(RequestStateMiddleware, server=server),
            *([] if origins is None else [Middleware(CorsMiddleware, origins=read_origins(origins))]),
            Middleware(FaultMiddleware),
            Middleware(FastListMiddleware),
        ],
        exception_handlers={
            OutreachError: answer_outreach_error,
            HTTPException: answer_http_exception,
            FairSemaphoreTimeout: answer_overloaded,
        },
        lifespan=make_lifespan(server, make_engine),
    )
    app.state.streams = server.streams
    app.state.server = server
    # /calls/ is no other name of /calls: it is answered with the envelope, not with a redirect.
    app.router.redirect_slashes = False
    return app


def _check_kinds(database_url: object, *, dispatch: object, max_body_bytes: object, spool_directory: object) -> None:
    """Check what is easily confused: a word that says no would begin to send.

    Raises:
        ConfigError: Something is of another kind, or the limit is not positive.
    """
    if database_url is not None and not isinstance(database_url, str):
        raise ConfigError(f"The database is {database_url!r}; it must be a URL such as 'sqlite:///app.db'.")
    if dispatch is not None and type(dispatch) is not bool:
        raise ConfigError(f"dispatch is {dispatch!r}; it must be True or False.")
    if type(max_body_bytes) is not int or max_body_bytes < 1:
        raise ConfigError(f"max_body_bytes is {max_body_bytes!r}; it must be an integer of at least 1.")
    if spool_directory is not None and not isinstance(spool_directory, str | os.PathLike):
        raise ConfigError(f"spool_directory is {spool_directory!r}; it must be a path.")


def _further(carriers: object) -> Sequence[str]:
    """Return the carriers that bodies may name beside those of the interface, each once.

    Raises:
        ConfigError: They are no names.
    """
    if isinstance(carriers, str) or not isinstance(carriers, Sequence):
        raise ConfigError(f"carriers is {carriers!r}; it must be a list of names, such as ['mycarrier'].")
    if not all(isinstance(one, str) for one in carriers):
        raise ConfigError(f"carriers is {carriers!r}; it must hold names alone, such as 'mycarrier'.")
    return tuple(one for one in dict.fromkeys(carriers) if one not in CARRIERS)


def _require_no_engine_options(**given: object) -> None:
    """Check that nothing is given beside an engine that it would have no effect on.

    Raises:
        ConfigError: Something is.
    """
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise ConfigError(
            f"Give an engine, or {' and '.join(names)}, not both: an engine has its own, from when it was made "
            "(Outreach.open(database_url, dispatch=..., config=EngineConfig(public_url=...)))."
        )
