"""Readers and linters take the whole document."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.contract_tools.tools import CONTRACT, HERE, Tools

BROKEN = CONTRACT.read_text(encoding="utf-8").replace("$ref: '#/components/schemas/Call'", "$ref: '#/nowhere'")


def test_js_yaml_reads_what_pyyaml_reads(tools: Tools, tmp_path: Path) -> None:
    """Both readers see the same document: js-yaml is what most tools in JavaScript read with."""
    (tmp_path / "node_modules").symlink_to(tools.node_modules)
    script = tmp_path / "read.mjs"
    script.write_text(
        "import { load } from 'js-yaml'; import { readFileSync } from 'node:fs';"
        "console.log(JSON.stringify(load(readFileSync(process.argv[2], 'utf8'))))"
    )
    done = tools.run_node(script, CONTRACT, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout) == yaml.safe_load(CONTRACT.read_text(encoding="utf-8"))


def test_redocly_finds_no_error(tools: Tools, tmp_path: Path) -> None:
    """`redocly lint` with its recommended rules; a broken reference is one."""
    done = tools.run_package("redocly", "lint", CONTRACT, cwd=tmp_path)
    assert (done.returncode, "Your API description is valid" in done.stdout) == (0, True), done.stdout
    (tmp_path / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    assert tools.run_package("redocly", "lint", "broken.yaml", cwd=tmp_path).returncode == 1


def test_spectral_finds_no_error(tools: Tools, tmp_path: Path) -> None:
    """`spectral lint` with its rules for OpenAPI; a broken reference is one."""
    rules = HERE / "spectral.yaml"
    done = tools.run_package("spectral", "lint", "--ruleset", rules, CONTRACT, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    (tmp_path / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    assert tools.run_package("spectral", "lint", "--ruleset", rules, "broken.yaml", cwd=tmp_path).returncode == 1
