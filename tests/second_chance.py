"""Which failed tests a gate may try again: `.ci/second-chance`, which `make test SECOND_CHANCE=1` calls.

Tests that start processes or wait for a server can fail because the machine stood still. A gate runs the few that
failed once more, alone, after all others have ended, and tells their names. It does not when many failed, nor when one
is in `NEVER`: what those find is no matter of time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest

MOST: Final = 3
"""So many tests may have failed; more of them are no accident."""

NEVER: Final[Mapping[str, str]] = {
    "fuzz": "the same data are sent each time",
    "process/test_cluster_chaos.py": "they count who was contacted twice, or lost",
    "process/test_copies.py": "they count who was contacted twice, or lost",
    "process/test_kills.py": "they count who was contacted twice, or lost",
    "process/test_kills_of_calls.py": "they count who was contacted twice, or lost",
    "process/test_two_servers.py": "they count who was contacted twice, or lost",
    "simulation": "a seed has one course",
}
"""Tests and folders of tests whose failures stand, and why."""

_HERE: Final = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--second-chance`, which goes with `--last-failed`."""
    parser.addoption(
        "--second-chance", action="store_true", help="run what failed only if it may have been the machine's fault"
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """End the run where the failures stand; `--last-failed` has chosen the tests before."""
    if session.config.getoption("second_chance") and (why := refusal(session.items)) is not None:
        pytest.exit(f"No second chance: {why}", returncode=pytest.ExitCode.TESTS_FAILED)


def refusal(failed: Iterable[pytest.Item]) -> str | None:
    """Return why these tests are not tried again, if they are not."""
    tests = list(failed)
    if len(tests) > MOST:
        return f"{len(tests)} tests failed, and {MOST} would be an accident."
    for test in tests:
        for name, why in NEVER.items():
            if test.path.is_relative_to(_HERE / name):
                return f"{test.nodeid} failed; {why}."
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, object, object]:
    """Name what failed first and has passed now."""
    result = yield
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if config.getoption("second_chance") and exitstatus == pytest.ExitCode.OK and reporter is not None:
        for item in session.items:
            reporter.write_line(f"FAILED AT FIRST, PASSED NOW: {item.nodeid}")
    return result
