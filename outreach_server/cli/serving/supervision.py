"""Notifications to a service manager: ready, alive, stopping; see sd_notify(3).

Of the packages for it, `sdnotify` has not changed since 2017, and `cysystemd` wraps libsystemd.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from outreach.models import DispatcherHealth


class ServiceManager:
    """The socket of `$NOTIFY_SOCKET`; without one nothing is sent.

    Args:
        address: The path of the socket, or @ and its name; None for none.
        watchdog: Whether it restarts a process that says nothing.
    """

    def __init__(self, address: str | None, *, watchdog: bool) -> None:
        self._address = address
        self.watchdog = watchdog and address is not None

    @classmethod
    def of_environment(cls) -> Self:
        """Return the one that has started this process, and keep it from the processes that this one starts."""
        address = os.environ.pop("NOTIFY_SOCKET", None)
        limit, process = os.environ.pop("WATCHDOG_USEC", ""), os.environ.pop("WATCHDOG_PID", "")
        meant = process in {"", str(os.getpid())}
        return cls(address, watchdog=limit.isdecimal() and meant)

    def ready(self, status: str) -> None:
        """Say that requests are answered."""
        self._send("READY=1", f"STATUS={status}")

    def waiting(self, status: str, *, seconds: float) -> None:
        """Say that the start waits for something, and may take so much longer."""
        self._send(f"STATUS={status}", f"EXTEND_TIMEOUT_USEC={round(seconds * 1_000_000)}")

    def stopping(self) -> None:
        """Say that the process is about to end."""
        self._send("STOPPING=1", "STATUS=Stopping")

    def alive(self) -> None:
        """Notify the supervisor that the process does its work, where it expects that."""
        if self.watchdog:
            self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        # A manager that does not listen must not end what it manages.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            out.sendto("\n".join(lines).encode(), address)


class Pulse:
    """Whether a dispatcher is alive, by its heartbeat.

    A heartbeat that fails is a sign of life: where the disk is full, a restart would not help. So is having no
    lease, which may be another process's.

    Args:
        limit_seconds: The age of the last heartbeat from which on a dispatcher without failures hangs.
        monotonic: The clock.
    """

    def __init__(self, limit_seconds: float, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit_seconds
        self._monotonic = monotonic
        self._failures = 0
        self._failed_at = float("-inf")

    def is_alive(self, health: DispatcherHealth) -> bool:
        """Return whether it is alive."""
        now = self._monotonic()
        if health.failures != self._failures:
            self._failures, self._failed_at = health.failures, now
        age = health.heartbeat_seconds_ago
        return age is None or min(age, now - self._failed_at) < self._limit
