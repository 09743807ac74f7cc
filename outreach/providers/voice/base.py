"""Shared parts of the voice adapters: options as variables, endings of calls, numbers, reports.

An option without a field at the provider is passed as a variable, for the agent's prompt (`docs/voice-variables.md`).
Campaigns' own variables must not begin with an underscore.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import attrs

from outreach.models.call import MAX_TRANSCRIPT, CallOutcome, is_cost
from outreach.models.dispatch import DispatchOutcome, FailureClass
from outreach.models.reports import CallReport
from outreach.models.states import CallStatus, DispatchState
from outreach.protocols.adapter import CredentialField
from outreach.protocols.voice import CallRequest
from outreach.providers.http.json_fields import name_at, text_at
from outreach.providers.http.sending import UnreadableResponse

if TYPE_CHECKING:
    import httpx

IVR_NAVIGATION: Final = "_ivr_navigation"
CALL_SCREENING: Final = "_call_screening"
SCREEN_IDENTITY: Final = "_screen_identity"
SCREEN_PURPOSE: Final = "_screen_purpose"
VOICEMAIL: Final = "_voicemail"
VOICEMAIL_MESSAGE: Final = "_voicemail_message"
MAX_SECONDS: Final = "_max_seconds"
NOT_AFTER: Final = "_not_after"
DISPATCH_ID_VARIABLE: Final = "_outreach_dispatch_id"

RESERVED_VARIABLES: Final = frozenset(
    {
        IVR_NAVIGATION,
        CALL_SCREENING,
        SCREEN_IDENTITY,
        SCREEN_PURPOSE,
        VOICEMAIL,
        VOICEMAIL_MESSAGE,
        MAX_SECONDS,
        NOT_AFTER,
        DISPATCH_ID_VARIABLE,
    }
)
"""The variables of options; a contact's own variable of such a name is not passed on."""


def variables_of(request: CallRequest, *, native: Collection[str] = ()) -> dict[str, str]:
    """Return a call's variables, with the options that the provider has no field for.

    Args:
        request: The call.
        native: Those of the names above for which the provider has its own fields.

    Returns:
        Texts by name: the contact's variables and the options, which win.
    """
    options: dict[str, str | None] = {
        DISPATCH_ID_VARIABLE: request.dispatch_id,
        IVR_NAVIGATION: "true" if request.ivr_enabled else None,
        CALL_SCREENING: "true" if request.call_screen_enabled else None,
        SCREEN_IDENTITY: request.screen_identity if request.call_screen_enabled else None,
        SCREEN_PURPOSE: request.screen_purpose if request.call_screen_enabled else None,
        VOICEMAIL: request.voicemail,
        VOICEMAIL_MESSAGE: request.voicemail_message,
        MAX_SECONDS: str(request.max_seconds) if request.max_seconds is not None else None,
        NOT_AFTER: request.not_after.isoformat() if request.not_after is not None else None,
    }
    own = {name: value for name, value in request.variables.items() if name not in RESERVED_VARIABLES}
    folded = {name: value for name, value in options.items() if value is not None and name not in native}
    return {**own, **folded}


@attrs.frozen(kw_only=True)
class CallEnd:
    """The meaning of a provider's reason for the end of a call (docs/adding-a-provider.md).

    Attributes:
        status: One of the ended statuses.
        outcome: The outcome if the reason implies one; None leaves it to the analysis, or to the status.
        answered_by: `human`, `machine` or None.
        reason: Failure class of a failure; `temporary` and `rate_limited` mean that nobody was reached, so the call is
            retried. Else None.
        do_not_call: Whether the contact asked not to be called again.
        retry_after_seconds: `CallReport.retry_after_seconds`.
        message_left: `CallReport.message_left`.
    """

    status: CallStatus
    outcome: CallOutcome | None = None
    answered_by: str | None = None
    reason: FailureClass | None = None
    do_not_call: bool = False
    retry_after_seconds: float | None = None
    message_left: bool | None = None


