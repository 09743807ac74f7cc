"""Hashes of passwords: Argon2id by `cryptography`, in a thread, two at a time."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable
from typing import Final, TypeVar

import attrs
from anyio import CapacityLimiter, to_thread

from outreach.core.extras import needed_for
from outreach.errors import LoginThrottled

T = TypeVar("T")

_PURPOSE: Final = "Signing in with a password"
_AT_A_TIME: Final = 2
MAX_WAITING: Final = 50
"""Hashes that wait for their turn: two seconds of them on two busy cores."""

_RETRY_SECONDS: Final = 2
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
_PHC: Final = re.compile(r"\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$[^$]+\$[^$]+")


@attrs.frozen(kw_only=True)
class Cost:
    """The cost of a hash.

    Attributes:
        kibibytes: Memory.
        passes: Passes over it.
        lanes: Lanes.
    """

    kibibytes: int
    passes: int
    lanes: int


COST: Final = Cost(kibibytes=19 * 1024, passes=2, lanes=1)
"""The cost of new hashes: 80 ms on a busy core."""


class PasswordHasher:
    """Hashes and verifies passwords.

    A flood of logins takes neither the memory nor the event loop: at most two hashes are computed at a time, and at
    most `MAX_WAITING` wait for their turn.

    Args:
        cost: The cost of new hashes; None for `COST`.
    """

    def __init__(self, cost: Cost | None = None) -> None:
        self._cost = cost or COST
        self._limiter: CapacityLimiter | None = None
        self._pending = 0

    async def hash(self, password: str) -> str:
        """Return the hash of a password, with a new salt.

        Raises:
            ConfigError: The extra with `cryptography` is not installed.
            LoginThrottled: Too many wait for their turn.
        """
        with needed_for(_PURPOSE):
            from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
        cost = self._cost

        def compute() -> str:
            kdf = Argon2id(
                salt=os.urandom(_SALT_BYTES),
                length=_HASH_BYTES,
                iterations=cost.passes,
                lanes=cost.lanes,
                memory_cost=cost.kibibytes,
            )
            return kdf.derive_phc_encoded(_bytes_of(password))

        return await self._in_turn(compute)

    async def verify(self, password: str, hashed: str | None) -> bool:
        """Return whether a password belongs to a hash; without one it takes the same time, and is wrong.

        Raises:
            ConfigError: The extra with `cryptography` is not installed.
            LoginThrottled: Too many wait for their turn.
        """
        with needed_for(_PURPOSE):
            from cryptography.exceptions import InvalidKey
            from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
        if hashed is None:
            await self.hash(password)
            return False

        def compute() -> bool:
            try:
                Argon2id.verify_phc_encoded(_bytes_of(password), hashed)
            except InvalidKey:
                return False
            return True

        return await self._in_turn(compute)

    def is_outdated(self, hashed: str) -> bool:
        """Return whether a hash has another cost than new ones."""
        found = _PHC.fullmatch(hashed)
        cost = self._cost
        return found is None or tuple(map(int, found.groups())) != (cost.kibibytes, cost.passes, cost.lanes)

    async def _in_turn(self, compute: Callable[[], T]) -> T:
        # Made at the first use: it belongs to an event loop.
        self._limiter = self._limiter or CapacityLimiter(_AT_A_TIME)
        if self._pending >= _AT_A_TIME + MAX_WAITING:
            raise LoginThrottled(retry_after_seconds=_RETRY_SECONDS, problem="Too many logins at once.")
        self._pending += 1
        try:
            return await to_thread.run_sync(compute, limiter=self._limiter)
        finally:
            self._pending -= 1


def _bytes_of(password: str) -> bytes:
    # A letter with an accent has two spellings, by keyboard.
    return unicodedata.normalize("NFC", password).encode("utf-8", "backslashreplace")
