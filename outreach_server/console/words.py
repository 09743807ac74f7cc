"""The sentences of the console that `outreach.reasons` does not have, and how it writes numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from outreach.reasons import PAUSE_REASONS
from outreach_server.words import SYMBOLS
from outreach_server.words import duration as duration
from outreach_server.words import plural as plural

Tone = Literal["good", "warn", "bad", "plain"]

STATES: Final[Mapping[str, tuple[str, str, Tone]]] = MappingProxyType(
    {
        "draft": ("Draft", "flag", "plain"),
        "ready": ("Ready", "circle-check", "plain"),
        "scheduled": ("Scheduled", "calendar-clock", "plain"),
        "active": ("Active", "play", "good"),
        "paused": ("Paused", "pause", "warn"),
        "completed": ("Completed", "check", "good"),
        "cancelled": ("Cancelled", "x", "bad"),
        "expired": ("Expired", "clock", "bad"),
    }
)
"""Of each status of a campaign: its word, icon and tone."""

CONTACT_STATES: Final[Mapping[str, tuple[str, str, Tone]]] = MappingProxyType(
    {
        "pending": ("To come", "hourglass", "plain"),
        "waiting": ("Waits", "clock", "plain"),
        "dispatching": ("On its way", "send", "plain"),
        "in_progress": ("In progress", "send", "plain"),
        "unknown": ("Unknown", "circle-help", "warn"),
        "completed": ("Reached", "check", "good"),
        "failed": ("Failed", "circle-x", "bad"),
        "skipped": ("Left out", "ban", "warn"),
        "canceled": ("Cancelled", "x", "plain"),
        "expired": ("Expired", "clock", "plain"),
        "unconfirmed": ("Unconfirmed", "circle-help", "warn"),
    }
)
"""Of each status of a contact: its word, icon and tone."""

OUTCOMES: Final[Mapping[str, tuple[str, str, Tone]]] = MappingProxyType(
    {
        "positive": ("Positive", "circle-check", "good"),
        "negative": ("Not positive", "circle-x", "plain"),
        "callback": ("Asks for a call back", "phone", "warn"),
        "voicemail": ("Voicemail", "message-square", "plain"),
        "busy": ("Busy", "ban", "plain"),
        "no_answer": ("No answer", "clock", "plain"),
        "declined": ("Declined", "x", "plain"),
        "failed": ("Failed", "circle-x", "bad"),
        "unknown": ("Not known", "circle-help", "plain"),
    }
)
"""Of each outcome of a call: its word, icon and tone."""

CALL_STATES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "queued": "Queued",
        "dispatching": "On its way",
        "unknown": "Unknown",
        "initiated": "Begun",
        "ringing": "Ringing",
        "in-progress": "In progress",
        "completed": "Ended",
        "busy": "Busy",
        "no-answer": "No answer",
        "failed": "Failed",
        "canceled": "Cancelled",
        "unconfirmed": "Unconfirmed",
    }
)
"""Of each status of a call: its word."""

DONE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "add_recipients": "Contacts added",
        "approve": "Approved",
        "archive": "Archived",
        "cancel": "Cancelled",
        "close": "No more contacts are added",
        "complete": "Completed",
        "create": "Created",
        "erase": "Erased",
        "expire": "Expired",
        "export": "Exported",
        "finish_setup": "Ready",
        "pause": "Paused",
        "reopen": "Active again",
        "reopen_setup": "A draft again",
        "resume": "Resumed",
        "resume_schedule": "Resumed, with its start ahead",
        "schedule": "Scheduled",
        "start": "Started",
        "take_over": "Contacts of the provider's list taken over",
        "test": "Sent as a test",
        "unarchive": "Shown in lists again",
        "unschedule": "Taken back",
        "update": "Changed",
    }
)
"""The words for an action on a campaign, by the entry of the audit trail."""

CHANGED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "agent_id": "agent",
        "batch_concurrency": "calls at a time",
        "body": "text",
        "business_hours": "hours",
        "cli_group": "numbers",
        "flow_id": "flow",
        "from_number": "number",
        "from_numbers": "numbers",
        "rate_per_minute": "rate",
        "replace_characters": "plain characters",
        "scheduled_expires_at": "end",
        "scheduled_start_at": "start",
        "stay_open": "whether it stays open",
    }
)
"""The words for a changed part of a campaign, by the field, where it has another name."""

ACCOUNT_DONE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "profile": "It is saved.",
        "look": "This browser keeps it.",
        "password": "The password is changed, and your other sessions have ended.",
        "end": "The session has ended.",
        "end-others": "Your other sessions have ended.",
        "remove-factor": "The second factor is removed.",
    }
)
"""The message after a change of one's own account."""

