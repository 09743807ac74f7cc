"""Three programs by people who had read the pages of docs/ and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trials.running import check_types, passed


def test_a_parcel_shop_on_fastapi(tmp_path: Path) -> None:
    """Mounted behind its staff's tokens; a campaign as a batch ships; every event once in its table."""
    assert passed("parcel_shop", tmp_path) == 5


def test_a_clinic_on_django(tmp_path: Path) -> None:
    """A view confirms, one management command reminds and another delivers, without a line of asyncio."""
    assert passed("clinic_site", tmp_path) == 3


def test_a_platform_team(tmp_path: Path) -> None:
    """Its own voice provider, analyser and dispatcher keep the contracts, and run campaigns."""
    assert passed("platform_team", tmp_path) > 50


@pytest.mark.nightly("types of the trials and examples")
def test_their_programs_are_typed(tmp_path: Path) -> None:
    """Under `mypy --strict`."""
    check_types(["parcel_shop", "clinic_site", "platform_team"], tmp_path)
