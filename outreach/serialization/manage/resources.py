"""Agents, numbers, flows and accounts, settings, the register and messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

import attrs

from outreach.errors import InvalidRequest
from outreach.models.account import Account
from outreach.models.base import CARRIERS, hidden_fields
from outreach.models.call import NewCallOutcome
from outreach.models.campaign import RecipientSkip
from outreach.models.dispatch import DispatchFilter
from outreach.models.fields import FieldRule, OneOf
from outreach.models.history import HistoryItem
from outreach.models.message import InboundMessage, Message
from outreach.models.reports import ProviderFailure
from outreach.models.resources import (
    MAX_STEPS,
    FlowStep,
    FlowUpdate,
    NewFlow,
    NewNumber,
    NumberUpdate,
)
from outreach.models.settings import (
    CallSettings,
    CallSettingsUpdate,
    PlaceHours,
    ReplyPurpose,
    ReplySettings,
    ReplySettingsUpdate,
    ReplyText,
    SmsSettings,
)
from outreach.models.unsubscribe import NewUnsubscribes, Unsubscribe
from outreach.models.workspace import MAX_PLACES, NewWorkspace, Workspace
from outreach.serialization.business_hours import read_schedule
from outreach.serialization.campaigns import write_sms_settings
from outreach.serialization.documents import chosen_fields, document_of
from outreach.serialization.field_rules import Array, make_request_converter, nested, read_object, uuid
from outreach.serialization.manage.campaigns import write_failure

N = TypeVar("N")
U = TypeVar("U")


@attrs.frozen
class ResourceBodies(Generic[N, U]):
    """Reads and writes the bodies of a resource under /manage.

    Attributes:
        read_new: Returns the `New…` of a body, or raises `InvalidRequest`, whose details name each place.
        read_update: Returns the `…Update` of a body, or raises `InvalidRequest`.
    """

    read_new: Callable[[Any], N]
    read_update: Callable[[Any], U]

    def write(self, item: object) -> dict[str, Any]:
        """Return a model as JSON."""
        return document_of(item, "workspace_id", *hidden_fields(type(item)))

    def repeated(self, item: Any) -> Any:
        """Return what a repeated request is answered with: the same, without what is shown once."""
        return item


def resource_bodies(
    new: type[N], update: type[U], called: str, rules: Mapping[str, FieldRule] | None = None
) -> ResourceBodies[N, U]:
    """Return how the bodies of a resource are read and written.

    Args:
        new: The model of a POST.
        update: The model of a PATCH.
        called: The name of the object in errors, such as `an agent`.
        rules: Rules of fields that take another form in JSON than in the models.
    """
    return ResourceBodies(
        partial(read_object, make_request_converter(new, rules, closed=called)),
        partial(read_object, make_request_converter(update, rules, closed=f"{called}'s update")),
    )


FLOW_BODIES: Final = resource_bodies(
    NewFlow,
    FlowUpdate,
    "a flow",
    {"steps": Array(nested(make_request_converter(FlowStep, closed="a step")), 1, MAX_STEPS)},
)


@cache
def number_bodies(carriers: tuple[str, ...] = ()) -> ResourceBodies[NewNumber, NumberUpdate]:
    """Return how the bodies of numbers are read and written.

    Args:
        carriers: Carriers that are accepted beside those of the interface.
    """
    rules: Mapping[str, FieldRule] = {"carrier": OneOf((*CARRIERS, *carriers)), "trunk_id": uuid}
    return resource_bodies(NewNumber, NumberUpdate, "a number", rules)


@attrs.frozen(kw_only=True)
class NarrowerHours:
    """The narrower contact hours of a workspace.

    Attributes:
        narrower_hours: All of them.
    """

    _rules_from: ClassVar = (NewWorkspace,)

    narrower_hours: Sequence[PlaceHours]


_REPLIES: Final[dict[ReplyPurpose, str]] = {
    "opt_out_confirmation": "stop",
    "opt_in_confirmation": "start",
    "help": "help",
}
_read_calls: Final = make_request_converter(CallSettingsUpdate, closed="the settings of calls")
_read_replies: Final = make_request_converter(ReplySettingsUpdate, closed="the settings of replies")
_read_place_hours: Final = make_request_converter(PlaceHours, {"schedule": read_schedule}, closed="hours of a place")
_read_hours: Final = make_request_converter(
    NarrowerHours,
    {"narrower_hours": Array(nested(_read_place_hours), maximum=MAX_PLACES)},
    closed="narrower contact hours",
)


def write_account(account: Account) -> dict[str, Any]:
    """Return an account; secrets are not in its summary."""
    return document_of(account, "workspace_id")


def write_managed_sms(message: Message) -> dict[str, Any]:
    """Return a single message as it is under /manage."""
    return document_of(message, "workspace_id", "send_until", "tries")


def write_sms(message: Message, failure: ProviderFailure | None) -> dict[str, Any]:
    """Return a single message, with what its carrier said where it failed."""
    return {**write_managed_sms(message), **write_failure(failure)}


def write_inbound_message(message: InboundMessage) -> dict[str, Any]:
    """Return an inbound message."""
    return document_of(message, "workspace_id")


def write_history_item(item: HistoryItem) -> dict[str, Any]:
    """Return an item of everything with one number."""
    return document_of(item)


def read_call_settings_update(data: Any) -> CallSettingsUpdate:
    """Return the update of a body of PATCH /manage/settings/calls.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_calls, data)


