"""Credentials at rest: encrypted with a key that is not in the database (SECURITY.md)."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import attrs

from outreach.core.extras import needed_for
from outreach.core.secret_keys import (
    HOW_TO_MAKE_ONE,
    SECRET_KEY_FILE_VARIABLE,
    SECRET_KEY_VARIABLE,
    GivenKeys,
    KeyFile,
    KeySource,
    OwnKeyFile,
    keys_from_environment,
)
from outreach.errors import ConfigError, Problem

if TYPE_CHECKING:
    from cryptography.fernet import Fernet, MultiFernet

_log = logging.getLogger(__name__)

_PURPOSE: Final = "Storing the credentials of an account"

WEBHOOKS: Final = "webhooks"
"""The text that the secrets of webhooks have in place of a provider."""

_NOTHING: Final = object()


class _Keys(NamedTuple):
    newest: Fernet
    all: MultiFernet
    texts: Sequence[str]


@attrs.frozen(kw_only=True)
class PreviousCredentials:
    """The credentials of an account before a change, to verify callbacks that were signed with them.

    Attributes:
        values: By name.
        until: When they stop being accepted.
    """

    values: Mapping[str, str] = attrs.field(repr=False)
    until: datetime


class Vault:
    """Encrypts with the newest key and decrypts with all; touches no file before the first use.

    Args:
        keys: The keys, as `OUTREACH_SECRET_KEY` has them; None for the key file.
        key_file: The file of the key, created at the first encryption; None keeps one in memory, for databases in
            memory.
        required: Whether the keys have to be given: a database on a server has no place beside it.
    """

    def __init__(self, *, keys: str | None = None, key_file: Path | None = None, required: bool = False) -> None:
        given = {SECRET_KEY_VARIABLE: keys} if keys else {}
        self._source: KeySource = keys_from_environment(given, own_file=key_file, required=required)
        # Together, because threads read and replace them.
        self._current: tuple[Hashable, _Keys] | None = None
        self._warned_of: Hashable = _NOTHING

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, key_file: Path | None, required: bool) -> Self:
        """Return a vault with the keys that the environment gives (`keys_from_environment`)."""
        made = cls()
        made._source = keys_from_environment(environment, own_file=key_file, required=required)
        return made

    def encrypt(
        self, account_id: str, credentials: Mapping[str, str], *, previous: Sequence[PreviousCredentials] = ()
    ) -> str:
        """Encrypt credentials for one account; no other account can decrypt them.

        Args:
            account_id: The account.
            credentials: By name.
            previous: Earlier ones that still verify callbacks, the latest first.

        Raises:
            ConfigError: No usable key; the message says what to do.
        """
        held: dict[str, Any] = {"account_id": account_id, "credentials": dict(credentials)}
        if previous:
            held["previous"] = [{"values": dict(one.values), "until": one.until.isoformat()} for one in previous]
        return self._known(make=True).newest.encrypt(json.dumps(held).encode()).decode("ascii")

    def open(self, account_id: str, sealed: str, *, provider: str) -> Mapping[str, str]:
        """Decrypt the credentials of one account.

        Args:
            account_id: The account.
            sealed: The result of `encrypt`.
            provider: The account's provider, for messages; `WEBHOOKS` for the secrets of a webhook.

        Raises:
            ConfigError: No usable key, or another one than they were encrypted with; the message says what to do.
        """
        credentials: Mapping[str, str] = self._open(account_id, sealed, provider)["credentials"]
        return credentials

    def previous(self, account_id: str, sealed: str, *, provider: str) -> Sequence[PreviousCredentials]:
        """Decrypt the earlier credentials of one account, the latest first; args and errors are those of `open`."""
        return [
            PreviousCredentials(values=one["values"], until=datetime.fromisoformat(one["until"]))
            for one in self._open(account_id, sealed, provider).get("previous", ())
        ]

    def _open(self, account_id: str, sealed: str, provider: str) -> Mapping[str, Any]:
        with needed_for(_PURPOSE):
            from cryptography.fernet import InvalidToken

        if provider == WEBHOOKS:
            holder, remedy = "webhook", "remove the webhook and add it anew"
            whose = f"The secrets of webhook {account_id}"
        else:
            holder, remedy = "account", f"connect the account at {provider} anew"
            whose = f"The credentials of account {account_id} at {provider}"
        try:
            held: Mapping[str, Any] = json.loads(self._known(make=False).all.decrypt(sealed.encode("ascii")))
        except InvalidToken:
            raise ConfigError(
                f"{whose} were encrypted with another key than that of {self._source.name}. Give the key that was used "
                f"too ({SECRET_KEY_VARIABLE}, {SECRET_KEY_FILE_VARIABLE} or the key file beside the database; several "
                f"fit into each), or {remedy}."
            ) from None
        except ConfigError as error:
            raise ConfigError(f"{whose} cannot be opened. {error.message}") from None
        if held["account_id"] != account_id:
            raise ConfigError(f"{whose} belong to another {holder}. {_capitalised(remedy)}.")
        return held

    def _derived_keys(self, purpose: str, *, make: bool) -> Sequence[bytes]:
        """Return 32 secret bytes for a purpose of each key (HKDF, RFC 5869), of the newest first.

        All processes of a database return the same, and they say nothing about the keys.

        Args:
            purpose: Such as `console forms`; each has other bytes.
            make: Whether to make a first key where there is none.

        Raises:
            ConfigError: No usable key; the message says what to do.
        """
        # Nothing is stored with them: keys that are known go on being used after the file is lost.
        keys = self._known(make=make and self._current is None)
        return [_derived(text.encode("ascii"), purpose) for text in keys.texts]

    def problem(self) -> Problem | None:
        """Return why there is no key to decrypt with, and what puts another one there; None if there is one."""
        try:
            self._load(make=False)
        except ConfigError as error:
            return Problem(
                code="key_not_usable",
                severity="critical",
                message=error.message,
                path=self._source.where,
                commands=self._source.commands,
            )
        return None

    def is_given(self) -> bool:
        """Return whether the environment names a place of the key."""
        return isinstance(self._source, GivenKeys | KeyFile)

    def makes_key(self) -> bool:
        """Return whether a key is made at the next encryption, because there is none."""
        return self._source.makes_one()

    def exposed_file(self) -> Path | None:
        """Return the key file beside the database, if it is used and refused because others may read it."""
        return self._source.exposed() if isinstance(self._source, OwnKeyFile) else None

    def is_newest(self, sealed: str) -> bool:
        """Return whether credentials are encrypted with the newest key.

        Raises:
            ConfigError: No usable key.
        """
        with needed_for(_PURPOSE):
            from cryptography.fernet import InvalidToken

        try:
            self._known(make=False).newest.decrypt(sealed.encode("ascii"))
        except InvalidToken:
            return False
        return True

    def rekeyed(self, account_id: str, sealed: str, *, provider: str) -> str:
        """Return credentials encrypted with the newest key; args and errors are those of `open`."""
        previous = self.previous(account_id, sealed, provider=provider)
        return self.encrypt(account_id, self.open(account_id, sealed, provider=provider), previous=previous)

    def _known(self, *, make: bool) -> _Keys:
        version, known = self._source.version(), self._current
        if known is not None and known[0] == version:
            return known[1]
        try:
            # A vault whose key file was lost makes no new key, which could not open the stored credentials.
            keys = self._load(make=make and known is None)
        except ConfigError as error:
            if known is None:
                raise
            if make:
                raise ConfigError(f"Nothing was stored. {self._loss(error)}") from None
            # A file that is being replaced, or was taken away, leaves the keys that are known. It is read again at the
            # next use, because what is wrong with it may be put right without a change that shows, as by chmod.
            self._warn(version, error)
            return known[1]
        self._current, self._warned_of = (version, keys), _NOTHING
        return keys

    def _loss(self, error: ConfigError) -> str:
        """Return why the keys that are known cannot be read again, and what to do."""
        if not self._source.makes_one():
            return error.message
        return (
            f"{_capitalised(self._source.name)} is gone. Put it back from your copy. If there is none, restart every "
            "process that uses the database, and connect all its accounts anew."
        )

    def _warn(self, version: Hashable, error: ConfigError) -> None:
        if version != self._warned_of:
            self._warned_of = version
            _log.warning(
                "The keys of credentials that are known go on being used, until the end of this process. %s",
                self._loss(error),
                extra={"action": "key_not_read"},
            )

    def _load(self, *, make: bool) -> _Keys:
        with needed_for(_PURPOSE):
            from cryptography.fernet import Fernet, MultiFernet

        texts = self._source.read(make=make)
        shown = _capitalised(self._source.name)
        if not texts:
            raise ConfigError(f"{shown} is empty. {HOW_TO_MAKE_ONE}")
        found = []
        for number, text in enumerate(texts, 1):
            try:
                found.append(Fernet(text))
            except ValueError:
                which = "no key" if len(texts) == 1 else f"what is no key, at place {number} of {len(texts)}"
                raise ConfigError(f"{shown} holds {which}. {HOW_TO_MAKE_ONE}") from None
        return _Keys(newest=found[0], all=MultiFernet(found), texts=texts)


def _derived(key: bytes, purpose: str) -> bytes:
    extracted = hmac.digest(b"outreach", key, "sha256")
    return hmac.digest(extracted, purpose.encode() + b"\x01", "sha256")


def _capitalised(name: str) -> str:
    return name[0].upper() + name[1:]
