from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest
import yaml

import outreach
from outreach_server import contract

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_installed_version_is_the_project_files() -> None:
    """What is installed was built from this project file."""
    try:
        installed = metadata.version("outreach")
    except metadata.PackageNotFoundError:
        pytest.skip("runs from a checkout that is not installed; `make test` installs it")
    assert installed == PROJECT["version"]


def test_the_literal_version_is_the_project_files() -> None:
    """`outreach.__version__` is what the project file says."""
    assert outreach.__version__ == PROJECT["version"]


@pytest.mark.parametrize("package", ["outreach", "outreach_server"])
def test_packages_are_marked_as_typed(package: str) -> None:
    """Type checkers of users read our annotations."""
    assert (resources.files(package) / "py.typed").is_file()


def test_the_contract_is_readable() -> None:
    """The server finds openapi.yaml, it is the repository's, and it is OpenAPI."""
    assert contract.contract_bytes() == (ROOT / contract.CONTRACT_NAME).read_bytes()
    assert yaml.safe_load(contract.contract_bytes().decode())["openapi"].startswith("3.")


def test_a_contract_inside_the_package_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed wheel reads its own copy, whatever lies around it."""
    (tmp_path / contract.CONTRACT_NAME).write_bytes("openapi: 3.1.0 # é\n".encode())
    monkeypatch.setattr(resources, "files", lambda _package: tmp_path)
    assert contract.contract_bytes().decode() == "openapi: 3.1.0 # é\n"


def test_a_stray_file_beside_an_installation_is_no_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a project file beside it, an openapi.yaml above the package is somebody else's."""
    (tmp_path / "package").mkdir()
    (tmp_path / contract.CONTRACT_NAME).write_text("openapi: 3.1.0\n", "utf-8")
    monkeypatch.setattr(resources, "files", lambda _package: tmp_path / "package")
    monkeypatch.setattr(contract, "__file__", str(tmp_path / "package" / "contract.py"))
    with pytest.raises(FileNotFoundError, match=r"openapi\.yaml is neither"):
        contract.contract_bytes().decode()


def test_importing_outreach_loads_no_server_and_no_optional_dependency() -> None:
    """An app that embeds the engine pays for nothing else; the linter cannot see what is loaded at run time."""
    # Not click and rich: sqlite-utils and httpx bring them along.
    unwanted = ["outreach_server", "procrastinate", "psycopg", "starlette", "uvicorn"]
    code = f"import outreach, sys; print(*sorted(set(sys.modules) & set({unwanted!r})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
