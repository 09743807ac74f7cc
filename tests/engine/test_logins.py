"""Logins and sessions (docs/users.md): passwords, throttling, second factor; on every storage."""

from __future__ import annotations

from base64 import b32encode
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

import anyio
import pytest
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from outreach import Conflict, InvalidRequest, NewWorkspace, NotFound, Outreach
from outreach.core import passwords
from outreach.core.passwords import Cost, PasswordHasher
from outreach.core.totp import accepted_step, code_at, step_of
from outreach.core.vault import Vault
from outreach.errors import ConfigError, LoginThrottled, OutreachError, Unauthorized
from outreach.ledger.access import logins
from outreach.ledger.leases import leases
from outreach.models import NewUser, Role, SignedIn, User
from outreach.models.work import DatabaseHome
from outreach.rules.login_throttle import FREE_FAILURES, network_of
from outreach.testing.clock import ManualClock
from tests.engine.conftest import OpenStorage

pytestmark = pytest.mark.anyio

EMAIL: Final = "ann@acme.example"
PASSWORD: Final = "seven blue herons"
OTHER: Final = "nine green otters"
HOME: Final = "192.0.2.7"
AWAY: Final = "198.51.100.9"


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash at the least cost: what is tested is not how long it takes."""
    monkeypatch.setattr(passwords, "COST", Cost(kibibytes=8, passes=1, lanes=1))


@pytest.fixture
async def engine(open_storage: OpenStorage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """Open an engine on a clock that the test moves."""
    async with Outreach(open_storage(clock), clock=clock) as engine:
        yield engine


@pytest.fixture
async def ann(engine: Outreach) -> User:
    """A user with a password."""
    user = await engine.users.create(NewUser(email=EMAIL, name="Ann"))
    return await engine.users.accept((await engine.users.reset(user.id)).token, password=PASSWORD)


async def secret_of(engine: Outreach, user: User, clock: ManualClock) -> tuple[str, list[str]]:
    """Give a user a second factor; return its secret and the recovery codes."""
    begun = await engine.users.begin_second_factor(user.id)
    codes = await engine.users.confirm_second_factor(user.id, code(begun.secret, clock))
    clock.advance(30)
    return begun.secret, list(codes)


def code(secret: str, clock: ManualClock) -> str:
    """Return what the authenticator shows now."""
    return code_at(secret, step_of(clock.now()))


async def fail(engine: Outreach, email: str = EMAIL, address: str = AWAY) -> type[OutreachError]:
    """Sign in by a wrong password; return how that was refused."""
    try:
        await engine.sessions.sign_in(email, "wrong", address=address)
    except OutreachError as error:
        return type(error)
    raise AssertionError("A wrong password opens a session.")


async def wait_of(engine: Outreach, email: str = EMAIL, address: str = AWAY) -> int:
    """Return how many seconds an attempt has to wait."""
    try:
        await engine.sessions.sign_in(email, "wrong", address=address)
    except LoginThrottled as error:
        return error.retry_after_seconds
    except Unauthorized:
        return 0
    raise AssertionError("A wrong password opens a session.")


# ---------------------------------------------------------------------------------------------- sessions


async def test_a_session_is_a_new_secret_that_is_not_stored(engine: Outreach, ann: User) -> None:
    """A session that was set before the login is not valid after it."""
    one = await engine.sessions.sign_in("Ann@ACME.example", PASSWORD, address=HOME, agent="Firefox")
    two = await engine.sessions.begin(ann.id)
    assert len({one.token, two.token, one.session.digest, two.session.digest}) == 4
    assert one.token not in repr(one)
    found = await engine.sessions.find(one.token)
    assert found is not None
    assert (found.user.id, found.session.address, found.session.agent) == (ann.id, HOME, "Firefox")
    for token in ("", one.session.digest, one.token + "x", one.token[:-1], "x" * 5000, "\ud800", one.session.id):
        assert await engine.sessions.find(token) is None
    assert [item.id async for item in engine.sessions.iter_all(ann.id)] == [two.session.id, one.session.id]


async def test_a_session_ends_when_it_is_not_used_and_after_a_month(
    engine: Outreach, ann: User, clock: ManualClock
) -> None:
    """Each use prolongs it, by twelve hours; thirty days after the login it is over all the same."""
    idle = await engine.sessions.begin(ann.id)
    clock.advance(timedelta(hours=12).total_seconds())
    assert await engine.sessions.find(idle.token) is None
    used = await engine.sessions.begin(ann.id)
    for _ in range(65):
        clock.advance(timedelta(hours=11).total_seconds())
        assert await engine.sessions.find(used.token) is not None
    assert (await engine.users.get(ann.id)).last_seen_at == clock.now()
    clock.advance(timedelta(hours=5).total_seconds())
    assert await engine.sessions.find(used.token) is None


async def test_a_session_is_ended_by_its_user_alone(engine: Outreach, ann: User) -> None:
    """One, or all but this one; a session of somebody else is not found."""
    ben = await engine.users.create(NewUser(email="ben@acme.example", name="Ben"))
    here, there, third = [await engine.sessions.begin(ann.id) for _ in range(3)]
    with pytest.raises(NotFound):
        await engine.sessions.end(ben.id, here.session.id)
    assert (await engine.sessions.end(ann.id, there.session.id)).ended_at is not None
    assert await engine.sessions.find(there.token) is None
    assert await engine.sessions.end_all(ann.id, but=here.session.id) == 1
    assert await engine.sessions.find(third.token) is None
    assert await engine.sessions.find(here.token) is not None
    assert await engine.sessions.end_all(ann.id) == 1
    assert await engine.sessions.find(here.token) is None


async def test_an_owner_ends_no_sessions_of_those_with_more_rights(engine: Outreach, ann: User) -> None:
    """A person with rights elsewhere, or an operator, is an operator's matter."""
    acme, other = [await engine.workspaces.create(NewWorkspace(name=name)) for name in ("Acme", "Other")]
    await engine.users.set_role(acme.id, ann.id, Role.AGENT)
    with pytest.raises(NotFound):
        await engine.sessions.end_all(ann.id, workspace_id=other.id)
    await engine.sessions.begin(ann.id)
    assert await engine.sessions.end_all(ann.id, workspace_id=acme.id) == 1
    await engine.users.set_role(other.id, ann.id, Role.VIEWER)
    session = await engine.sessions.begin(ann.id)
    with pytest.raises(Conflict, match="only an operator"):
        await engine.sessions.end_all(ann.id, workspace_id=acme.id)
    assert await engine.sessions.find(session.token) is not None


