"""Each test is in one part of the suite, and the gate says what it leaves to `make nightly`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import outreach
from tests.suite import SLOW_FOLDERS, commit, slow_first

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
@pytest.mark.nightly("slower")
def test_nightly(): pass

@pytest.mark.sample(3, together=True)
class TestTogether:
    def test_a(self): pass
    @pytest.mark.parametrize("number", range(3))
    def test_b(self, number): pass
    def test_c(self): pass

@pytest.mark.sample(20, turn=4)
@pytest.mark.parametrize("number", range(61))
def test_seeds(number): pass

@pytest.fixture(params=["none", pytest.param("some", marks=pytest.mark.turn(4, "the same on none"))])
def database(request): return request.param

@pytest.mark.parametrize("number", range(64))
def test_turns(database, number): pass
"""
QUICK = {
    "test_plain",
    "test_storage[memory]",
    *(f"test_sampled[{number}]" for number in (0, 4, 8, 10)),
    *(f"test_sampled_on_storage[memory-{number}]" for number in (0, 2, 3)),
    *(f"TestTogether::{name}" for name in ("test_a", "test_b[2]", "test_c")),
    *(f"test_seeds[{number}]" for number in (0, 20, 40, 60)),
    *(f"test_turns[none-{number}]" for number in range(64)),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder of tests that uses the plugin."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.suite"]\n', "utf-8")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    soak(reason)\n    nightly(reason)\n    sample(n, together=False, turn=1)\n"
        "    turn(n, reason)\n",
        "utf-8",
    )
    (tmp_path / "test_it.py").write_text(TESTS, "utf-8")
    return tmp_path


def run_pytest(folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> str:
    """Run the tests of a folder; return what pytest printed."""
    command = [sys.executable, "-m", "pytest", *options]
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], **(environment or {})}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_project(folder: Path, *options: str) -> str:
    """Run the tests of the `project`, without the plugins that are slow to import."""
    return run_pytest(
        folder, "-rp", "-p", "no:cacheprovider", *options, environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    )


def passed(output: str) -> list[str]:
    """Return the names of the tests that `-rp` lists."""
    return re.findall(r"^PASSED test_it\.py::(\S+)", output, re.MULTILINE)


def test_each_test_is_in_one_part(project: Path) -> None:
    """A plain run has them all; each run says how many the others have."""
    quick, soak, gate = (run_project(project, f"--suite={part}", "--turns=1") for part in ("quick", "soak", "gate"))
    everything = Counter(passed(run_project(project, "--turns=1")))
    assert set(passed(quick)) == QUICK
    parts = Counter(passed(quick)) + Counter(passed(soak))
    assert Counter(passed(gate)) == parts <= everything
    left = everything - parts
    assert left.pop("test_nightly") == 1
    seeds = [name for name in left if name.startswith("test_seeds")]
    others = [name for name in left if name.startswith("test_turns[some")]
    assert left == Counter([*seeds, *others])
    assert 28 < len(seeds) < 57
    assert quick.endswith(
        f"\n80 tests are in `make test`, {len(passed(soak))} in `make soak`; {len(passed(soak)) + len(left) + 1}, "
        f"and those in {', '.join(SLOW_FOLDERS)}, are left to `make soak` and `make nightly`\n"
    )
    assert (
        f"\n80 tests are in `make test`, {len(passed(soak))} in `make soak`; {len(left) + 1} tests, and "
        "those in bench, fuzz/test_databases.py, are left to "
        f"`make nightly`: {len(others)} (all but one in 4: the same on none); "
        f"{len(seeds)} (all but one in 4: more parameters of a test); 1 (slower)\n"
    ) in soak


def test_other_tests_take_their_turns_with_each_commit(project: Path) -> None:
    """About one in so many; the same ones for one commit."""
    turns = [
        {name for name in passed(run_project(project, "--suite=soak", f"--turns={commit}")) if "test_turns" in name}
        for commit in (1, 1, 2, 3)
    ]
    assert turns[0] == turns[1]
    assert all(4 < len(one) < 32 for one in turns)
    assert len(set.union(*turns)) > max(map(len, turns))


