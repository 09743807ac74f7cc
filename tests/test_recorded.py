from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.cli.test_commands import COMMANDS
from tests.contract.document import operations
from tests.recorded import STEPS, record

OPERATIONS = {operation["operationId"] for _, _, operation in operations()}


def files(directory: Path) -> dict[str, bytes]:
    """Return the files of a record with their bytes."""
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def test_the_steps_use_every_operation() -> None:
    """A new operation needs a step in tests/recorded.py."""
    assert {step.operation for step in STEPS} == OPERATIONS


NEVER_WELL: Final = {"lookUpDispatch", "runSchedule"}
"""No request of the record has an unknown outcome, and a run would contact the people of the later steps."""


@pytest.mark.nightly("records everything twice")
def test_two_records_are_the_same(tmp_path: Path) -> None:
    """What two commits answer can be compared byte for byte."""
    first, second = tmp_path / "first", tmp_path / "second"
    record(first)
    record(second)
    assert files(first) == files(second)


@pytest.mark.turn(4, "records everything")
def test_a_record_covers_every_operation_and_command(tmp_path: Path) -> None:
    """Each operation succeeds once and is refused in each way that applies; each command and group shows its help."""
    record(tmp_path)
    recorded = files(tmp_path)
    assert {"surface.txt", "schema/sqlite.txt", "schema/postgres.txt"} < recorded.keys()
    for path, method, operation in operations():
        answers = {name.split("/")[2] for name in recorded if name.startswith(f"http/{operation['operationId']}/")}
        assert answers & {"200", "201"} or operation["operationId"] in NEVER_WELL, f"{method} {path}"
        assert {"without-a-key", "workspace-suspended", "wrong-query"} <= answers, f"{method} {path}"
        assert "unknown" in answers or "{" not in path, f"{method} {path}"
        takes_json = "application/json" in operation.get("requestBody", {}).get("content", {})
        assert {"no-json", "wrong-body"} <= answers or not takes_json, f"{method} {path}"
    shown = {name.removeprefix("commands/outreach-server").removesuffix(".txt").strip() for name in recorded}
    groups = {" ".join(name.split()[:count]) for name in COMMANDS for count in range(len(name.split()))}
    assert COMMANDS.keys() | groups <= shown
    for name in COMMANDS.keys() | groups:
        text = recorded[f"commands/{' '.join(['outreach-server', *name.split()])}.txt"].decode()
        assert text.startswith(f"Usage: {' '.join(['outreach-server', *name.split()])} ")
