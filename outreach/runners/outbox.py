"""The requests that are on their way to providers: bounded, checked at the last moment, always recorded."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from outreach.clock import Clock
from outreach.config import EngineConfig
from outreach.errors import ConfigError
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.states import DispatchState
from outreach.operations.waves import intents
from outreach.protocols.dispatcher import WakeSignal
from outreach.protocols.storage import Storage
from outreach.providers.pool import ProviderRequest, SendRequest
from outreach.runners.batcher import Batcher
from outreach.runners.fair_limiter import FairLimiter
from outreach.runners.provider_log import log_provider_outcome
from outreach.runners.worker import Worker

_RECORD_RETRY_SECONDS: Final = 0.5

_FINAL_RECORD_SECONDS: Final = 0.7
"""How long the outcomes that are known at the end may take to be recorded."""

_LONG_AGO: Final = float("-inf")

_CLOCK_ROUNDING_SECONDS: Final = 0.000_002
"""Seconds by which two clocks may differ in what lies between two moments, each rounded to whole microseconds."""

_MAX_CHECKED: Final = 500
"""Requests that are looked at together, immediately before they start."""

_MAX_PACES: Final = 10_000
"""Paces remembered before those that are over are forgotten."""

ADAPTER_STATES: Final = frozenset(
    {
        DispatchState.ACCEPTED,
        DispatchState.REFUSED,
        DispatchState.DEFERRED,
        DispatchState.NOT_SENT,
        DispatchState.UNKNOWN,
    }
)
"""What an adapter may answer (`protocols.carrier.Carrier`)."""


class Outbox:
    """Holds the intents that wait for their slot, and the requests in flight.

    Both are bounded, and their sum bounds what a crash leaves unknown. A place is reserved before an intent is
    committed, and only while its account may have another request in flight: a provider that does not answer gets no
    more of them. When its slot has come the intent changes to a place of the requests, which is given back when its
    outcome is recorded. No account gets all of either.
    """

    def __init__(self, *, storage: Storage, clock: Clock, config: EngineConfig, worker: Worker) -> None:
        self._storage = storage
        self._clock = clock
        self._config = config
        self._worker = worker
        self._requests = FairLimiter(config.max_requests_in_flight)
        self._places = FairLimiter(config.max_queued_intents, opens=self._requests.has_capacity)
        self._checks = Batcher(self._withdrawal_reasons, max_size=_MAX_CHECKED)
        self._in_flight = 0
        self._tasks: TaskGroup | None = None
        self._idle = anyio.Event()
        self._closing = False
        self._recording: set[anyio.CancelScope] = set()
        self._paces: dict[str, _Pace] = {}

    async def serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Hold the requests until it is cancelled; those in flight then are recorded as unknown."""
        self._closing = False
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                task_status.started()
                try:
                    await anyio.sleep_forever()
                finally:
                    # Whoever ends this without a drain waits as little for what cannot be recorded.
                    self._close()
        finally:
            self._tasks = None

    async def reserve(self, account: str, wake_signal: WakeSignal, *, wanted: int = 1) -> int:
        """Wait for places for intents; return for how many, none when the slice is to stop instead."""
        return await self._places.acquire(account, wake_signal, wanted=wanted)

    def release(self, account: str, places: int) -> None:
        """Give places back for which no intent was committed."""
        self._places.release(account, places)

    def send(self, request: ProviderRequest) -> None:
        """Start a request in a reserved place; the place is given back when the outcome is recorded."""
        if self._tasks is None:
            raise RuntimeError("The outbox is not served.")
        self._in_flight += 1
        self._tasks.start_soon(self._execute, request, name="request")

    def earliest_start(self, pace_key: str) -> datetime | None:
        """Return the first moment at which the next request of a pace may start; None for any."""
        pace = self._paces.get(pace_key)
        turn = max(
            pace.next_start if pace is not None else _LONG_AGO, self._worker.earliest_start_after_takeover(pace_key)
        )
        left = turn - self._clock.monotonic()
        return self._clock.now() + timedelta(seconds=left) if left > _LONG_AGO else None

    async def drain(self, *, grace_seconds: float) -> None:
        """Wait until nothing is in flight, at most for the grace; then let go of what is left."""
        with anyio.move_on_after(grace_seconds):
            while self._in_flight:
                self._idle = anyio.Event()
                await self._idle.wait()
        self._close()
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()

    def _close(self) -> None:
        """Let what is being recorded, or will be, take no more than a moment: its database may be blocked for long."""
        self._closing = True
        for scope in self._recording:
            scope.deadline = anyio.current_time() + _FINAL_RECORD_SECONDS

    async def _execute(self, request: ProviderRequest) -> None:
        # Until the request begins nothing can have reached the provider; from then on everything might.
        outcome, words = DispatchOutcome(state=DispatchState.WITHDRAWN, reason="stopped"), None
        place = _Permit(self._places, request.account)
        try:
            ask = await request.resolve_provider()
            obstacle = await self._last_check(request, place)
            if obstacle is not None:
                outcome = DispatchOutcome(state=DispatchState.WITHDRAWN, reason=obstacle)
            else:
                outcome = DispatchOutcome(state=DispatchState.UNKNOWN, reason="interrupted")
                outcome = await self._call_provider(request.dispatch, ask)
        except ConfigError as error:
            # Nobody was asked. It is the account's trouble, for which every campaign that needs it is paused.
            outcome = DispatchOutcome(state=DispatchState.REFUSED, reason="provider_auth", error_message=error.message)
            words = f"A request could not be made: {error.message}"
        except Exception as error:
            if outcome.state is DispatchState.UNKNOWN:
                # An adapter that breaks is trouble of the provider's, which its campaigns are paused for.
                outcome = DispatchOutcome(state=DispatchState.UNKNOWN, reason="adapter_error")
            else:
                # Nobody was asked. What broke may go on breaking: the next try waits, longer each time.
                outcome = DispatchOutcome(state=DispatchState.NOT_SENT, reason="not_asked")
            self._worker.log_throttle.failure(
                "dispatch_failed",
                error,
                "A request to a provider ended in an unexpected error.",
                dispatch_id=request.dispatch.id,
            )
        finally:
            # Cancelled or not: what is known of a committed dispatch is recorded.
            await self._record(request.dispatch, outcome)
            log_provider_outcome(self._worker.log_throttle, request.dispatch, outcome, words)
            place.move_to(None)
            self._places.wake_waiters()
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    async def _call_provider(self, dispatch: Dispatch, ask: SendRequest) -> DispatchOutcome:
        with anyio.move_on_after(self._config.provider_timeout_seconds):
            answer: object = await ask()
            if isinstance(answer, DispatchOutcome) and answer.state in ADAPTER_STATES:
                return answer
            # An adapter that breaks its contract has told us nothing; what it answered may hold what no log may.
            raise TypeError(f"The adapter of {dispatch.provider} answered with no outcome: {_kind(answer)}.")
        return DispatchOutcome(state=DispatchState.UNKNOWN, reason="timeout")

    async def _last_check(self, request: ProviderRequest, place: _Permit) -> str | None:
        dispatch = request.dispatch
        await self._sleep_until_slot(dispatch)
        if not await self._acquire_request_permit(request, place):
            return "too_late"
        async with AsyncExitStack() as turns:
            for key in request.paces:
                # One request of a pace at a time: the others would ask for a turn that is taken before theirs.
                pace = self._pace(key)
                await turns.enter_async_context(pace.turn)
                await self._wait_for_turn(key, pace)
            # After the waiting, so that a stop that came meanwhile is heard.
            obstacle = await self._checks.submit((dispatch, request.stops))
            if obstacle is not None:
                return obstacle
            now = self._clock.now()
            if now < dispatch.slot_at:
                # The clock was set back since the commit, which found hours open that may not have begun.
                return "clock_set_back"
            if now > dispatch.valid_until:
                return "too_late"
            if self._worker.lease_seconds_left <= 0:
                return "lease_over"
            self._record_start(request)
        return None

    async def _acquire_request_permit(self, request: ProviderRequest, place: _Permit) -> bool:
        """Change to a place among the requests; return False when none became free in time."""
        if not self._requests.acquire_nowait(request.account):
            left = (request.dispatch.valid_until - self._clock.now()).total_seconds()
            taken = 0
            with anyio.move_on_after(max(left, 0.0)):
                taken = await self._requests.acquire(request.account, _NeverStopping())
            if not taken:
                return False
        place.move_to(self._requests)
        return True

    async def _withdrawal_reasons(self, asked: Sequence[tuple[Dispatch, int | None]]) -> Sequence[str | None]:
        """Return what stands against each of some requests, by what has committed until now."""
        return await self._storage.read(lambda tx: intents.withdrawal_reasons(tx, asked, self._clock.now()))

    def _pace(self, key: str) -> _Pace:
        if key not in self._paces:
            if len(self._paces) >= _MAX_PACES:
                # Turns that have passed hold nobody up any more.
                now = self._clock.monotonic()
                self._paces = {name: pace for name, pace in self._paces.items() if pace.next_start > now or pace.used}
            self._paces[key] = _Pace()
        return self._paces[key]

    async def _wait_for_turn(self, key: str, pace: _Pace) -> None:
        turn = max(pace.next_start, self._worker.earliest_start_after_takeover(key))
        while (left := turn - self._clock.monotonic()) > 0:  # noqa: ASYNC110
            await anyio.sleep(left)

    def _record_start(self, request: ProviderRequest) -> None:
        # Slots are spaced in the ledger; starts are spaced here, so that one that begins late in its slot and
        # the next that begins on time do not come closer than the pace allows.
        now = self._clock.monotonic()
        for key, spacing in request.paces.items():
            self._paces[key].next_start = now + spacing.total_seconds() + _CLOCK_ROUNDING_SECONDS

    async def _sleep_until_slot(self, dispatch: Dispatch) -> None:
        # A slot lies seconds ahead of its commit: on a clock that says more, or is set back while this sleeps, it would
        # be slept for until the old time comes again, in a place that others wait for.
        longest = (dispatch.slot_at - dispatch.created_at).total_seconds()
        ends = self._clock.monotonic() + longest
        while (wait := (dispatch.slot_at - self._clock.now()).total_seconds()) > 0:
            left = ends - self._clock.monotonic()
            if left <= 0:
                return
            await anyio.sleep(min(wait, left))

    async def _record(self, dispatch: Dispatch, outcome: DispatchOutcome) -> None:
        deadline = anyio.current_time() + _FINAL_RECORD_SECONDS if self._closing else float("inf")
        with anyio.CancelScope(shield=True, deadline=deadline) as scope:
            self._recording.add(scope)
            try:
                await self._record_with_retry(dispatch, outcome)
            finally:
                self._recording.discard(scope)
        if scope.cancelled_caught:
            self._worker.log_throttle.problem(
                ("outcome_not_recorded",),
                "too_late",
                "An outcome could not be recorded in time; the dispatch will be unknown.",
                level=logging.ERROR,
                action="outcome_not_recorded",
                error_type=TimeoutError.__name__,
                dispatch_id=dispatch.id,
            )

    async def _record_with_retry(self, dispatch: Dispatch, outcome: DispatchOutcome) -> None:
        while True:
            try:
                await self._worker.settle(dispatch, outcome)
            except Exception as error:
                self._worker.log_throttle.failure(
                    "outcome_not_recorded",
                    error,
                    "An outcome could not be recorded%s.",
                    "; the dispatch will be unknown" if self._closing else " yet; trying again",
                    dispatch_id=dispatch.id,
                )
                if self._closing:
                    return
                await anyio.sleep(_RECORD_RETRY_SECONDS)
            else:
                return


class _Pace:
    """The turns of one pace.

    Attributes:
        next_start: No request starts sooner. By the monotonic clock: a wall clock that is set back must hold nobody up,
            and one that is set forward let nobody go too soon.
        turn: Held by the one request that is about to start.
    """

    def __init__(self) -> None:
        self.next_start = _LONG_AGO
        self.turn = anyio.Lock(fast_acquire=True)

    @property
    def used(self) -> bool:
        """Whether a request has the turn or waits for it."""
        return self.turn.locked()


class _Permit:
    """The place that an intent has: among those that wait, then among the requests."""

    def __init__(self, places: FairLimiter, account: str) -> None:
        self._places: FairLimiter | None = places
        self._account = account

    def move_to(self, places: FairLimiter | None) -> None:
        """Give the place back, and have another one that was taken; None for none."""
        if self._places is not None:
            self._places.release(self._account, 1)
        self._places = places


class _NeverStopping:
    """Waits for as long as it takes: whoever drains the outbox cancels it."""

    @property
    def stopping(self) -> bool:
        return False

    async def wait(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def _kind(answer: object) -> str:
    return str(answer.state) if isinstance(answer, DispatchOutcome) else type(answer).__name__
