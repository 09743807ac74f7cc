"""The keys of credentials: from a variable, a file, a systemd credential, or our own file."""

from __future__ import annotations

import logging
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from outreach.errors import ConfigError

SECRET_KEY_VARIABLE: Final = "OUTREACH_SECRET_KEY"  # noqa: S105 - a variable's name
"""One Fernet key (32 bytes, URL-safe base64), or several with commas between: the first encrypts, all decrypt."""

SECRET_KEY_FILE_VARIABLE: Final = "OUTREACH_SECRET_KEY_FILE"  # noqa: S105 - a variable's name
"""The path of a file with such keys, one a line."""

CREDENTIAL_NAME: Final = "outreach-secret-key"
"""The systemd credential (`LoadCredential=`) that is such a file."""

HOW_TO_MAKE_ONE: Final = (
    "A key is 32 random bytes in URL-safe base64, as this prints: head -c 32 /dev/urandom | base64 | tr '+/' '-_'"
)

# The names of examples/hosting/outreach.service: a process cannot find out where its credential comes from.
_GIVE_CREDENTIAL: Final = (
    "sudo install -m 400 -o outreach FILE /etc/outreach/secret-key",
    "sudo systemctl restart outreach",
)
_SET_VARIABLE: Final = (f'export {SECRET_KEY_VARIABLE}="$(cat FILE)"',)

_log = logging.getLogger(__name__)


class KeySource(ABC):
    """The source of keys.

    Attributes:
        name: The source, for messages.
        where: The variable, or the path of the file.
        commands: The commands that give it another key, where `FILE` has that; none where that is not possible.
    """

    name = where = SECRET_KEY_VARIABLE
    commands: Sequence[str] = _SET_VARIABLE

    def version(self) -> Hashable:
        """Return what changes with the keys; a constant if they do not change."""
        return None

    def makes_one(self) -> bool:
        """Return whether a key is made at the next encryption, because there is none."""
        return False

    @abstractmethod
    def read(self, *, make: bool) -> Sequence[str]:
        """Return the keys' texts, the newest first.

        Args:
            make: Whether to make a key where there is none and that is possible.

        Raises:
            ConfigError: There is none, or it cannot be read; the message says what to do, and contains no key.
        """


def keys_from_environment(environment: Mapping[str, str], *, own_file: Path | None, required: bool) -> KeySource:
    """Return where the keys of a database come from.

    The variable, the file of the other variable, the systemd credential, the database's own file: the first of these
    that is there. A variable that is empty counts as not set.

    Args:
        environment: Such as `os.environ`.
        own_file: The database's own file, made at the first encryption; None keeps a key in memory.
        required: Whether the key has to be given: a database on a server has no place beside it.

    Raises:
        ConfigError: Both variables are set.
    """
    text = environment.get(SECRET_KEY_VARIABLE, "").strip()
    named = environment.get(SECRET_KEY_FILE_VARIABLE, "").strip()
    if text and named:
        raise ConfigError(
            f"{SECRET_KEY_VARIABLE} and {SECRET_KEY_FILE_VARIABLE} are both set. Keep one of them: several keys fit "
            "into each, the newest first."
        )
    if text:
        return GivenKeys(text)
    if named:
        file = Path(named)
        name = f"the file {named} ({SECRET_KEY_FILE_VARIABLE})"
        return KeyFile(file, name, commands=[_installing(file)], warn_of_readers=True)
    directory = environment.get("CREDENTIALS_DIRECTORY")
    if directory and (credential := Path(directory) / CREDENTIAL_NAME).exists():
        # systemd alone decides who may read it, by an access list that the mode does not show.
        name = f"the systemd credential {CREDENTIAL_NAME}"
        return KeyFile(credential, name, commands=_GIVE_CREDENTIAL, warn_of_readers=False)
    if required:
        return NoKeys()
    return OwnKeyFile(own_file) if own_file is not None else KeyInMemory()


class GivenKeys(KeySource):
    """Keys in a text, with commas or blanks between."""

    def __init__(self, text: str) -> None:
        self._texts = _split(text)

    def read(self, *, make: bool) -> Sequence[str]:
        """Return the keys."""
        return self._texts


class NoKeys(KeySource):
    """No key, where one has to be given."""

    def read(self, *, make: bool) -> Sequence[str]:
        """Raise `ConfigError`."""
        raise ConfigError(
            "Credentials in a database on a server need a key that every process has: set "
            f"{SECRET_KEY_VARIABLE} or {SECRET_KEY_FILE_VARIABLE}. {HOW_TO_MAKE_ONE}"
        )