async def test_a_session_gets_another_secret(engine: Outreach, ann: User) -> None:
    """The one before opens nothing."""
    before = await engine.sessions.begin(ann.id)
    after = await engine.sessions.renew(before.token)
    assert after.session.id == before.session.id
    assert await engine.sessions.find(before.token) is None
    assert await engine.sessions.find(after.token) is not None
    with pytest.raises(Unauthorized):
        await engine.sessions.renew(before.token)


async def test_an_end_is_seen_by_another_engine(open_storage: OpenStorage, clock: ManualClock) -> None:
    """Nothing is believed from before: another process sees it at its next look."""
    async with Outreach(open_storage(clock), clock=clock) as one, Outreach(open_storage(clock), clock=clock) as other:
        user = await one.users.create(NewUser(email=EMAIL, name="Ann"))
        session = await one.sessions.begin(user.id)
        if await other.sessions.find(session.token) is None:
            pytest.skip("a database in memory has one engine")
        await one.sessions.end(user.id, session.session.id)
        assert await other.sessions.find(session.token) is None


async def test_dangerous_actions_need_a_fresh_proof(engine: Outreach, ann: User, clock: ManualClock) -> None:
    """For a quarter of an hour after the login, and after the password was given again."""
    made = await engine.sessions.sign_in(EMAIL, PASSWORD)
    assert made.session.is_verified(clock.now())
    clock.advance(15 * 60)
    found = await engine.sessions.find(made.token)
    assert found is not None
    assert not found.session.is_verified(clock.now())
    with pytest.raises(Unauthorized):
        await engine.sessions.verify(made.token, password=OTHER)
    assert (await engine.sessions.verify(made.token, password=PASSWORD)).is_verified(clock.now())
    found = await engine.sessions.find(made.token)
    assert found is not None
    assert found.session.is_verified(clock.now())
    with pytest.raises(Unauthorized):
        await engine.sessions.verify("other", password=PASSWORD)


