"""Work driven by Procrastinate, a task engine on the same PostgreSQL; needs the extra `procrastinate`.

`procrastinate --app=outreach.integrations.procrastinate.app` looks at the jobs of the database that
`OUTREACH_DATABASE_URL` names.
"""

from __future__ import annotations

from typing import Any

from outreach.core.extras import needed_for

with needed_for("The dispatcher procrastinate"):
    import procrastinate  # noqa: F401 - only whether it is there
    import psycopg  # noqa: F401
    import psycopg_pool  # noqa: F401

from outreach.integrations.procrastinate.dispatcher import ProcrastinateDispatcher, dispatcher_of
from outreach.integrations.procrastinate.schema import conninfo_of, install, pending_steps, require

__all__ = ["ProcrastinateDispatcher", "conninfo_of", "dispatcher_of", "install", "pending_steps", "require"]


def __getattr__(name: str) -> Any:
    # Made when it is imported: only Procrastinate's own command line takes its database from the environment.
    if name == "app":
        from outreach.integrations.procrastinate.shell import app_of_environment

        return app_of_environment()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
