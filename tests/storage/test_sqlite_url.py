from __future__ import annotations

import os
from pathlib import Path

import pytest

from outreach import NewWorkspace, Outreach
from outreach.core.clock import SystemClock
from outreach.errors import ConfigError, DatabaseMissing
from outreach.storage.sqlite import SqliteStorage, sqlite_storage_from_url

CLOCK = SystemClock()


@pytest.mark.anyio
async def test_three_slashes_are_relative_and_four_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both name the file that they look like."""
    monkeypatch.chdir(tmp_path)
    async with (
        sqlite_storage_from_url("sqlite:///one.db", clock=CLOCK),
        sqlite_storage_from_url(f"sqlite:///{tmp_path}/two 100%.db", clock=CLOCK),
    ):
        assert {"one.db", "two 100%.db"} <= set(os.listdir(tmp_path))


def test_nothing_is_made_before_it_is_opened(tmp_path: Path) -> None:
    """A URL is a name."""
    assert isinstance(sqlite_storage_from_url(f"sqlite:///{tmp_path}/x.db", clock=CLOCK), SqliteStorage)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgres://x", "not the URL of a SQLite database"),
        ("outreach.db", "not the URL of a SQLite database"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:", "names no file"),
        ("sqlite:outreach.db", "names no file"),
        ("sqlite://outreach.db", "sqlite:///relative.db"),
        ("sqlite:///:memory:", "memory://"),
        ("sqlite:///x.db?mode=ro", "there are no options"),
        ("sqlite:///x.db#y", "there are no options"),
        ("sqlite:///x\0.db", "there are no options"),
        ("sqlite:////absent/directory/x.db", "'/absent/directory'.*Create it first"),
        ("sqlite:////tmp", "names a directory.*sqlite:////tmp/outreach.db"),
        ("sqlite:////tmp/", "names a directory.*sqlite:////tmp/outreach.db"),
    ],
)
def test_a_url_that_names_no_file_is_refused_with_one_that_would(url: str, words: str) -> None:
    """The message says what is wrong and what would be right."""
    with pytest.raises(ConfigError, match=words):
        sqlite_storage_from_url(url, clock=CLOCK)


@pytest.mark.anyio
async def test_a_database_is_made_only_where_that_is_asked_for(tmp_path: Path) -> None:
    """A reader of a missing database gets an error, and leaves no file. An existing one opens either way."""
    url = f"sqlite:///{tmp_path / 'late.db'}"
    with pytest.raises(DatabaseMissing, match=r"There is no database at '.*late\.db'"):
        await Outreach.open(url, create=False).__aenter__()
    assert list(tmp_path.iterdir()) == []
    async with Outreach.open(url) as engine:
        await engine.workspaces.create(NewWorkspace(name="Acme"))
    async with Outreach.open(url, create=False) as engine:
        assert [one.name for one in await engine.workspaces.list()] == ["Acme"]
