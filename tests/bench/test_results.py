from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.results import Results, at_least, at_most
from benchmarks.rounds import alternate
from benchmarks.table import document, machine, render


def test_sides_alternate() -> None:
    """Each round measures each side once, and every other round the other way round."""
    order: list[str] = []

    def side(name: str) -> dict[str, float]:
        order.append(name)
        return {"ms": float(len(order))}

    found = alternate({"outreach": lambda: side("a"), "floor": lambda: side("b")}, 3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert found == {"outreach": [{"ms": 1}, {"ms": 4}, {"ms": 5}], "floor": [{"ms": 2}, {"ms": 3}, {"ms": 6}]}


def results() -> Results:
    """Return three rounds of two sides."""
    samples = {
        "outreach": [{"ms": 3.0}, {"ms": 8.0}, {"ms": 4.0}],
        "floor": [{"ms": 1.0}, {"ms": 2.0}, {"ms": 2.0}],
    }
    found = Results(notes=["quiet"])
    found.compare(samples, "floor", row="create", case="one", unit="ms", wanted=at_most(2.5))
    found.compare(samples, "not there", row="create", case="one", unit="ms")
    found.figure(samples["outreach"], "ms", row="create", case="one", wanted=at_least(4))
    return found


def test_a_ratio_is_of_one_round() -> None:
    """The median is that of the ratios, and not the ratio of the medians."""
    (one,) = results().comparisons
    assert one.ratios == [3.0, 4.0, 2.0]
    told = one.as_json()
    assert (told["ratio"]["median"], told["ratio"]["low"], told["ratio"]["high"]) == (3.0, 2.0, 4.0)
    assert (told["wanted"], told["kept"]) == ("at most 2.5", False)


def test_the_table_and_the_file_say_the_same() -> None:
    """Ours, the other, ratio, spread, and whether it is what was wanted."""
    found, on = results(), machine()
    text = render(found, on, rounds=3, quick=False)
    assert "| create | one  | ms   |    4 |     2 | floor   |     3 | 2-4      | at most 2.5 | MISSED |" in text
    assert "| create | one  | ms   |      4 | 3-8      | at least 4 | kept |" in text
    assert text.endswith("- quiet")
    written = document(found, on, rounds=3, quick=False, base=None)
    assert len(written["comparisons"]) == len(written["figures"]) == 1
    assert written["machine"]["cores"] >= 1
    tried = render(found, on, rounds=3, quick=True)
    assert "mean nothing" in tried
    assert "MISSED" not in tried


@pytest.mark.parametrize("wrong", [["--rows", "create,speed"], ["--rows", ","], ["--rounds", "0"]])
def test_wrong_usage_is_reported(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is measured."""
    with pytest.raises(SystemExit) as ended:
        main(wrong)
    assert ended.value.code == 2
    assert "is no" in capsys.readouterr().err


def test_a_version_that_is_none_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is measured, too."""
    assert main(["--base", "no-such-version", "--kept", str(tmp_path)]) == 1
    assert "No version 'no-such-version'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
