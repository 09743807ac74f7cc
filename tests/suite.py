"""Which tests `make test` runs, which `make soak` adds, which both leave to `make nightly`, and why.

Each test is in one part. The marks of a test, of a module, or of one set of parameters decide:

- `nightly("why")`: the part `nightly`, which only `make nightly` and a bare `pytest` run. They run all parts.
- `turn(n, "why")`: the part `soak` for one commit in n, drawn by commit and test, else `nightly`.
- `soak("why")`: the part `soak`.
- `sample(n)`: the part `soak`, but for the first, the last and every n-th set of parameters. With `together=True` the
  tests of a class count as one test's parameters; with `turn=m` one in m of them is in `soak`, the others in `nightly`.
- Without a mark, a test of what `SLOW_FOLDERS` names is in the part that it names, and any other one in `quick`.

A suite does not even import the `SLOW_FOLDERS` that are left out of it: that alone takes as long as hundreds of tests.
"""

from __future__ import annotations

import gc
import subprocess
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol
from zlib import crc32

import pytest

import outreach

SLOW_FOLDERS: Final[Mapping[str, tuple[str, str]]] = {
    "bench": ("nightly", "each test runs a part of the benchmark"),
    "fuzz/test_databases.py": ("nightly", "the server is the same in memory, and making so many requests takes long"),
    "fuzz": ("soak", "each test sends many generated requests"),
    "process": ("soak", "each test starts servers, and many kill them"),
}
"""The folders and files of `tests` that are slow as a whole: their part, and why. A file precedes its folder."""

SUITES: Final[Mapping[str, tuple[str, ...]]] = {
    "all": ("quick", "soak", "nightly"),
    "quick": ("quick",),
    "soak": ("soak",),
    "gate": ("quick", "soak"),
    "left": ("nightly",),
}
"""What `--suite` chooses: the parts that are run."""

_HERE: Final = Path(__file__).parent
_REPORTED: Final = "suite_counts"
_COUNTS: Final = pytest.StashKey[dict[str, Any]]()


