"""`make test` and `make soak` together run every test that takes no turns with others, and each test once."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.suite import SOAK_FOLDERS

ROOT = Path(__file__).resolve().parent.parent

TESTS = """
import pytest

def test_plain(): pass

@pytest.mark.soak("slow")
def test_slow(): pass

@pytest.fixture(params=["memory", pytest.param("file", marks=pytest.mark.soak("slow"))])
def storage(request): return request.param

def test_storage(storage): pass

@pytest.mark.sample(4)
@pytest.mark.parametrize("number", range(11))
def test_sampled(number): pass

@pytest.mark.sample(2)
@pytest.mark.parametrize("number", range(4))
def test_sampled_on_storage(storage, number): pass

@pytest.mark.soak("slow")
@pytest.mark.by_hand("make slower")
def test_by_hand(): pass

@pytest.mark.sample(3, together=True)
class TestTogether:
    def test_a(self): pass
    @pytest.mark.parametrize("number", range(3))
    def test_b(self, number): pass
    def test_c(self): pass

@pytest.fixture(params=["none", *(pytest.param(name, marks=[pytest.mark.soak("slow"), pytest.mark.turn(name, which, 2)])
    for which, name in enumerate(["one", "two"]))])
def database(request): return request.param

@pytest.mark.parametrize("number", range(8))
def test_turns(database, number): pass
"""
QUICK = {
    "test_plain",
    "test_storage[memory]",
    *(f"test_sampled[{number}]" for number in (0, 4, 8, 10)),
    *(f"test_sampled_on_storage[memory-{number}]" for number in (0, 2, 3)),
    *(f"TestTogether::{name}" for name in ("test_a", "test_b[2]", "test_c")),
    *(f"test_turns[none-{number}]" for number in range(8)),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder of tests that uses the plugin."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.suite"]\n', "utf-8")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    soak(reason)\n    by_hand(command)\n    sample(n, together=False)\n"
        "    turn(name, which, of)\n",
        "utf-8",
    )
    (tmp_path / "test_it.py").write_text(TESTS, "utf-8")
    return tmp_path


def run_pytest(folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> str:
    """Run the tests of a folder; return what pytest printed."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", **(environment or {})}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_project(folder: Path, *options: str) -> str:
    """Run the tests of the `project`, without the plugins that are slow to import."""
    return run_pytest(folder, "-rp", *options, environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})


def passed(output: str) -> list[str]:
    """Return the names of the tests that `-rp` lists."""
    return re.findall(r"^PASSED test_it\.py::(\S+)", output, re.MULTILINE)


def test_each_test_is_in_one_part(project: Path) -> None:
    """A plain run has them all; each run says how many the others have."""
    quick, soak = (run_project(project, f"--suite={part}") for part in ("quick", "soak"))
    everything = Counter(passed(run_project(project)))
    assert set(passed(quick)) == QUICK
    parts = Counter(passed(quick)) + Counter(passed(soak))
    assert parts <= everything
    left = everything - parts
    assert left.pop("test_by_hand") == 1
    turns = {name for name in passed(soak) if name.startswith("test_turns")}
    # Each number was tried on one of the two; the other one is left to a bare run.
    assert sorted(name[-2] for name in turns) == [str(number) for number in range(8)]
    assert {re.sub("one|two", "", name) for name in left} == {re.sub("one|two", "", name) for name in turns}
    assert {name.partition("-")[0] for name in turns} == {"test_turns[one", "test_turns[two"}
    assert quick.endswith(
        "\n24 tests and the folders bench, fuzz, process are left to `make soak`; "
        "20 tests are in `make test`; 9 run in a bare `pytest` only\n"
    )
    assert "20 tests are in `make test`; 24 are in `make soak`" in soak


def test_several_processes_run_the_same_part(project: Path) -> None:
    """Each of them collects all tests, and they are counted once."""
    quick = run_project(project, "-pxdist", "-n2", "--suite=quick")
    assert sorted(passed(quick)) == sorted(QUICK)
    assert "left to `make soak`; 20 tests are in `make test`" in quick
    assert "\n24 tests" in quick


@pytest.mark.soak("collects the whole suite twice")
@pytest.mark.timeout(900)
def test_no_test_is_in_both_parts() -> None:
    """Of the tests of this repository; what is in neither takes turns, and is a minority."""
    quick, of_quick = collected("quick")
    soak, of_soak = collected("soak")
    assert quick
    assert soak
    assert set(quick) & set(soak) == set()
    # What `make test` does not even look at is in `make soak`.
    assert of_quick < of_soak
    assert {name.split("/")[1] for name in soak} >= set(SOAK_FOLDERS)
    assert 0.8 * of_soak < len(quick) + len(soak) <= of_soak


def collected(part: str) -> tuple[list[str], int]:
    """Return the tests of this repository that one part has, and how many pytest found in all."""
    output = run_pytest(ROOT, "--collect-only", "-q", "-n0", f"--suite={part}")
    total = re.search(r"^\d+/(\d+) tests collected", output, re.MULTILINE)
    assert total is not None, output[-500:]
    return [line for line in output.splitlines() if line.startswith("tests/") and "::" in line], int(total[1])


def test_the_slow_folders_exist() -> None:
    """A folder that was renamed is not in `make test` by mistake."""
    assert [name for name in SOAK_FOLDERS if not (ROOT / "tests" / name).is_dir()] == []


def test_the_gates_run_both_parts() -> None:
    """`make test` has the one, `make soak` the other, and `.ci/run` both."""
    targets = dict(
        re.findall(r"^(\w+):[^\n]*\n((?:\t[^\n]*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    )
    assert re.findall(r"TESTED\) -m pytest --suite (\S+) \$\(PYTEST_ARGS\)", targets["test"]) == ["quick"]
    assert re.findall(r"TESTED\) -m pytest --suite (\S+) \$\(PYTEST_ARGS\)", targets["soak"]) == ["soak"]
    gates = re.findall(r"^make (\S+)", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert gates == ["test", "soak", "demo", "contract-tools", "wheel-check", "binary-check"]
