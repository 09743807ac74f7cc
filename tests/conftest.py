"""What all tests share."""

from __future__ import annotations

import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background, a shell has it ignored, and so would every process that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The contract suites that ship are tests too: show what their assertions compared.
pytest.register_assert_rewrite("outreach.testing")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run tests marked `anyio` on asyncio, the loop of the engine, also where trio is installed."""
    return "asyncio"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have recorded to be read, wherever they ran: `record_property("summary", "…")`."""
    lines = {
        str(value)
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "summary"
    }
    for line in sorted(lines):
        terminalreporter.write_line(line)
