"""The console of `serve`: mounted beside the HTTP interface."""

from __future__ import annotations

from importlib.util import find_spec

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from outreach import ConfigError, Outreach
from outreach.server_support import derived_keys_of
from outreach_server.cli.console_links import CONSOLE
from outreach_server.context import Server
from outreach_server.words import CONSOLE_MODULES


def is_installed() -> bool:
    """Return whether the extra `console` is installed."""
    return all(find_spec(name) is not None for name in CONSOLE_MODULES)


def mount_console(
    app: Starlette, engine: Outreach, *, require_second_factor: str | None = None, docs_url: str = ""
) -> str:
    """Mount the console in an app that `create_app` has returned, or return why its forms have no secret key.

    Args:
        app: The app.
        engine: An open engine over the same database, which gives the keys of forms.
        require_second_factor: That of `ServerConfig`.
        docs_url: That of `create_console`.
    """
    from outreach_server.console.app import create_own_console

    try:
        form_keys = derived_keys_of(engine, "console forms")
    except ConfigError as error:
        return error.message
    server: Server = app.state.server
    console = create_own_console(
        get_engine=lambda: server.engine,
        server=server,
        require_second_factor=require_second_factor,
        docs_url=docs_url,
        form_keys=form_keys,
    )
    app.router.routes += [Route(CONSOLE, _begin), Mount(CONSOLE, console)]
    return ""


async def _begin(request: Request) -> Response:
    """Lead to the console's first page, whose links begin with a slash after its path."""
    return RedirectResponse(f"{request.url.path}/", 303)
