"""The numbers that a simulation holds the engine to, apart from the engine's own reading of them."""

from __future__ import annotations

from datetime import timedelta

import attrs

from outreach.core.config import EngineConfig


@attrs.frozen(kw_only=True)
class Bounds:
    """What a simulation holds the engine to, in numbers.

    Attributes:
        most_unsettled: Intents without an outcome that a worker alone may have, and several together, two more for each
            that has joined.
        sms_attempts: Attempts that a recipient and message may take.
        call_attempts: Attempts that a recipient of a calling campaign may take.
        stale_after: How long a single call or message may wait.
        unconfirmed_after: How long after its commit a dispatch that nobody knows of ends as unconfirmed.
        request_may_take: How long a request may take before its outcome is unknown.
        stop_grace: How long requests on their way have when a worker stops or has lost its lease.
        receipt_wait: How long an accepted message waits for its receipt while retry is on.
        missed_start: How long after its time a scheduled campaign may still start by itself.
        call_silence: How long a placed call may be silent before it ends as unconfirmed.
        lifetime: How long after its commit an intent may be acted on.
        look_ahead: How far ahead of its commit the slot of a campaign's intent may lie.
        single_look_ahead: The same of a single message.
        second_leg_within: How long after the news of the first the second call of a double dial may be committed.
        rang_out_within: How long after the first call that news may come.
    """

    most_unsettled: int
    sms_attempts: int
    call_attempts: int
    stale_after: timedelta
    unconfirmed_after: timedelta
    request_may_take: timedelta
    stop_grace: timedelta
    receipt_wait: timedelta
    missed_start: timedelta
    call_silence: timedelta
    lifetime: timedelta
    look_ahead: timedelta
    single_look_ahead: timedelta = timedelta(seconds=2)
    second_leg_within: timedelta = timedelta(seconds=10)
    rang_out_within: timedelta = timedelta(seconds=60)

    @classmethod
    def of(cls, config: EngineConfig, *, sms_attempts: int, call_attempts: int) -> Bounds:
        """Return what a configuration promises."""
        return cls(
            most_unsettled=config.max_queued_intents + config.max_requests_in_flight,
            sms_attempts=sms_attempts,
            call_attempts=call_attempts,
            stale_after=timedelta(seconds=config.single_expiry_seconds),
            unconfirmed_after=timedelta(seconds=config.reconcile_deadline_seconds),
            request_may_take=timedelta(seconds=config.provider_timeout_seconds),
            stop_grace=timedelta(seconds=config.stop_grace_seconds),
            receipt_wait=timedelta(seconds=config.receipt_timeout_seconds),
            missed_start=timedelta(seconds=config.missed_start_grace_seconds),
            call_silence=timedelta(seconds=config.call_timeout_seconds),
            lifetime=timedelta(seconds=config.max_intent_age_seconds),
            look_ahead=timedelta(seconds=max(config.look_ahead_seconds, config.sparse_look_ahead_seconds)),
        )
