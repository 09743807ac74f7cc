"""Generated clients have every operation, and call those of the interface at a running server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.contract.document import operations
from tests.contract_tools.conftest import Sandbox
from tests.contract_tools.tools import CONTRACT, HERE, Tools, copy_sources

WELL = {
    operation["operationId"]: int(min(operation["responses"]))
    for _, _, operation in operations()
    if operation["tags"] != ["manage"]
}
"""What each operation of the interface answers when it goes well."""


@pytest.fixture(scope="module")
def typescript(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make both clients of TypeScript, check their types, and return where they were compiled to."""
    place = tmp_path_factory.mktemp("typescript")
    copy_sources(place, tools)
    types = tools.run_package("openapi-typescript", CONTRACT, "--output", "schema.d.ts", cwd=place)
    assert types.returncode == 0, types.stdout
    client = tools.run_package("openapi-ts", "--input", CONTRACT, "--output", "hey", cwd=place)
    assert client.returncode == 0, client.stdout
    compiled = tools.run_package("tsc", "--project", ".", cwd=place)
    assert compiled.returncode == 0, compiled.stdout
    return place / "built"


def test_a_python_client_calls_every_operation(tools: Tools, sandbox: Sandbox, tmp_path: Path) -> None:
    """openapi-python-client, with its own settings, leaves nothing out, and what it makes works."""
    generate = ("-m", "openapi_python_client", "generate", "--path", CONTRACT, "--output-path", "client")
    made = tools.run_python(*generate, "--fail-on-warning", cwd=tmp_path)
    assert made.returncode == 0, made.stdout
    script = shutil.copy(HERE / "call_by_python_client.py", tmp_path / "client" / "main.py")
    done = tools.run_python(script, sandbox.url, sandbox.key, sandbox.agent_id, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout) == WELL


@pytest.mark.nightly("clients of TypeScript")
@pytest.mark.parametrize("script", ["call_by_hey_api.js", "call_by_openapi_fetch.js"])
def test_a_typescript_client_calls_every_operation(
    script: str, tools: Tools, typescript: Path, sandbox: Sandbox
) -> None:
    """The clients compile, refuse what is of another type, and work."""
    done = tools.run_node(typescript / script, sandbox.url, sandbox.key, sandbox.agent_id, cwd=typescript)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout) == WELL
