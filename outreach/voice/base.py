"""What the adapters of voice providers share: the names under which a call's options travel as variables.

A provider that has no field of its own for an option gets it as a variable, so that an agent's prompt can use it
(`docs/voice-variables.md` lists them). Names that begin with an underscore are kept from campaigns' own variables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from outreach.protocols.voice import CallRequest

IVR_NAVIGATION: Final = "_ivr_navigation"
CALL_SCREENING: Final = "_call_screening"
SCREEN_IDENTITY: Final = "_screen_identity"
SCREEN_PURPOSE: Final = "_screen_purpose"
VOICEMAIL: Final = "_voicemail"
VOICEMAIL_MESSAGE: Final = "_voicemail_message"
MAX_SECONDS: Final = "_max_seconds"
NOT_AFTER: Final = "_not_after"
REFERENCE: Final = "_outreach_dispatch_id"


def variables_of(request: CallRequest, *, native: Collection[str] = ()) -> Mapping[str, str]:
    """Return a call's variables with those of its options that the provider has no field for.

    Args:
        request: The call.
        native: The names above for which the provider has fields of its own.

    Returns:
        Texts by name: the contact's variables, and the options that are set; the options win.
    """
    options: dict[str, str | None] = {
        REFERENCE: request.dispatch_id,
        IVR_NAVIGATION: "true" if request.ivr_enabled else None,
        CALL_SCREENING: "true" if request.call_screen_enabled else None,
        SCREEN_IDENTITY: request.identity if request.call_screen_enabled else None,
        SCREEN_PURPOSE: request.purpose if request.call_screen_enabled else None,
        VOICEMAIL: request.voicemail,
        VOICEMAIL_MESSAGE: request.voicemail_message,
        MAX_SECONDS: str(request.max_seconds) if request.max_seconds is not None else None,
        NOT_AFTER: request.not_after.isoformat() if request.not_after is not None else None,
    }
    folded = {name: value for name, value in options.items() if value is not None and name not in native}
    return {**request.variables, **folded}
