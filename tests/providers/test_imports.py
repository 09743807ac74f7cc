from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.process.place import Place
from tests.process.waiting import PATIENCE, wait_for
from tests.providers.carriers import CARRIERS
from tests.providers.voices import VOICES

ADAPTERS = frozenset(f"outreach.providers.carriers.{one.name}" for one in CARRIERS) | frozenset(
    f"outreach.providers.voice.{one.name}" for one in VOICES
)


def _imported(told: str) -> set[str]:
    """Return the names of the adapters, and of the HTTP client, that a process says it has imported."""
    names = {match.group(1) for match in re.finditer(r"^import time:.*\|\s+(\S+)$", told, re.MULTILINE)}
    assert "outreach" in names
    return set(_of_adapters(names))


def _of_adapters(names: set[str]) -> Iterator[str]:
    for name in names:
        first, *rest = name.split(".")
        if first == "httpx":
            yield first
        if ".".join([first, *rest][:4]) in ADAPTERS:
            yield ".".join([first, *rest][:4])


def _run(place: Place, *arguments: str) -> set[str]:
    """Return what a command imports."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **place.environment, "PYTHONPROFILEIMPORTTIME": "1"},
    )
    assert done.returncode == 0, done.stderr
    return _imported(done.stderr)


def test_the_packages_import_no_adapter(place: Place) -> None:
    """A program that imports the engine or the server loads no provider."""
    assert _run(place, "-c", "import outreach, outreach_server") == set()


def test_a_command_imports_the_adapter_that_it_is_about(place: Place) -> None:
    """`accounts list` of a workspace that has none needs none; `accounts fields` needs its own, and no HTTP client."""
    command = ("-m", "outreach_server", "--database", place.url, "accounts")
    assert _run(place, *command, "list", place.workspace_id) == set()
    assert _run(place, *command, "fields", "telnyx") == {"outreach.providers.carriers.telnyx"}


@pytest.mark.soak("starts processes that import everything")
def test_a_server_imports_no_adapter_for_a_sandbox(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox names carriers and voice providers, and everything goes to the simulators: nothing else is loaded."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    server = place.serve()
    place.create(campaigns=1, recipients=3)
    place.create_calls(campaigns=1, recipients=3, concurrency=3)
    wait_for(
        "the campaigns to end", lambda: {one["status"] for one in place.books.campaigns().values()} == {"completed"}
    )
    assert place.books.sent() == 6
    assert server.stop() == 0
    assert _imported(server.errors()) == set()
