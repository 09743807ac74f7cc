"""Logins and sessions within a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.errors import LoginThrottled, Unauthorized
from outreach.ledger.access.users import note
from outreach.models.user import LONGEST, LoginFailures, SecondFactor, Session, StoredUser
from outreach.rules.login_throttle import bucket_of, count_failure, network_of, open_from
from outreach.storage.unit_of_work import Transaction

KNOWN_FOR: Final = timedelta(days=90)
"""For so long after a login its network and browser count as the user's, and the session is kept."""

_AWAITED_FOR: Final = timedelta(minutes=10)
_MOST_SESSIONS: Final = 200
_NOTED_EVERY: Final = timedelta(minutes=1)


@attrs.frozen(kw_only=True)
class Buckets:
    """Where the failures of a login are counted.

    Attributes:
        account: Those of the account. A network from which its user has signed in before has a count of its own, so
            that nobody elsewhere can make the user wait there; and so has a browser in which the user has signed in
            before, so that nobody anywhere can (OWASP, "Slow Down Online Guessing Attacks with Device Cookies").
        network: Those of the network, whatever the account; None if the address is not known, or the browser is.
    """

    account: str
    network: str | None

    def all(self) -> Sequence[str]:
        """Return the names of both."""
        return [self.account] if self.network is None else [self.account, self.network]


def buckets_of(
    tx: Transaction, email: str, user: StoredUser | None, address: str, now: datetime, *, browser: str = ""
) -> Buckets:
    """Return where failures are counted; an unknown account has a bucket like a known one.

    Args:
        tx: The transaction.
        email: The address of the account.
        user: The user with this address; None if there is none.
        address: The IP address; empty if it is not known.
        now: The present moment.
        browser: The digest of the last session that the browser had, ended or not; empty if it had none.
    """
    last = tx.sessions.by_digest(browser) if browser else None
    if last is not None and user is not None and last.user_id == user.id and _is_known_by(last, now):
        return Buckets(account=bucket_of("browser", last.id), network=None)
    network = network_of(address)
    sessions = tx.sessions.of_user(user.id, limit=_MOST_SESSIONS) if user is not None and network else ()
    is_known = any(_is_known_by(one, now) and network_of(one.address) == network for one in sessions)
    account = bucket_of("user", email, network) if is_known else bucket_of("user", email)
    return Buckets(account=account, network=bucket_of("network", network) if network else None)


def _is_known_by(session: Session, now: datetime) -> bool:
    """Return whether a session shows that the user was there, lately."""
    return session.second_factor != "awaited" and session.created_at > now - KNOWN_FOR


def require_no_wait(tx: Transaction, buckets: Buckets, now: datetime) -> None:
    """Raise `LoginThrottled` while one of the buckets makes attempts wait."""
    moments = [moment for name in buckets.all() if (moment := open_from(tx.login_failures.get(name))) is not None]
    wait = max(moments, default=now) - now
    if wait > timedelta():
        raise LoginThrottled(retry_after_seconds=-(-wait // timedelta(seconds=1)))


def count_attempt(tx: Transaction, buckets: Buckets, now: datetime) -> None:
    """Count an attempt as a failure, before it is known: those at the same time are not free."""
    require_no_wait(tx, buckets, now)
    for name in buckets.all():
        tx.login_failures.put(count_failure(tx.login_failures.get(name), name, now))


def forgive_attempt(tx: Transaction, buckets: Buckets, *, complete: bool) -> None:
    """Count a successful attempt no longer; with a complete login, nor the failures of the account before it."""
    if complete:
        tx.login_failures.delete(buckets.account)
    for name in buckets.all()[1 if complete else 0 :]:
        known = tx.login_failures.get(name)
        if known is not None:
            _put_or_delete(tx, attrs.evolve(known, count=known.count - 1))


def _put_or_delete(tx: Transaction, failures: LoginFailures) -> None:
    if failures.count > 0:
        tx.login_failures.put(failures)
    else:
        tx.login_failures.delete(failures.bucket)


def sweep_failures(tx: Transaction, now: datetime, *, limit: int) -> int:
    """Delete up to `limit` buckets whose failures are forgotten; return how many."""
    return tx.login_failures.sweep(now - timedelta(days=1), limit=limit)


def begin(
    tx: Transaction, user: StoredUser, *, session_id: str, digest: str, address: str, agent: str, now: datetime
) -> Session:
    """Begin a session of a user; it opens nothing before the second factor is given, if there is one.

    Raises:
        Unauthorized: The user is disabled.
    """
    if user.disabled_at is not None:
        raise Unauthorized("This user is disabled.")
    second_factor: SecondFactor = "none" if user.totp_since is None else "awaited"
    session = Session(
        id=session_id,
        digest=digest,
        user_id=user.id,
        created_at=now,
        seen_at=now,
        expires_at=now + (LONGEST if second_factor == "none" else _AWAITED_FOR),
        verified_at=now,
        address=address,
        agent=agent,
        second_factor=second_factor,
    )
    tx.sessions.insert(session)
    if second_factor == "none":
        signed_in(tx, user, session, now=now)
    return session


def complete(tx: Transaction, user: StoredUser, session: Session, *, digest: str, now: datetime) -> Session:
    """Complete a session after the second factor was given, under a new digest."""
    after = attrs.evolve(
        session,
        digest=digest,
        second_factor="given",
        seen_at=now,
        verified_at=now,
        expires_at=session.created_at + LONGEST,
    )
    tx.sessions.update(after)
    signed_in(tx, user, after, now=now)
    return after


def signed_in(tx: Transaction, user: StoredUser, session: Session, *, now: datetime) -> None:
    """Record a login."""
    tx.users.update(attrs.evolve(user, last_seen_at=now))
    note(tx, user, "session.begin", now=now, actor=f"user:{user.id}", detail=session.id)


def open_session(tx: Transaction, digest: str, now: datetime) -> tuple[Session, StoredUser] | None:
    """Return the open session with a digest, and its user; None if there is none, or the user is disabled."""
    session = tx.sessions.by_digest(digest)
    if session is None or not session.is_open(now):
        return None
    user = tx.users.get(session.user_id)
    return None if user is None or user.disabled_at is not None else (session, user)


def needs_note(session: Session, now: datetime) -> bool:
    """Return whether a use of a session is to be noted."""
    return now >= session.seen_at + _NOTED_EVERY


def note_use(tx: Transaction, digest: str, now: datetime) -> None:
    """Note that a session is used, if it is still open."""
    found = open_session(tx, digest, now)
    if found is not None and needs_note(found[0], now):
        tx.sessions.update(attrs.evolve(found[0], seen_at=now))
        tx.users.update(attrs.evolve(found[1], last_seen_at=now))


def end_after_restore(tx: Transaction, now: datetime) -> None:
    """End all sessions and links: a backup brings back those that were ended or used since."""
    tx.sessions.end_all(now)
    tx.invitations.withdraw_all(now)


def sweep(tx: Transaction, now: datetime, *, limit: int) -> int:
    """Delete up to `limit` sessions and as many links that have been of no use for three months; return the most."""
    before = now - KNOWN_FOR
    return max(tx.sessions.sweep(before, limit=limit), tx.invitations.sweep(before, limit=limit))
