"""The protocol of voice providers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from outreach.models.call import CallOutcome
    from outreach.models.dispatch import DispatchOutcome
    from outreach.models.reports import CallReport
    from outreach.models.resources import VoicemailPolicy
    from outreach.protocols.carrier import LookupRequest, LookupSupport


@attrs.frozen(kw_only=True)
class CallRequest:
    """One call to place.

    Attributes:
        dispatch_id: Our id; the provider returns it where it can.
        provider_agent_id: The agent's id at the provider; None for the simulator.
        variables: Template variables, as text.
        provider_trunk: The SIP trunk; None for the provider's default routing.
        ivr_enabled: Whether to send IVR-navigation metadata.
        call_screen_enabled: Whether to handle call screening.
        not_after: The call must not start later, if the provider has a field for that: the earliest of closing time,
            the contact's local hours and the campaign's expiry; None for no bound.
        screen_identity: The caller's name for call screening, if any.
        screen_purpose: The call's purpose for call screening, if any.
        voicemail: What to do when a machine answers; None for the agent's setting.
        voicemail_message: The message with `leave_message`.
        max_seconds: The longest call; None for the agent's setting.
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
    """The capabilities of a voice provider.

    Attributes:
        look_up: The facts that `look_up` can prove.
        supports_not_after: Whether it has a field for `not_after`.
        lists_sent: Whether `list_sent` lists what it was sent; without it the method may be missing.
    """

    look_up: LookupSupport
    supports_not_after: bool
    lists_sent: bool = False


class VoiceProvider(Protocol):
    """A voice-agent provider. `place_call` follows the rules of `Carrier.send`."""

    @property
    def name(self) -> str:
        """The name in the ledger."""
        ...

    @property
    def capabilities(self) -> VoiceCapabilities:
        """The features that the provider supports."""
        ...

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        """Place one call, once."""
        ...

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Find out the outcome of a dispatch; see `Carrier.look_up`."""
        ...

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Return the status of an accepted call whose events have not arrived; None if unknown."""
        ...


class Analyser(Protocol):
    """Decides the outcome of an ended call."""

    def outcome(self, report: CallReport) -> CallOutcome | None:
        """Return the outcome of an ended call; None if unknown. It must not block.

        An exception counts as None, and so does what is no `CallOutcome`; its type alone is logged.
        """
        ...