async def test_a_moved_or_restored_database_has_no_open_session(engine: Outreach, ann: User) -> None:
    """Those that were ended after the backup would be open again; so would links."""
    session, link = await engine.sessions.begin(ann.id), await engine.users.reset(ann.id)
    here, elsewhere = (DatabaseHome(host=name, path="/outreach.db") for name in ("here", "elsewhere"))
    write = engine.sessions._users.services.storage.write
    await write(lambda tx: leases.take_over(tx, home=here, noted=None, now=engine.now()))
    await write(lambda tx: leases.take_over(tx, home=here, noted=None, now=engine.now()))
    assert await engine.sessions.find(session.token) is not None
    await write(lambda tx: leases.take_over(tx, home=elsewhere, noted=None, now=engine.now()))
    assert await engine.sessions.find(session.token) is None
    with pytest.raises(Unauthorized):
        await engine.users.get_invitation(link.token)


# --------------------------------------------------------------------------------------------- passwords


async def test_all_failures_are_one_sentence(engine: Outreach, ann: User) -> None:
    """A stranger does not learn who is a user, who is disabled, and who has no password yet."""
    new = await engine.users.create(NewUser(email="new@acme.example", name="New"))
    gone = await engine.users.create(NewUser(email="gone@acme.example", name="Gone"))
    await engine.users.accept((await engine.users.reset(gone.id)).token, password=PASSWORD)
    await engine.users.disable(gone.id)
    said = set()
    for email, password in [
        (EMAIL, OTHER),
        ("nobody@acme.example", PASSWORD),
        ("no address", PASSWORD),
        (new.email, ""),
        (gone.email, PASSWORD),
    ]:
        with pytest.raises(Unauthorized) as caught:
            await engine.sessions.sign_in(email, password)
        said.add(str(caught.value))
    assert len(said) == 1


