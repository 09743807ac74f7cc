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

_PURPOSE: Final = "Storing the credentials of an account"


class Vault:
    """Seals and opens credentials; touches nothing before it is asked to.

    Args:
        keys: As `OUTREACH_SECRET_KEY` has them; None takes the file.
        key_file: Where the key is kept that is made at the first sealing; None keeps one in memory, for databases
            that are in memory too.
    """

    def __init__(self, *, keys: str | None = None, key_file: Path | None = None) -> None:
        self._keys = keys
        self._key_file = key_file
        self._fernet: MultiFernet | None = None

    def encrypt(self, account_id: str, credentials: Mapping[str, str]) -> str:
        """Encrypt credentials for one account; they can be opened for no other one.

        Raises:
            ConfigError: There is no usable key; the message says what to do.
        """
        plain = json.dumps({"account_id": account_id, "credentials": dict(credentials)}).encode()
        return self._lock(make=True).encrypt(plain).decode("ascii")

    def open(self, account_id: str, sealed: str, *, provider: str) -> Mapping[str, str]:
        """Decrypt the credentials of one account.

        Args:
            account_id: Whose they are.
            sealed: What `encrypt` returned.
            provider: Where the account is, for the words.

        Raises:
            ConfigError: There is no usable key, or it is not the one that they were encrypted with; the message says
                what to do.
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

    def _lock(self, *, make: bool) -> MultiFernet:
        if self._fernet is None:
            with needed_for(_PURPOSE):
                from cryptography.fernet import Fernet, MultiFernet

            texts = self._keys.split(",") if self._keys else [self._file_key(make=make)]
            try:
                self._fernet = MultiFernet([Fernet(text.strip()) for text in texts])
            except ValueError:
                where = SECRET_KEY_VARIABLE if self._keys else str(self._key_file)
                raise ConfigError(
                    f"{where} holds no key. A key is 32 random bytes in URL-safe base64, as this prints: "
                    'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
                ) from None
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
        # What is no ASCII is no key, which is told where the key is tried.
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
    """Write a new key where there is none; of two processes at a time one writes, and both read that one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(key + b"\n")
            file.flush()
            os.fsync(file.fileno())
        # A link fails where the name is taken: the file is there whole, or not at all.
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError as error:
        raise ConfigError(f"The key file {path} cannot be written: {error.strerror}.") from None
    finally:
        draft.unlink(missing_ok=True)