def read_reply_settings_update(data: Any) -> ReplySettingsUpdate:
    """Return the update of a body of PATCH /manage/settings/replies.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_replies, data)


def read_narrower_hours(data: Any) -> Sequence[PlaceHours]:
    """Return the hours of a body of PUT /manage/settings/contact-hours.

    Raises:
        InvalidRequest: A field is unknown or breaks a rule; the details name each place.
    """
    return read_object(_read_hours, data).narrower_hours


def write_contact_hours(workspace: Workspace) -> dict[str, Any]:
    """Return the contact hours of a workspace."""
    return chosen_fields(workspace, ("contact_hours", "narrower_hours"))


def write_settings(
    workspace: Workspace,
    messages: SmsSettings,
    calls: CallSettings,
    replies: ReplySettings,
    texts: Sequence[ReplyText],
) -> dict[str, Any]:
    """Return all settings of a workspace."""
    return {
        "workspace": document_of(workspace, *hidden_fields(Workspace)),
        "sms": write_sms_settings(messages),
        "calls": document_of(calls),
        "replies": write_reply_settings(replies, texts),
    }


def write_reply_settings(settings: ReplySettings, texts: Sequence[ReplyText]) -> dict[str, Any]:
    """Return the settings of replies to keywords, with the texts and segments as they are sent."""
    sent = {_REPLIES[one.purpose]: one for one in texts}
    return {
        **document_of(settings),
        "effective": {name: {"text": one.text, "segments": one.segments} for name, one in sent.items()},
    }


@attrs.frozen(kw_only=True)
class Decision:
    """The decision of a person about a held number.

    Attributes:
        opted_out: Whether its message was an opt-out.
    """

    opted_out: bool


@attrs.frozen(kw_only=True)
class ErasureRequest:
    """The erasure of one person.

    Attributes:
        phone_number: In any notation.
        confirm: Whether it is meant.
    """

    phone_number: str
    confirm: bool


@attrs.frozen(kw_only=True)
class DispatchDecision:
    """A decision about many requests with an unknown outcome.

    Attributes:
        decision: `undo` takes earlier decisions back.
        dry_run: Whether nothing is changed.
        which: The requests.
    """

    decision: Literal["assume_sent", "retry", "undo"]
    dry_run: bool
    which: DispatchFilter = attrs.field(factory=DispatchFilter)


_read_dispatch_decision: Final = make_request_converter(
    DispatchDecision,
    {"which": nested(make_request_converter(DispatchFilter, {"campaign_id": uuid}, closed="a filter of requests"))},
    closed="a decision about requests",
)
_read_skip: Final = make_request_converter(RecipientSkip, closed="a reason")
_read_verdict: Final = make_request_converter(NewCallOutcome, closed="a verdict")
_read_erasure: Final = make_request_converter(ErasureRequest, closed="an erasure")
_read_new: Final = make_request_converter(NewUnsubscribes, closed="an addition to the register")
_read_decision: Final = make_request_converter(Decision, closed="a decision")


def read_new_unsubscribes(data: Any) -> NewUnsubscribes:
    """Return the numbers of a body of POST /manage/unsubscribes.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_new, data)


def read_decision(data: Any) -> bool:
    """Return whether a body of POST /manage/unsubscribes/{phone}/resolve says that it was an opt-out.

    Raises:
        InvalidRequest: A field is unknown or of another type; the details name each place.
    """
    return read_object(_read_decision, data).opted_out


def read_dispatch_decision(data: Any) -> DispatchDecision:
    """Return the decision of a body of PUT /manage/dispatches/decision.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_dispatch_decision, data)


def read_call_verdict(data: Any) -> NewCallOutcome:
    """Return the verdict of a body of PUT /manage/calls/{id}/outcome.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_verdict, data)


def read_recipient_skip(data: Any) -> RecipientSkip:
    """Return why a contact is left out, by a body of POST /manage/campaigns/{id}/recipients/{position}/skip.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_read_skip, data)


def read_erasure(data: Any) -> str:
    """Return the number in a body of PUT /manage/erasures.

    Raises:
        InvalidRequest: A field is unknown or of another type, or the erasure is not confirmed.
    """
    request = read_object(_read_erasure, data)
    if not request.confirm:
        raise InvalidRequest.at("confirm", "must be true: what is erased cannot be brought back")
    return request.phone_number


def write_unsubscribe(entry: Unsubscribe) -> dict[str, Any]:
    """Return an entry of the register."""
    return document_of(entry, "workspace_id")