async def test_an_unknown_address_costs_a_hash_too(
    engine: Outreach, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many computations as for a known one: time tells nothing."""
    count = 0
    real = PasswordHasher._in_turn

    async def counting(self: PasswordHasher, compute: object) -> object:
        nonlocal count
        count += 1
        return await real(self, compute)  # type: ignore[arg-type]

    monkeypatch.setattr(PasswordHasher, "_in_turn", counting)
    counts = []
    for email in (EMAIL, "nobody@acme.example"):
        await fail(engine, email)
        counts.append(count)
    assert counts == [1, 2]


async def test_a_password_is_hashed_again_when_the_cost_has_changed(
    open_storage: OpenStorage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the next login, and only then; the password stays."""
    storage = open_storage(clock)

    async def hash_now() -> str:
        found = await storage.read(lambda tx: tx.users.by_email(EMAIL))
        return (found.password if found is not None else None) or ""

    async with Outreach(storage, clock=clock) as engine:
        user = await engine.users.create(NewUser(email=EMAIL, name="Ann"))
        await engine.users.accept((await engine.users.reset(user.id)).token, password=PASSWORD)
        first = await hash_now()
        monkeypatch.setattr(engine.sessions._users.hasher, "_cost", Cost(kibibytes=16, passes=1, lanes=1))
        await engine.sessions.sign_in(EMAIL, PASSWORD)
        second = await hash_now()
        await engine.sessions.sign_in(EMAIL, PASSWORD)
        assert second == await hash_now()
    assert "$m=8,t=1,p=1$" in first
    assert "$m=16,t=1,p=1$" in second


async def test_no_more_than_two_are_hashed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of logins takes neither the memory nor the loop."""
    hasher, busy, most = PasswordHasher(), 0, 0
    hashed = await hasher.hash(PASSWORD)

    class Counted:
        @staticmethod
        def verify_phc_encoded(given: bytes, stored: str) -> None:
            nonlocal busy, most
            busy += 1
            most = max(most, busy)
            anyio.from_thread.run(anyio.sleep, 0.01)
            busy -= 1
            Argon2id.verify_phc_encoded(given, stored)

    monkeypatch.setattr("cryptography.hazmat.primitives.kdf.argon2.Argon2id", Counted)
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(hasher.verify, PASSWORD, hashed)
    assert most == 2


async def test_more_than_the_queue_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their error says when to come again, and nothing was checked. Those in the queue are checked."""
    monkeypatch.setattr("outreach.core.passwords.MAX_WAITING", 1)
    hasher, found = PasswordHasher(), list[bool | int]()
    hashed = await hasher.hash(PASSWORD)

    async def verify() -> None:
        try:
            found.append(await hasher.verify(PASSWORD, hashed))
        except LoginThrottled as error:
            found.append(error.retry_after_seconds)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(verify)
    assert found == [2, 2, True, True, True]  # the first two that find the queue full answer at once


def test_the_cost_is_the_documented_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """19 MiB, two passes, one lane."""
    monkeypatch.undo()
    assert Cost(kibibytes=19_456, passes=2, lanes=1) == passwords.COST


async def test_an_accent_typed_in_two_ways_is_one(engine: Outreach, ann: User) -> None:
    """Keyboards compose letters differently."""
    await engine.users.accept((await engine.users.reset(ann.id)).token, password="caf\u00e9 au lait, svp")
    assert (await engine.sessions.sign_in(EMAIL, "cafe\u0301 au lait, svp")).user.id == ann.id


async def test_a_change_of_the_password_needs_the_present_one(engine: Outreach, ann: User) -> None:
    """The other sessions end, and this one has a new secret."""
    here, there = await engine.sessions.begin(ann.id), await engine.sessions.begin(ann.id)
    with pytest.raises(Unauthorized):
        await engine.sessions.change_password(here.token, current=OTHER, password=OTHER)
    with pytest.raises(InvalidRequest):
        await engine.sessions.change_password(here.token, current=PASSWORD, password="short")
    after = await engine.sessions.change_password(here.token, current=PASSWORD, password=OTHER)
    assert [await engine.sessions.find(one.token) is not None for one in (here, there, after)] == [False, False, True]
    with pytest.raises(Unauthorized):
        await engine.sessions.sign_in(EMAIL, PASSWORD)
    await engine.sessions.sign_in(EMAIL, OTHER)


# -------------------------------------------------------------------------------------------- throttling


@pytest.mark.parametrize("email", [EMAIL, "nobody@acme.example"])
async def test_after_ten_failures_there_is_a_wait_that_doubles(
    engine: Outreach, ann: User, clock: ManualClock, email: str
) -> None:
    """For an unknown address as for a known one; a right password is not tried while it lasts."""
    for _ in range(FREE_FAILURES):
        assert await fail(engine, email) is Unauthorized
    waits = []
    for _ in range(12):
        wait = await wait_of(engine, email)
        waits.append(wait)
        assert await wait_of(engine, email) == wait, "a refused attempt counts"
        with pytest.raises(LoginThrottled):
            await engine.sessions.sign_in(email, PASSWORD, address=AWAY)
        clock.advance(wait)
        assert await fail(engine, email) is Unauthorized
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]
    clock.advance(1799)
    assert await fail(engine, email) is Unauthorized
    assert await wait_of(engine, email) == 900
    clock.advance(1800)
    assert await fail(engine, email) is Unauthorized
    assert await wait_of(engine, email) == 0


async def test_a_stranger_makes_nobody_wait_at_home(engine: Outreach, ann: User, clock: ManualClock) -> None:
    """A network from which the user has signed in before has failures of its own."""
    await engine.sessions.sign_in(EMAIL, PASSWORD, address=HOME)
    for number in range(3 * FREE_FAILURES):
        await fail(engine, address=f"203.0.113.{number}" if number % 2 else f"198.51.{number}.9")
    assert await wait_of(engine, address="203.0.113.200") > 0
    assert (await engine.sessions.sign_in(EMAIL, PASSWORD, address="192.0.2.250")).user.id == ann.id
    clock.advance(timedelta(days=91).total_seconds())
    for _ in range(FREE_FAILURES):
        await fail(engine, address=AWAY)
    with pytest.raises(LoginThrottled):
        await engine.sessions.sign_in(EMAIL, PASSWORD, address=HOME)