ANSWERED_BY_PERSON: Final = CallEnd(status=CallStatus.COMPLETED, answered_by="human")
"""Somebody answered, and the call ended normally: by a hang-up, a goodbye, silence or a transfer."""
MACHINE: Final = CallEnd(status=CallStatus.COMPLETED, outcome="voicemail", answered_by="machine")
"""A mailbox answered, and got a message if the agent leaves one."""
MENU: Final = attrs.evolve(MACHINE, message_left=False)
"""A phone menu answered, which takes no message."""
TALKED_TO_MACHINE: Final = attrs.evolve(MACHINE, message_left=True)
"""The agent took a mailbox for a person, which only the analysis finds: it has what the agent said."""
NO_ANSWER: Final = CallEnd(status=CallStatus.NO_ANSWER)
BUSY: Final = CallEnd(status=CallStatus.BUSY)
DECLINED: Final = CallEnd(status=CallStatus.BUSY, outcome="declined")
DO_NOT_CALL: Final = CallEnd(status=CallStatus.COMPLETED, outcome="negative", answered_by="human", do_not_call=True)
CANCELED: Final = CallEnd(status=CallStatus.CANCELED)
"""Stopped at the provider before it was placed."""
INVALID_NUMBER: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="invalid_number")
BLOCKED: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="filtered")
"""Taken for spam or fraud, or blocked."""
BAD_SETUP: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="bad_sender")
"""The agent or the number is not set up as the provider requires."""
CAPACITY: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="rate_limited")
"""The account's concurrency limit is reached: nobody was called."""
DAILY_LIMIT: Final = attrs.evolve(CAPACITY, retry_after_seconds=3600.0)
"""The limit of calls a day is reached: nobody was called, and the account is tried again every hour."""
NOT_CONNECTED: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="temporary")
"""The provider failed before calling anybody."""
FUNDS: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="provider_funds")
FAILED_AT_PROVIDER: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="provider_error")
"""The provider failed, and somebody may have answered, so the call is not retried; also for unknown reasons."""


REASON_DEADLINE: Final = timedelta(minutes=5)
"""How long after a call's end its reason may still come, in a report or in the provider's record."""

NO_REASON_SUFFIX: Final = ":without-reason"
"""Suffix of the event id of an end without a reason, so that the same event with a reason is another one."""


def event_prefix(call_id: str | None, dispatch_id: str | None, body: bytes) -> str:
    """Return what an event's id begins with: the call that it is about, by the provider's id or else by ours.

    An event that names no call has the hash of its body: with one id for all, each would be a repeat of the first.
    """
    return call_id or dispatch_id or hashlib.sha256(body).hexdigest()


def provisional_end(end: CallEnd, ended_at: datetime | None, *, now: datetime) -> CallEnd | CallStatus:
    """Return the meaning of a call's end without a reason: for a while that it was answered, later that it ended.

    Until the reason has had its time, any ending would be a guess that could not be corrected.

    Args:
        end: How it ended, by its status alone.
        ended_at: When, by the provider's clock; None if it does not say.
        now: The current time.
    """
    return end if ended_at is not None and now - ended_at >= REASON_DEADLINE else CallStatus.INITIATED


DO_NOT_CALL_FIELD: Final = "do_not_call"
"""The field that every provider's analysis has to fill if somebody wants no more calls.

docs/opt-out.md#what-puts-a-number-there."""


def is_yes(found: object) -> bool:
    """Return whether the value of such a field is a yes; only a plain one counts."""
    return found is True or (isinstance(found, str) and found.strip().lower() in {"true", "yes"})


CALLBACK_FIELD: Final = "callback_requested"
"""The field that a provider's analysis may fill if somebody asks to be called again."""


def transcript_of(turns: object, *, speaker: str = "role", words: str = "message") -> str | None:
    """Return turns of a talk as lines such as `agent: Hello`; None if there are none."""
    lines = []
    length = 0
    for turn in turns if isinstance(turns, list) else ():
        said = text_at(turn, words)
        if said is None or length > MAX_TRANSCRIPT:
            continue
        lines.append(f"{name_at(turn, speaker) or 'unknown'}: {said}")
        length += len(lines[-1])
    return "\n".join(lines) or None


def cost_of(amount: object, *, hundredths: bool = False) -> Decimal | None:
    """Return an amount of money; None if it is none. A number in JSON is taken as it is written.

    Args:
        amount: What the provider wrote.
        hundredths: Whether it counts cents.
    """
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        return None
    written = Decimal(str(amount))
    written = written.scaleb(-2) if hundredths else written
    return written if is_cost(written) else None


