"""Optional libraries: which extra of the package brings each, and the error that names what to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

import attrs

from outreach.errors import ConfigError


@attrs.frozen
class _Optional:
    distribution: str
    extra: str


_MODULES: Final = {
    "cryptography": _Optional("cryptography", "providers"),
    "httpx": _Optional("httpx", "providers"),
    "jwt": _Optional("PyJWT", "providers"),
    "holidays": _Optional("holidays", "holidays"),
    "psycopg": _Optional("psycopg", "postgres"),
    "psycopg_pool": _Optional("psycopg-pool", "postgres"),
    "procrastinate": _Optional("procrastinate", "procrastinate"),
    "prometheus_client": _Optional("prometheus-client", "metrics"),
    "opentelemetry": _Optional("opentelemetry-api", "otel"),
    "openpyxl": _Optional("openpyxl", "xlsx"),
    "h11": _Optional("h11", "testing"),
    "pytest": _Optional("pytest", "testing"),
}
"""The modules that an installation without extras lacks; a test holds this against pyproject.toml."""


@contextmanager
def needed_for(purpose: str) -> Iterator[None]:
    """Import optional libraries inside; one that is not installed is an error that people can act on.

    Args:
        purpose: What needs them, as the subject of a sentence.

    Raises:
        ConfigError: One is not installed. The message has the command that installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in _MODULES:
            raise
        raise _missing(purpose, [error.name]) from error


def require(extra: str, purpose: str) -> None:
    """Check that all libraries of an extra are installed, without importing any.

    Args:
        extra: The extra, such as `providers`.
        purpose: What needs them, as the subject of a sentence.

    Raises:
        ConfigError: One is not installed. The message has the command that installs it.
    """
    missing = [name for name, known in _MODULES.items() if known.extra == extra and find_spec(name) is None]
    if missing:
        raise _missing(purpose, missing)


def _missing(purpose: str, modules: list[str]) -> ConfigError:
    known = [_MODULES[name] for name in modules]
    *most, last = (one.distribution for one in known)
    names = f"{', '.join(most)} and {last}" if most else last
    return ConfigError(f"{purpose} needs {names}: pip install 'outreach[{known[0].extra}]'")