@pytest.mark.parametrize("others", [(EMAIL,), ("eve@acme.example", "ben@acme.example")])
async def test_nobody_makes_a_browser_wait_that_the_user_has_signed_in_with(
    engine: Outreach, ann: User, clock: ManualClock, others: tuple[str, ...]
) -> None:
    """Neither by failures of the account nor by those of the network; its own failures count all the same."""
    known = await engine.sessions.sign_in(EMAIL, PASSWORD, address=HOME)
    await engine.sessions.end(ann.id, known.session.id)
    for number in range(3 * FREE_FAILURES):
        await fail(engine, others[number % len(others)], HOME)
    assert await wait_of(engine, EMAIL, HOME) > 0
    with pytest.raises(LoginThrottled):
        await engine.sessions.sign_in(EMAIL, PASSWORD, address=HOME)
    for _ in range(FREE_FAILURES):
        with pytest.raises(Unauthorized):
            await engine.sessions.sign_in(EMAIL, OTHER, address=HOME, known_by=known.token)
    with pytest.raises(LoginThrottled):
        await engine.sessions.sign_in(EMAIL, PASSWORD, address=HOME, known_by=known.token)
    clock.advance(1)
    await engine.sessions.sign_in(EMAIL, PASSWORD, address=HOME, known_by=known.token)
    clock.advance(timedelta(days=91).total_seconds())
    for _ in range(FREE_FAILURES):
        await fail(engine, EMAIL, HOME)
    with pytest.raises(LoginThrottled):
        await engine.sessions.sign_in(EMAIL, PASSWORD, address=HOME, known_by=known.token)


async def test_a_browser_is_known_for_the_account_that_signed_in_with_it(engine: Outreach, ann: User) -> None:
    """Somebody with an account of his own has no more guesses at others; nor has a login without its code."""
    eve = await engine.users.create(NewUser(email="eve@acme.example", name="Eve"))
    await engine.users.accept((await engine.users.reset(eve.id)).token, password=OTHER)
    theirs = await engine.sessions.sign_in("eve@acme.example", OTHER, address=AWAY)
    for _ in range(FREE_FAILURES):
        with pytest.raises(Unauthorized):
            await engine.sessions.sign_in(EMAIL, OTHER, address=AWAY, known_by=theirs.token)
    with pytest.raises(LoginThrottled):
        await engine.sessions.sign_in(EMAIL, OTHER, address=AWAY, known_by=theirs.token)
    assert await wait_of(engine, EMAIL, "198.51.100.1") > 0, "the account has not counted them"


async def test_codes_are_guessed_no_more_often_in_a_browser_without_a_complete_login(
    engine: Outreach, ann: User, clock: ManualClock
) -> None:
    """The password alone makes no browser known; the user's own browser gives the code while others wait."""
    known = await engine.sessions.sign_in(EMAIL, PASSWORD, address=HOME)
    secret, _ = await secret_of(engine, ann, clock)
    stranger = await engine.sessions.sign_in(EMAIL, PASSWORD, address=AWAY)
    for _ in range(FREE_FAILURES):
        with pytest.raises(Unauthorized):
            await engine.sessions.confirm(stranger.token, "000000", known_by=stranger.token)
    with pytest.raises(LoginThrottled):
        await engine.sessions.confirm(stranger.token, "000000", known_by=stranger.token)
    assert await wait_of(engine, EMAIL, "198.51.100.1") > 0, "the account has not counted them"
    mine = await engine.sessions.sign_in(EMAIL, PASSWORD, address=AWAY, known_by=known.token)
    done = await engine.sessions.confirm(mine.token, code(secret, clock), known_by=known.token)
    assert done.session.second_factor == "given"


async def test_failed_sign_ins_do_not_throttle_the_password_check_of_a_session(engine: Outreach, ann: User) -> None:
    """The check before a dangerous action counts the failures of its own session alone."""
    here = await engine.sessions.sign_in(EMAIL, PASSWORD, address=HOME)
    for _ in range(2 * FREE_FAILURES):
        await fail(engine, EMAIL, HOME)
    await engine.sessions.verify(here.token, password=PASSWORD)
    for _ in range(FREE_FAILURES):
        with pytest.raises(Unauthorized):
            await engine.sessions.verify(here.token, password=OTHER)
    with pytest.raises(LoginThrottled):
        await engine.sessions.verify(here.token, password=PASSWORD)


