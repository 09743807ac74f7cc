"""A program by somebody who had read the pages of docs/ and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trials.running import check_types, passed


def test_a_clinic_on_django(tmp_path: Path) -> None:
    """A view confirms, one management command reminds and another delivers, without a line of asyncio."""
    assert passed("clinic_site", tmp_path) == 3


@pytest.mark.nightly("types of the trials and examples")
def test_the_program_is_typed(tmp_path: Path) -> None:
    """Under `mypy --strict`."""
    check_types("clinic_site", tmp_path)
