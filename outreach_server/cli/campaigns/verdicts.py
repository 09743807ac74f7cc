"""Whether a test message or call succeeded."""

from __future__ import annotations

from typing import Final

from outreach import Call, CallStatus, Message, MessageStatus

ENDED: Final = frozenset(
    {
        MessageStatus.FAILED,
        MessageStatus.CANCELED,
        MessageStatus.UNCONFIRMED,
        MessageStatus.DELIVERED,
        CallStatus.FAILED,
        CallStatus.CANCELED,
        CallStatus.UNCONFIRMED,
        CallStatus.COMPLETED,
        CallStatus.BUSY,
        CallStatus.NO_ANSWER,
    }
)
"""Statuses with nothing more to wait for, except the analysis of a call."""

_TAKEN: Final = frozenset({MessageStatus.ACCEPTED, MessageStatus.SENT, MessageStatus.DELIVERED})
_TALKED: Final = frozenset({CallStatus.IN_PROGRESS, CallStatus.COMPLETED})
_NOT_SPOKEN_TO: Final = frozenset({"voicemail", "busy", "no_answer", "declined", "failed"})


def succeeded(item: Message | Call) -> bool:
    """Return whether a message was accepted or delivered, or a person answered a call."""
    if isinstance(item, Message):
        return item.status in _TAKEN
    return item.status in _TALKED and item.outcome not in _NOT_SPOKEN_TO and item.answered_by != "machine"


def pending_text(item: Message | Call) -> str | None:
    """Return what is still unknown about a message or call; None if it has ended or failed."""
    match item.status:
        case MessageStatus.ACCEPTED | MessageStatus.SENT:
            return "The carrier has accepted it, and has not reported delivery yet."
        case CallStatus.IN_PROGRESS:
            return "The call was answered and has not ended yet."
        case CallStatus.INITIATED | CallStatus.RINGING:
            return "The provider has accepted it, and nobody has answered yet."
        case MessageStatus.UNKNOWN | CallStatus.UNKNOWN:
            return "The provider did not respond; its outcome is being looked up."
        case _:
            return None
