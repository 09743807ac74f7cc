"""The console: the web application for people who run campaigns, as a Starlette app.

from outreach_server.console import create_console

host.mount("/campaigns", create_console(engine=engine, identify=current_user))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach_server.lazy_names import imported_when_used
from outreach_server.words import console_extra

if TYPE_CHECKING:
    from outreach_server.console.access import ConsoleUser as ConsoleUser
    from outreach_server.console.access import Identify as Identify
    from outreach_server.console.access import Role as Role
    from outreach_server.console.app import create_console as create_console

if not TYPE_CHECKING:  # which would accept any name otherwise
    __getattr__, __all__ = imported_when_used(
        globals(),
        {"ConsoleUser": "access", "Identify": "access", "Role": "access", "create_console": "app"},
        console_extra,
    )
