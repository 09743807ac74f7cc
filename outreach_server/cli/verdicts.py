"""Whether a single message or call came to what somebody wants who tries it out."""

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
"""Nothing more is to be waited for, but for what a provider makes of a call afterwards."""

_TAKEN: Final = frozenset({MessageStatus.ACCEPTED, MessageStatus.SENT, MessageStatus.DELIVERED})
_TALKED: Final = frozenset({CallStatus.IN_PROGRESS, CallStatus.COMPLETED})
_NOBODY: Final = frozenset({"voicemail", "busy", "no_answer", "declined", "failed"})


def succeeded(item: Message | Call) -> bool:
    """Return whether a message was accepted or delivered, or somebody answered a call; a mailbox is nobody."""
    if isinstance(item, Message):
        return item.status in _TAKEN
    return item.status in _TALKED and item.outcome not in _NOBODY and item.answered_by != "machine"


def pending_text(item: Message | Call) -> str | None:
    """Return what is not known of one that has not failed; None when it has come to its end, or has failed."""
    match item.status:
        case MessageStatus.ACCEPTED | MessageStatus.SENT:
            return "The carrier has taken it, and has not said yet whether it was delivered."
        case CallStatus.IN_PROGRESS:
            return "Somebody has answered, and the call still goes on."
        case CallStatus.INITIATED | CallStatus.RINGING:
            return "The provider has taken it, and nobody has answered yet."
        case MessageStatus.UNKNOWN | CallStatus.UNKNOWN:
            return "The provider gave no answer: whether it was taken is being looked up."
        case _:
            return None
