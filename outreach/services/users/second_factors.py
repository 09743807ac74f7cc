"""The second factor of users: codes of an authenticator, and recovery codes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

import attrs

from outreach.core.totp import accepted_step, make_secret, url_of
from outreach.errors import Conflict, InvalidRequest
from outreach.ledger.access import users as operations
from outreach.models.user import SecondFactorSecret, User
from outreach.services.context import ServiceContext
from outreach.services.users.context import UserContext, check_text
from outreach.services.users.secrets import CODES, code_digest, new_code
from outreach.storage.unit_of_work import Transaction

_SECRET_BYTES: Final = 20


class SecondFactors:
    """Second factors; their secrets are encrypted as the credentials of accounts are."""

    _users: UserContext
    _context: ServiceContext

    async def begin_second_factor(self, user_id: str, *, issuer: str = "outreach") -> SecondFactorSecret:
        """Make the secret of a second factor, which counts once a code has confirmed it.

        Args:
            user_id: The user.
            issuer: What the authenticator shows beside the e-mail address.

        Raises:
            NotFound: There is no such user.
            Conflict: The user has a second factor.
            ConfigError: No usable key to encrypt it with.
        """
        secret = make_secret(secrets.token_bytes(_SECRET_BYTES))

        def operation(tx: Transaction) -> str:
            user = operations.user_of(tx, user_id)
            if user.totp_since is not None:
                raise Conflict("This user has a second factor. Remove it first.")
            tx.users.update(attrs.evolve(user, totp=self._users.seal(user_id, secret), totp_step=None))
            return user.email

        email = await self._context.storage.write(operation)
        return SecondFactorSecret(secret=secret, url=url_of(secret, issuer=issuer, account=email))

    async def confirm_second_factor(
        self, user_id: str, code: str, *, session_id: str | None = None, actor: str = "library"
    ) -> Sequence[str]:
        """Confirm a second factor by a code; from now on a login needs one. The user's other sessions end.

        Args:
            user_id: The user.
            code: The code that the authenticator shows.
            session_id: The session that goes on; None for none.
            actor: Recorded in the audit trail.

        Returns:
            Ten recovery codes, each for one login without the authenticator; they are shown only here.

        Raises:
            NotFound: There is no such user.
            InvalidRequest: The code is wrong.
            Conflict: None was begun, or it is confirmed already.
            ConfigError: The secret cannot be read.
        """
        typed, codes = check_text("code", code), _new_codes()

        def operation(tx: Transaction) -> None:
            now = self._context.now()
            user = operations.user_of(tx, user_id)
            if user.totp is None or user.totp_since is not None:
                raise Conflict("No second factor is being set up.")
            step = accepted_step(self._users.secret_of(user), typed, now, after=user.totp_step)
            if step is None:
                raise InvalidRequest.at("code", "is not the code that the authenticator shows now")
            after = attrs.evolve(user, totp_since=now, totp_step=step)
            tx.users.update(after)
            tx.sessions.end_of_user(user_id, now, but=session_id or "")
            kept = tx.sessions.get(session_id) if session_id is not None else None
            if kept is not None and kept.user_id == user_id and kept.ended_at is None:
                tx.sessions.update(attrs.evolve(kept, second_factor="given", verified_at=now))
            operations.note(tx, after, "user.second_factor", now=now, actor=actor, detail="added")
            self._replace(tx, user_id, codes, actor)

        await self._context.storage.write(operation)
        return codes

    async def remove_second_factor(self, user_id: str, *, actor: str = "library") -> User:
        """Remove a user's second factor and the recovery codes.

        Raises:
            NotFound: There is no such user.
        """

        def operation(tx: Transaction) -> User:
            user = operations.user_of(tx, user_id)
            return operations.shown(operations.remove_second_factor(tx, user, now=self._context.now(), actor=actor))

        return await self._context.storage.write(operation)

    async def renew_recovery_codes(self, user_id: str, *, actor: str = "library") -> Sequence[str]:
        """Return ten new recovery codes, which are shown only here; the earlier ones are not valid any more.

        Raises:
            NotFound: There is no such user.
            Conflict: The user has no second factor.
        """
        codes = _new_codes()

        def operation(tx: Transaction) -> None:
            if operations.user_of(tx, user_id).totp_since is None:
                raise Conflict("This user has no second factor.")
            self._replace(tx, user_id, codes, actor)

        await self._context.storage.write(operation)
        return codes

    async def count_recovery_codes(self, user_id: str) -> int:
        """Return how many recovery codes a user has left.

        Raises:
            NotFound: There is no such user.
        """
        return await self._context.storage.read(
            lambda tx: tx.recovery_codes.count_unused(operations.user_of(tx, user_id).id)
        )

    def _replace(self, tx: Transaction, user_id: str, codes: Sequence[str], actor: str) -> None:
        digests = [code_digest(user_id, code) for code in codes]
        user = operations.user_of(tx, user_id)
        operations.replace_codes(tx, user, digests, now=self._context.now(), actor=actor)


def _new_codes() -> Sequence[str]:
    return tuple(new_code() for _ in range(CODES))
