from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.settings import Settings
from benchmarks.tenants import kept_tenant


@pytest.fixture
def said() -> list[str]:
    """What was told to somebody who waits."""
    return []


@pytest.fixture
def settings(tmp_path: Path, said: list[str]) -> Settings:
    """A run of tiny sizes."""
    (tmp_path / "run").mkdir()
    return Settings(directory=tmp_path / "run", kept=tmp_path / "kept", rounds=1, quick=True, say=said.append)


def campaigns(database: Path) -> int:
    """Return how many campaigns are in a file."""
    with closing(sqlite3.connect(database)) as connection:
        count: int = connection.execute("SELECT COUNT(*) FROM campaigns").fetchone()[0]
    return count


def test_a_large_database_is_made_once(settings: Settings, said: list[str], tmp_path: Path) -> None:
    """Later runs get a copy of their own; one that was not finished is made anew."""
    first = kept_tenant(settings, campaigns=2, contacts=3)
    second = kept_tenant(settings, campaigns=2, contacts=3)
    assert len(said) == 1
    assert first.database != second.database
    assert (first.workspace_id, first.api_key) == (second.workspace_id, second.api_key)
    assert campaigns(first.database) == campaigns(second.database) == 3
    (facts,) = (tmp_path / "kept").glob("*/tenant.json")
    facts.unlink()
    third = kept_tenant(settings, campaigns=2, contacts=3)
    assert len(said) == 2
    assert third.workspace_id != first.workspace_id


def test_scratch_is_deleted_and_places_are_not(settings: Settings) -> None:
    """What one round leaves does not fill the disk."""
    with settings.scratch("floor") as directory, settings.scratch("floor") as other:
        assert directory != other
        (directory / "file").touch()
    assert not directory.exists()
    assert settings.place("kept").exists()
