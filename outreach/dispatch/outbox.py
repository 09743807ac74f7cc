"""Requests to providers, by channel: bounded, checked immediately before they start, always recorded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextvars import Context, copy_context
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

import anyio
from anyio.abc import TaskStatus

from outreach.core.clock import Clock, IdSource
from outreach.core.config import EngineConfig
from outreach.core.logged_errors import masked
from outreach.dispatch.adapter_answers import log_provider_outcome, recordable
from outreach.dispatch.batcher import Batcher
from outreach.dispatch.request_tasks import CANCEL_AGAIN_SECONDS, SlotQueue, StartedRequest, WaitingRequest
from outreach.dispatch.worker import Worker
from outreach.errors import ConfigError
from outreach.ledger.sending import intents
from outreach.ledger.sending.intents import CommittedIntent
from outreach.models.campaign import Campaign, Recipient
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.plans import Advance, Ending, Intent, Postponement, WavePlan
from outreach.models.states import DispatchState
from outreach.protocols.carrier import OutboundMessage
from outreach.protocols.dispatcher import WakeSignal
from outreach.protocols.storage import OneQuery, Storage
from outreach.protocols.voice import CallRequest
from outreach.providers.http.request_gate import FairLimiter, call_plugin, request_gate
from outreach.providers.pool import ProviderPool, ProviderRequest, ResolveProvider, SendRequest
from outreach.rules.deciding import LocalRules, Reach, decide_call, decide_message
from outreach.rules.deciding import spacing as spacing_of_rate
from outreach.rules.rendering import values_for

Decision = Intent | Ending | Advance | Postponement
"""The decision about one due recipient."""

_MAX_WAVE: Final = 50


class CampaignChannel(Protocol):
    """One channel's part in running a campaign."""

    def spacing(self, campaign: Campaign) -> timedelta:
        """Return the time between two starts; zero if the pace is limited otherwise."""
        ...

    def max_wave_size(self, campaign: Campaign) -> int:
        """Return the maximum number of intents in a wave."""
        ...

    def has_capacity(self, plan: WavePlan) -> bool:
        """Return whether another request may be in flight; a freed place wakes the campaign."""
        ...

    def provider_name(self, plan: WavePlan) -> str:
        """Return the campaign's carrier or voice provider."""
        ...

    def decide(self, plan: WavePlan, local: LocalRules, recipient: Recipient, now: datetime) -> Decision:
        """Decide about one due recipient, by pure rules; `local` are those of the plan's workspace."""
        ...

    def build_request(
        self, plan: WavePlan, intent: Intent, dispatch: Dispatch, *, not_after: datetime | None
    ) -> ResolveProvider:
        """Return the function that finds the provider and makes the request of a committed intent.

        `not_after` goes to the provider with the request: the contact must not be reached later.
        """
        ...


class SmsChannel:
    """The SMS part of running campaigns; see `CampaignChannel`."""

    def __init__(self, *, ids: IdSource, config: EngineConfig, provider_pool: ProviderPool) -> None:
        self._ids = ids
        self._config = config
        self._provider_pool = provider_pool

    def spacing(self, campaign: Campaign) -> timedelta:
        """Return the time between two messages."""
        return spacing_of_rate(campaign.rate_per_minute or 1)

    def max_wave_size(self, campaign: Campaign) -> int:
        """Return how many slots lie within the look-ahead."""
        ahead = self._config.look_ahead_seconds / self.spacing(campaign).total_seconds()
        return min(_MAX_WAVE, 1 + int(ahead))

    def has_capacity(self, plan: WavePlan) -> bool:
        """Return True: messages take slots, not permits."""
        return True

    def provider_name(self, plan: WavePlan) -> str:
        """Return the campaign's carrier."""
        return plan.campaign.carrier or ""

    def decide(self, plan: WavePlan, local: LocalRules, recipient: Recipient, now: datetime) -> Decision:
        """Render a message and count its segments."""
        decided = decide_message(plan, local, recipient, now)
        if not isinstance(decided, Reach):
            return decided
        return Intent(
            dispatch_id=self._ids(),
            recipient=recipient,
            provider=self.provider_name(plan),
            from_number=plan.campaign.from_number,
            to=recipient.phone or "",
            closing=decided.closing,
            body=decided.body,
            segments=decided.segments,
        )

    def build_request(
        self, plan: WavePlan, intent: Intent, dispatch: Dispatch, *, not_after: datetime | None
    ) -> ResolveProvider:
        """Return the function that finds the carrier of a message."""
        message = outbound_message(dispatch, not_after=not_after)

        async def find_carrier() -> SendRequest:
            carrier = await self._provider_pool.carrier(plan.workspace, dispatch.provider)
            return lambda: carrier.send(message)

        return find_carrier


