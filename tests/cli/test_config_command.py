from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Cli


def test_each_setting_is_shown_with_its_value_and_its_source(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a flag, a variable, a key of the file, or none."""
    file = tmp_path / "outreach.toml"
    file.write_text("listen_port = 1\ndispatch = false\n[simulator]\nseed = 7\n", "utf-8")
    monkeypatch.setenv("OUTREACH_SIMULATOR_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("OUTREACH_LISTEN_PORT", "2")
    found: Any = Cli("").ask("--database", database, "config", "--config", str(file))
    shown = {row["setting"]: (row["value"], row["source"]) for row in found}
    assert shown["database_url"] == (database, "--database")
    assert shown["listen_port"] == ("2", "OUTREACH_LISTEN_PORT")
    assert shown["dispatch"] == ("false", f"dispatch in {file}")
    assert shown["simulator.seed"] == ("7", f"simulator.seed in {file}")
    assert shown["simulator.log"] == (str(tmp_path / "log"), "OUTREACH_SIMULATOR_LOG")
    assert shown["change_poll_seconds"] == ("0.25", "default")
    assert "lease_seconds" in Cli("").tell("config")


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
def test_a_closed_output_is_no_failure(closed: str) -> None:
    """A shell may close it, so that Python has no such stream: output is dropped."""
    command = ["/bin/sh", "-c", f'exec "$0" -m outreach_server config {closed}', sys.executable]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OUTREACH_")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_wrong_configuration_is_reported_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by every other command."""
    monkeypatch.setenv("OUTREACH_CHANGE_POLL_SECONDS", "soon")
    assert "OUTREACH_CHANGE_POLL_SECONDS is 'soon'" in Cli("").refuse("config")


def test_a_misspelt_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the one that was meant; those of others, and those that are read elsewhere, are not."""
    for name in [name for name in os.environ if name.startswith("OUTREACH_")]:
        monkeypatch.delenv(name)
    for name in (
        "OUTREACH_UDS",
        "OUTREACH_SERVICE_HOST_8000_TCP_ADDR",
        "OUTREACH_SECRET_KEY_FILE",
        "OUTREACH_LOG_LEVEL",
    ):
        monkeypatch.setenv(name, "info")
    told = Cli("").tell("config")
    assert "OUTREACH_UDS is set, and is not read; did you mean OUTREACH_LISTEN_UDS?" in told
    assert told.count("is not read") == 1
