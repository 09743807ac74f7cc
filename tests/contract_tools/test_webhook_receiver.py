"""The receiver of webhooks in TypeScript, with the package `standardwebhooks` of npm."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.contract_tools.tools import HERE, Tools
from tests.examples.running import EXAMPLES
from tests.examples.webhook_deliveries import NEW, OLD, check_receiver, free_port


@pytest.mark.parametrize("secret", [OLD, NEW])
def test_the_typescript_receiver_takes_signed_deliveries_once(secret: bytes, tools: Tools, tmp_path: Path) -> None:
    """It compiles; with either secret of a rotation it takes a delivery, and refuses a changed byte, id or time."""
    for source in (EXAMPLES / "webhook_receiver" / "receiver.ts", HERE / "tsconfig.json"):
        shutil.copy(source, tmp_path)
    (tmp_path / "node_modules").symlink_to(tools.node_modules)
    compiled = tools.run_package("tsc", "--project", ".", cwd=tmp_path)
    assert compiled.returncode == 0, compiled.stdout
    check_receiver([tools.node, tmp_path / "built" / "receiver.js"], secret, cwd=tmp_path, port=free_port())