def outbound_message(dispatch: Dispatch, *, not_after: datetime | None) -> OutboundMessage:
    """Return the request to the carrier for a committed message."""
    return OutboundMessage(
        dispatch_id=dispatch.id,
        workspace_id=dispatch.workspace_id,
        from_number=dispatch.from_number,
        to=dispatch.to,
        body=dispatch.body or "",
        not_after=not_after,
    )


class CallChannel:
    """The calling part of running campaigns; see `CampaignChannel`."""

    def __init__(self, *, ids: IdSource, provider_pool: ProviderPool) -> None:
        self._ids = ids
        self._provider_pool = provider_pool

    def spacing(self, campaign: Campaign) -> timedelta:
        """Return zero: the limit in flight is the pace."""
        return timedelta()

    def max_wave_size(self, campaign: Campaign) -> int:
        """Return how many calls may be in flight."""
        return campaign.batch_concurrency

    def has_capacity(self, plan: WavePlan) -> bool:
        """Return whether another call may be placed."""
        return plan.in_flight < plan.campaign.batch_concurrency

    def provider_name(self, plan: WavePlan) -> str:
        """Return the voice provider of the agent."""
        return plan.agent.provider if plan.agent is not None else ""

    def decide(self, plan: WavePlan, local: LocalRules, recipient: Recipient, now: datetime) -> Decision:
        """Decide about a call, with the recipient's fields and variables for the agent."""
        decided = decide_call(plan, local, recipient, now)
        if not isinstance(decided, Reach):
            return decided
        return Intent(
            dispatch_id=self._ids(),
            call_id=self._ids(),
            recipient=recipient,
            provider=self.provider_name(plan),
            from_number=plan.agent.from_number if plan.agent is not None else None,
            to=recipient.phone or "",
            closing=decided.closing,
            variables=values_for(plan.campaign, plan.agent, recipient),
        )

    def build_request(
        self, plan: WavePlan, intent: Intent, dispatch: Dispatch, *, not_after: datetime | None
    ) -> ResolveProvider:
        """Return the function that finds the voice provider of a call."""
        campaign, agent = plan.campaign, plan.agent
        request = CallRequest(
            dispatch_id=dispatch.id,
            workspace_id=dispatch.workspace_id,
            provider_agent_id=agent.provider_agent_id if agent else None,
            from_number=dispatch.from_number,
            to=dispatch.to,
            variables=intent.variables,
            provider_trunk=(plan.trunk.provider_trunk_id or plan.trunk.address) if plan.trunk else None,
            ivr_enabled=bool(campaign.ivr_enabled),
            call_screen_enabled=bool(campaign.call_screen_enabled),
            screen_identity=plan.workspace.name,
            screen_purpose=campaign.description or campaign.name,
            voicemail=agent.voicemail if agent else None,
            voicemail_message=agent.voicemail_message if agent else None,
            max_seconds=agent.max_call_seconds if agent else None,
            not_after=not_after,
        )

        async def resolve_provider() -> SendRequest:
            provider = await self._provider_pool.voice(plan.workspace, dispatch.provider)
            return lambda: provider.place_call(request)

        return resolve_provider


_RECORD_RETRY_SECONDS: Final = 0.5

_STOPPED: Final = DispatchOutcome(state=DispatchState.WITHDRAWN, reason="stopped")
_NOT_ASKED: Final = DispatchOutcome(state=DispatchState.NOT_SENT, reason="not_asked")
_INTERRUPTED: Final = DispatchOutcome(state=DispatchState.UNKNOWN, reason="interrupted")
_TIMEOUT: Final = DispatchOutcome(state=DispatchState.UNKNOWN, reason="timeout")

_ANY_TIME: Final = float("-inf")

_CLOCK_ROUNDING_SECONDS: Final = 0.000_002
"""The rounding difference between two clocks, each in whole microseconds."""

_FRESH_SECONDS: Final = 0.1
"""For how long the last check of the stops holds: after a longer wait for a connection they are checked again."""

