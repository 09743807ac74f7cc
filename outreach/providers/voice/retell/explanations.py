"""Explanations of Retell's disconnection reasons for people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PAGE: Final = "https://docs.retellai.com/reliability/debug-call-disconnect"

_PAY: Final = "Put the billing in order in the Retell dashboard, then resume the campaigns."
_PLACES: Final = "Lower the batch concurrency, or buy more concurrent calls. It is tried again by itself."
_SPAM: Final = "Use other numbers, verify them against spam labels in the Retell dashboard, and make fewer short calls."
_LOG: Final = "Open the call in the Retell dashboard: its log has what broke. The call is not made again by itself."

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "registered_call_timeout": "The call was made ready and never begun.",
        "invalid_destination": "The number cannot be dialled.",
        "marked_as_spam": "The networks show the calling number as spam, and did not let the call through.",
        "network_blocked": "The contact's network did not let the call through.",
        "scam_detected": "Retell took the agent for a scam.",
        "telephony_provider_permission_denied": "The telephony refused: most often for the trunk's credentials.",
        "concurrency_limit_reached": "The account has no place for another call at the same time.",
        "no_concurrency_fallback": "The account has no place for another call at the same time.",
        "budget_reached": "The budget that was set at Retell is used up.",
        "credit_exhausted": "The account has no credit left.",
        "no_valid_payment": "Retell has no valid means of payment, or a bill is overdue.",
        "dial_failed": "The call was not put through: no such number, or the calling number is blocked.",
        "sip_routing_error": "The trunk sends the call around in circles.",
        "telephony_provider_unavailable": "The telephony behind Retell does not work at the moment.",
        "manual_stopped": "Somebody stopped the call at Retell.",
        "error_no_audio_received": "No sound came from the call.",
        "error_user_not_joined": "The call was connected, and nobody was in it.",
    }
)

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "marked_as_spam": _SPAM,
        "network_blocked": _SPAM,
        "scam_detected": "Write to Retell's support about this agent.",
        "telephony_provider_permission_denied": "Check the user, password and allowed countries of the SIP trunk.",
        "concurrency_limit_reached": _PLACES,
        "no_concurrency_fallback": _PLACES,
        "budget_reached": "Raise the budget in the Retell dashboard, then resume the campaigns.",
        "credit_exhausted": _PAY,
        "no_valid_payment": _PAY,
        "dial_failed": "Check the number and the calling number. It is tried again by itself while attempts are left.",
        "manual_stopped": "It is not made again by itself: make a new one, where it still matters.",
        "sip_routing_error": "Check how the SIP trunk routes calls.",
    }
)
"""More precise advice than that of the failure class, by code."""

PARTS: Final[tuple[tuple[str, str, str], ...]] = (
    ("error_llm", "The language model behind the agent failed, or its server was not reached.", _LOG),
    ("error_", "Something at Retell failed during the call.", _LOG),
)
"""How other reasons begin."""
