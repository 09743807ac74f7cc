"""The simulation's event loop: virtual time, in which tasks and timers go in any order that asyncio allows."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVarTuple

from outreach.core.clock import Clock
from outreach.testing.virtual_time import VirtualTimeLoop
from tests.simulation.set_order import NumberedTask

Arguments = TypeVarTuple("Arguments")

START: Final = datetime(2026, 3, 2, 11, 58, tzinfo=UTC)
"""A Monday: the moment at which every simulation begins.

Two minutes later it is midnight in Fiji, nine in the evening in Tokyo and eight in the morning in Puerto Rico, so that
holidays and contact hours begin and end in the midst of a simulation.
"""

_LATE_SECONDS: Final = 0.004
"""How much later than asked for a timer may fire: enough that those due at once fire in any order."""


class ShiftedClock:
    """The clock of a machine that differs from the database's.

    Args:
        clock: The database's.
        ahead: How far this one is ahead.
    """

    def __init__(self, clock: Clock, ahead: timedelta) -> None:
        self._clock = clock
        self._ahead = ahead

    def now(self) -> datetime:
        """Return the time by this machine's wall clock."""
        return self._clock.now() + self._ahead

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back."""
        return self._clock.monotonic()


class Standstill:
    """Whether a process stands still: what it is to do waits until it goes on.

    Attributes:
        still: Set by the code that stops it.
        went_on: When it last went on, by the loop's time.
    """

    def __init__(self) -> None:
        self.still = False
        self.went_on = 0.0
        self._held: list[_ProcessCallback] = []

    def hold(self, gate: _ProcessCallback) -> None:
        """Keep something for later."""
        self._held.append(gate)

    def go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let everything that waits happen, in the order in which it fell due."""
        self.still = False
        self.went_on = loop.time()
        held, self._held = self._held, []
        for gate in held:
            loop.call_soon(gate.late, context=gate.context)


PROCESS: Final[ContextVar[Standstill | None]] = ContextVar("PROCESS", default=None)
"""The process that a task belongs to; its tasks, timers and callbacks inherit it."""


class _ProcessCallback:
    """A callback of a process, which does not happen while that one stands still."""

    __slots__ = ("_args", "_callback", "_process", "context", "handle")

    def __init__(
        self, process: Standstill, callback: Callable[..., object], args: tuple[Any, ...], context: Context
    ) -> None:
        self._process = process
        self._callback = callback
        self._args = args
        self.context = context
        self.handle: asyncio.Handle | None = None

    def __call__(self) -> None:
        if self._process.still:
            self._process.hold(self)
        else:
            self._callback(*self._args)

    def late(self) -> None:
        """Make up for it, unless it has been cancelled meanwhile."""
        if self.handle is not None and not self.handle.cancelled():
            self()


class SimulationLoop(VirtualTimeLoop):
    """A loop with virtual time, in which a seed decides about the order.

    Tasks that are ready run in any order, by a seed: one may have to let others go first, as asyncio promises nothing
    else. Other callbacks keep the order that asyncio guarantees. Timers fire a little late, so that those due at the
    same moment fire in any order.

    Args:
        rng: Decides how late.
        late_seconds: Asked for each timer: how much later than that it fires, in seconds; zero for most.
        gives_way: Asked for each turn of a task: whether it lets the others go first.
    """

    def __init__(
        self,
        rng: random.Random,
        late_seconds: Callable[[], float] = lambda: 0.0,
        gives_way: Callable[[], bool] = lambda: False,
    ) -> None:
        self._rng = rng
        self._extra = late_seconds
        self._gives_way = gives_way
        super().__init__(start=START)
        numbers = itertools.count()
        self.set_task_factory(lambda loop, coro, **given: NumberedTask(next(numbers), coro, loop=loop, **given))

    def call_soon(
        self, callback: Callable[[*Arguments], object], *args: *Arguments, context: Context | None = None
    ) -> asyncio.Handle:
        """Have a callback called once those before it have been; later when its process stands still then."""
        context = context if context is not None else copy_context()
        process = context.get(PROCESS)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        gate = _ProcessCallback(process, callback, args, context)
        # A task has one turn at a time, so that its own turns keep their order.
        late = isinstance(getattr(callback, "__self__", None), asyncio.Task) and self._gives_way()
        first = (lambda: self._let_go_first(gate)) if late else gate
        gate.handle = handle = super().call_soon(first, context=context)
        return handle

    def _let_go_first(self, gate: _ProcessCallback) -> None:
        super().call_soon(gate.late, context=gate.context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Have a callback called at a moment, or a little later."""
        context = context if context is not None else copy_context()
        process = context.get(PROCESS)
        when += self._rng.random() * _LATE_SECONDS
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        gate = _ProcessCallback(process, callback, args, context)
        gate.handle = handle = super().call_at(when + self._extra(), gate, context=context)
        return handle
