"""The collaborators and checks that the services of users and of sessions share."""

from __future__ import annotations

from typing import Any, Final

import attrs

from outreach.core.passwords import PasswordHasher
from outreach.core.totp import accepted_step
from outreach.core.vault import Vault
from outreach.errors import ConfigError, InvalidRequest
from outreach.ledger.access.users import user_of
from outreach.models.fields import Text, check_value
from outreach.models.user import StoredUser
from outreach.rules.emails import fold_email
from outreach.rules.passwords import password_problem
from outreach.services.context import ServiceContext
from outreach.services.users.secrets import code_digest
from outreach.storage.unit_of_work import Transaction

_SECRET: Final = "totp"  # noqa: S105 - a name
_DIGITS: Final = 6


@attrs.frozen(kw_only=True)
class UserContext:
    """The collaborators of both services.

    Attributes:
        services: The collaborators that all services share.
        vault: Encrypts the secrets of second factors.
        hasher: Hashes passwords.
    """

    services: ServiceContext
    vault: Vault
    hasher: PasswordHasher

    def seal(self, user_id: str, secret: str) -> str:
        """Encrypt the secret of a second factor.

        Raises:
            ConfigError: No usable key.
        """
        return self.vault.encrypt(user_id, {_SECRET: secret})

    def secret_of(self, user: StoredUser) -> str:
        """Decrypt the secret of a second factor.

        Raises:
            ConfigError: No usable key, or another one than it was encrypted with; the message says what to do.
        """
        try:
            return self.vault.open(user.id, user.totp or "", provider="second_factor")[_SECRET]
        except ConfigError as error:
            raise ConfigError(
                f"The second factor of user {user.id} cannot be read: {error.message} Or remove it: outreach-server "
                f"users reset {user.id} --second-factor"
            ) from None

    def accept_code(self, tx: Transaction, user_id: str, code: str) -> bool:
        """Return whether a code is right, and use it up: a time step or a recovery code is accepted once."""
        now = self.services.now()
        user = user_of(tx, user_id)
        if user.totp_since is None:
            return False
        if sum(letter.isdecimal() for letter in code) == _DIGITS == len("".join(code.split())):
            step = accepted_step(self.secret_of(user), code, now, after=user.totp_step)
            if step is None:
                return False
            tx.users.update(attrs.evolve(user, totp_step=step))
            return True
        known = tx.recovery_codes.get(user.id, code_digest(user.id, code))
        if known is None or known.used_at is not None:
            return False
        tx.recovery_codes.update(attrs.evolve(known, used_at=now))
        return True


def check_text(path: str, value: Any, maximum: int = 1000) -> str:
    """Return a text that somebody typed.

    Raises:
        InvalidRequest: It is none, or is too long.
    """
    text: str = check_value(path, value, Text(0, maximum))
    return text


def check_email(path: str, value: object) -> str:
    """Return an address in its one form.

    Raises:
        InvalidRequest: It is no e-mail address.
    """
    folded = fold_email(value) if isinstance(value, str) else None
    if folded is None:
        raise InvalidRequest.at(path, "must be an e-mail address, such as ann@acme.example")
    check_value(path, folded, Text())
    return folded


def check_new_password(password: object, email: str) -> str:
    """Return a new password.

    Raises:
        InvalidRequest: It is too short or long, the e-mail address, or one of those that are tried first.
    """
    text = check_value("password", password, Text())
    problem = password_problem(text, email)
    if problem is not None:
        raise InvalidRequest.at("password", problem)
    return str(text)
