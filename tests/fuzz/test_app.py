"""Every operation and every link, with valid and broken data, against the app itself: all checks, on each storage."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from tests.fuzz.targets import MEMORY, MEMORY_SCHEMA, SQLITE, SQLITE_SCHEMA, begin

# Derandomized: a run that fails, fails again. `python -m tests.fuzz` looks further, with other data each time.
BOUNDED = settings(
    max_examples=30,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],  # a busy machine is no failure
)


@pytest.fixture
def memory() -> None:
    """Begin the app that keeps everything in memory."""
    begin(MEMORY, MEMORY_SCHEMA)


@pytest.fixture
def sqlite() -> None:
    """Begin the app on a temporary database."""
    begin(SQLITE, SQLITE_SCHEMA)


@pytest.mark.usefixtures("memory")
@MEMORY_SCHEMA.parametrize()
@BOUNDED
def test_operations_in_memory(case: schemathesis.Case) -> None:
    """No operation breaks the contract over the storage in memory."""
    case.call_and_validate()


@pytest.mark.usefixtures("sqlite")
@SQLITE_SCHEMA.parametrize()
@BOUNDED
def test_operations_on_sqlite(case: schemathesis.Case) -> None:
    """No operation breaks the contract over SQLite."""
    case.call_and_validate()


@pytest.mark.usefixtures("sqlite")
def test_links() -> None:
    """No sequence of operations, along the links of the contract, breaks it."""
    machine = SQLITE_SCHEMA.as_state_machine()
    machine.run(settings=settings(BOUNDED, max_examples=15, stateful_step_count=6))
