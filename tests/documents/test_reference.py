"""docs/reference has what the code has: `python -m tests.reference` writes it."""

from __future__ import annotations

import pytest

from tests.reference.pages import FOLDER, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    """A change of a command, setting, metric, log line, code or state is written anew."""
    assert (FOLDER / name).read_text("utf-8") == PAGES[name]()


def test_every_page_has_something_that_makes_it() -> None:
    """A page that is left behind would never change again."""
    assert {path.name for path in FOLDER.iterdir()} == set(PAGES)