async def test_one_network_that_tries_many_accounts_waits(engine: Outreach, ann: User) -> None:
    """Whatever accounts these are; a login that succeeds in between does not make it free."""
    await engine.sessions.sign_in(EMAIL, PASSWORD, address="203.0.113.1")
    for number in range(FREE_FAILURES):
        assert await fail(engine, f"user{number}@acme.example", f"203.0.113.{number}") is Unauthorized
        if number == FREE_FAILURES // 2:
            await engine.sessions.sign_in(EMAIL, PASSWORD, address="203.0.113.1")
    assert await wait_of(engine, "other@acme.example", "203.0.113.99") == 1
    assert await wait_of(engine, "other@acme.example", "203.0.114.99") == 0


async def test_attempts_at_the_same_time_are_not_free(engine: Outreach, ann: User) -> None:
    """Each is counted before its password is looked at."""
    kinds: list[type[OutreachError]] = []

    async def attempt() -> None:
        kinds.append(await fail(engine))

    async with anyio.create_task_group() as tasks:
        for _ in range(3 * FREE_FAILURES):
            tasks.start_soon(attempt)
    assert kinds.count(Unauthorized) == FREE_FAILURES


async def test_a_login_forgets_the_failures_of_its_account(engine: Outreach, ann: User) -> None:
    """Who has mistyped nine times begins anew."""
    for _ in range(2):
        for _ in range(FREE_FAILURES - 1):
            await fail(engine, address="")
        await engine.sessions.sign_in(EMAIL, PASSWORD)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.0/24"),
        ("::ffff:192.0.2.7", "192.0.2.0/24"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix:", "unix:"),
        ("", ""),
    ],
)
def test_a_network_is_what_one_person_has(address: str, network: str) -> None:
    """Of IPv6 a household has 2^64 addresses."""
    assert network_of(address) == network


async def test_failures_are_cleared_away(engine: Outreach, ann: User, clock: ManualClock) -> None:
    """Anybody can make rows by trying; none stays for longer than a day. Neither do old sessions and links."""
    storage = engine.sessions._users.services.storage
    await fail(engine)
    await engine.sessions.begin(ann.id)
    await engine.users.reset(ann.id)
    clock.advance(timedelta(days=1, seconds=1).total_seconds())
    assert await storage.write(lambda tx: logins.sweep_failures(tx, clock.now(), limit=10)) == 2
    clock.advance(timedelta(days=90).total_seconds())
    assert await storage.write(lambda tx: logins.sweep(tx, clock.now(), limit=10)) == 2
    assert [one async for one in engine.sessions.iter_all(ann.id)] == []


# ----------------------------------------------------------------------------------------- second factor


RFC: Final = [
    (59, "94287082"),
    (1111111109, "07081804"),
    (1111111111, "14050471"),
    (1234567890, "89005924"),
    (2000000000, "69279037"),
    (20000000000, "65353130"),
]
"""RFC 6238, appendix B, for SHA-1."""


