"""What the one file unpacks only at its first use; the rest of these modules is a command, `make binary-check`."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

FILE: Final = Path(__file__).resolve().parents[2] / ".ci" / "binary" / "later.py"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module, for a package that nobody has imported, which does nothing else after the test."""
    found = importlib.util.spec_from_file_location("later", FILE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    monkeypatch.setattr(module, "PARTS", {"unpacked_late": ("unpacked_late/",)})
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield module
    sys.modules.pop("unpacked_late", None)


def archive(place: Path) -> Path:
    """Write the archive of a package into an unpacked executable."""
    file = place / "later" / "unpacked_late.zip"
    file.parent.mkdir()
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("unpacked_late/__init__.py", "from pathlib import Path\nHERE = Path(__file__).parent\n")
        opened.writestr("unpacked_late/names.txt", "Neujahr")
    return file


def test_a_package_is_unpacked_when_it_is_imported(
    later: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before, and once."""
    file = archive(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    later.install(tmp_path)
    importlib.import_module("zoneinfo")
    assert not (tmp_path / "unpacked_late").exists()
    package = importlib.import_module("unpacked_late")
    assert (package.HERE / "names.txt").read_text() == "Neujahr"
    assert not file.exists()
    # Another process has unpacked it, or the system has cleaned the directory up.
    sys.modules.pop("unpacked_late")
    assert importlib.import_module("unpacked_late").HERE == package.HERE


def test_whoever_comes_second_waits_until_all_is_there(later: ModuleType, tmp_path: Path) -> None:
    """The server and a helper process import it at the same time; the lock of one keeps out the other."""
    file = archive(tmp_path)
    finder = later.UnpackLater(tmp_path)

    def second() -> bool:
        finder.find_spec("unpacked_late")
        return (tmp_path / "unpacked_late" / "names.txt").exists() and not file.exists()

    with ThreadPoolExecutor(4) as threads:
        assert all(done.result() for done in [threads.submit(second) for _ in range(4)])