class KeyInMemory(KeySource):
    """A key that ends with this process, for databases in memory."""

    name = where = "memory"
    commands: Sequence[str] = ()

    def __init__(self) -> None:
        self._texts: Sequence[str] = ()

    def makes_one(self) -> bool:
        """Return whether there is none yet."""
        return not self._texts

    def read(self, *, make: bool) -> Sequence[str]:
        """Return the key."""
        self._texts = self._texts or [_new_key()]
        return self._texts


class KeyFile(KeySource):
    """A file of keys, one a line, that somebody else writes; read again when it has changed.

    Args:
        path: The file.
        name: What it is, for messages.
        commands: The commands that give it another key.
        warn_of_readers: Whether to warn when others may read it.
    """

    def __init__(self, path: Path, name: str, *, commands: Sequence[str], warn_of_readers: bool) -> None:
        self.name = name
        self.where = str(path)
        self.commands = commands
        self._path = path
        self._warn_of_readers = warn_of_readers

    def version(self) -> Hashable:
        """Return what the file system says of the file."""
        return _version_of(self._path)

    def read(self, *, make: bool) -> Sequence[str]:
        """Return the keys in the file."""
        try:
            text, readable_by_others = _read_key_file(self._path)
        except OSError as error:
            raise ConfigError(f"The key cannot be read from {self.name}: {error.strerror}.") from None
        if readable_by_others and self._warn_of_readers:
            self._warn_of_readers = False
            _log.warning(
                "Others may read the key in %s. Take that from them: chmod 600 %s",
                self.name,
                self._path,
                extra={"action": "key_exposed"},
            )
        return _split(text)


class OwnKeyFile(KeySource):
    """The file beside a database: made at the first encryption, and refused when others may read it."""

    def __init__(self, path: Path) -> None:
        self.name = f"the key file {path}"
        self.where = str(path)
        self.commands: Sequence[str] = [_installing(path)]
        self._path = path

    def version(self) -> Hashable:
        """Return what the file system says of the file."""
        return _version_of(self._path)

    def makes_one(self) -> bool:
        """Return whether there is no file."""
        return not self._path.exists()

    def exposed(self) -> Path | None:
        """Return the file if others may read it."""
        try:
            mode = self._path.stat().st_mode
        except OSError:
            return None
        return self._path if mode & (stat.S_IRWXG | stat.S_IRWXO) else None

    def read(self, *, make: bool) -> Sequence[str]:
        """Return the keys in the file."""
        path = self._path
        try:
            return self._read()
        except FileNotFoundError:
            if not make:
                raise ConfigError(
                    f"There is no key to open credentials with: neither {SECRET_KEY_VARIABLE} nor the file {path}. "
                    "Give the key that they were encrypted with, or connect the accounts and add the webhooks anew."
                ) from None
        _write_key(path, _new_key())
        return self._read()

    def _read(self) -> Sequence[str]:
        path = self._path
        try:
            text, readable_by_others = _read_key_file(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise ConfigError(f"The key file {path} cannot be read: {error.strerror}.") from None
        if readable_by_others:
            raise ConfigError(f"Others may read the key file {path}. Take that from them: chmod 600 {path}")
        return _split(text)


def _installing(path: Path) -> str:
    import shlex

    return f"install -m 600 FILE {shlex.quote(str(path))}"


def _split(text: str) -> Sequence[str]:
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [part for part in re.split(r"[\s,]+", lines) if part]


def _version_of(path: Path) -> Hashable:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _read_key_file(path: Path) -> tuple[str, bool]:
    """Return the text of a file, and whether others may read it."""
    # A file that is not ASCII is refused when the key is used.
    with path.open(encoding="ascii", errors="replace") as file:
        mode = os.fstat(file.fileno()).st_mode
        return file.read(), bool(mode & (stat.S_IRWXG | stat.S_IRWXO))


def _new_key() -> str:
    from cryptography.fernet import Fernet

    return Fernet.generate_key().decode("ascii")


def _write_key(path: Path, key: str) -> None:
    """Write a new key file; of two processes at a time one writes, and both read that one."""
    import tempfile

    try:
        # A name of its own each time: in a container, a process that was killed here had the same number.
        descriptor, draft = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(f"{key}\n")
                file.flush()
                os.fsync(file.fileno())
            # A link fails if the name exists, so the file is complete or absent.
            with suppress(FileExistsError):
                os.link(draft, path)
            # Its name too, before anything is committed that is encrypted with it.
            _sync_names(path.parent)
        finally:
            Path(draft).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"The key file {path} cannot be written: {error.strerror}.") from None


def _sync_names(directory: Path) -> None:
    # A directory may be one to write into and not to read.
    with suppress(PermissionError):
        opened = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