_CHECKING_PORTION: Final = 0.05
"""The portion of a request's time that a second check of the stops may take, so that its result is known in time."""

_MAX_CHECKED: Final = 500
"""Requests that are checked together, immediately before they start."""

_MAX_PACES: Final = 10_000
"""Paces remembered before expired ones are dropped."""


class Outbox:
    """Holds the intents that wait for their slot, and the requests in flight.

    Both are bounded, and their sum bounds the unknown dispatches after a crash. A permit is reserved before an intent
    is committed, while its account may have another request in flight. At its slot the intent's permit is exchanged for
    a request's, which is released when the outcome is recorded. No account gets all permits.
    """

    def __init__(self, *, storage: Storage, clock: Clock, config: EngineConfig, worker: Worker) -> None:
        self._storage = storage
        self._clock = clock
        self._config = config
        self._worker = worker
        self._requests = worker.permits.requests
        self._places = worker.permits.intents
        self._checks = Batcher(self._withdrawal_reasons, max_size=lambda: _MAX_CHECKED)
        self._in_flight = 0
        self._queue = SlotQueue(self._start)
        self._started: dict[StartedRequest, None] = {}
        self._end: asyncio.Future[None] | None = None
        self._failure: BaseException | None = None
        self._idle = anyio.Event()
        self._closing = False
        self._stopping = False
        self._paces: dict[str, _Pace] = {}

    async def serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run requests until cancelled; those in flight then are recorded as unknown.

        Raises:
            BaseException: That of a request which none but a mistake of the engine's raises.
        """
        self._closing = self._stopping = False
        self._failure = None
        self._end = asyncio.get_running_loop().create_future()
        task_status.started()
        try:
            await self._end
        finally:
            # Also without a drain, outcomes that cannot be recorded must not delay the end.
            self._close()
            with anyio.CancelScope(shield=True):
                await self._stop()
            self._end = None
        if self._failure is not None:
            raise self._failure

    async def reserve(self, account: str, wake_signal: WakeSignal, *, wanted: int = 1) -> int:
        """Wait for intent permits; return how many were granted, 0 if the slice must stop."""
        return await self._places.acquire(account, wake_signal, wanted=wanted)

    def release(self, account: str, places: int) -> None:
        """Release permits for which no intent was committed."""
        self._places.release(account, places)

    def send(self, request: ProviderRequest) -> None:
        """Start a request at its slot with a reserved permit, which is released when the outcome is recorded."""
        if self._end is None:
            raise RuntimeError("The outbox is not running.")
        self._in_flight += 1
        if request.driven is not None:
            self._worker.claims.enter(request.driven)
        for key, spacing in request.paces.items():
            self._pace(key).queued += spacing
        dispatch, context = request.dispatch, copy_context()
        context.run(self._worker.instrumentation.intent_committed, request.observed)
        # Bounded, because after a clock step backwards the slot would lie far ahead while its permit blocks others.
        longest = (dispatch.slot_at - dispatch.created_at).total_seconds()
        wait = min((dispatch.slot_at - self._clock.now()).total_seconds(), longest)
        if self._stopping:
            wait = 0.0
        self._queue.put(WaitingRequest(request, self._clock.monotonic() + longest, context), wait)

    def earliest_start(self, pace_key: str) -> datetime | None:
        """Return when the next request of a pace may start; None for any time."""
        pace = self._paces.get(pace_key)
        turn = max(
            pace.next_start if pace is not None else _ANY_TIME, self._worker.earliest_start_after_takeover(pace_key)
        )
        left = turn - self._clock.monotonic()
        return self._clock.now() + timedelta(seconds=left) if left > _ANY_TIME else None

    def earliest_slot(self, pace_key: str) -> datetime | None:
        """Return the earliest slot of a further intent, after all that wait for their turn; None for any time.

        Each start is a little later than its turn. If slots did not follow, they would be missed by ever more.
        """
        start, pace = self.earliest_start(pace_key), self._paces.get(pace_key)
        return start if start is None or pace is None else start + pace.queued

    async def drain(self, *, grace_seconds: float) -> None:
        """Wait until nothing is in flight, at most for the grace period; then cancel the rest."""
        with anyio.move_on_after(grace_seconds):
            while self._in_flight:
                self._idle = anyio.Event()
                await self._idle.wait()
        self._close()
        self._request_end()

    def _request_end(self) -> None:
        if self._end is not None and not self._end.done():
            self._end.set_result(None)

    def _close(self) -> None:
        """Limit all present and later recording to a moment, because the database may be blocked."""
        self._closing = True
        for one in self._started:
            if one.records:
                one.give_up_later()

    async def _stop(self) -> None:
        """Withdraw the requests that wait, cancel the others, and wait until all outcomes are recorded or kept."""
        self._stopping = True
        self._queue.start_all()
        while self._started:
            for one in list(self._started):
                one.cancel()
            await asyncio.wait([one.task for one in self._started], timeout=CANCEL_AGAIN_SECONDS)

    def _start(self, waiting: WaitingRequest) -> None:
        started = StartedRequest()
        self._run(started, self._execute(waiting, started), waiting.context)

    def _run(self, started: StartedRequest, work: Coroutine[Any, Any, None], context: Context) -> None:
        started.task = asyncio.get_running_loop().create_task(work, name="request", context=context)
        self._started[started] = None
        started.task.add_done_callback(lambda task: self._ended(started, task))

    def _ended(self, started: StartedRequest, task: asyncio.Task[None]) -> None:
        self._started.pop(started, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failure = self._failure or error
            self._request_end()

    def _leave(self, waiting: WaitingRequest, started: StartedRequest, permit: _Permit, begun_at: float) -> None:
        """Record the outcome of a request whose adapter does not stop, and leave its task behind."""
        dispatch = waiting.request.observed
        self._worker.log_throttle.problem(
            ("adapter", dispatch.provider),
            "does_not_stop",
            "The adapter of %s ignores that its request is cancelled; its task is left behind. Correct its `except:`.",
            dispatch.provider,
            level=logging.ERROR,
            action="adapter_does_not_stop",
            provider=dispatch.provider,
            dispatch_id=dispatch.id,
        )
        # The end of the loop would wait for it.
        asyncio._unregister_task(started.task)
        del self._started[started]
        last = StartedRequest()
        outcome = _INTERRUPTED if self._stopping else _TIMEOUT
        self._run(last, self._finish(waiting.request, outcome, None, last, permit, begun_at), waiting.context)

    async def _execute(self, waiting: WaitingRequest, started: StartedRequest) -> None:
        request = waiting.request
        # Until the request begins nothing can have reached the provider; from then on it may have.
        outcome, problem = _STOPPED, None
        permit, instrumentation, begun_at = _Permit(self._places, request.account), self._worker.instrumentation, None
        started.begin()
        try:
            try:
                if self._stopping:
                    raise asyncio.CancelledError
                send = await self._find_provider(request)
                obstacle = (
                    "lease_over" if send is None else await self._last_check(request, permit, waiting.waits_until)
                )
            finally:
                # It has started, or never will.
                if request.driven is not None:
                    self._worker.claims.leave(request.driven)
                for key, spacing in request.paces.items():
                    self._pace(key).queued -= spacing
            if send is None or obstacle is not None:
                outcome = DispatchOutcome(state=DispatchState.WITHDRAWN, reason=obstacle)
            else:
                outcome = _INTERRUPTED
                late = self._clock.now() - request.dispatch.slot_at
                instrumentation.request_started(request.observed, late_seconds=max(late.total_seconds(), 0.0))
                begun_at = self._clock.monotonic()
                started.leave = partial(self._leave, waiting, started, permit, begun_at)
                outcome = await self._call_provider(request, send, started)
        except ConfigError as error:
            # No request was made; the account's failure pauses its campaigns.
            outcome = DispatchOutcome(state=DispatchState.REFUSED, reason="provider_auth", error_message=error.message)
            problem = f"A request could not be made: {masked(error.message)}"
        except Exception as error:
            if outcome.state is DispatchState.UNKNOWN:
                # An adapter's error counts as the provider's.
                outcome = DispatchOutcome(state=DispatchState.UNKNOWN, reason="adapter_error")
            else:
                # No request was made; the failure may last, so that retries back off.
                outcome = _NOT_ASKED
            self._worker.log_throttle.failure(
                "dispatch_failed",
                error,
                "A request to a provider ended in an unexpected error.",
                dispatch_id=request.dispatch.id,
            )
        finally:
            # Cancelled or not: a committed dispatch's outcome is recorded.
            if not started.is_left:
                await self._finish(request, outcome, problem, started, permit, begun_at)

    async def _find_provider(self, request: ProviderRequest) -> SendRequest | None:
        """Return what makes a request; None if the keys of this process open no account.

        Raises:
            ConfigError: This account cannot be used.
        """
        try:
            return await request.resolve_provider()
        except ConfigError:
            if await self._worker.lacks_key():
                return None
            raise

    async def _finish(
        self,
        request: ProviderRequest,
        outcome: DispatchOutcome,
        problem: str | None,
        started: StartedRequest,
        permit: _Permit,
        begun_at: float | None,
    ) -> None:
        seconds = None if begun_at is None else self._clock.monotonic() - begun_at
        self._worker.instrumentation.request_ended(request.observed, outcome, seconds=seconds)
        outcome = await self._record(request.dispatch, outcome, started)
        log_provider_outcome(self._worker.log_throttle, request.dispatch, outcome, problem)
        permit.move_to(None)
        self._places.wake_waiters()
        self._in_flight -= 1
        if not self._in_flight:
            self._idle.set()

    async def _call_provider(
        self, request: ProviderRequest, send: SendRequest, started: StartedRequest
    ) -> DispatchOutcome:
        dispatch, checked, obstacle, refused = request.dispatch, self._clock.monotonic(), None, False

        async def may_start() -> bool:
            nonlocal refused
            starts = await may_start_now()
            refused = not starts
            return starts

        async def may_start_now() -> bool:
            nonlocal checked, obstacle
            if started.is_left:
                return False
            if self._clock.monotonic() - checked > _FRESH_SECONDS:
                try:
                    with anyio.fail_after(self._config.provider_timeout_seconds * _CHECKING_PORTION):
                        obstacle = await self._checks.submit(CommittedIntent(dispatch, request.stops, request.revision))
                except Exception as error:
                    self._worker.log_throttle.failure(
                        "dispatch_failed",
                        error,
                        "The stops could not be looked at before a request: it was not sent.",
                        dispatch_id=dispatch.id,
                    )
                    return False
                checked = self._clock.monotonic()
            return obstacle is None and self._in_time(dispatch)

        with started.time_limit(self._config.provider_timeout_seconds), request_gate(may_start):
            answer: object = await call_plugin(send())
            outcome = recordable(answer)
            if outcome is None:
                # Its answer is worthless, and may contain what no log may.
                raise TypeError(f"The adapter of {dispatch.provider} did not return an outcome: {_kind(answer)}.")
            if refused and outcome.state is DispatchState.NOT_SENT:
                # By this process, whatever the adapter takes it for: the provider could be reached.
                if obstacle is None:
                    return _NOT_ASKED
                return DispatchOutcome(state=DispatchState.WITHDRAWN, reason=obstacle)
            return outcome
        return _TIMEOUT

    def _in_time(self, dispatch: Dispatch) -> bool:
        """Return whether a request whose connection took a while is still in time."""
        # Before its slot the clock was set back meanwhile, and the hours of the commit may not be open yet.
        return dispatch.slot_at <= self._clock.now() <= dispatch.valid_until and self._worker.lease_seconds_left > 0

    async def _last_check(self, request: ProviderRequest, permit: _Permit, waits_until: float) -> str | None:
        dispatch = request.dispatch
        await self._sleep_until_slot(dispatch, waits_until)
        if not await self._acquire_request_permit(request, permit):
            return "too_late"
        turns: list[asyncio.Lock] = []
        try:
            for key in request.paces:
                # One request of a pace at a time, because the turn is taken only at the start.
                pace = self._pace(key)
                await pace.turn.acquire()
                turns.append(pace.turn)
                await self._wait_for_turn(key, pace)
            # After the wait, so that stops during it count.
            obstacle = await self._checks.submit(CommittedIntent(dispatch, request.stops, request.revision))
            if obstacle is not None:
                return obstacle
            now = self._clock.now()
            if now < dispatch.slot_at:
                # Since the clock was set back, the hours of the commit may not be open yet.
                return "clock_set_back"
            if now > dispatch.valid_until:
                return "too_late"
            if self._worker.lease_seconds_left <= 0:
                return "lease_over"
            self._record_start(request)
        finally:
            for turn in turns:
                turn.release()
        return None

    async def _acquire_request_permit(self, request: ProviderRequest, permit: _Permit) -> bool:
        """Exchange an intent's permit for a request's; return False if none is free in time."""
        if not self._requests.acquire_nowait(request.account):
            left = (request.dispatch.valid_until - self._clock.now()).total_seconds()
            if not await self._requests.acquire_within(request.account, max(left, 0.0)):
                return False
        permit.move_to(self._requests)
        return True

    async def _withdrawal_reasons(self, committed: Sequence[CommittedIntent]) -> Sequence[str | None]:
        """Return why each request must not start, by everything committed until now."""
        if not await self._storage.read(OneQuery(lambda tx: intents.stopped_since(tx, committed))):
            return [None] * len(committed)
        return await self._storage.read(lambda tx: intents.withdrawal_reasons(tx, committed, self._clock.now()))

    def _pace(self, key: str) -> _Pace:
        if key not in self._paces:
            if len(self._paces) >= _MAX_PACES:
                now = self._clock.monotonic()
                self._paces = {name: pace for name, pace in self._paces.items() if pace.next_start > now or pace.used}
            self._paces[key] = _Pace()
        return self._paces[key]

    async def _wait_for_turn(self, key: str, pace: _Pace) -> None:
        turn = max(pace.next_start, self._worker.earliest_start_after_takeover(key))
        while (left := turn - self._clock.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)

    def _record_start(self, request: ProviderRequest) -> None:
        # Slots are spaced in the ledger; spacing the starts too keeps a late one and the next apart.
        now = self._clock.monotonic()
        for key, spacing in request.paces.items():
            self._paces[key].next_start = now + spacing.total_seconds() + _CLOCK_ROUNDING_SECONDS

    async def _sleep_until_slot(self, dispatch: Dispatch, waits_until: float) -> None:
        # Its time in the queue is over; the clock may have been set back meanwhile.
        while (wait := (dispatch.slot_at - self._clock.now()).total_seconds()) > 0:
            left = waits_until - self._clock.monotonic()
            if left <= 0:
                return
            await asyncio.sleep(min(wait, left))

    async def _record(self, dispatch: Dispatch, outcome: DispatchOutcome, started: StartedRequest) -> DispatchOutcome:
        """Record an outcome, or keep it for later; return what was recorded."""
        started.records = True
        if self._closing:
            started.give_up_later()
        try:
            return await self._record_with_retry(dispatch, outcome)
        except asyncio.CancelledError:
            self._worker.keep(dispatch, outcome)
            self._worker.log_throttle.problem(
                ("outcome_not_recorded",),
                "too_late",
                "An outcome could not be recorded in time; the dispatch is unknown until this process can record it.",
                level=logging.ERROR,
                action="outcome_not_recorded",
                error_type=TimeoutError.__name__,
                dispatch_id=dispatch.id,
            )
            return outcome
        finally:
            started.recorded()

    async def _record_with_retry(self, dispatch: Dispatch, outcome: DispatchOutcome) -> DispatchOutcome:
        while True:
            try:
                return await self._worker.settle(dispatch, outcome)
            except Exception as error:
                self._worker.log_throttle.failure(
                    "outcome_not_recorded",
                    error,
                    "An outcome could not be recorded yet; trying again.",
                    dispatch_id=dispatch.id,
                )
                await asyncio.sleep(_RECORD_RETRY_SECONDS)


class _Pace:
    """The turns of one pace.

    Attributes:
        next_start: The earliest next start, on the monotonic clock so that clock steps do not matter.
        turn: Held by the request that is about to start.
        queued: The spacings of the requests that have been sent and have not started, together.
    """

    def __init__(self) -> None:
        self.next_start = _ANY_TIME
        self.turn = asyncio.Lock()
        self.queued = timedelta()

    @property
    def used(self) -> bool:
        """Whether a request has the turn or waits for it."""
        return self.turn.locked() or self.queued > timedelta()


class _Permit:
    """A dispatch's permit: as an intent first, then as a request."""

    def __init__(self, places: FairLimiter, account: str) -> None:
        self._places: FairLimiter | None = places
        self._account = account

    def move_to(self, places: FairLimiter | None) -> None:
        """Release the permit and hold another one that was acquired, or none."""
        if self._places is not None:
            self._places.release(self._account, 1)
        self._places = places


def _kind(answer: object) -> str:
    return str(answer.state) if isinstance(answer, DispatchOutcome) else type(answer).__name__
