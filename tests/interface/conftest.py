"""A server over each storage, and the register of the sentences that tests name."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from tests.server.conftest import (
    Service,
    Tenant,
    serve,
)
from tests.server.conftest import (
    database_url as database_url,
)
from tests.server.conftest import (
    memory_service as memory_service,
)
from tests.server.conftest import (
    memory_tenant as memory_tenant,
)
from tests.server.conftest import (
    service as service,
)
from tests.server.conftest import (
    tenant as tenant,
)

NAMED: Final = pytest.StashKey[dict[str, set[str]]]()
"""Which sentences the tests of each file name, of all that were collected."""

_DEADLINE_SECONDS: Final = 30.0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note what the tests name, before any of them is deselected."""
    named: dict[str, set[str]] = config.stash.setdefault(NAMED, {})
    for item in items:
        if item.path.parent == Path(__file__).parent:
            sentences = named.setdefault(item.path.name, set())
            for mark in item.iter_markers("sentence"):
                sentences.update(mark.args)


@attrs.frozen(kw_only=True)
class Sending:
    """A server that also sends, and what its simulator has accepted."""

    service: Service
    log: Path

    def accepted(self) -> list[dict[str, Any]]:
        """Return what was accepted, in order."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def start(self, tenant: Tenant, created: dict[str, Any]) -> None:
        """Start a campaign from the application."""
        self.service.run(self.service.engine.campaigns.start, tenant.workspace.id, created["id"])

    def completed(self, tenant: Tenant, created: dict[str, Any]) -> dict[str, Any]:
        """Start a campaign, wait until it is completed, and return it."""
        self.start(tenant, created)
        return until(lambda: next(iter(tenant.get("/campaigns?status=completed").json()["data"]), None))


def until(condition: Callable[[], Any]) -> Any:
    """Wait until a condition holds, and return what it returned."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"Not within {_DEADLINE_SECONDS} s.")


@pytest.fixture
def sending(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sending]:
    """Run a server that also sends, to simulators that answer at once."""
    log = tmp_path / "accepted.jsonl"
    monkeypatch.setenv("OUTREACH_SIMULATOR_LOG", str(log))
    monkeypatch.setenv("OUTREACH_SIMULATOR_LATENCY_MS", "0")
    monkeypatch.setenv("OUTREACH_SIMULATOR_CALL_SECONDS", "0.05")
    for running in serve(database_url, dispatch=True):
        yield Sending(service=running, log=log)
