"""A carrier of one's own, and a package that brings it, as an installation would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from outreach.protocols.adapter import (
    AccountCheck,
    Callback,
    CallbackEvent,
    CallbackRefused,
    Connection,
    CredentialField,
)
from outreach.providers.registry import installed_adapters, installed_analysers
from outreach.testing.scripted import ScriptedVoice
from tests.fake_provider import FakeAdapter


class OwnAdapter(FakeAdapter):
    """Somebody's carrier, which is none of those that the engine brings."""

    name = "mycarrier"
    replies_to_keywords = False


class OwnVoiceAdapter:
    """Somebody's voice provider, which knows trunks by its own identifiers alone."""

    name = "myvoice"
    kind: Final = "voice"
    trunks_by_identifier = True
    replies_to_keywords = False
    max_callback_bytes = 1024
    fields: Sequence[CredentialField] = (CredentialField(name="key", description="The key."),)

    def __init__(self) -> None:
        self.voice = ScriptedVoice()

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        """Find nothing wrong."""
        return ()

    async def check(self, connection: Connection) -> AccountCheck:
        """Accept everything."""
        return AccountCheck(ok=True, message="The account is in order.")

    def read(self, connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
        """Be called back by nobody."""
        raise CallbackRefused("Nobody calls back.")

    def connect(self, connection: Connection) -> ScriptedVoice:
        """Return the one voice provider."""
        return self.voice


MODULE = """
from tests.own_adapter import OwnAdapter

ADAPTER = OwnAdapter()


class Positive:
    def outcome(self, *args, **kwargs):
        return "positive"


ANALYSER = Positive()
"""


@contextmanager
def package(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    points: Mapping[str, Mapping[str, str]],
    *,
    name: str = "own-things",
    module: str = "own_things",
) -> Iterator[None]:
    """Install a package, for as long as the context lasts, with entry points by group and name."""
    root = directory / name
    info = root / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir(parents=True)
    (root / f"{module}.py").write_text(MODULE)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in found.items()) for group, found in points.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(root))
        _forget()
        yield
    _forget()


def _forget() -> None:
    installed_adapters.cache_clear()
    installed_analysers.cache_clear()
