"""What the tests of whole campaigns at real providers share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from outreach.core.secret_keys import SECRET_KEY_VARIABLE
from tests import postgres
from tests.process.place import Place, open_place


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.turn(16, "what is asked of a provider is the same on SQLite")),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """An empty database, where servers can be started."""
    server_url = None
    if request.param == "postgres":
        server_url = postgres.empty_database()
        # There is no file beside the database that could hold it.
        monkeypatch.setenv(SECRET_KEY_VARIABLE, Fernet.generate_key().decode())
    with open_place(tmp_path, server_url=server_url) as made:
        yield made
