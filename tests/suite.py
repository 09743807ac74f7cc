"""Which tests `make test` runs, which it leaves to `make soak`, and which only a bare `pytest` runs: all of them.

A test is left to `make soak` when its folder is in `SOAK_FOLDERS`, when it (or one set of its parameters) is marked
`soak`, or when it is marked `sample(n)` and its parameters are not among the first, the last and every n-th; with
`together=True` the tests of a class count as one test's parameters.

What is marked `by_hand("command")` is in neither: that command runs it.

`make test` does not even import the folders of `SOAK_FOLDERS`: that alone takes as long as hundreds of tests.

A set of parameters that is marked `turn(name, which, of)` takes turns with others: a test that there is once with each
of several databases, say, runs with one of them in `make soak`. The test's own name says with which.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol
from zlib import crc32

import pytest

SOAK_FOLDERS: Final[Mapping[str, str]] = {
    "bench": "each test runs a part of the benchmark",
    "fuzz": "each test sends many generated requests",
    "process": "each test starts servers, and many kill them",
}
"""The folders of `tests` that are slow as a whole, and why."""

PARTS: Final = ("all", "quick", "soak")
_HERE: Final = Path(__file__).parent
_COUNTS: Final = pytest.StashKey[tuple[int, int, int]]()
_REPORTED: Final = "suite_counts"


class Worker(Protocol):
    """The part of pytest-xdist's worker controller that is read here."""

    config: pytest.Config
    workeroutput: dict[str, list[int]]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--suite`."""
    parser.addoption(
        "--suite",
        choices=PARTS,
        default="all",
        help="which tests to run: quick (make test), soak (make soak) or all, the default",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the folders that are slow as a whole out of `make test`, unread."""
    return True if config.getoption("suite") == "quick" and _is_in_soak_folder(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of the other parts. Plain order: after what notes all tests, before `-k` and `-m`."""
    quick, soak, rest = split(items)
    config.stash[_COUNTS] = (len(quick), len(soak), len(rest))
    part = config.getoption("suite")
    if part != "all":
        items[:], left = (quick, soak) if part == "quick" else (soak, quick)
        config.hook.pytest_deselected(items=left + rest)


def split(items: Iterable[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item], list[pytest.Item]]:
    """Return the tests of `make test`, those of `make soak`, and those of neither, each in the order given."""
    quick: list[pytest.Item] = []
    soak: list[pytest.Item] = []
    rest: list[pytest.Item] = []
    sampled: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("sample")
        if marker is not None and not _is_soak(item):
            sampled[item.nodeid.rpartition("::" if marker.kwargs.get("together") else "[")[0]].append(item)
    skipped = {item for group in sampled.values() for item in _outside_sample(group)}
    for item in items:
        if item not in skipped and not _is_soak(item):
            quick.append(item)
        else:
            (soak if _has_its_turn(item) else rest).append(item)
    return quick, soak, rest


def _has_its_turn(item: pytest.Item) -> bool:
    if item.get_closest_marker("by_hand") is not None:
        return False
    marker = item.get_closest_marker("turn")
    if marker is None:
        return True
    name, which, of = marker.args
    apart = re.sub(rf"(?<=[\[-]){name}(?=[\]-])", "", item.nodeid)
    return crc32(apart.encode()) % of == which


def _is_soak(item: pytest.Item) -> bool:
    return item.get_closest_marker("soak") is not None or _is_in_soak_folder(item.path)


def _is_in_soak_folder(path: Path) -> bool:
    return any(path.is_relative_to(_HERE / name) for name in SOAK_FOLDERS)


def _outside_sample(group: list[pytest.Item]) -> list[pytest.Item]:
    """Return all but the first, the last and every n-th of one test's sets of parameters."""
    marker = group[0].get_closest_marker("sample")
    assert marker is not None
    (every,) = marker.args
    last = len(group) - 1
    return [item for number, item in enumerate(group) if number % every and number != last]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Worker) -> None:
    """Take the counts from a worker of pytest-xdist; each of them collects all tests."""
    counts = getattr(node, "workeroutput", {}).get(_REPORTED)
    if counts is not None:
        node.config.stash[_COUNTS] = (counts[0], counts[1], counts[2])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Print the counts below pytest's own summary; a worker sends them to the process that prints."""
    config = session.config
    output = getattr(config, "workeroutput", None)
    if output is not None and _COUNTS in config.stash:
        output[_REPORTED] = [*config.stash[_COUNTS]]
    result = yield
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if output is None and reporter is not None and _COUNTS in config.stash:
        reporter.write_line(_summary(config.getoption("suite"), *config.stash[_COUNTS]))
    return result


def _summary(part: str, quick: int, soak: int, rest: int) -> str:
    only = f"; {rest:,} run in a bare `pytest` only" if rest else ""
    match part:
        case "quick":
            return (
                f"{soak:,} tests and the folders {', '.join(SOAK_FOLDERS)} are left to `make soak`; "
                f"{quick:,} tests are in `make test`{only}"
            )
        case "soak":
            return f"{quick:,} tests are in `make test`; {soak:,} are in `make soak`{only}"
        case _:
            return f"all tests: {quick:,} of `make test` and {soak:,} of `make soak`{only}"
