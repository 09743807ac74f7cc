"""Settings of the engine, with their units in their names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import attrs

from outreach.errors import ConfigError

PUBLIC_URL_VARIABLE: Final = "OUTREACH_PUBLIC_URL"


def _public_url(given: str | None) -> str | None:
    if given is None:
        return None
    text = given.strip()
    if "?" in text or "#" in text or "@" in text:
        # Not shown: what stands before an @ may be a password.
        raise ConfigError("The public address has more than a host and a path: leave out what has ?, # or @.")
    # Before it is taken apart: urlsplit drops some of these, and what was looked at would not be what is used.
    if any(not character.isprintable() or character.isspace() for character in text):
        raise ConfigError(f"The public address {text!r} has blanks or control characters in it: take them out.")
    if not text.isascii():
        raise ConfigError(
            f"The public address {text!r} has characters that are not ASCII: write its host as xn--…, as DNS has "
            "it, and its path with percent signs."
        )
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    local = host in {"127.0.0.1", "::1", "localhost"}
    if not host or parts.scheme not in {"https", "http"} or (parts.scheme == "http" and not local):
        raise ConfigError(f"The public address is {text!r}; it must be like https://outreach.example.com.")
    if "_" in host:
        raise ConfigError(
            f"The public address {text!r} has an underscore in its host, which providers do not call back to: give the "
            "server another name, such as one with a hyphen."
        )
    return text.rstrip("/")


@attrs.frozen(kw_only=True)
class EngineConfig:
    """How the engine behaves; the defaults are those of the design.

    Attributes:
        max_unsettled: Intents without an outcome in this process at a time: the bound on what a crash can
            leave unknown.
        intent_seconds: No request starts later than this after the commit of its intent.
        look_ahead_seconds: How long before its slot an intent may be committed, where several slots lie so close.
        single_look_ahead_seconds: The same where slots lie farther apart: an intent that waits takes a place.
        provider_timeout_seconds: After this a request without an answer is unknown.
        slice_seconds: How long a runner works on one unit before others get their turn.
        poll_seconds: How often changes of other processes are looked for.
        lease_seconds: How long a lease lasts without a heartbeat.
        heartbeat_seconds: How often the lease is renewed.
        lock_seconds: How often a process that may not dispatch yet asks again.
        stop_grace_seconds: How long a stop waits for requests in flight.
        call_acceptance_seconds: How long POST /calls waits for the provider's acceptance.
        stale_seconds: A single call or message not dispatched for this long is canceled as stale.
        missed_start_seconds: A scheduled start missed by more than this pauses the campaign.
        idempotency_seconds: How long an idempotency key is remembered.
        idempotency_wait_seconds: How long a request waits for the first one with its key.
        chunk_rows: Recipients written in one transaction.
        backoff_seconds: The first wait after a deferral; it doubles up to `backoff_max_seconds`.
        call_poll_seconds: How often a call in progress is asked for when no event comes.
        call_status_seconds: How long a provider has to tell how far a call has come.
        call_silence_seconds: A placed call of which nothing was heard for this long since it was dialed ends as
            unconfirmed.
        reconcile_after_seconds: How long after its commit an unknown dispatch is first looked up at the provider.
        reconcile_every_seconds: How long after a look-up that told nothing the next one is made.
        reconcile_deadline_seconds: How long after its commit an unknown dispatch ends as unconfirmed.
        reconcile_round_seconds: The pause between two rounds over the unknown dispatches.
        receipt_wait_seconds: How long an accepted message of a campaign waits for its final receipt while SMS retry
            is on; then it counts as done.
        sweep_seconds: How often what nobody needs any more is cleared away.
        callback_days: How long the events that providers call back are kept as they came.
        public_url: Where this server is reached from outside, such as `https://outreach.example.com`: there providers
            call back. None tells them of no address.
    """

    max_unsettled: int = 100
    intent_seconds: float = 5.0
    look_ahead_seconds: float = 0.25
    single_look_ahead_seconds: float = 0.1
    provider_timeout_seconds: float = 30.0
    slice_seconds: float = 30.0
    poll_seconds: float = 0.25
    lease_seconds: float = 15.0
    heartbeat_seconds: float = 2.0
    lock_seconds: float = 0.5
    stop_grace_seconds: float = 7.0
    call_acceptance_seconds: float = 1.5
    stale_seconds: float = 600.0
    missed_start_seconds: float = 3600.0
    idempotency_seconds: float = 86_400.0
    idempotency_wait_seconds: float = 30.0
    chunk_rows: int = 250
    backoff_seconds: float = 1.0
    backoff_max_seconds: float = 300.0
    call_poll_seconds: float = 10.0
    call_status_seconds: float = 5.0
    call_silence_seconds: float = 14_400.0
    reconcile_after_seconds: float = 60.0
    reconcile_every_seconds: float = 120.0
    reconcile_deadline_seconds: float = 3600.0
    reconcile_round_seconds: float = 5.0
    receipt_wait_seconds: float = 14_400.0
    sweep_seconds: float = 30.0
    callback_days: float = 30.0
    public_url: str | None = attrs.field(default=None, converter=_public_url)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> EngineConfig:
        """Read `OUTREACH_PUBLIC_URL`; everything else is as the design has it.

        Raises:
            ConfigError: It is no address; the message says what would be.
        """
        return cls(public_url=environment.get(PUBLIC_URL_VARIABLE) or None)


@attrs.frozen(kw_only=True)
class SimulatorConfig:
    """How the simulators behave (design, section 8).

    Attributes:
        log: A file that gets one JSON line for each message or call accepted; None for no log.
        latency_ms: How long an answer takes.
        failure_rate: Share of requests refused for now, 0 to 1.
        seed: Seed of the simulators' randomness; None for a different run each time.
        call_seconds: How long an answered call lasts.
    """

    log: Path | None = None
    latency_ms: float = 20.0
    failure_rate: float = 0.0
    seed: int | None = None
    call_seconds: float = 2.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> SimulatorConfig:
        """Read the `OUTREACH_SIMULATOR_*` variables.

        Raises:
            ConfigError: A value is not of its kind or out of its range; the message names the variable.
        """
        seed = environment.get("OUTREACH_SIMULATOR_SEED")
        return cls(
            log=_file(environment, "OUTREACH_SIMULATOR_LOG"),
            latency_ms=_number(environment, "OUTREACH_SIMULATOR_LATENCY_MS", 20.0, maximum=600_000.0),
            failure_rate=_number(environment, "OUTREACH_SIMULATOR_FAILURE_RATE", 0.0, maximum=1.0),
            seed=int(_number(environment, "OUTREACH_SIMULATOR_SEED", 0.0, maximum=2.0**53)) if seed else None,
            call_seconds=_number(environment, "OUTREACH_SIMULATOR_CALL_SECONDS", 2.0, maximum=86_400.0),
        )


_LOWEST: Final = 0.0


def _file(environment: Mapping[str, str], name: str) -> Path | None:
    text = environment.get(name)
    if not text:
        return None
    path = Path(text)
    # Noticed now, and not when the first message cannot be logged, of which nobody would know whether it went out.
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"{name} is {text!r}; it must be a file in a directory that is there.")
    return path


def _number(environment: Mapping[str, str], name: str, default: float, *, maximum: float) -> float:
    text = environment.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"{name} is {text!r}; it must be a number.") from None
    if not _LOWEST <= value <= maximum:
        raise ConfigError(f"{name} is {text}; it must be between 0 and {maximum:g}.")
    return value