@pytest.mark.parametrize(("seconds", "expected"), RFC)
def test_codes_are_those_of_the_rfc(seconds: int, expected: str) -> None:
    """By its own vectors."""
    secret = b32encode(b"12345678901234567890").decode()
    assert code_at(secret, seconds // 30, digits=8) == expected
    assert code_at(secret, seconds // 30) == expected[-6:]


def test_a_step_is_accepted_once_and_a_clock_may_differ_by_one(clock: ManualClock) -> None:
    """No step before the last accepted one, either."""
    secret, now = b32encode(bytes(range(20))).decode(), step_of(clock.now())
    for step, accepted in [(now - 2, None), (now - 1, now - 1), (now, now), (now + 1, now + 1), (now + 2, None)]:
        assert accepted_step(secret, code_at(secret, step), clock.now(), after=None) == accepted
    assert accepted_step(secret, code_at(secret, now), clock.now(), after=now) is None
    assert accepted_step(secret, code_at(secret, now - 1), clock.now(), after=now) is None
    spaced = " ".join((code_at(secret, now)[:3], code_at(secret, now)[3:]))
    assert accepted_step(secret, spaced, clock.now(), after=now - 1) == now
    for wrong in ("", "12345", "abcdef", "１２３４５６", "\ud800"):
        assert accepted_step(secret, wrong, clock.now(), after=None) is None


async def test_a_login_with_a_second_factor_opens_nothing_before_the_code(
    engine: Outreach, ann: User, clock: ManualClock
) -> None:
    """The session gets another secret with it; a code is accepted once."""
    secret, _ = await secret_of(engine, ann, clock)
    half = await engine.sessions.sign_in(EMAIL, PASSWORD)
    assert half.session.second_factor == "awaited"
    assert await engine.sessions.find(half.token) is None
    assert await engine.sessions.find(half.token, awaited=True) is not None
    with pytest.raises(Unauthorized):
        await engine.sessions.renew(half.token)
    with pytest.raises(Unauthorized):
        await engine.sessions.verify(half.token, password=PASSWORD)
    with pytest.raises(Unauthorized):
        await engine.sessions.change_password(half.token, current=PASSWORD, password=OTHER)
    with pytest.raises(Unauthorized):
        await engine.sessions.confirm(half.token, "000000")
    whole = await engine.sessions.confirm(half.token, code(secret, clock))
    assert whole.session.second_factor == "given"
    assert await engine.sessions.find(half.token, awaited=True) is None
    assert await engine.sessions.find(whole.token) is not None
    again = await engine.sessions.sign_in(EMAIL, PASSWORD)
    with pytest.raises(Unauthorized):
        await engine.sessions.confirm(again.token, code(secret, clock))
    clock.advance(30)
    await engine.sessions.confirm(again.token, code(secret, clock))
    late = await engine.sessions.sign_in(EMAIL, PASSWORD)
    clock.advance(600)
    with pytest.raises(Unauthorized):
        await engine.sessions.confirm(late.token, code(secret, clock))


async def test_guessed_codes_wait_too_and_a_password_in_between_does_not_help(
    engine: Outreach, ann: User, clock: ManualClock
) -> None:
    """Who has the password has a million codes before him, not a free try at each login."""
    secret, _ = await secret_of(engine, ann, clock)

    async def guess() -> SignedIn:
        half = await engine.sessions.sign_in(EMAIL, PASSWORD)
        with pytest.raises(Unauthorized):
            await engine.sessions.confirm(half.token, "000000")
        return half

    half = [await guess() for _ in range(FREE_FAILURES)][-1]
    with pytest.raises(LoginThrottled):
        await engine.sessions.confirm(half.token, code(secret, clock))
    with pytest.raises(LoginThrottled):
        await engine.sessions.sign_in(EMAIL, PASSWORD)
    clock.advance(1)
    await engine.sessions.confirm(half.token, code(secret, clock))


async def test_a_recovery_code_is_good_for_one_login(engine: Outreach, ann: User, clock: ManualClock) -> None:
    """In any case, with or without dashes; new ones replace all."""
    _, codes = await secret_of(engine, ann, clock)
    assert len(set(codes)) == 10
    assert await engine.users.count_recovery_codes(ann.id) == 10
    half = await engine.sessions.sign_in(EMAIL, PASSWORD)
    await engine.sessions.confirm(half.token, codes[0].lower().replace("-", " "))
    assert await engine.users.count_recovery_codes(ann.id) == 9
    half = await engine.sessions.sign_in(EMAIL, PASSWORD)
    with pytest.raises(Unauthorized):
        await engine.sessions.confirm(half.token, codes[0])
    fresh = await engine.users.renew_recovery_codes(ann.id)
    with pytest.raises(Unauthorized):
        await engine.sessions.confirm(half.token, codes[1])
    done = await engine.sessions.confirm(half.token, fresh[0])
    clock.advance(900)
    assert (await engine.sessions.verify(done.token, code=fresh[1])).is_verified(clock.now())
    with pytest.raises(Unauthorized):
        await engine.sessions.verify(done.token, code=fresh[1])


async def test_a_second_factor_counts_once_a_code_has_confirmed_it(
    engine: Outreach, ann: User, clock: ManualClock
) -> None:
    """Until then a login needs none; then other sessions end, and the secret is shown no more."""
    here, there = await engine.sessions.begin(ann.id), await engine.sessions.begin(ann.id)
    begun = await engine.users.begin_second_factor(ann.id, issuer="Acme & Co")
    assert begun.url.startswith("otpauth://totp/Acme%20%26%20Co%3Aann%40acme.example?secret=")
    assert begun.secret not in repr(begun)
    with pytest.raises(InvalidRequest):
        await engine.users.confirm_second_factor(ann.id, "000000")
    assert (await engine.sessions.sign_in(EMAIL, PASSWORD)).session.second_factor == "none"
    again = await engine.users.begin_second_factor(ann.id)
    await engine.users.confirm_second_factor(ann.id, code(again.secret, clock), session_id=here.session.id)
    assert await engine.sessions.find(there.token) is None
    kept = await engine.sessions.find(here.token)
    assert kept is not None
    assert (kept.session.second_factor, kept.user.has_second_factor) == ("given", True)
    with pytest.raises(Conflict):
        await engine.users.begin_second_factor(ann.id)
    with pytest.raises(Conflict):
        await engine.users.confirm_second_factor(ann.id, code(again.secret, clock))
    assert not (await engine.users.remove_second_factor(ann.id)).has_second_factor
    assert await engine.users.count_recovery_codes(ann.id) == 0
    with pytest.raises(Conflict):
        await engine.users.renew_recovery_codes(ann.id)


async def test_a_lost_device_is_replaced_by_a_link(engine: Outreach, ann: User, clock: ManualClock) -> None:
    """The second factor goes, and the password with it: neither half of the account is open meanwhile."""
    await secret_of(engine, ann, clock)
    session = await engine.sessions.begin(ann.id)
    link = await engine.users.reset(ann.id, second_factor=True)
    assert await engine.sessions.find(session.token) is None
    with pytest.raises(Unauthorized):
        await engine.sessions.sign_in(EMAIL, PASSWORD)
    user = await engine.users.accept(link.token, password=OTHER)
    assert not user.has_second_factor
    assert (await engine.sessions.sign_in(EMAIL, OTHER)).session.second_factor == "none"


async def test_a_new_password_leaves_the_second_factor(engine: Outreach, ann: User, clock: ManualClock) -> None:
    """A link to an inbox is one factor."""
    await secret_of(engine, ann, clock)
    await engine.users.accept((await engine.users.reset(ann.id)).token, password=OTHER)
    assert (await engine.sessions.sign_in(EMAIL, OTHER)).session.second_factor == "awaited"
    assert (await engine.sessions.begin(ann.id)).session.second_factor == "awaited"


async def test_the_secret_is_encrypted_with_the_key_of_the_credentials(
    open_storage: OpenStorage, clock: ManualClock
) -> None:
    """It follows a change of the key; with another one the error says what to do."""
    old, new = "A" * 43 + "=", "B" * 43 + "="
    storage = open_storage(clock)
    async with Outreach(storage, clock=clock, vault=Vault(keys=old)) as engine:
        user = await engine.users.create(NewUser(email=EMAIL, name="Ann"))
        secret, _ = await secret_of(engine, user, clock)
        stored = await storage.read(lambda tx: tx.users.get(user.id))
        assert stored is not None
        assert secret not in (stored.totp or "")
        for keys, works in ((f"{new},{old}", True), (old, False), (new, True)):
            engine.sessions._users.vault._source = Vault(keys=keys)._source
            engine.sessions._users.vault._current = None
            half = await engine.sessions.begin(user.id)
            clock.advance(30)
            if works:
                await engine.sessions.confirm(half.token, code(secret, clock))
                await engine.accounts.rekey()
            else:
                with pytest.raises(ConfigError, match="--second-factor"):
                    await engine.sessions.confirm(half.token, code(secret, clock))


async def test_users_work_without_a_workspace(engine: Outreach, ann: User) -> None:
    """They are of the database."""
    session = await engine.sessions.begin(ann.id)
    found = await engine.sessions.find(session.token)
    assert found is not None
    assert found.roles == {}
    await engine.workspaces.create(NewWorkspace(name="Acme"))
