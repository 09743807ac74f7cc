from __future__ import annotations

import json
import tomllib
from pathlib import Path

from tests.examples.running import EXAMPLES, run, suite


def test_it_keeps_the_contract(tmp_path: Path) -> None:
    """By the suite that ships, and its own tests of callbacks."""
    assert "passed" in suite("own_carrier", tmp_path)


def test_a_campaign_goes_by_it(tmp_path: Path) -> None:
    """Given to the engine by hand."""
    assert run("own_carrier", tmp_path, "send.py").splitlines() == [
        "account in order: True",
        "+14155550100 Hi Ada!",
        "+14155550101 Hi Grace!",
    ]


def test_the_command_line_knows_it_once_it_is_installed(tmp_path: Path) -> None:
    """By the entry point that its project file names: what `pip install` makes of that is made here by hand."""
    project = tomllib.loads((EXAMPLES / "own_carrier" / "pyproject.toml").read_text("utf-8"))["project"]
    points = project["entry-points"]["outreach.adapters"]
    run("own_carrier", tmp_path, "-c", "")
    info = tmp_path / "own_carrier" / "outreach_pigeon-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [f"{name} = {value}\n" for name, value in points.items()]
    (info / "entry_points.txt").write_text("[outreach.adapters]\n" + "".join(lines))

    def ask(*arguments: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(
            run("own_carrier", tmp_path, "-m", "outreach_server", "accounts", *arguments, "--json")
        )
        return found

    assert {"name": "pigeon", "kind": "carrier", "source": "outreach-pigeon 1.0"} in ask("providers")
    assert [field["name"] for field in ask("fields", "pigeon")] == ["api_base", "api_key", "signing_secret"]
