from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.binary import measures
from tests.binary.__main__ import check_sums
from tests.binary.measures import ALLOWED_SECONDS, Start, Starts, too_late, verdicts


def built(dist: Path, *names: str) -> None:
    """Write files and their checksums."""
    lines = []
    for name in names:
        (dist / name).write_text(name)
        lines.append(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n")
    (dist / "SHA256SUMS").write_text("".join(lines))


def test_the_zip_of_this_build_is_tried_whatever_lies_beside_it(tmp_path: Path) -> None:
    """Zips of other versions stay in the directory."""
    (tmp_path / "outreach-server-0.0.9-linux-x86_64.zip").touch()
    (tmp_path / "outreach-server-9.0.0-linux-x86_64.zip").touch()
    built(tmp_path, "outreach-server", "outreach-server-0.1.0-linux-x86_64.zip")
    assert check_sums(tmp_path).name == "outreach-server-0.1.0-linux-x86_64.zip"


def test_what_is_missing_or_differs_is_said_with_the_command_that_mends_it(tmp_path: Path) -> None:
    """Nothing was built, a file is gone, another one is in its place, or the sums name no zip."""
    with pytest.raises(SystemExit, match=r"There is no .*SHA256SUMS. Build the executable first: make binary"):
        check_sums(tmp_path)
    built(tmp_path, "outreach-server")
    with pytest.raises(SystemExit, match="names 0 zips"):
        check_sums(tmp_path)
    (tmp_path / "outreach-server").write_text("another")
    with pytest.raises(SystemExit, match=r"outreach-server is not the file of .*make binary"):
        check_sums(tmp_path)
    (tmp_path / "outreach-server").unlink()
    with pytest.raises(SystemExit, match=r"outreach-server of .* is not there"):
        check_sums(tmp_path)


def starts(one_file: list[float], *, computing: float = 0.3, others: float = 0.0) -> Starts:
    """Return starts of the one file beside an installed package that takes half a second."""
    return Starts(
        by_form={
            measures.INSTALLED: [Start(seconds=0.5, computing=0.4, memory=50.0)] * len(one_file),
            "one file": [Start(seconds=seconds, computing=0.4 + computing, memory=60.0) for seconds in one_file],
        },
        others=others,
    )


def test_the_one_file_may_start_so_much_later_and_no_more() -> None:
    """Judged by the median: one slow start decides nothing, and one quick one neither."""
    assert too_late(starts([0.7, 5.0, 0.8])) == []
    found = starts([0.6, 1.3, 1.4])
    assert too_late(found) == ["one file"]
    assert verdicts(found) == {
        "one file": f"one file: +0.80 s to the first answer, NOT within the {ALLOWED_SECONDS} s allowed"
    }


def test_on_a_busy_machine_its_computing_is_judged() -> None:
    """Where others compute, seconds on the clock tell of them."""
    assert too_late(starts([3.0, 3.0, 3.0], others=0.6)) == []
    assert too_late(starts([3.0, 3.0, 3.0], others=0.1)) == ["one file"]
    found = starts([3.0, 3.0, 3.0], computing=0.8, others=0.6)
    assert too_late(found) == ["one file"]
    assert "computing (the machine is busy)" in verdicts(found)["one file"]
