"""What the engine asks of a voice provider."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

import attrs

from outreach.models.call import CallOutcome
from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport
from outreach.models.resources import VoicemailPolicy
from outreach.protocols.carrier import LookupRequest, LookupSupport


@attrs.frozen(kw_only=True)
class CallRequest:
    """One call to place.

    Attributes:
        dispatch_id: Our identifier; the provider carries it back where it can.
        provider_agent_id: The agent's identifier at the provider; None at the simulator.
        variables: Template variables, as text.
        provider_trunk: The SIP trunk to dial over; None for the provider's default routing.
        ivr_enabled: Whether to send IVR-navigation metadata along.
        call_screen_enabled: Whether to handle call screening.
        not_after: The call must not start later, where the provider has a field for that: the earliest of the
            campaign's closing time, the contact's own evening and the campaign's expiry; None for no bound.
        screen_identity: On whose behalf is called, for call screening; None for nothing to say.
        screen_purpose: What the call is about, for call screening; None for nothing to say.
        voicemail: What to do when a machine answers; None leaves it to the agent.
        voicemail_message: What to leave with `leave_message`.
        max_seconds: How long the call may last; None leaves it to the agent.
    """

    dispatch_id: str
    workspace_id: str
    provider_agent_id: str | None
    from_number: str | None
    to: str
    variables: Mapping[str, str]
    provider_trunk: str | None = None
    ivr_enabled: bool = False
    call_screen_enabled: bool = False
    not_after: datetime | None = None
    screen_identity: str | None = None
    screen_purpose: str | None = None
    voicemail: VoicemailPolicy | None = None
    voicemail_message: str | None = None
    max_seconds: int | None = None


@attrs.frozen(kw_only=True)
class VoiceCapabilities:
    """What a voice provider can do.

    Attributes:
        look_up: What `look_up` can tell.
        supports_not_after: Whether it has a field for `not_after`.
    """

    look_up: LookupSupport
    supports_not_after: bool


class VoiceProvider(Protocol):
    """A voice-agent provider. `place_call` keeps the rules of `Carrier.send`."""

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""
        ...

    @property
    def capabilities(self) -> VoiceCapabilities:
        """What it can do."""
        ...

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        """Ask the provider for one call, once."""
        ...

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Find out what became of a dispatch; see `Carrier.look_up`."""
        ...

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Return how far an accepted call has come, for when its events have not arrived; None if unknown."""
        ...


class Analyser(Protocol):
    """Decides what came of a call that has ended."""

    def outcome(self, report: CallReport) -> CallOutcome | None:
        """Return the outcome of an ended call; None when nobody can tell. It must not block or wait.

        What it raises is told in the log by its type alone, and taken as None (`runners.provider_log`).
        """
        ...
