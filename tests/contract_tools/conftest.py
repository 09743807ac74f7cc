"""What the tools are held against. Without `make contract-tools` these tests are skipped, and say so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.contract_tools.tools import PATIENCE_SECONDS, VARIABLE, Tools


@attrs.frozen(kw_only=True)
class Sandbox:
    """A running server with a workspace of its own.

    Attributes:
        url: Its address.
        key: A key of the workspace.
        agent_id: An agent that may call out.
    """

    url: str
    key: str
    agent_id: str


@pytest.fixture(scope="session")
def tools() -> Tools:
    """Return the tools; where they are said to be somewhere, all of them must be there."""
    place = os.environ.get(VARIABLE)
    if not place:
        pytest.skip("`make contract-tools` installs the tools and runs these tests")
    tools = Tools(place=Path(place))
    for needed in (tools.python, tools.node, tools.node_modules, tools.java_compiler):
        assert needed.exists(), f"{needed} is missing: run `make contract-tools` again"
    return tools


@pytest.fixture(scope="session")
def sandbox(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Run `outreach-server sandbox`."""
    log = tmp_path_factory.mktemp("sandbox") / "log.txt"
    command = [sys.executable, "-m", "outreach_server", "sandbox", "--json"]
    with log.open("w") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as server:
        try:
            assert server.stdout is not None
            text = ""
            for line in server.stdout:
                text += line
                if line == "}\n":
                    break
            told = json.loads(text or "{}")
            assert told, log.read_text()
            yield Sandbox(url=told["url"], key=told["api_key"], agent_id=told["agent_id"])
        finally:
            server.terminate()
            server.wait(PATIENCE_SECONDS)
