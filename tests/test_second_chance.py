"""A gate tries a few failed tests again, but neither many nor those whose failure is no matter of time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.second_chance import MOST, NEVER
from tests.suite import SLOW_FOLDERS

ROOT = Path(__file__).resolve().parent.parent

TESTS = """
import pathlib
import pytest

HERE = pathlib.Path(__file__).parent

def test_passes(): (HERE / "passes").open("a").write("x")

@pytest.mark.parametrize("number", range({failing}))
def test_fails_once(number):
    before = HERE / f"before-{{number}}"
    if not before.exists():
        before.touch()
        raise AssertionError("at first")

def test_is_broken(): assert {works}
"""


def run(folder: Path, *options: str, autoload: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder with the plugin, and without those that are slow to import unless they are needed."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "", **({} if autoload else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})},
        capture_output=True,
        text=True,
        check=False,
    )


def write_project(folder: Path, *, failing: int, works: bool = True) -> None:
    """Write tests that fail the first time, and one that always does unless it works."""
    (folder / "conftest.py").write_text('pytest_plugins = ["tests.second_chance"]\n', "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
    (folder / "test_it.py").write_text(TESTS.format(failing=failing, works=works), "utf-8")


def try_again(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run what failed, as `.ci/second-chance` does."""
    return run(folder, "--last-failed", "--last-failed-no-failures=none", "--second-chance")


def test_what_passes_alone_is_named(tmp_path: Path) -> None:
    """Only what failed runs again."""
    write_project(tmp_path, failing=2)
    assert run(tmp_path).returncode == pytest.ExitCode.TESTS_FAILED
    again = try_again(tmp_path)
    assert again.returncode == pytest.ExitCode.OK, again.stdout
    assert "FAILED AT FIRST, PASSED NOW: test_it.py::test_fails_once[0]\n" in again.stdout
    assert "FAILED AT FIRST, PASSED NOW: test_it.py::test_fails_once[1]\n" in again.stdout
    assert (tmp_path / "passes").read_text("utf-8") == "x"


def test_what_fails_again_has_failed(tmp_path: Path) -> None:
    """Nothing is said to have passed."""
    write_project(tmp_path, failing=1, works=False)
    assert run(tmp_path).returncode == pytest.ExitCode.TESTS_FAILED
    again = try_again(tmp_path)
    assert again.returncode == pytest.ExitCode.TESTS_FAILED
    assert "PASSED NOW" not in again.stdout


def test_many_failures_stand(tmp_path: Path) -> None:
    """They are not even tried."""
    write_project(tmp_path, failing=MOST + 1)
    assert run(tmp_path).returncode == pytest.ExitCode.TESTS_FAILED
    again = try_again(tmp_path)
    assert again.returncode == pytest.ExitCode.TESTS_FAILED
    assert f"No second chance: {MOST + 1} tests failed" in again.stdout + again.stderr


def test_nothing_that_failed_is_no_success(tmp_path: Path) -> None:
    """If pytest does not know what failed, the gate does not pass."""
    write_project(tmp_path, failing=0)
    assert run(tmp_path).returncode == pytest.ExitCode.OK
    assert try_again(tmp_path).returncode == pytest.ExitCode.NO_TESTS_COLLECTED


def test_what_counts_contacts_fails_at_once() -> None:
    """A test of this repository that finds a doubled contact is not asked twice. It is only collected here."""
    name = "tests/process/test_kills.py"
    again = run(ROOT, "--collect-only", "--second-chance", "-p", "no:cacheprovider", name, autoload=True)
    assert again.returncode == pytest.ExitCode.TESTS_FAILED
    assert "No second chance: " in again.stdout + again.stderr


def test_what_has_no_second_chance_exists() -> None:
    """A file that was renamed gets none by mistake."""
    assert [name for name in NEVER if not (ROOT / "tests" / name).exists()] == []
    assert all(name.partition("/")[0] in {*SLOW_FOLDERS, "simulation"} for name in NEVER)


@pytest.mark.parametrize("status", [2, 3, 4, 5])
def test_only_failed_tests_are_tried_again(status: int) -> None:
    """An interrupted run has not tried all of them, and a wrong call none."""
    done = subprocess.run([ROOT / ".ci" / "second-chance", str(status)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "")
