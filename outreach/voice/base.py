"""What the adapters of voice providers share: options as variables, ways in which calls end, numbers, reports.

A provider that has no field of its own for an option gets it as a variable, so that an agent's prompt can use it
(`docs/voice-variables.md` lists them). Names that begin with an underscore are kept from campaigns' own variables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import attrs

from outreach.models.call import CallOutcome
from outreach.models.dispatch import DispatchOutcome, FailureClass
from outreach.models.reports import CallReport
from outreach.models.states import CallStatus, DispatchState
from outreach.protocols.adapter import CredentialField
from outreach.protocols.voice import CallRequest
from outreach.wire.sending import UnreadableResponse

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
"""The names that options travel under; a contact's own variable of such a name is not handed on."""


def variables_of(request: CallRequest, *, native: Collection[str] = ()) -> dict[str, str]:
    """Return a call's variables with those of its options that the provider has no field for.

    Args:
        request: The call.
        native: The names above for which the provider has fields of its own.

    Returns:
        Texts by name: the contact's variables, and the options that are set; the options win.
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
    """How a call ended, in the engine's words: what one of a provider's own reasons means (docs/adding-a-provider.md).

    Attributes:
        status: One of the ended statuses.
        outcome: What it came to where the way it ended says so; None leaves it to the analysis, or to the status.
        answered_by: `human`, `machine` or None.
        reason: Failure class of a failure. `temporary` and `rate_limited` say that nobody was reached: such a call is
            made again. None otherwise.
        do_not_call: Whether the contact asked not to be called again.
    """

    status: CallStatus
    outcome: CallOutcome | None = None
    answered_by: str | None = None
    reason: FailureClass | None = None
    do_not_call: bool = False


ANSWERED_BY_PERSON: Final = CallEnd(status=CallStatus.COMPLETED, answered_by="human")
"""Somebody answered, and whoever ended it ended it: hung up, said goodbye, was silent, was handed on."""
MACHINE: Final = CallEnd(status=CallStatus.COMPLETED, outcome="voicemail", answered_by="machine")
"""A mailbox or a menu answered."""
NO_ANSWER: Final = CallEnd(status=CallStatus.NO_ANSWER)
BUSY: Final = CallEnd(status=CallStatus.BUSY)
DECLINED: Final = CallEnd(status=CallStatus.BUSY, outcome="declined")
DO_NOT_CALL: Final = CallEnd(status=CallStatus.COMPLETED, outcome="negative", answered_by="human", do_not_call=True)
CANCELED: Final = CallEnd(status=CallStatus.CANCELED)
"""Somebody stopped it at the provider before it was a call."""
INVALID_NUMBER: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="invalid_number")
BLOCKED: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="filtered")
"""Taken for spam or fraud, or not let through by somebody's rules."""
BAD_SETUP: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="bad_sender")
"""The agent or the number is not as the provider needs it."""
CAPACITY: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="rate_limited")
"""The account has no place for another call: nobody was called."""
NOT_CONNECTED: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="temporary")
"""The provider failed before it called anybody."""
FUNDS: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="provider_funds")
FAILED_AT_PROVIDER: Final = CallEnd(status=CallStatus.FAILED, outcome="failed", reason="provider_error")
"""The provider failed, and somebody may have answered: the call is not made again. Also what nobody knows yet."""


REASON_DEADLINE: Final = timedelta(minutes=5)
"""How long after a call's end its reason may still come, with the provider's report or in its record of the call."""

NO_REASON_SUFFIX: Final = ":without-reason"
"""Ends the identifier of an event that tells an end alone, so that the same event with its reason is another one."""


def provisional_end(end: CallEnd, ended_at: datetime | None, *, now: datetime) -> CallEnd | CallStatus:
    """Return what a call's end means for which no reason is told (yet): that there was a call, and later how it ended.

    Until the reason has had its time, an end of whatever kind would be made up, and could not be taken back. Who asks
    for the call afterwards is told its end; where no time of it is known the call ends by its silence.

    Args:
        end: How it ended, going by the status alone.
        ended_at: When, by the provider's clock; None where it does not say.
        now: The present moment.
    """
    return end if ended_at is not None and now - ended_at >= REASON_DEADLINE else CallStatus.INITIATED


