"""What the benchmark starts ends with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import signal
from benchmarks.processes import end_when_told, serve_side

end_when_told()
with serve_side("slow_provider", {"latency_ms": 0}) as server:
    print(server.process.pid, flush=True)
    signal.pause()
"""


def test_a_server_ends_with_a_run_that_is_terminated() -> None:
    """By the signal that `timeout` and service managers send."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=ROOT, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        server = psutil.Process(int(run.stdout.readline()))
        try:
            run.terminate()
            assert run.wait(timeout=30) == 128 + 15
            server.wait(timeout=30)
        finally:
            if server.is_running():
                server.kill()
