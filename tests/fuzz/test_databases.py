"""Every operation, with valid and broken data, on each further database: what test_app.py does in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis

from outreach.core.secret_keys import SECRET_KEY_VARIABLE
from tests.fuzz.targets import POSTGRES, SQLITE, SQLITE_SCHEMA, bind
from tests.fuzz.test_app import BOUNDED, watch

POSTGRES_SCHEMA = bind(POSTGRES)


@pytest.fixture
def sqlite() -> Iterator[None]:
    """Run the app on a temporary database."""
    yield from watch(SQLITE)


@pytest.fixture
def server_database(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the app on a database of PostgreSQL."""
    # There is no file beside it that the key of the accounts could be in.
    monkeypatch.setenv(SECRET_KEY_VARIABLE, "B" * 43 + "=")
    yield from watch(POSTGRES)


@pytest.mark.usefixtures("sqlite")
@SQLITE_SCHEMA.parametrize()
@BOUNDED
def test_operations_on_sqlite(case: schemathesis.Case) -> None:
    """No operation breaks the contract over SQLite."""
    case.call_and_validate()


@pytest.mark.usefixtures("server_database")
@POSTGRES_SCHEMA.parametrize()
@BOUNDED
def test_operations_on_postgres(case: schemathesis.Case) -> None:
    """No operation breaks the contract over PostgreSQL."""
    case.call_and_validate()
