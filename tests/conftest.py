"""What all tests share."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background, a shell has it ignored, and so would every process that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a directory there that is its user's alone
if os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > 2 * 1024**3:
    # A database waits for the disk at each commit: thousands of tests wait for it more than they compute.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_IN_MEMORY))

pytest_plugins = ["tests.suite", "tests.second_chance", "outreach.testing.plugin"]

# The contract suites that ship are tests too: show what their assertions compared. Before they are imported.
pytest.register_assert_rewrite("outreach.testing")

from tests.fake_provider import FakeAdapter  # noqa: E402

# How slow a machine is says nothing of the code. `--hypothesis-profile=fixed` draws the same data each time, so that
# a gate says the same of the same commit twice, and fewer of them; what fails by chance prints how to play it again.
settings.register_profile("fresh", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", settings.get_profile("fresh"), derandomize=True, database=None, max_examples=40)
settings.load_profile("fresh")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run tests marked `anyio` on asyncio, the loop of the engine, also where trio is installed."""
    return "asyncio"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeAdapter:
    """Put an adapter without a provider in the place of twilio's."""
    adapter = FakeAdapter()
    monkeypatch.setitem(sys.modules, "outreach.providers.carriers.twilio", SimpleNamespace(ADAPTER=adapter))
    return adapter


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have recorded to be read, wherever they ran: `record_property("summary", "…")`."""
    lines = {
        str(value)
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "summary"
    }
    missing = {
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    }
    lines |= {f"NOT CHECKED: {reason}" for reason in missing if reason.startswith("not installed here")}
    for line in sorted(lines):
        terminalreporter.write_line(line)
