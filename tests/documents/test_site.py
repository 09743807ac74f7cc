"""The check of the site that `make docs` builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents.site import problems


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ('<a href="b.html#here">', None),
        ('<a href="#top">', None),
        ('<a href="https://example.com/nothing">', None),
        ('<img src="data:image/png;base64,AA==">', None),
        ('<a href="c.html">', "a.html links to c.html"),
        ('<a href="b.html#there">', "a.html links to b.html#there"),
        ('<a href="#nowhere">', "a.html links to #nowhere"),
        ('<source srcset="missing.png">', "a.html links to missing.png"),
        ('<script src="missing.js">', "a.html links to missing.js"),
        ('<link href="https://example.com/font.css">', "a.html loads https://example.com/font.css"),
    ],
)
def test_a_dead_link_and_a_script_from_elsewhere_are_named(tag: str, said: str | None, tmp_path: Path) -> None:
    """Places, files and scripts of other pages are found."""
    (tmp_path / "a.html").write_text(f'<p id="top">{tag}', "utf-8")
    (tmp_path / "b.html").write_text('<a id="here"></a>', "utf-8")
    found = list(problems(tmp_path))
    assert len(found) == (said is not None)
    assert all(problem.startswith(str(said)) for problem in found)