def test_a_gate_takes_turns_by_the_commit_and_says_how_to_repeat_it(project: Path) -> None:
    """What it leaves out is in a file, for its last line."""
    soak = run_pytest(project, "--suite=soak", environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    (turns,) = re.findall(r"Tests that take turns: --turns ([0-9a-f]{40}) ", soak)
    assert turns == commit()
    left = (project / ".pytest_cache" / "d" / "suite" / "left").read_text("utf-8")
    assert left in soak
    assert re.match(
        r"\d+ tests, and those in bench, fuzz/test_databases.py, are left to `make nightly`: \d+ \(all but one in 4: ",
        left,
    )


def test_without_a_commit_the_version_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where git is missing, or this is no checkout."""
    assert re.fullmatch("[0-9a-f]{40}", commit())
    monkeypatch.setenv("PATH", "")
    assert commit() == outreach.__version__


def test_several_processes_run_the_same_part(project: Path) -> None:
    """Each of them collects all tests, and they are counted once."""
    quick = run_project(project, "-pxdist", "-n2", "--suite=quick")
    assert sorted(passed(quick)) == sorted(QUICK)
    assert "\n80 tests are in `make test`, " in quick


def test_each_worker_begins_with_slow_tests() -> None:
    """By module, with about as many in all as the others."""
    slow = [f"slow_{module}.py::test_{number}" for module in range(6) for number in range(2)]
    quick = [f"quick_{module}.py::test_{number}" for module in range(40) for number in range(3)]
    first, last = ([cast(pytest.Item, SimpleNamespace(nodeid=name)) for name in names] for names in (slow, quick))
    found = [item.nodeid for item in slow_first(first, last, workers=3)]
    assert sorted(found) == sorted([*slow, *quick])
    modules = [name for name, _ in groupby(name.partition("::")[0] for name in found)]
    assert len(modules) == len(set(modules)) == 46
    for begin in (0, 44, 88):
        share = [name.startswith("slow") for name in found[begin : begin + 44]]
        assert share[2:4] == [True, True]
        assert not any(share[6:-3])


@pytest.mark.nightly("collecting the whole suite twice")
@pytest.mark.timeout(900)
def test_no_test_is_in_both_parts() -> None:
    """Of the tests of this repository; what is in neither is left to `make nightly`."""
    quick, of_quick = collected("quick")
    soak, of_soak = collected("soak")
    assert quick
    assert soak
    assert set(quick) & set(soak) == set()
    # What `make test` does not even look at is in `make soak`.
    assert of_quick < of_soak
    assert {name.split("/")[1] for name in soak} >= {name for name, (part, _) in SLOW_FOLDERS.items() if part == "soak"}
    assert len(quick) + len(soak) < of_soak


def collected(part: str) -> tuple[list[str], int]:
    """Return the tests of this repository that one part has, and how many pytest found in all."""
    output = run_pytest(ROOT, "-p", "no:cacheprovider", "--collect-only", "-q", "-n0", f"--suite={part}")
    total = re.search(r"^\d+/(\d+) tests collected", output, re.MULTILINE)
    assert total is not None, output[-500:]
    return [line for line in output.splitlines() if line.startswith("tests/") and "::" in line], int(total[1])


def test_the_slow_folders_exist() -> None:
    """A folder that was renamed is not in `make test` by mistake."""
    assert [name for name in SLOW_FOLDERS if not (ROOT / "tests" / name).exists()] == []


def test_the_gate_runs_both_parts_and_nightly_everything() -> None:
    """What the gate tries one case of, `make nightly` runs whole."""
    makefile, script = ((ROOT / name).read_text("utf-8") for name in ("Makefile", ".ci/run"))
    targets = dict(re.findall(r"^([\w-]+):[^\n]*\n((?:\t[^\n]*\n)+)", makefile, re.MULTILINE))
    suites = {name: re.findall(r"TESTED\) -m pytest (.*)\$\(PYTEST_ARGS\)", recipe) for name, recipe in targets.items()}
    assert suites["test"] == suites["soak"] == ["--suite $(SUITE) "]
    assert suites["nightly"] == [""]
    assert dict(re.findall(r"^(\w+): SUITE = (\w+)$", makefile, re.MULTILINE)) == {"test": "quick", "soak": "soak"}
    # The last line says that all is well and what is left, whatever else is said before.
    assert script.rindex("NOT CHECKED") < script.rindex("all gates passed") < script.rindex("suite/left")
    gate = re.findall(r"^make (.*?) </dev/null", script.replace("\\\n", " "), re.MULTILINE)
    ran = [word for line in gate for word in line.split() if word in targets]
    own = {"check", "test", "fuzz-tests"}
    assert own < set(ran)
    # What the run of both parts leaves out has one of its own.
    (tests,) = (line for line in gate if line.startswith("test "))
    assert tests.startswith("test SUITE=gate ")
    assert re.findall(r"--ignore=(\S+)", tests) == ["tests/fuzz"]
    assert "-m pytest tests/fuzz --suite soak " in targets["fuzz-tests"]
    nightly = set(re.findall(r"\$\(MAKE\) (\S+)", targets["nightly"]))
    assert set(ran) - own < nightly
    assert {name for name, recipe in targets.items() if "$(SUITE)" in recipe} - {"test", "soak"} < nightly & set(ran)
