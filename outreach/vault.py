"""Credentials at rest: encrypted with a key that is not in the database (docs/operations.md#security)."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from outreach.errors import ConfigError
from outreach.extras import needed_for

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

SECRET_KEY_VARIABLE: Final = "OUTREACH_SECRET_KEY"  # noqa: S105 - a variable's name
"""One Fernet key (32 bytes, URL-safe base64), or several with commas between: the first encrypts, all decrypt."""

_HOW_TO_MAKE_ONE: Final = (
    "A key is 32 random bytes in URL-safe base64, as this prints: head -c 32 /dev/urandom | base64 | tr '+/' '-_'"
)

_PURPOSE: Final = "Storing the credentials of an account"


class Vault:
    """Encrypts and decrypts credentials; touches no file before the first use.

    Args:
        keys: The value of `OUTREACH_SECRET_KEY`; None for the key file.
        key_file: The file of the key, created at the first encryption; None keeps one in memory, for databases in
            memory.
        required: Whether the keys have to be given: a database on a server has no place beside it.
    """

    def __init__(self, *, keys: str | None = None, key_file: Path | None = None, required: bool = False) -> None:
        self._keys = keys
        self._required = required
        self._key_file = key_file
        self._fernet: MultiFernet | None = None

    def encrypt(self, account_id: str, credentials: Mapping[str, str]) -> str:
        """Encrypt credentials for one account; no other account can decrypt them.

        Raises:
            ConfigError: No usable key; the message says what to do.
        """
        plain = json.dumps({"account_id": account_id, "credentials": dict(credentials)}).encode()
        return self._lock(make=True).encrypt(plain).decode("ascii")

    def open(self, account_id: str, sealed: str, *, provider: str) -> Mapping[str, str]:
        """Decrypt the credentials of one account.

        Args:
            account_id: The account.
            sealed: The result of `encrypt`.
            provider: The account's provider, for messages.

        Raises:
            ConfigError: No usable key, or another one than they were encrypted with; the message says what to do.
        """
        with needed_for(_PURPOSE):
            from cryptography.fernet import InvalidToken

        whose = f"The credentials of account {account_id} at {provider}"
        try:
            held = json.loads(self._lock(make=False).decrypt(sealed.encode("ascii")))
        except InvalidToken:
            raise ConfigError(
                f"{whose} were encrypted with another key. Give the key that was used "
                f"({SECRET_KEY_VARIABLE}, or the key file beside the database), or connect the account at {provider} "
                "anew."
            ) from None
        except ConfigError as error:
            raise ConfigError(f"{whose} cannot be opened. {error.message}") from None
        if held["account_id"] != account_id:
            raise ConfigError(f"{whose} belong to another account. Connect the account at {provider} anew.")
        credentials: Mapping[str, str] = held["credentials"]
        return credentials

    def problem(self) -> str | None:
        """Return why there is no key to decrypt with; None if there is one."""
        try:
            self._lock(make=False)
        except ConfigError as error:
            return error.message
        return None

    def _lock(self, *, make: bool) -> MultiFernet:
        if self._fernet is None:
            with needed_for(_PURPOSE):
                from cryptography.fernet import Fernet, MultiFernet

            if self._required and not self._keys:
                raise ConfigError(
                    "Credentials in a database on a server need a key that every process has: set "
                    f"{SECRET_KEY_VARIABLE}. {_HOW_TO_MAKE_ONE}"
                )
            texts = self._keys.split(",") if self._keys else [self._file_key(make=make)]
            try:
                self._fernet = MultiFernet([Fernet(text.strip()) for text in texts])
            except ValueError:
                where = SECRET_KEY_VARIABLE if self._keys else str(self._key_file)
                raise ConfigError(f"{where} holds no key. {_HOW_TO_MAKE_ONE}") from None
        return self._fernet

    def _file_key(self, *, make: bool) -> str:
        from cryptography.fernet import Fernet

        path = self._key_file
        if path is None:
            return Fernet.generate_key().decode("ascii")
        try:
            return _read_key(path)
        except FileNotFoundError:
            if not make:
                raise ConfigError(
                    f"There is no key to open credentials with: neither {SECRET_KEY_VARIABLE} nor the file {path}. "
                    "Give the key that they were encrypted with, or connect the accounts anew."
                ) from None
        _write_key(path, Fernet.generate_key())
        return _read_key(path)


def _read_key(path: Path) -> str:
    try:
        # A file that is not ASCII is refused when the key is used.
        with path.open(encoding="ascii", errors="replace") as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ConfigError(f"Others may read the key file {path}. Take that from them: chmod 600 {path}")
            return file.read().strip()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"The key file {path} cannot be read: {error.strerror}.") from None


def _write_key(path: Path, key: bytes) -> None:
    """Write a new key file; of two processes at a time one writes, and both read that one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(key + b"\n")
            file.flush()
            os.fsync(file.fileno())
        # A link fails if the name exists, so the file is complete or absent.
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError as error:
        raise ConfigError(f"The key file {path} cannot be written: {error.strerror}.") from None
    finally:
        draft.unlink(missing_ok=True)
