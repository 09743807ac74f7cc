"""`outreach-server doctor`: what it prints, and its exit status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from outreach_server.cli.problems import EXIT_STATUS
from tests.doctor.system import System


def test_a_healthy_system_is_reported_in_one_line(run: Any) -> None:
    """And ends with 0."""
    result = run()
    assert (result.output, result.exit_code) == ("Nothing is wrong.\n", 0)
    document = json.loads(run("--json").stdout)
    assert (document["findings"], document["skipped"], document["severity"]) == ([], [], None)


def test_a_warning_is_reported_with_its_place_and_command(run: Any, system: System) -> None:
    """And ends with 3."""
    system.provider.status = 401
    result = run()
    assert result.exit_code == EXIT_STATUS["warning"] == 3
    first, place, command, look = result.output.splitlines()
    assert first.startswith("- account_refused: Twilio does not accept the credentials")
    assert place == f"    at account {system.account_id}"
    called = f"outreach-server --config {system.directory}/outreach.toml"
    assert command == f"    fix: {called} accounts connect {system.workspace_id} twilio"
    assert look == f"    look: {called} accounts check {system.account_id}"
    document = json.loads(run("--json").stdout)
    [finding] = document["findings"]
    assert (document["severity"], finding["code"], finding["workspace_id"]) == (
        "warning",
        "account_refused",
        system.workspace_id,
    )
    assert finding["commands"] == [command.removeprefix("    fix: ")]
    assert finding["looks"] == [look.removeprefix("    look: ")]


def test_without_the_network_it_says_so(run: Any, system: System) -> None:
    """And looks at what is on this machine."""
    system.provider.status = 401
    result = run("--offline")
    assert result.exit_code == 0
    assert result.output.startswith("Nothing is wrong.\nWithout the network")


def test_a_database_that_cannot_be_opened_is_critical(run: Any, system: System) -> None:
    """The rest of the server is looked at all the same; the most urgent comes first."""
    system.database.write_bytes(b"no database")
    system.certificate[1].chmod(0o644)
    result = run()
    assert result.exit_code == EXIT_STATUS["critical"] == 4
    lines = result.output.splitlines()
    assert [line.split()[:2] for line in lines if not line.startswith(" ")][:2] == [
        ["!", "database_damaged:"],
        ["-", "certificate_key_exposed:"],
    ]
    assert "were not looked at" in lines[-1]


def test_a_configuration_that_is_not_valid_is_a_finding(run: Any, system: System) -> None:
    """Nothing can be looked at then."""
    (system.directory / "outreach.toml").write_text('public_url = "http://example.com"\n', encoding="utf-8")
    result = run("--json")
    assert result.exit_code == 4
    [finding] = json.loads(result.stdout)["findings"]
    assert finding["code"] == "config_invalid"
    assert "http://example.com" in finding["why"]


@pytest.mark.parametrize("url", ["mysql://x", "sqlite:////nowhere/at/all.db"])
def test_a_url_of_no_database_is_a_fault_of_the_configuration(run: Any, system: System, url: str) -> None:
    """The rest of the server is looked at."""
    system.settings.update(database_url=url, root_path="/outreach")
    result = run("--json")
    assert result.exit_code == 4
    found = json.loads(result.stdout)
    assert [one["code"] for one in found["findings"]] == ["config_invalid", "root_path_differs"]
    assert len(found["skipped"]) == 1


def test_a_password_that_everybody_can_read_is_reported(
    run: Any, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration file has it in the database's URL."""
    file = system.directory / "outreach.toml"
    file.write_text('database_url = "postgresql://me:secret@127.0.0.1:1/x"\n', encoding="utf-8")
    file.chmod(0o644)
    result = run("--json", "--offline")
    found = {one["code"]: one for one in json.loads(result.stdout)["findings"]}
    assert sorted(found) == ["config_file_exposed", "database_not_usable"]
    assert found["config_file_exposed"]["commands"] == [f"chmod o-rwx {file}"]
    assert "secret" not in result.output
