"""Running single messages and calls."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Final

import anyio

from outreach.core.clock import Clock, IdSource
from outreach.core.config import EngineConfig
from outreach.dispatch.adapter_answers import recordable_call_report
from outreach.dispatch.outbox import Outbox, outbound_message
from outreach.dispatch.worker import Worker
from outreach.ledger.common import workspace_of
from outreach.ledger.leases.leases import NotClaimed, Wanted
from outreach.ledger.sending import singles
from outreach.ledger.sending.intents import pace_of_number
from outreach.ledger.sending.singles import IntentTerms
from outreach.ledger.settling import call_outcomes, ledger
from outreach.models.call import Call
from outreach.models.dispatch import Dispatch
from outreach.models.message import Message
from outreach.models.plans import SenderPace
from outreach.models.reports import CallReport
from outreach.models.resources import Agent
from outreach.models.states import ENDED_CALL_STATUSES, CallStatus, DispatchState, MessageStatus
from outreach.models.work import WorkUnit
from outreach.models.workspace import Workspace
from outreach.protocols.dispatcher import WakeSignal
from outreach.protocols.storage import Storage, Within
from outreach.protocols.voice import CallRequest
from outreach.providers.http.request_gate import call_plugin
from outreach.providers.pool import ProviderPool, ProviderRequest, ResolveProvider, SendRequest, account_key
from outreach.storage.unit_of_work import Transaction

_MAX_POLLS: Final = 10_000
"""Turns remembered before past ones are dropped."""

_LONGEST_CALL: Final = timedelta(hours=12, minutes=5)
"""The longest call that an agent may allow, and the time until its end is reported."""


class SinglesRunner:
    """Runs single messages and calls."""

    def __init__(
        self,
        *,
        storage: Storage,
        clock: Clock,
        ids: IdSource,
        config: EngineConfig,
        provider_pool: ProviderPool,
        worker: Worker,
        outbox: Outbox,
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._ids = ids
        self._config = config
        self._provider_pool = provider_pool
        self._worker = worker
        self._outbox = outbox
        self._polls: dict[str, tuple[CallStatus, float]] = {}

    async def run_message(self, unit: WorkUnit, *, epoch: int, wake_signal: WakeSignal) -> datetime | None:
        """Send a queued message once; return when it is due next, None until it changes."""
        message = await self._storage.read(lambda tx: tx.messages.get(unit.workspace_id, unit.id))
        if message is None or message.status is not MessageStatus.QUEUED:
            # Its outcome schedules it again.
            return None
        sender = message.from_number
        pace = await self._storage.read(lambda tx: pace_of_number(tx, unit.workspace_id, sender, self._clock.now()))
        wanted = Wanted(workspace_id=unit.workspace_id, campaign=None, senders=[pace])
        with self._worker.claims.slice(unit) as slice_claims:
            if not await slice_claims.take(wanted):
                # The feed returns it again once no worker drives it.
                return None
            return await self._dispatch(unit, message, wanted, epoch, wake_signal)

    async def run_call(self, unit: WorkUnit, *, epoch: int, wake_signal: WakeSignal) -> datetime | None:
        """Place a queued call once, or poll a placed one; return when it is due next."""
        call = await self._storage.read(lambda tx: tx.calls.get(unit.workspace_id, unit.id))
        if call is None:
            return None
        wanted = Wanted(workspace_id=unit.workspace_id, campaign=None)
        with self._worker.claims.slice(unit) as slice_claims:
            if not await slice_claims.take(wanted):
                return None
            if call.status is not CallStatus.QUEUED:
                return await self._poll(call)
            return await self._dispatch(unit, call, wanted, epoch, wake_signal)

    async def _dispatch(
        self, unit: WorkUnit, single: Message | Call, wanted: Wanted, epoch: int, wake_signal: WakeSignal
    ) -> datetime | None:
        """Commit and send a message or call that this worker drives; return when it is due next."""
        account = account_key(unit.workspace_id, single.carrier if isinstance(single, Message) else single.provider)
        pace = next(iter(wanted.senders), None)
        if not await self._outbox.reserve(account, wake_signal):
            return self._clock.now()

        def operation(tx: Transaction) -> tuple[Dispatch, ResolveProvider, str | None] | None:
            dispatch = singles.commit_single(tx, unit, self._terms(epoch, pace), clock_now=self._clock.now)
            if dispatch is None:
                return None
            workspace = workspace_of(tx, single.workspace_id)
            sandbox_provider = self._provider_pool.sandbox_provider(workspace, dispatch)
            return dispatch, self._provider_of(tx, workspace, single, dispatch), sandbox_provider

        try:
            # Nothing may fail between the commit and the request.
            committed = await self._worker.commit(Within([unit.workspace_id], operation))
        except NotClaimed:
            self._outbox.release(account, 1)
            self._worker.claims.doubt()
            return self._clock.now() + timedelta(seconds=self._config.change_poll_seconds)
        except BaseException:
            self._outbox.release(account, 1)
            raise
        if committed is None:
            self._outbox.release(account, 1)
            return await self._due(unit)
        dispatch, resolve_provider, sandbox_provider = committed
        self._outbox.send(
            ProviderRequest(
                dispatch=dispatch,
                resolve_provider=resolve_provider,
                account=account,
                paces={pace.key: pace.spacing} if pace is not None else {},
                driven=(unit.workspace_id, wanted.subjects[0]),
                sandbox_provider=sandbox_provider,
            )
        )
        return None

    async def _poll(self, call: Call) -> datetime | None:
        """Poll a placed call if its turn has come or it has changed; return when the next turn comes."""
        status, turn = self._polls.get(call.id, (None, 0.0))
        left = turn - self._clock.monotonic()
        if status is call.status and left > 0:
            # Among several workers all that is due is looked at again at each heartbeat.
            return self._clock.now() + timedelta(seconds=left)
        due = await (self._poll_open_call(call) if call.is_open else self._poll_analysis(call))
        self._polls.pop(call.id, None)
        if due is not None:
            now = self._clock.monotonic()
            if len(self._polls) >= _MAX_POLLS:
                self._polls = {one: known for one, known in self._polls.items() if known[1] > now}
            self._polls[call.id] = (call.status, now + (due - self._clock.now()).total_seconds())
        return due

    async def _poll_open_call(self, call: Call) -> datetime | None:
        """Poll a placed call, whose events may not arrive."""
        if call.status in {CallStatus.DISPATCHING, CallStatus.UNKNOWN}:
            return None
        accepted = await self._accepted(call)
        if accepted is None:
            return None
        report = await self._fetch_call_status(call, accepted)
        if report is not None:
            await self._worker.report(report)
        silence = timedelta(seconds=self._config.call_timeout_seconds)
        if report is not None and report.status not in ENDED_CALL_STATUSES:
            # It has just said that the call goes on, and a provider's own setting may allow that for longer.
            silence = max(silence, _LONGEST_CALL)
        now_known, is_due = await self._storage.read(
            lambda tx: (
                known := tx.calls.get(call.workspace_id, call.id),
                known is not None and call_outcomes.is_silence_due(tx, known, silence, self._clock.now()),
            )
        )
        if now_known is None or not now_known.is_open:
            return None

        def operation(tx: Transaction) -> bool:
            # The time of the commit, in case of a clock step.
            return ledger.end_silent_call(tx, accepted, silence=silence, now=self._clock.now())

        if is_due and await self._storage.write(Within([call.workspace_id], operation)):
            return None
        return self._clock.now() + timedelta(seconds=self._config.call_poll_seconds)

    async def _poll_analysis(self, call: Call) -> datetime | None:
        """Poll the analysis of an ended call without one.

        The event may be lost or too large, and only it says that the contact wants no more calls.
        """
        accepted = await self._accepted(call)
        # When the end was recorded: the provider's own clock may be ahead of ours, or behind it.
        ended_at = await self._due(WorkUnit("call", call.workspace_id, call.id))
        if accepted is None or ended_at is None or call.status is not CallStatus.COMPLETED:
            return None
        window = timedelta(seconds=self._config.call_analysis_wait_seconds)
        since = self._clock.now() - ended_at
        if timedelta() <= since < window / 10:
            return ended_at + window / 10
        report = await self._fetch_call_status(call, accepted)
        if report is not None:
            await self._worker.report(report)
        # After a clock step the call's age is unknown: poll once.
        if (report is None or report.lacks_analysis) and timedelta() <= since <= window / 2:
            return self._clock.now() + since
        await self._storage.write(Within([call.workspace_id], lambda tx: call_outcomes.stop_polling(tx, call)))
        return None

    async def _accepted(self, call: Call) -> Dispatch | None:
        """Return the latest accepted dispatch of a call."""
        dispatches = await self._storage.read(lambda tx: tx.dispatches.of_call(call.workspace_id, call.id))
        return next((one for one in reversed(dispatches) if one.state is DispatchState.ACCEPTED), None)

    async def _fetch_call_status(self, call: Call, dispatch: Dispatch) -> CallReport | None:
        """Ask the provider for a call's status; None if that fails, to be retried later."""
        try:
            workspace = await self._workspace(WorkUnit("call", call.workspace_id, call.id))
            provider = await self._provider_pool.voice(workspace, call.provider)
            with anyio.fail_after(self._config.call_status_seconds):
                answer: object = await call_plugin(
                    provider.status(
                        workspace_id=call.workspace_id, dispatch_id=dispatch.id, provider_id=call.provider_call_id
                    )
                )
            return None if answer is None else recordable_call_report(answer, call.workspace_id)
        except Exception as error:
            self._worker.log_throttle.failure(
                "call_status_failed",
                error,
                "%s could not report the status of a call.",
                call.provider,
                dispatch_id=dispatch.id,
            )
            return None

    async def _due(self, unit: WorkUnit) -> datetime | None:
        work = await self._storage.read(lambda tx: tx.work.get(unit))
        return work.due_at if work is not None else None

    async def _workspace(self, unit: WorkUnit) -> Workspace:
        return await self._storage.read(lambda tx: workspace_of(tx, unit.workspace_id))

    def _provider_of(
        self, tx: Transaction, workspace: Workspace, single: Message | Call, dispatch: Dispatch
    ) -> ResolveProvider:
        """Return what finds the provider of a committed message or call."""
        if isinstance(single, Message):
            return partial(self._carrier, workspace, single, dispatch)
        return partial(
            self._voice, workspace, tx.agents.existing(single.workspace_id, single.agent_id), single, dispatch
        )

    async def _carrier(self, workspace: Workspace, queued: Message, dispatch: Dispatch) -> SendRequest:
        carrier = await self._provider_pool.carrier(workspace, dispatch.provider)
        # Replies to keywords expire; other single messages do not.
        message = outbound_message(dispatch, not_after=queued.send_until)
        return lambda: carrier.send(message)

    async def _voice(self, workspace: Workspace, agent: Agent, call: Call, dispatch: Dispatch) -> SendRequest:
        provider = await self._provider_pool.voice(workspace, dispatch.provider)
        request = CallRequest(
            dispatch_id=dispatch.id,
            workspace_id=dispatch.workspace_id,
            provider_agent_id=agent.provider_agent_id,
            from_number=dispatch.from_number,
            to=dispatch.to,
            variables=call.variables,
            screen_identity=workspace.name,
            voicemail=agent.voicemail,
            voicemail_message=agent.voicemail_message,
            max_seconds=agent.max_call_seconds,
        )
        return lambda: provider.place_call(request)

    def _terms(self, epoch: int, pace: SenderPace | None = None) -> IntentTerms:
        left = timedelta(seconds=max(self._worker.lease_seconds_left, 0.0))
        return IntentTerms(
            dispatch_id=self._ids(),
            epoch=epoch,
            latest=self._clock.now() + left,
            lifetime=timedelta(seconds=self._config.max_intent_age_seconds),
            stale_after=timedelta(seconds=self._config.single_expiry_seconds),
            backoff=self._worker.backoff,
            not_before=self._outbox.earliest_slot(pace.key) if pace is not None else None,
        )
