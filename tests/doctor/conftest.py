"""A healthy system for each test: a copy of one that is made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.doctor.provider import serving
from tests.doctor.system import System, copied, healthy, use_resolver_of


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Return the system of which each test gets a copy."""
    with serving() as provider, pytest.MonkeyPatch.context() as patch:
        forget_environment(patch)
        yield anyio.run(healthy, tmp_path_factory.mktemp("healthy"), provider)


@pytest.fixture
def system(original: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    """Return a system without a fault."""
    forget_environment(monkeypatch)
    found = copied(original, tmp_path)
    use_resolver_of(found, monkeypatch)
    yield found
    for close in found.closing:
        close()


def forget_environment(patch: pytest.MonkeyPatch) -> None:
    """Take no setting from where the tests run."""
    for variable in ("SECRET_KEY", "SECRET_KEY_FILE", "HOST_ID", "PUBLIC_URL"):
        patch.delenv(f"OUTREACH_{variable}", raising=False)
    patch.delenv("CREDENTIALS_DIRECTORY", raising=False)
