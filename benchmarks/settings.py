"""How a benchmark is run."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import attrs

T = TypeVar("T")

ROOT: Final = Path(__file__).resolve().parent.parent
"""The checkout: sides are started here, so that they find `benchmarks`."""


@attrs.frozen(kw_only=True)
class Base:
    """An earlier version to compare with.

    Attributes:
        ref: As it was named.
        root: Its checkout, with our `benchmarks` in it.
        python: The interpreter of its own environment.
    """

    ref: str
    root: Path
    python: Path


@attrs.frozen(kw_only=True)
class Settings:
    """How the benchmark is run.

    Attributes:
        directory: Where files of this run lie; deleted at the end.
        kept: Where databases lie that are made once for many runs.
        rounds: How often each side is measured.
        quick: Whether sizes are used that only show that it works.
        base: An earlier version to compare with.
        say: Tells somebody who waits what is being done.
    """

    directory: Path
    kept: Path
    rounds: int
    quick: bool
    base: Base | None = None
    say: Callable[[str], None] = print

    def sized(self, full: T, quick: T) -> T:
        """Choose between what is measured and what is only tried."""
        return quick if self.quick else full

    def place(self, name: str) -> Path:
        """Return a new directory of that name, with a number where there is one already."""
        number = 0
        while True:
            path = self.directory / (f"{name}-{number}" if number else name)
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                number += 1
                continue
            return path

    @contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """Return a directory that is deleted afterwards."""
        path = self.place(name)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


ORDINARY_NEEDS: Final = ("fastapi", "pydantic", "sqlalchemy", "greenlet")
HUEY_NEEDS: Final = ("huey",)

NO_SLOWER: Final = 0.97
"""A version is as fast as an earlier one at this ratio: rounds of one run differ by as much."""
NO_LONGER: Final = round(1 / NO_SLOWER, 2)
"""The same as a ratio of times."""

PROCRASTINATE_NEEDS: Final = ("procrastinate",)


def installed(*modules: str) -> bool:
    """Return whether all that a side needs is installed: it is, where `make bench` runs it."""
    return all(importlib.util.find_spec(module) is not None for module in modules)
