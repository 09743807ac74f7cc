from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import run_side
from benchmarks.rows import ROWS

ROOT = Path(__file__).resolve().parent.parent.parent

NEEDS_NOTHING_ELSE = {
    "create": {"floor"},
    "list": {"bare route"},
    "call": {"bare route"},
    "requests": {"one pool"},
    "dispatch": {"ledger floor", "ledger floor with intents"},
    "message": {"server"},
    "receipts": {"ledger floor"},
    "indexes": {
        "without any",
        "without dispatches_to_number",
        "without recipients_pending",
        "without trail_of_campaign",
    },
    "growth": {"a hundredth"},
    "neighbour": {"alone"},
    "memory": {"a hundredth"},
    "webhooks": {"without them"},
    "scraping": {"without metrics", "without metrics, second turns"},
    "reports": {"a hundredth"},
    "history": {"a hundredth"},
    "preflight": {"a hundredth"},
    "console": set(),
    "postgres": {"SQLite"},
    "postgres-load": {"SQLite"},
    "postgres-list": {"SQLite"},
    "start": {"bare Python", "bare route"},
}
"""The other sides of each part that are there where the benchmark's own dependencies are not."""

FIGURES = {
    "create": {"ms", "list p99 ms meanwhile"},
    "list": {"ms, one client"},
    "dispatch": {"CPU ms a message", "statements a message", "commits a message", "messages a second"},
    "message": {"CPU ms a message", "messages a second"},
    "receipts": {"CPU ms a receipt"},
    "memory": {"MB more"},
    "scraping": {"CPU ms a scrape", "% of the computing for metrics"},
    "reports": {"MB more", "s"},
    "history": {"ms, library", "ms, /manage"},
    "preflight": {"s"},
    "console": {
        "ms, workspaces",
        "ms, overview",
        "ms, campaigns",
        "ms, campaigns by name",
        "ms, a campaign that sends",
        "ms, its contacts",
        "ms, its contacts by state",
        "ms, its failed contacts",
        "ms, its report",
        "ms, a contact",
        "ms, search of a number",
        "ms, search of a name",
        "ms, a number",
        "ms, replies",
        "ms, register",
        "ms, unknown requests",
        "ms, calls",
        "ms, settings",
        "ms, audit",
        "ms, a new campaign",
        "ms, account",
    },
    "postgres": {"messages a second", "statements a message", "round trips a message", "WAL bytes a message"},
    "postgres-load": {"ms"},
    "postgres-list": {"ms, one client"},
    "start": {"s"},
}


def bench(tmp_path: Path, *options: str) -> dict[str, Any]:
    """Run the benchmark at its smallest sizes; return the document that it wrote."""
    file, kept = tmp_path / "bench.json", tmp_path / "kept"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--rounds", "1", "--json", str(file), "--kept", str(kept)]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(file.read_text("utf-8"))
    for one in (*document["comparisons"], *document["figures"]):
        assert f"| {one['case']} " in done.stdout, "not in the table"
    return document


@pytest.mark.bench
@pytest.mark.parametrize("row", ROWS)
def test_each_row_measures_both_sides(row: str, tmp_path: Path) -> None:
    """Every part runs, compares with each side that needs nothing else, and gives its figures."""
    document = bench(tmp_path, "--rows", row)
    against = {one["against"] for one in document["comparisons"]}
    assert against >= NEEDS_NOTHING_ELSE[row]
    assert {one["what"] for one in document["figures"]} >= FIGURES.get(row, set())
    for one in document["comparisons"]:
        assert one["row"] == row
        assert one["ratio"]["median"] == pytest.approx(one["ours"]["median"] / one["other"]["median"])
        assert all(math.isfinite(one[side]["median"]) and one[side]["median"] > 0 for side in ("ours", "other"))


@pytest.mark.bench
def test_statements_are_counted_however_they_are_run(tmp_path: Path) -> None:
    """One call may run a statement for many rows; none runs it for less than one."""
    told = {"database": str(tmp_path / "outreach.db"), "campaigns": 2, "recipients": 2, "rate": 600, "latency_ms": 0}
    answer = run_side("engine", {**told, "most_seconds": 60, "count": True})
    assert answer["messages"] == 4
    assert 0 < answer["commits a message"] < answer["statements a message"] <= answer["statement runs a message"]


def test_every_row_is_tested() -> None:
    """A new part has to say here what it compares with."""
    assert NEEDS_NOTHING_ELSE.keys() == ROWS.keys()
