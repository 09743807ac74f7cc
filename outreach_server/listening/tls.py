"""TLS by files, which are read again when they change."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from outreach import ConfigError

_log = logging.getLogger("outreach_server")

_State = Sequence[tuple[int, int, int]]
"""Of each file: its inode, its size and when it was written."""

_NO_FILE: Final = (0, 0, 0)


class CertificateFiles:
    """A server's certificate and key.

    Connections that are open keep the certificate that they began with.

    Args:
        certificate: A PEM file with the certificate and those that it was issued by.
        key: A PEM file with the key; None where the first file has it too.

    Raises:
        ConfigError: The files cannot be read, or do not belong together.
    """

    def __init__(self, certificate: Path, key: Path | None) -> None:
        self._certificate = certificate
        self._key = key
        self._state = self._look()
        self.context = self._load()

    def look(self) -> None:
        """Use files that have changed; with files that cannot be used, go on with the earlier certificate."""
        state = self._look()
        if state == self._state:
            return
        # Noted in any case, so that a wrong file is one line in the log.
        self._state = state
        try:
            self.context = self._load()
        except ConfigError as error:
            _log.error(
                "The changed certificate is not used, the earlier one still is. %s",
                error.message,
                extra={"action": "certificate_refused"},
            )
        else:
            _log.info("The changed certificate is in use.", extra={"action": "certificate_changed"})

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            # Without a password here, a key that has one would make OpenSSL ask for it on the terminal.
            context.load_cert_chain(self._certificate, self._key, password="")
        except OSError as error:
            raise ConfigError(self._problem(error)) from None
        return context

    def _problem(self, error: OSError) -> str:
        why = f"cannot be used for TLS: {error.strerror or error}."
        if self._key is None:
            return (
                f"{self._certificate} {why} It must be a readable PEM file with a certificate and its key without a "
                "password. A key in a file of its own is named with --tls-key (tls_key)."
            )
        return (
            f"{self._certificate} and {self._key} {why} They must be readable PEM files, a certificate and its key "
            "without a password."
        )

    def _look(self) -> _State:
        return [_state_of(file) for file in (self._certificate, self._key) if file is not None]


def _state_of(file: Path) -> tuple[int, int, int]:
    try:
        found = file.stat()
    except OSError:
        return _NO_FILE
    return found.st_ino, found.st_size, found.st_mtime_ns
