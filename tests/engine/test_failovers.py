"""Another PostgreSQL server takes over, and lacks the last transactions of the one before."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from outreach import Outreach
from outreach.storage.postgres import pool
from tests import postgres
from tests.engine.rig import QUICK, contacts, given_workspace, start_campaign, until

pytestmark = pytest.mark.anyio


async def test_an_outcome_that_was_lost_with_the_old_server_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker that recorded it lives on: the new server has its intent, without an outcome."""
    with postgres.server().database(template=postgres.template()) as name:

        def ask(statement: str) -> list[tuple[Any, ...]]:
            return postgres.server().execute(statement, name)

        async def has_delivered() -> bool:
            return ask("SELECT report FROM outreach.dispatches") == [("delivered",)]

        async def was_looked_for() -> bool:
            return ask("SELECT COUNT(*) FROM outreach.trail WHERE reason = 'worker_lost'") != [(0,)]

        async with Outreach.open(postgres.server().url(name), dispatch=True, config=QUICK) as engine:
            workspace = await given_workspace(engine)
            await start_campaign(engine, workspace, contacts(2), rate_per_minute=1)
            await until(has_delivered)
            monkeypatch.setattr(
                pool,
                "_CONFIGURE",
                pool._CONFIGURE.replace("substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)", "'00000009'"),
            )
            with psycopg.connect(postgres.server().url(name)) as other:
                # In one transaction, as if it had been so when the new server took over.
                other.execute(
                    "UPDATE outreach.fence SET version = version + 1, writer = 'lost';"
                    "UPDATE outreach.dispatches "
                    "SET state = 'dispatching', provider_id = NULL, report = NULL, settled_at = NULL;"
                    "UPDATE outreach.recipients SET status = 'dispatching', successful = 0 WHERE dispatched = 1;"
                    "UPDATE outreach.campaigns SET recipients_open = recipients_open + 1, "
                    "recipients_completed = recipients_completed - 1, recipients_successful = recipients_successful - 1"
                )
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            await until(was_looked_for)