CHANNELS: Final = MappingProxyType({"sms": "Messages", "call": "Calls"})

ERRORS: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        400: ("This request cannot be read", "Go back, check what you entered and send it again."),
        401: ("You are not signed in", "Sign in where you started this application, and open this page again."),
        403: ("You may not do this", "Ask an owner of the workspace for another role."),
        404: (
            "There is no such page here",
            "It never existed, was erased, or belongs to another workspace. Check the address.",
        ),
        405: ("This page does not take such a request", "Go back and use the buttons of the page."),
        408: ("This took too long to arrive", "Check your connection, go back and send it again."),
        409: ("This is not possible now", "Look at the present state, and decide again."),
        413: ("This is too large", "Send less at a time."),
        422: ("Something has to be corrected", "Go back and correct it."),
        429: ("Too many requests", "Wait a moment, and try again."),
        500: ("Something went wrong on our side", "The server's log says why, under the number below."),
        503: ("The database cannot be used at the moment", "Nothing was changed. Try again in a moment."),
    }
)
"""The fault and the advice for each status of an error page."""

FORM_REFUSED: Final = "This form was not accepted"
CROSS_SITE: Final = (
    "It was not sent by a page of this console, so nothing was changed. Behind a proxy, the server's public_url must "
    "be the address that browsers show."
)
SESSION_ENDED: Final = "Your session has ended, so nothing was changed."
SIGN_IN_AGAIN: Final = "Go back to the page: it asks you to sign in. Then send this again."
STALE_FORM: Final = (
    "The page was open for more than a day, or was made in another session or by another site, so nothing was changed."
)
SEND_FROM_PAGE: Final = "Open the page again, and send the form from there."
SECOND_FACTOR_FIRST: Final = "Set up a second factor first: this server asks it of your role. Nothing was changed."
WAITS_FOR_APPROVAL: Final = "It waits for approval by another manager or owner."
NO_REASON: Final = "Say why the number comes off the register: nothing was changed."
ASK_OPERATOR: Final = "Ask somebody who runs this server."
NO_SUCH_ACTION: Final = "This page has no such action."


_CAPITALS: Final = {word.lower(): word for word in ("API", "ID", "SID", "SMS", "URL")}


def sentence_of(name: str) -> str:
    """Return the words of a name in code, such as a field or a state, with a capital letter."""
    text = " ".join(_CAPITALS.get(word, word) for word in name.replace("_", " ").split())
    return capitalized(text)


def capitalized(text: str) -> str:
    """Return words with a capital letter at their beginning."""
    return text[:1].upper() + text[1:]


def number(value: int) -> str:
    """Return a number with commas between thousands."""
    return f"{value:,}"


def share(part: int, whole: int) -> str:
    """Return a share in percent to a tenth; empty without a whole."""
    return f"{100 * part / whole:.1f} %" if whole else ""


_IN_LINES: Final = {code: symbol for code, symbol in SYMBOLS.items() if chr(code) not in "\t\n\r"}


def pause_reason(code: str | None) -> str:
    """Return why a campaign is paused, a part of a sentence without the marks of code; empty for an unknown code."""
    return PAUSE_REASONS.get(code or "", "").replace("`", "")


def visible(text: str) -> str:
    """Return the text of others with its control and direction characters as symbols."""
    return text.translate(_IN_LINES).encode("utf-8", "replace").decode()


def phone_path(phone: str) -> str:
    """Return a number as it stands in a path: without its plus."""
    return phone.removeprefix("+")