class Worker(Protocol):
    """The part of pytest-xdist's worker controller that is read here."""

    config: pytest.Config
    workeroutput: dict[str, dict[str, Any]]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--suite` and `--turns`."""
    parser.addoption(
        "--suite",
        choices=SUITES,
        default="all",
        help="tests to run: quick (make test), soak (make soak), gate (both), left (all others) or all, the default",
    )
    parser.addoption("--turns", metavar="COMMIT", help="run the tests whose turn it is at this commit, by default HEAD")


def pytest_configure(config: pytest.Config) -> None:
    """Settle on one commit for all workers."""
    config.option.turns = config.option.turns or commit()


def commit() -> str:
    """Return the commit of the checkout; without one, the version."""
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=_HERE, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return outreach.__version__
    return found.stdout.strip()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from what stays, all modules and tests, and have it look rarely at the rest."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000)
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave what is slow as a whole unread."""
    found = _of_folder(collection_path)
    return True if found is not None and found[0] not in SUITES[config.getoption("suite")] else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of the other parts. Plain order: after what notes all tests, before `-k` and `-m`."""
    parts, left = split(items, config.getoption("turns"))
    config.stash[_COUNTS] = {"left": left, **{part: len(found) for part, found in parts.items()}}
    chosen = config.getoption("suite")
    if chosen != "all":
        kept = SUITES[chosen]
        items[:] = [item for part in kept if part != "soak" for item in parts[part]]
        if "soak" in kept:
            workers = getattr(config, "workerinput", {}).get("workercount", 1)
            items[:] = slow_first(parts["soak"], items, workers)
        config.hook.pytest_deselected(items=[item for part in parts.keys() - kept for item in parts[part]])


def slow_first(slow: Iterable[pytest.Item], quick: Iterable[pytest.Item], workers: int) -> list[pytest.Item]:
    """Order tests so that each worker begins with slow ones: pytest-xdist hands out so many parts of equal length.

    They stay together by module, in an order without meaning: in the plain one all tests of the last folder wait.
    """
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for tests in (slow, quick):
        modules: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in tests:
            modules[item.nodeid.partition("::")[0]].append(item)
        for name in sorted(modules, key=lambda name: crc32(name.encode())):
            min(shares, key=len).extend(modules[name])
    return [item for share in shares for item in share]


def split(items: Iterable[pytest.Item], turns: str) -> tuple[dict[str, list[pytest.Item]], dict[str, int]]:
    """Return the tests of each part in the order given, and for each reason how many are left to `make nightly`."""
    parts: dict[str, list[pytest.Item]] = {"quick": [], "soak": [], "nightly": []}
    left: Counter[str] = Counter()
    slow = {item: _slow(item, turns) for item in items}
    skipped = _outside_samples(item for item, found in slow.items() if found is None)
    for item, found in slow.items():
        part, why = found or ("quick", "")
        if item in skipped:
            part, why = _drawn(item, turns, skipped[item], "more parameters of a test")
        parts[part].append(item)
        if part == "nightly":
            left[why] += 1
    return parts, dict(left.most_common())


def _slow(item: pytest.Item, turns: str) -> tuple[str, str] | None:
    """Return the part of a test that is slow, and why."""
    marks = {name: item.get_closest_marker(name) for name in ("nightly", "turn", "soak")}
    if marks["nightly"] is None and marks["turn"] is not None:
        return _drawn(item, turns, *marks["turn"].args)
    marked = ((name, mark.args[0]) for name, mark in marks.items() if mark is not None)
    return next(marked, None) or _of_folder(item.path)


def _drawn(item: pytest.Item, turns: str, of: int, why: str) -> tuple[str, str]:
    """Return the part of a test that is in `soak` for one commit in some."""
    # The operation of a generated test is in its name alone.
    its_turn = crc32(f"{turns} {item.nodeid} {item.name}".encode()) % of == 0
    return "soak" if its_turn else "nightly", f"all but one in {of}: {why}"


@cache
def _of_folder(path: Path) -> tuple[str, str] | None:
    return next((found for name, found in SLOW_FOLDERS.items() if path.is_relative_to(_HERE / name)), None)


def _outside_samples(items: Iterable[pytest.Item]) -> Mapping[pytest.Item, int]:
    """Return all but the first, the last and every n-th set of parameters of sampled tests, and how they take turns."""
    groups: dict[str, list[tuple[pytest.Item, pytest.Mark]]] = defaultdict(list)
    for item in items:
        if (mark := item.get_closest_marker("sample")) is not None:
            apart = "::" if mark.kwargs.get("together") else "["
            groups[item.nodeid.rpartition(apart)[0]].append((item, mark))
    return {
        item: mark.kwargs.get("turn", 1)
        for group in groups.values()
        for number, (item, mark) in enumerate(group[:-1])
        if number % mark.args[0]
    }


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Worker) -> None:
    """Take the counts from a worker of pytest-xdist; each of them collects all tests."""
    counts = getattr(node, "workeroutput", {}).get(_REPORTED)
    if counts is not None:
        node.config.stash[_COUNTS] = counts


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Print the counts below pytest's own summary; a worker sends them to the process that prints."""
    config = session.config
    output = getattr(config, "workeroutput", None)
    if output is not None and _COUNTS in config.stash:
        output[_REPORTED] = config.stash[_COUNTS]
    result = yield
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if output is None and reporter is not None and _COUNTS in config.stash:
        _report(config, reporter, **config.stash[_COUNTS])
    return result


def _report(
    config: pytest.Config,
    reporter: pytest.TerminalReporter,
    *,
    left: Mapping[str, int],
    quick: int,
    soak: int,
    nightly: int,
) -> None:
    """Print how many tests each part has. What is left to `make nightly` is also written, for the end of a gate."""
    suite = config.getoption("suite")
    why = f": {'; '.join(f'{count:,} ({reason})' for reason, count in left.items())}" if left else ""
    folders = ", ".join(name for name, (part, _) in SLOW_FOLDERS.items() if suite == "quick" or part == "nightly")
    words = f"{nightly:,} tests, and those in {folders}, are left to `make nightly`{why}"
    if suite == "quick":
        words = f"{soak + nightly:,}, and those in {folders}, are left to `make soak` and `make nightly`"
    reporter.write_line(f"{quick:,} tests are in `make test`, {soak:,} in `make soak`; {words}")
    if "soak" in SUITES[suite] and suite != "all":
        reporter.write_line(f"Tests that take turns: --turns {config.getoption('turns')} runs the same ones")
        if (cache := getattr(config, "cache", None)) is not None:
            (cache.mkdir("suite") / "left").write_text(f"{words}\n", "utf-8")