def report_of(
    end: CallEnd | CallStatus,
    *,
    workspace_id: str,
    provider: str,
    dispatch_id: str | None,
    provider_id: str | None,
    at: datetime,
    verdict: bool | None = None,
    answered_by: str | None = None,
    summary: str | None = None,
    error: str | None = None,
    do_not_call: bool = False,
    callback: bool = False,
    transcript: str | None = None,
    cost: Decimal | None = None,
    telephony_id: str | None = None,
    raw: Any = None,
) -> CallReport:
    """Return the report of an event, from the end of the call or the status of one that has not ended.

    `verdict` is whether the provider's analysis calls it a success, None if unknown; it counts where the end leaves the
    outcome open. `answered_by` is for a call that has not ended. `error`, the provider's own reason, is kept for failed
    and canceled calls. `do_not_call` is whether the analysis says that no more calls are wanted; `callback`, which
    counts more than the verdict, whether it says that another one is. `cost` is in US dollars. `telephony_id` is
    `CallReport.telephony_id`.
    """
    if isinstance(end, CallStatus):
        end = CallEnd(status=end, answered_by=answered_by)
    outcome = end.outcome
    if outcome is None and end.status is CallStatus.COMPLETED:
        if callback and not do_not_call:
            outcome = "callback"
        elif verdict is not None:
            outcome = "positive" if verdict else "negative"
    return CallReport(
        workspace_id=workspace_id,
        provider=provider,
        dispatch_id=dispatch_id,
        provider_id=provider_id,
        status=end.status,
        at=at,
        outcome=outcome,
        answered_by=end.answered_by,
        summary=summary,
        error=error if end.status in {CallStatus.FAILED, CallStatus.CANCELED} else None,
        reason=end.reason,
        retry_after_seconds=end.retry_after_seconds,
        message_left=end.message_left,
        do_not_call=end.do_not_call or do_not_call,
        telephony_id=telephony_id,
        raw=raw,
        transcript=transcript,
        cost=cost,
        cost_currency=None if cost is None else "USD",
    )


WORDED_REFUSALS: Final = frozenset({400, 404, 422})
"""Statuses of refusals without a code, which only the message distinguishes."""

RefusalWords = Sequence[tuple[Sequence[str], FailureClass]]
"""Words of a provider's messages with their class: the first row whose words all occur decides."""


def refusal_class(message: str, refusals: RefusalWords) -> FailureClass | None:
    """Return the class of a refusal by its message; None leaves it to the HTTP status."""
    said = message.lower()
    return next((reason for words, reason in refusals if all(word in said for word in words)), None)


CLOCK_SKEW: Final = timedelta(minutes=2)
"""The largest difference between a provider's clock and ours."""


def is_accepted(response: httpx.Response) -> bool:
    """Return True for a success response, False for a refusal.

    Raises:
        UnreadableResponse: It is neither, such as a redirect: the outcome is unknown.
    """
    if not response.is_success and not response.is_client_error:
        raise UnreadableResponse
    return response.is_success


def refused_locally(reason: FailureClass, message: str) -> DispatchOutcome:
    """Return the outcome of a call that the provider would refuse, for which no request is made."""
    return DispatchOutcome(state=DispatchState.REFUSED, reason=reason, error_code="not_asked", error_message=message)


PHONE_NUMBER_ID: Final = CredentialField(
    name="phone_number_id",
    description="The provider's identifier of the number of calls without a caller ID; of all calls without "
    "phone_numbers.",
    secret=False,
    required=False,
)
PHONE_NUMBERS: Final = CredentialField(
    name="phone_numbers",
    description="The provider's identifiers of several numbers: +14155550100=IDENTIFIER, more after a comma or a "
    "space.",
    secret=False,
    required=False,
)


def phone_number_ids(credentials: Mapping[str, str]) -> Mapping[str, str]:
    """Return the provider's ids of an account's numbers, by number.

    Raises:
        ValueError: The value is malformed.
    """
    pairs = [pair.partition("=") for pair in credentials.get(PHONE_NUMBERS.name, "").replace(",", " ").split()]
    if any(not (phone.startswith("+") and phone[1:].isdigit() and identifier) for phone, _, identifier in pairs):
        raise ValueError("phone_numbers")
    return {phone: identifier for phone, _, identifier in pairs}


def phone_number_problems(credentials: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the ids of an account's numbers."""
    try:
        numbers = phone_number_ids(credentials)
    except ValueError:
        return ["phone_numbers is written +14155550100=IDENTIFIER, more of them after a comma or a space."]
    if not numbers and not credentials.get(PHONE_NUMBER_ID.name):
        return ["phone_number_id or phone_numbers is required: calls are placed from a number at the provider."]
    return []


def number_id_of(request: CallRequest, credentials: Mapping[str, str]) -> str | None:
    """Return the provider's id of the number to call from; None if there is none.

    With listed numbers, a caller ID that is not listed has no id, because the call would show another number; without
    listed numbers, the same holds for a caller ID over a trunk without its own number. The trunk's id is for calls
    without a caller ID; the account's own number is for those without a trunk too, and for all without one if none are
    listed.
    """
    numbers = phone_number_ids(credentials)
    if request.from_number is not None and (numbers or request.provider_trunk is not None):
        return numbers.get(request.from_number)
    if request.provider_trunk is not None:
        return request.provider_trunk
    return credentials.get(PHONE_NUMBER_ID.name)
