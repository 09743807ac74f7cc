"""What the one file unpacks only at its first use; the rest of these modules is a command, `make binary-check`."""

from __future__ import annotations

import errno
import importlib.util
import os
import sys
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

FOLDER: Final = Path(__file__).resolve().parents[2] / ".ci" / "binary"


def load(name: str) -> ModuleType:
    """Load a module of the executable's own."""
    found = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module, for a package that nobody has imported, which does nothing else after the test."""
    module = load("later")
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


def test_no_space_is_said_in_words(later: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do; the archive stays, and a later start unpacks it whole."""
    file = archive(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(zipfile.ZipFile, "extractall", full)
        with pytest.raises(later.NoSpaceError, match=rf"no space in {tmp_path.parent} .*TMPDIR"):
            later.UnpackLater(tmp_path).find_spec("unpacked_late")
    assert file.exists()
    later.UnpackLater(tmp_path).find_spec("unpacked_late")
    assert (tmp_path / "unpacked_late" / "names.txt").exists()


def test_what_failed_starts_have_left_is_deleted(tmp_path: Path) -> None:
    """Half of this executable, once nothing is written there any more; what others unpack or unpacked stays."""
    one_file = load("one_file")
    unpacked = tmp_path / "_MEIours"
    long_ago = time.time() - 3600
    for name, files, age in (
        ("_MEIours", ["libz.so", "base_library.zip", "outreach_server/py.typed"], long_ago),
        ("_MEIhalf", ["libz.so", "base_library.zip"], long_ago),
        ("_MEIyoung", ["libz.so"], time.time()),
        ("_MEIforeign", ["libz.so", "another.so"], long_ago),
        ("_MEIempty", [], long_ago),
        ("other", ["libz.so"], long_ago),
    ):
        for file in files:
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_bytes(b"x")
            os.utime(tmp_path / name / file, (age, age))
        (tmp_path / name).mkdir(exist_ok=True)
        os.utime(tmp_path / name, (age, age))
    one_file.delete_left(unpacked)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"_MEIours", "_MEIyoung", "_MEIforeign", "_MEIempty", "other"}