DO_NOT_CALL_FIELD: Final = "do_not_call"
"""What the analysis of a call has to say about, at every provider, to tell that somebody wants no more of them."""


def is_do_not_call(found: object) -> bool:
    """Return whether an analysis says that somebody asked not to be called again.

    docs/opt-out.md#what-puts-a-number-there.

    Args:
        found: What it has under `DO_NOT_CALL_FIELD`. A plain yes counts; what is anything else says nothing.
    """
    return found is True or (isinstance(found, str) and found.strip().lower() in {"true", "yes"})


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
    telephony_id: str | None = None,
    raw: Any = None,
) -> CallReport:
    """Return the report of an event, by how the call ended or by the status of one that has not.

    `verdict` is whether the provider's analysis calls it a success, None where it does not say; it counts where the
    way the call ended leaves the outcome open: a machine that was left a message is no success. `answered_by` is
    for a call that has not ended. `error`, the provider's own reason, is kept where the call failed or was
    canceled. `do_not_call` is whether the analysis says that no more calls are wanted, which the way the call ended
    may say too. `telephony_id` is for providers that may have answered with it (`CallReport.telephony_id`).
    """
    if isinstance(end, CallStatus):
        end = CallEnd(status=end, answered_by=answered_by)
    outcome = end.outcome
    if outcome is None and end.status is CallStatus.COMPLETED and verdict is not None:
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
        do_not_call=end.do_not_call or do_not_call,
        telephony_id=telephony_id,
        raw=raw,
    )


def is_accepted(response: httpx.Response) -> bool:
    """Return whether an answer is one of success; False for a refusal.

    Raises:
        UnreadableResponse: It is neither, such as a redirect: nobody can tell what the provider did.
    """
    if not response.is_success and not response.is_client_error:
        raise UnreadableResponse
    return response.is_success


def refused_locally(reason: FailureClass, message: str) -> DispatchOutcome:
    """Return the outcome of a call that is not asked for, because the provider could only say no."""
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
    """Return the provider's identifiers of an account's numbers, by number.

    Raises:
        ValueError: What is written there is none of that.
    """
    pairs = [pair.partition("=") for pair in credentials.get(PHONE_NUMBERS.name, "").replace(",", " ").split()]
    if any(not (phone.startswith("+") and phone[1:].isdigit() and identifier) for phone, _, identifier in pairs):
        raise ValueError("phone_numbers")
    return {phone: identifier for phone, _, identifier in pairs}


def phone_number_problems(credentials: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the identifiers of an account's numbers."""
    try:
        numbers = phone_number_ids(credentials)
    except ValueError:
        return ["phone_numbers is written +14155550100=IDENTIFIER, more of them after a comma or a space."]
    if not numbers and not credentials.get(PHONE_NUMBER_ID.name):
        return ["phone_number_id or phone_numbers is needed: calls are placed from a number of the provider's."]
    return []


def number_id_of(request: CallRequest, credentials: Mapping[str, str]) -> str | None:
    """Return the provider's identifier of what a call is placed from; None where there is none.

    Where numbers are listed, a caller ID that is none of them has no identifier: the call would show another number
    than was asked for. So it would over a trunk that names no number of its own, where none are listed. The trunk's
    identifier is for calls that name no caller ID; the account's own number for those without a trunk as well, and for
    all without one where no numbers are listed.
    """
    numbers = phone_number_ids(credentials)
    if request.from_number is not None and (numbers or request.provider_trunk is not None):
        return numbers.get(request.from_number)
    if request.provider_trunk is not None:
        return request.provider_trunk
    return credentials.get(PHONE_NUMBER_ID.name)
