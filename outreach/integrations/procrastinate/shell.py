"""The app that Procrastinate's own command line and shell work on."""

from __future__ import annotations

import os

import procrastinate

from outreach.errors import ConfigError
from outreach.integrations.procrastinate.schema import conninfo_of

_VARIABLE = "OUTREACH_DATABASE_URL"


def app_of_environment() -> procrastinate.App:
    """Return an app over the jobs of the database that the environment names.

    It has none of the tasks: they need an engine, and `outreach-server worker` runs them.

    Raises:
        ConfigError: The variable is missing, or names no PostgreSQL database.
    """
    url = os.environ.get(_VARIABLE)
    if not url:
        raise ConfigError(f"Set {_VARIABLE} to the URL of the database whose jobs you want to see.")
    return procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=conninfo_of(url), min_size=1))
