"""A healthy system for each test: a copy of one that is made once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import httpx
import pytest
from click.testing import CliRunner, Result

from outreach_server.cli import main
from outreach_server.cli.doctor import answering
from outreach_server.cli.upkeep import doctor
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


@pytest.fixture
def run(system: System, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return a function that runs the command with the system's configuration, which it writes into a file first."""
    answer = answering.of_answer
    transport = httpx.MockTransport(system.proxied)
    monkeypatch.setattr(answering, "of_answer", lambda url, **_: answer(url, transport=transport))
    # The machine of the tests may run a server as well.
    monkeypatch.setattr(doctor, "service_here", lambda: None)

    def run(*args: str, **variables: str) -> Result:
        file = system.directory / "outreach.toml"
        if not file.read_text("utf-8"):
            given = {name: value for name, value in system.settings.items() if value is not None}
            lines = [f"{name} = {json.dumps(str(value))}" for name, value in given.items()]
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        result = CliRunner(env={"COLUMNS": "200", **variables}).invoke(main, ["--config", str(file), "doctor", *args])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


def forget_environment(patch: pytest.MonkeyPatch) -> None:
    """Take no setting from where the tests run."""
    for variable in ("SECRET_KEY", "SECRET_KEY_FILE", "HOST_ID", "PUBLIC_URL"):
        patch.delenv(f"OUTREACH_{variable}", raising=False)
    patch.delenv("CREDENTIALS_DIRECTORY", raising=False)
