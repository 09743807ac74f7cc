from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from outreach import ConfigError
from outreach.core.extras import _MODULES, needed_for, require
from outreach_server.words import CONSOLE_MODULES, MODULES, server_extra

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

BLOCK = """
import runpy, sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {blocked!r} else self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
runpy.run_path({script!r}, run_name="__main__")
"""
"""Runs a script as if some modules were not installed."""


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=!\[; ]", one, maxsplit=1)[0] for one in requirements}


def test_each_optional_module_comes_with_the_extra_that_the_error_names() -> None:
    """The command in the message installs what is missing."""
    for module, known in _MODULES.items():
        assert known.distribution in _names(PROJECT["optional-dependencies"][known.extra]), module
    for extra in ("providers", "holidays", "metrics", "otel", "postgres", "procrastinate", "testing"):
        known_here = {known.distribution for known in _MODULES.values() if known.extra == extra}
        # httpx is in `server` too, for the demonstration; the engine needs it for providers. sniffio is no need.
        assert _names(PROJECT["optional-dependencies"][extra]) - {"outreach", "sniffio"} == known_here
    extras = PROJECT["optional-dependencies"]
    # Lists of contacts are read by the library that exports are written with, which is an extra of its own too.
    assert (_names(extras["server"]) | _names(extras["xlsx"])) - {"outreach", "uvloop"} == MODULES
    assert {one.replace("-", "_") for one in _names(extras["console"])} - {"outreach"} == CONSOLE_MODULES


def test_the_core_has_no_library_of_an_extra() -> None:
    """`pip install outreach` brings what the engine needs."""
    core = _names(PROJECT["dependencies"])
    extras = PROJECT["optional-dependencies"]
    for extra in (
        *("console", "server", "providers", "metrics", "otel", "holidays", "postgres", "procrastinate", "testing"),
        "xlsx",
    ):
        assert not core & _names(extras[extra])
    assert not core & {"starlette", "uvicorn", "rich", "pyyaml", "httpx", "cryptography", "holidays"}
    bundled = "console,holidays,metrics,otel,postgres,procrastinate,providers,server,testing,xlsx"
    assert extras["all"] == [f"outreach[{bundled}]"]
    assert "outreach[all]" in extras["dev"]


def test_the_engine_runs_without_any_extra_and_names_what_is_missing() -> None:
    """A campaign is sent on the simulator; each part that needs an extra says how to install it."""
    # Of these, sqlite-utils brings click; anyio looks for sniffio.
    blocked = {*_MODULES, *MODULES, "uvloop", "sniffio"} - {"click"}
    code = BLOCK.format(blocked=blocked, script=str(ROOT / "tests" / "bare_core.py"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_no_extra_brings_is_an_ordinary_import_error() -> None:
    """A broken installation is not called a missing extra."""
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), needed_for("It"):
        import no_such_module  # type: ignore[import-not-found]
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), server_extra("It"):
        import no_such_module  # noqa: F401


def test_an_import_that_fails_names_its_purpose_and_the_command() -> None:
    """The words are the caller's."""
    words = r"^This needs PyJWT: pip install 'outreach\[providers\]'$"
    with pytest.raises(ConfigError, match=words), needed_for("This"):
        raise ModuleNotFoundError("No module named 'jwt'", name="jwt")
    require("providers", "This")
