"""What the engine asks of a voice provider."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

import attrs

from outreach.models.directory import VoicemailPolicy
from outreach.models.dispatch import Outcome
from outreach.models.reports import CallReport
from outreach.protocols.carrier import LookUp, LookUpPower


@attrs.frozen(kw_only=True)
class CallRequest:
    """One call to place.

    Attributes:
        dispatch_id: Our identifier; the provider carries it back where it can.
        agent_ref: The agent's identifier at the provider; None at the simulator.
        variables: Template variables, as text.
        trunk_ref: The SIP trunk to dial over; None for the provider's default routing.
        ivr_enabled: Whether to send IVR-navigation metadata along.
        call_screen_enabled: Whether to handle call screening.
        not_after: The call must not start later, where the provider has a field for that: the earliest of the
            campaign's closing time, the contact's own evening and the campaign's expiry; None for no bound.
        identity: On whose behalf is called, for call screening; None for nothing to say.
        purpose: What the call is about, for call screening; None for nothing to say.
        voicemail: What to do when a machine answers; None leaves it to the agent.
        voicemail_message: What to leave with `leave_message`.
        max_seconds: How long the call may last; None leaves it to the agent.
    """

    dispatch_id: str
    workspace_id: str
    agent_ref: str | None
    sender: str | None
    to: str
    variables: Mapping[str, str]
    trunk_ref: str | None = None
    ivr_enabled: bool = False
    call_screen_enabled: bool = False
    not_after: datetime | None = None
    identity: str | None = None
    purpose: str | None = None
    voicemail: VoicemailPolicy | None = None
    voicemail_message: str | None = None
    max_seconds: int | None = None


@attrs.frozen(kw_only=True)
class VoiceCapabilities:
    """What a voice provider can do.

    Attributes:
        look_up: What `look_up` can tell.
        carries_not_after: Whether it has a field for `not_after`.
    """

    look_up: LookUpPower
    carries_not_after: bool


class VoiceProvider(Protocol):
    """A voice-agent provider. `place` keeps the rules of `Carrier.send`."""

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""
        ...

    @property
    def capabilities(self) -> VoiceCapabilities:
        """What it can do."""
        ...

    async def place(self, request: CallRequest) -> Outcome:
        """Ask the provider for one call, once."""
        ...

    async def look_up(self, question: LookUp) -> Outcome | None:
        """Find out what became of a dispatch; see `Carrier.look_up`."""
        ...

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Return how far an accepted call has come, for when its events have not arrived; None if unknown."""
        ...
