"""The build information inside an executable: its commit, its parts, and their licences."""

from __future__ import annotations

import json
import platform
import sqlite3
import ssl
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

_PACKAGE: Final = "outreach_server"


def described() -> Mapping[str, Any] | None:
    """Return what the build wrote into an executable; None for an installed package."""
    file = resources.files(_PACKAGE) / "build.json"
    return json.loads(file.read_bytes()) if file.is_file() else None


def version_lines(version: str) -> Sequence[str]:
    """Return what `--version` prints: a line; more in an executable, whose parts no package manager can list."""
    first = f"outreach-server, version {version}"
    build = described()
    if build is None:
        return [first]
    parts = ", ".join(f"{name} {number}" for name, number in build["parts"].items())
    return [
        first,
        f"commit {build['commit']}",
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {ssl.OPENSSL_VERSION}",
        f"with {parts}",
    ]


def licences() -> str:
    """Return the licences of everything in an executable."""
    return (resources.files(_PACKAGE) / "THIRD-PARTY.txt").read_text("utf-8")
