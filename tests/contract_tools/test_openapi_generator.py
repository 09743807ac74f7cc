"""Clients that openapi-generator makes compile, offer the idempotency key, and work."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.contract_tools.conftest import Sandbox
from tests.contract_tools.tools import CONTRACT, HERE, Tools, copy_sources

CALLS = HERE / "openapi_generator"

pytestmark = pytest.mark.nightly("clients that openapi-generator makes")


def generate(tools: Tools, target: str, place: Path, *options: str) -> None:
    """Make a client in the directory `client` of a place."""
    jar = tools.package("openapi_generator_cli") / "openapi-generator.jar"
    command = ("generate", "-g", target, "-i", str(CONTRACT), "-o", "client")
    done(tools.run_java("-jar", jar, *command, *options, cwd=place))


def done(process: subprocess.CompletedProcess[str]) -> str:
    """Return what a process has printed; it must have gone well."""
    assert process.returncode == 0, process.stdout[-5000:]
    return process.stdout


def check(printed: str) -> None:
    """Check that the second creation got the first one's campaign, which is listed once and has its hours."""
    first, again, *listed, zone = json.loads(printed.splitlines()[-1])
    assert [again, *listed] == [first] * 2
    assert zone == "Europe/Lisbon"


def test_the_python_client(tools: Tools, sandbox: Sandbox, tmp_path: Path) -> None:
    """Every module of it can be imported."""
    generate(tools, "python", tmp_path)
    script = shutil.copy(CALLS / "call.py", tmp_path / "client")
    check(done(tools.run_python(script, sandbox.url, sandbox.key, cwd=tmp_path)))


def test_the_go_client(tools: Tools, sandbox: Sandbox, tmp_path: Path) -> None:
    """It compiles; constants of enumerations need the option that gives them their type's name."""
    generate(tools, "go", tmp_path, "--additional-properties", "enumClassPrefix=true,packageName=outreach")
    shutil.rmtree(tmp_path / "client" / "test")
    validator = tmp_path / "validator"
    validator.mkdir()
    shutil.copy(CALLS / "validator.go", validator)
    (validator / "go.mod").write_text("module gopkg.in/validator.v2\n\ngo 1.23\n")
    (tmp_path / "client" / "go.mod").write_text(
        "module example.com/outreach\n\ngo 1.23\n\nrequire gopkg.in/validator.v2 v2.0.1\n\n"
        "replace gopkg.in/validator.v2 => ../validator\n"
    )
    program = tmp_path / "client" / "cmd"
    program.mkdir()
    shutil.copy(CALLS / "call.go", program)
    check(done(tools.run_go("run", "./cmd", sandbox.url, sandbox.key, cwd=tmp_path / "client")))


def test_the_java_client(tools: Tools, sandbox: Sandbox, tmp_path: Path) -> None:
    """The library `native` compiles with Jackson alone, which the generator has within itself."""
    options = "openApiNullable=false,annotationLibrary=none,documentationProvider=none"
    generate(tools, "java", tmp_path, "--library", "native", "--additional-properties", options)
    jackson = tools.package("openapi_generator_cli") / "openapi-generator.jar"
    sources = (tmp_path / "client" / "src" / "main" / "java", CALLS)
    compiler = ("-jar", tools.java_compiler, "-17", "-nowarn", "-d", "built", "-cp", jackson)
    done(tools.run_java(*compiler, *sources, cwd=tmp_path))
    check(done(tools.run_java("-cp", f"built:{jackson}", "Call", sandbox.url, sandbox.key, cwd=tmp_path)))


def test_the_typescript_client(tools: Tools, sandbox: Sandbox, tmp_path: Path) -> None:
    """The target `typescript-fetch` compiles in strict mode."""
    generate(tools, "typescript-fetch", tmp_path)
    copy_sources(tmp_path, tools)
    for source in tmp_path.glob("*.ts"):
        source.unlink()
    shutil.copy(CALLS / "call.ts", tmp_path)
    done(tools.run_package("tsc", "--project", ".", cwd=tmp_path))
    check(done(tools.run_node(tmp_path / "built" / "call.js", sandbox.url, sandbox.key, cwd=tmp_path)))
