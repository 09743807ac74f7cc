"""Every operation and every link, with valid and broken data, against the app itself, with all checks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, seed, settings
from hypothesis.errors import FlakyStrategyDefinition
from schemathesis.schemas import BaseSchema

from tests.fuzz.targets import MEMORY, MEMORY_SCHEMA, SQLITE, SQLITE_SCHEMA, begin
from tests.fuzz.workspace import Target

# Derandomized: a run that fails, fails again. `python -m tests.fuzz` looks further, with other data each time. The gate
# draws the same requests for each commit, so that it sends half as many as `make nightly`.
BOUNDED = settings(
    max_examples=12 if settings.get_current_profile_name() == "fixed" else 25,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],  # a busy machine is no failure
)

MAX_RUNS = 10

LINKED = ("GET /calls/{id}", "GET /campaigns", "GET /sms-campaigns")
"""Operations that the links of the contract lead to."""

NEVER_WELL = (
    "GET /calls/{id}",
    "GET /manage/calls/{id}",
    "PUT /manage/calls/{id}/outcome",
    "GET /manage/accounts/{id}",
    "POST /manage/accounts/{id}/check-callback",
    "POST /manage/dispatches/{id}/look-up",
    "DELETE /manage/unreachable-numbers/{phone}",
)
"""A call's identifier has to come from a call that was made: only the links have one. No sandbox has an account.

No carrier has reported a number as unreachable, and no request has an identifier that an answer names.
"""

SEEN: dict[str, set[int]] = {}
"""The statuses that each operation has answered with in the test that runs."""


def watch(target: Target, *needs: str, each: bool = True) -> Iterator[None]:
    """Begin an app; fail at the end where the test had no luck with an operation, and so tested nothing behind it.

    Args:
        target: The app.
        needs: Operations that must have been tried, and gone well.
        each: Whether every operation that was tried must have gone well.
    """
    begin(target)
    SEEN.clear()
    yield
    assert SEEN
    for operation, statuses in SEEN.items():
        # A 409 is the engine's own answer, behind everything that this is about.
        if operation in needs or (each and operation not in NEVER_WELL):
            assert statuses & {200, 201, 409}, f"{operation} never went well: {sorted(statuses)}"
    assert set(needs) <= set(SEEN)


@pytest.fixture
def memory() -> Iterator[None]:
    """Run the app that keeps everything in memory."""
    yield from watch(MEMORY)


@pytest.fixture
def sqlite_with_links() -> Iterator[None]:
    """Run the app on a temporary database, for the links: each operation that they lead to has to go well."""
    yield from watch(SQLITE, *LINKED)


@pytest.fixture
def sqlite_with_any_luck() -> Iterator[None]:
    """Run the app on a temporary database, for many operations of each of which few requests are sent."""
    yield from watch(SQLITE, each=False)


@schemathesis.hook
def after_call(context: schemathesis.HookContext, case: schemathesis.Case, response: schemathesis.Response) -> None:
    """Note what was answered."""
    SEEN.setdefault(case.operation.label, set()).add(response.status_code)


@pytest.mark.usefixtures("memory")
@MEMORY_SCHEMA.exclude(tag="manage").parametrize()
@BOUNDED
def test_operations_in_memory(case: schemathesis.Case) -> None:
    """No operation breaks the contract over the storage in memory."""
    case.call_and_validate()


@pytest.mark.usefixtures("memory")
@pytest.mark.turn(4, "sends many generated requests to each operation under /manage")
@MEMORY_SCHEMA.include(tag="manage").parametrize()
@BOUNDED
def test_managing_in_memory(case: schemathesis.Case) -> None:
    """Nor does one under /manage."""
    case.call_and_validate()


@pytest.mark.usefixtures("sqlite_with_links")
def test_links() -> None:
    """No sequence of operations of the interface, along the links of the contract, breaks it."""
    follow(SQLITE_SCHEMA.exclude(tag="manage"), *LINKED)


@pytest.mark.usefixtures("sqlite_with_any_luck")
def test_sequences_of_managing() -> None:
    """No sequence of operations under /manage breaks the contract: what one makes, others show, change and remove."""
    follow(SQLITE_SCHEMA.include(tag="manage"))


def follow(schema: BaseSchema, *needs: str) -> None:
    """Send sequences of requests, until these operations were among them."""
    for number in range(MAX_RUNS):
        # Other sequences each time, and the same ones in the same place of another test.
        machine = seed(number)(schema.as_state_machine())
        try:
            machine.run(settings=settings(BOUNDED, max_examples=15, stateful_step_count=6))
        except FlakyStrategyDefinition:
            # A call that still rings is a 409 and one that is over is none: which links are open goes by the time, and
            # Hypothesis gives a run up in which it cannot repeat a sequence. No check has failed: those are other
            # errors. On a busy machine every run may end so; whether enough was tried, the fixture sees to.
            continue
        if set(needs) <= set(SEEN):
            return
