from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.structure import ROOT, compare, imports, lines

FILES = {
    "outreach/__init__.py": "",
    "outreach/engine.py": "from outreach.services import send\n",
    "outreach/errors.py": '"""Errors."""\n\n# One.\nclass Wrong(Exception):\n    """It is wrong."""\n\n    code = 1\n',
    "outreach/services/__init__.py": "",
    "outreach/services/send.py": "from outreach.models.one import One\nfrom outreach.services import wait\n",
    "outreach/services/wait.py": "def later():\n    from outreach.services import send\n    return send\n",
    "outreach/models/__init__.py": "",
    "outreach/models/one.py": "from typing import TYPE_CHECKING\n\nfrom outreach.errors import Wrong as One\n\n"
    "if TYPE_CHECKING:\n    from outreach.services import send\n",
    "outreach/models/sql/__init__.py": "",
    "outreach_server/__init__.py": "",
    "outreach_server/app.py": "from outreach.engine import send\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with few modules."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_lines_of_code_are_those_that_do_something(checkout: Path) -> None:
    """Docstrings, comments and blank lines are none."""
    assert lines(checkout / "outreach/errors.py") == 2
    assert lines(checkout / "outreach/services/wait.py") == 3


def test_imports_make_levels_and_circles(checkout: Path) -> None:
    """Levels are of the imports at loading; circles count those of functions and type checkers too."""
    assert imports(checkout) == {
        "folders directly in outreach": 2,
        "packages outreach": 3,
        "packages outreach_server": 1,
        "imports between packages of outreach": 2,  # services -> models -> outreach
        "levels of outreach": 4,  # engine, services, models, errors
        "files in import circles": "3",  # send, wait and one
    }


def test_no_files_import_each_other_in_a_circle() -> None:
    """Not in functions, and not for type checkers either: each file can be read after those that it imports."""
    assert imports(ROOT)["files in import circles"] == "none"


def test_two_checkouts_are_compared() -> None:
    """Figures that differ have the difference behind them."""
    table = compare({"files": 3, "circles": "none", "new": 1}, {"files": 5, "circles": "2", "old": 1})
    assert [line.split() for line in table] == [
        ["files", "5", "3", "-2"],
        ["circles", "2", "none", "differs"],
        ["old", "1", "0", "-1"],
        ["new", "0", "1", "+1"],
    ]


@pytest.mark.nightly("counts all files, and sends requests under a profiler")
def test_the_table_has_every_kind_of_figure() -> None:
    """Of this checkout; a request passes files of both packages."""
    command = [sys.executable, "-P", str(ROOT / "tests/structure.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {line[:52].strip(): line[52:].strip().replace(",", "") for line in done.stdout.splitlines()}
    assert int(found["lines outreach"]) > 10_000
    assert int(found["words docs, hand-written"]) > 10_000
    for what in ("POST /sms-campaigns", "GET /calls/{id}", "an SMS from start to receipt", "campaigns start"):
        assert int(found[f"files passed by {what}"]) > int(found[f"packages passed by {what}"]) > 2
        assert int(found[f"functions passed by {what}"]) > int(found[f"files passed by {what}"])
