"""Sessions of the console: logins, their look-up at each request, and their ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import attrs

from outreach.errors import NotFound, StorageError, Unauthorized
from outreach.ledger.access import logins
from outreach.ledger.access import users as operations
from outreach.models.base import Page
from outreach.models.user import Session, SignedIn, StoredUser, Visit
from outreach.rules.emails import fold_email
from outreach.services.lists import PageRequest, iterate, moment_cursor
from outreach.services.users.context import UserContext, check_new_password, check_text
from outreach.services.users.secrets import digest_of, new_token
from outreach.storage.unit_of_work import Transaction

LOGIN_FAILED: Final = "This did not work. Check the e-mail address and the password, or the code."
"""One sentence for all failures: a stranger does not learn who is a user."""

_NOT_SIGNED_IN: Final = "This session has ended. Sign in again."
_AGENT_LENGTH: Final = 255
_MOST_SESSIONS: Final = 200


class Sessions:
    """The sessions of users.

    A session is a token of 32 random bytes that the browser keeps; only its SHA-256 is stored. Every look-up reads the
    database, so that an ended session opens nothing more in any process.
    """

    def __init__(self, users: UserContext) -> None:
        self._users = users
        self._context = users.services

    async def sign_in(
        self, email: str, password: str, *, address: str = "", agent: str = "", known_by: str = ""
    ) -> SignedIn:
        """Sign a user in by a password.

        Args:
            email: The e-mail address; case does not count.
            password: The password.
            address: The IP address that the login comes from, for throttling and for the list of sessions.
            agent: The browser, as it calls itself.
            known_by: The token of the last complete login in this browser, ended or not; empty if there was none. If
                that was the same user's, within 90 days, the browser has failures of its own: nobody elsewhere can make
                it wait.

        Returns:
            The session; with a second factor it opens nothing before `confirm`, which must follow within 10 minutes.

        Raises:
            Unauthorized: Something is wrong; the message does not say what.
            LoginThrottled: Too many logins of this account, or from this network, have failed.
            ConfigError: The extra for passwords is not installed.
        """
        folded = fold_email(check_text("email", email)) or ""
        given = check_text("password", password)
        hasher = self._users.hasher
        buckets = await self._count_attempt(folded, address, known_by)
        user = await self._context.storage.read(lambda tx: tx.users.by_email(folded))
        if not await hasher.verify(given, user.password if user is not None else None) or user is None:
            raise Unauthorized(LOGIN_FAILED)
        outdated = hasher.is_outdated(user.password or "")
        rehashed = await hasher.hash(given) if outdated else user.password
        token, session_id = new_token(), self._context.ids()

        def operation(tx: Transaction) -> SignedIn:
            known = operations.user_of(tx, user.id)
            if known.password != user.password or known.disabled_at is not None:
                raise Unauthorized(LOGIN_FAILED)
            if outdated:
                known = attrs.evolve(known, password=rehashed)
                tx.users.update(known)
            logins.forgive_attempt(tx, buckets, complete=known.totp_since is None)
            return self._begin(tx, known, session_id, token, address, agent)

        return await self._context.storage.write(operation)

    async def begin(self, user_id: str, *, address: str = "", agent: str = "") -> SignedIn:
        """Begin a session of a user who has proved otherwise who this is, such as by a link.

        A second factor is needed all the same.

        Raises:
            NotFound: There is no such user.
            Unauthorized: The user is disabled.
        """
        token = new_token()
        session_id = self._context.ids()
        return await self._context.storage.write(
            lambda tx: self._begin(tx, operations.user_of(tx, user_id), session_id, token, address, agent)
        )

    async def confirm(self, token: str, code: str, *, known_by: str = "") -> SignedIn:
        """Complete a login by the second factor: a code of the authenticator, or a recovery code. Each is valid once.

        Args:
            token: The session's.
            code: The code.
            known_by: That of `sign_in`.

        Returns:
            The session under a new token; the given one is not valid any more.

        Raises:
            Unauthorized: The code is wrong, or the session has ended; the message does not say which.
            LoginThrottled: Too many logins of this account, or from this network, have failed.
            ConfigError: The secret of the second factor cannot be read.
        """
        typed, fresh = check_text("code", code), new_token()
        session, user = await self._open(token, awaited=True)
        buckets = await self._count_attempt(user.email, session.address, known_by)

        def operation(tx: Transaction) -> SignedIn:
            now = self._context.now()
            found = logins.open_session(tx, session.digest, now)
            if found is None or found[0].second_factor != "awaited" or not self._accept(tx, user, typed):
                raise Unauthorized(LOGIN_FAILED)
            known = operations.user_of(tx, user.id)
            logins.forgive_attempt(tx, buckets, complete=True)
            after = logins.complete(tx, known, found[0], digest=digest_of(fresh), now=now)
            return _signed_in(fresh, after, operations.user_of(tx, user.id))

        return await self._context.storage.write(operation)

    async def find(self, token: str, *, awaited: bool = False) -> Visit | None:
        """Return the open session of a token, the user and the roles; None if there is none. Notes the use.

        Args:
            token: What the browser has kept.
            awaited: Whether a session is found that awaits its second factor, and no other.
        """
        digest = digest_of(token)

        def look_up(tx: Transaction) -> Visit | None:
            found = logins.open_session(tx, digest, self._context.now())
            if found is None or (found[0].second_factor == "awaited") != awaited:
                return None
            roles = {one.workspace_id: one.role for one in tx.memberships.of_user(found[1].id)}
            return Visit(session=found[0], user=operations.shown(found[1]), roles=roles)

        visit = await self._context.storage.read(look_up)
        if visit is not None and not awaited and logins.needs_note(visit.session, self._context.now()):
            # Nobody is turned away because another process writes just now.
            with suppress(StorageError):
                await self._context.storage.write(lambda tx: logins.note_use(tx, digest, self._context.now()))
        return visit

    async def verify(self, token: str, *, password: str = "", code: str = "") -> Session:
        """Verify the user of a session again: for 15 minutes dangerous actions need no more.

        Args:
            token: The session's.
            password: The password; or
            code: a code of the second factor, or a recovery code.

        Raises:
            Unauthorized: Password or code is wrong, or the session has ended.
            LoginThrottled: Too many logins of this account, or from this network, have failed.
            ConfigError: The extra for passwords is not installed, or the second factor cannot be read.
        """
        session, user = await self._open(token)
        accept = await self._check(token, session, user, check_text("password", password), check_text("code", code))

        def operation(tx: Transaction) -> Session:
            found = logins.open_session(tx, session.digest, self._context.now())
            if found is None:
                raise Unauthorized(_NOT_SIGNED_IN)
            accept(tx)
            after = attrs.evolve(found[0], verified_at=self._context.now())
            tx.sessions.update(after)
            return after

        return await self._context.storage.write(operation)

    async def change_password(self, token: str, *, current: str, password: str) -> SignedIn:
        """Change the password of a session's user; the other sessions end, and this one gets a new token.

        Args:
            token: The session's.
            current: The present password.
            password: The new one, 12 to 256 characters.

        Raises:
            Unauthorized: The present password is wrong, or the session has ended.
            LoginThrottled: Too many logins of this account, or from this network, have failed.
            InvalidRequest: The new password cannot be used.
            ConfigError: The extra for passwords is not installed.
        """
        fresh = new_token()
        session, user = await self._open(token)
        chosen = check_new_password(password, user.email)
        accept = await self._check(token, session, user, check_text("current", current), "")
        hashed = await self._users.hasher.hash(chosen)

        def operation(tx: Transaction) -> SignedIn:
            now = self._context.now()
            found = logins.open_session(tx, session.digest, now)
            if found is None:
                raise Unauthorized(_NOT_SIGNED_IN)
            accept(tx)
            after = attrs.evolve(found[0], digest=digest_of(fresh), verified_at=now)
            tx.sessions.update(after)
            changed = operations.set_password(tx, found[1], hashed, now=now, actor=f"user:{user.id}", but=session.id)
            return _signed_in(fresh, after, changed)

        return await self._context.storage.write(operation)

    async def renew(self, token: str) -> SignedIn:
        """Give a session a new token, as at every change of what it may do; the given one is not valid any more.

        Raises:
            Unauthorized: The session has ended.
        """
        fresh = new_token()
        digest = digest_of(token)

        def operation(tx: Transaction) -> SignedIn:
            found = logins.open_session(tx, digest, self._context.now())
            if found is None or found[0].second_factor == "awaited":
                raise Unauthorized(_NOT_SIGNED_IN)
            after = attrs.evolve(found[0], digest=digest_of(fresh))
            tx.sessions.update(after)
            return _signed_in(fresh, after, found[1])

        return await self._context.storage.write(operation)

    async def list(self, user_id: str, *, after: str | None = None, limit: int = 100) -> Page[Session]:
        """Return a page of the sessions of a user in the last three months, ended ones included, newest first.

        Raises:
            NotFound: There is no such user.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest("sessions", user_id, after=after, limit=limit)
        begin = page_request.moment()
        found = await self._context.storage.read(
            lambda tx: tx.sessions.of_user(operations.user_of(tx, user_id).id, limit=_MOST_SESSIONS)
        )
        rest = found if begin is None else [one for one in found if (one.created_at, one.id) < begin]
        return page_request.page(rest[: limit + 1], lambda one: moment_cursor(one.created_at, one.id))

    def iter_all(self, user_id: str) -> AsyncIterator[Session]:
        """Iterate over the sessions of a user, newest first; see `list`."""
        return iterate(partial(self.list, user_id))

    async def count_open(self, *user_ids: str) -> Mapping[str, int]:
        """Return how many sessions of users last now, by user; 0 for one without any, or whom nobody knows."""
        found = await self._context.storage.read(lambda tx: tx.sessions.count_open(user_ids, self._context.now()))
        return {one: found.get(one, 0) for one in user_ids}

    async def end(self, user_id: str, session_id: str, *, actor: str = "library") -> Session:
        """End a session: in every process within a second.

        Raises:
            NotFound: The user has no such session.
        """

        def operation(tx: Transaction) -> Session:
            now = self._context.now()
            session = tx.sessions.get(session_id)
            if session is None or session.user_id != user_id:
                raise NotFound("session", session_id)
            if session.ended_at is not None:
                return session
            after = attrs.evolve(session, ended_at=now)
            tx.sessions.update(after)
            user = operations.user_of(tx, user_id)
            operations.note(tx, user, "session.end", now=now, actor=actor, detail=session_id)
            return after

        return await self._context.storage.write(operation)

    async def end_all(
        self, user_id: str, *, workspace_id: str | None = None, but: str | None = None, actor: str = "library"
    ) -> int:
        """End the sessions of a user in every process within a second; return how many.

        Args:
            user_id: The user.
            workspace_id: The workspace whose owner does it: then the user must have no rights outside it. None for the
                user and for an operator.
            but: The session that goes on; None for none.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: There is no such user, in this workspace.
            Conflict: The user has rights outside the workspace.
        """

        def operation(tx: Transaction) -> int:
            now = self._context.now()
            if workspace_id is not None:
                operations.require_member(tx, workspace_id, user_id)
            user = operations.user_of(tx, user_id)
            ended = tx.sessions.end_of_user(user_id, now, but=but or "")
            if ended:
                detail = f"{ended} sessions"
                operations.note(tx, user, "session.end", now=now, actor=actor, detail=detail, workspace_id=workspace_id)
            return ended

        return await self._context.storage.write(operation)

    async def _count_attempt(self, email: str, address: str, known_by: str) -> logins.Buckets:
        """Count an attempt as a failure until it has succeeded, or raise `LoginThrottled`."""
        browser = digest_of(known_by) if known_by else ""

        def look(tx: Transaction) -> logins.Buckets:
            now = self._context.now()
            buckets = logins.buckets_of(tx, email, tx.users.by_email(email), address, now, browser=browser)
            logins.require_no_wait(tx, buckets, now)
            return buckets

        # Attempts that have to wait write nothing.
        buckets = await self._context.storage.read(look)
        await self._context.storage.write(lambda tx: logins.count_attempt(tx, buckets, self._context.now()))
        return buckets

    async def _open(self, token: str, *, awaited: bool = False) -> tuple[Session, StoredUser]:
        digest = digest_of(token)
        found = await self._context.storage.read(lambda tx: logins.open_session(tx, digest, self._context.now()))
        if found is None or (found[0].second_factor == "awaited") != awaited:
            raise Unauthorized(LOGIN_FAILED if awaited else _NOT_SIGNED_IN)
        return found

    async def _check(
        self, token: str, session: Session, user: StoredUser, password: str, code: str
    ) -> Callable[[Transaction], None]:
        """Verify a user again; return what the transaction of the change does with it."""
        buckets = await self._count_attempt(user.email, session.address, token)
        if not code and not await self._users.hasher.verify(password, user.password):
            raise Unauthorized(LOGIN_FAILED)

        def accept(tx: Transaction) -> None:
            known = operations.user_of(tx, user.id)
            if (not code and known.password != user.password) or (code and not self._accept(tx, known, code)):
                raise Unauthorized(LOGIN_FAILED)
            logins.forgive_attempt(tx, buckets, complete=True)

        return accept

    def _accept(self, tx: Transaction, user: StoredUser, code: str) -> bool:
        return self._users.accept_code(tx, user.id, code)

    def _begin(
        self, tx: Transaction, user: StoredUser, session_id: str, token: str, address: str, agent: str
    ) -> SignedIn:
        session = logins.begin(
            tx,
            user,
            session_id=session_id,
            digest=digest_of(token),
            address=check_text("address", address, _AGENT_LENGTH),
            agent=check_text("agent", agent, 10_000)[:_AGENT_LENGTH],
            now=self._context.now(),
        )
        return _signed_in(token, session, operations.user_of(tx, user.id))


def _signed_in(token: str, session: Session, user: StoredUser) -> SignedIn:
    return SignedIn(token=token, session=session, user=operations.shown(user))
