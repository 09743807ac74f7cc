"""Campaigns as a console reads and changes them, with their recipients and events."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from outreach.errors import Problem
from outreach.models.base import CARRIERS, Channel
from outreach.models.campaign import Campaign, CampaignUpdate, Recipient, RecipientCount
from outreach.models.events import EVENT_KINDS, Event
from outreach.models.fields import OneOf
from outreach.models.reports import ProviderFailure
from outreach.models.states import (
    CampaignStatus,
    ContactHistory,
    MessageStatus,
    RecipientStatus,
    TrailStep,
    TrailStepKind,
)
from outreach.rules.explanations import PAUSE_REASONS, describe_reason
from outreach.serialization.campaigns import UPDATE_NAMES, caller_ids, times_rules, write_campaign
from outreach.serialization.documents import Document, chosen_fields, document_of, to_json, write_blocker
from outreach.serialization.field_rules import make_request_converter, read_object, uuid, with_json_paths

_WITH_FAILURE: Final = frozenset({TrailStepKind.OUTCOME, TrailStepKind.REPORTED, TrailStepKind.CALL_ENDED})
"""The steps that a provider's failure belongs to."""

_FAILURE_NAMES: Final = {
    "error_code": "error_code",
    "error_message": "error_message",
    "meaning": "error_meaning",
    "advice": "error_advice",
}


@attrs.frozen(kw_only=True)
class CampaignStart:
    """How to start a campaign.

    Attributes:
        allow_unknown_placeholders: Start although the text has placeholders without a value.
    """

    allow_unknown_placeholders: bool = False


_read_start: Final = make_request_converter(CampaignStart, closed="the start of a campaign")


def read_campaign_update(data: Any, *, this_year: int, carriers: Sequence[str] = ()) -> CampaignUpdate:
    """Return the update of a body of PATCH /manage/campaigns/{id}.

    Args:
        data: The parsed JSON, see `parse_json`.
        this_year: The first year of a country's holidays.
        carriers: Carriers that are accepted beside those of the interface.

    Raises:
        InvalidRequest: A field is unknown or out of its bounds; the details name each place.
    """
    return read_object(_update_reader(this_year, tuple(carriers)), data)


def read_campaign_start(data: Any) -> bool:
    """Return whether a body of POST /manage/campaigns/{id}/start allows placeholders without a value.

    Raises:
        InvalidRequest: A field is unknown or of another type; the details name each place.
    """
    return read_object(_read_start, data).allow_unknown_placeholders


def in_update_names(details: Iterable[Problem]) -> list[Problem]:
    """Return details of errors about a campaign with the JSON names of its fields."""
    return with_json_paths(details, UPDATE_NAMES)


def write_managed_campaign(
    campaign: Campaign,
    *,
    now: datetime,
    blockers: Sequence[Problem] = (),
    warnings: Sequence[Problem] = (),
) -> dict[str, Any]:
    """Return a campaign with what a console shows beside the interface's fields."""
    return {
        **write_campaign(campaign, now=now),
        "retry_voicemail": campaign.retry_voicemail,
        "replace_characters": campaign.replace_characters,
        "sms_from_numbers": list(campaign.from_numbers),
        "stay_open": campaign.stay_open,
        "external_id": campaign.external_id,
        "metadata": campaign.metadata,
        "pause_reason": campaign.pause_reason,
        "pause_why": PAUSE_REASONS.get(campaign.pause_reason or ""),
        "archived_at": to_json(campaign.archived_at),
        "erased_at": to_json(campaign.erased_at),
        "open_recipients": campaign.counters.open,
        "blockers": [write_blocker(one) for one in blockers],
        "warnings": to_json(in_update_names(warnings)),
    }


@functools.lru_cache(maxsize=4)
def _update_reader(this_year: int, carriers: tuple[str, ...]) -> Callable[[Any], CampaignUpdate]:
    return make_request_converter(
        CampaignUpdate,
        {
            **times_rules(this_year),
            "carrier": OneOf((*CARRIERS, *carriers)),
            "flow_id": uuid,
            "agent_id": uuid,
            "cli_group": caller_ids,
        },
        renamed=UPDATE_NAMES,
        closed="a campaign's update",
    )


def write_recipient(
    recipient: Recipient, channel: Channel, *, campaign_status: CampaignStatus | None = None
) -> dict[str, Any]:
    """Return a recipient, with its reason in words; these tell more where the campaign's state is given."""
    why = _why(recipient.status, recipient.reason, channel, campaign_status)
    return {**document_of(recipient, "campaign_id"), "why": why}


def write_recipient_count(
    group: RecipientCount,
    channel: Channel,
    due_times: Mapping[tuple[str, str | None], datetime],
    *,
    campaign_status: CampaignStatus | None = None,
) -> dict[str, Any]:
    """Return how many recipients are in a state for a reason, in words, and when the first of them is due."""
    return {
        **document_of(group),
        "why": _why(group.status, group.reason, channel, campaign_status),
        "until": to_json(due_times.get((group.status, group.reason))),
    }


def write_history(
    history: ContactHistory,
    failures: Mapping[str, ProviderFailure],
    channel: Channel,
    *,
    campaign_status: CampaignStatus | None = None,
) -> dict[str, Any]:
    """Return what happened to a recipient, step by step, with each rule and reason in words.

    Args:
        history: The history.
        failures: What went wrong at the provider, by dispatch.
        channel: The campaign's channel.
        campaign_status: The campaign's state, if known.
    """
    why = None
    if history.status is not None:
        report = _last_report(history.steps)
        why = describe_reason(history.status, history.reason, channel, report=report, campaign=campaign_status)
    return {
        **document_of(history, "steps"),
        "why": why,
        "steps": [_step(step, failures.get(step.dispatch_id or "")) for step in history.steps],
    }


def write_failure(failure: ProviderFailure | None) -> dict[str, Any]:
    """Return a provider's code and words, what they mean and what to do; each is null without a failure."""
    if failure is None:
        return dict.fromkeys(_FAILURE_NAMES.values())
    return chosen_fields(failure, tuple(_FAILURE_NAMES), renamed=_FAILURE_NAMES)


def _why(status: str, reason: str | None, channel: Channel, campaign_status: CampaignStatus | None) -> str | None:
    """Return a state and its reason in words that hold whatever the carrier has reported since."""
    if channel == "sms" and (status, reason) == (RecipientStatus.COMPLETED, None):
        return "sent"
    return describe_reason(status, reason, channel, campaign=campaign_status)


def _last_report(steps: Sequence[TrailStep]) -> MessageStatus | None:
    """Return the carrier's report on the last message, if there is one."""
    for step in reversed(steps):
        if step.what is TrailStepKind.INTENT:
            break
        if step.what is TrailStepKind.REPORTED and step.state in set(MessageStatus):
            return MessageStatus(step.state)
    return None


def _step(step: TrailStep, failure: ProviderFailure | None) -> Document:
    shown = failure if step.what in _WITH_FAILURE else None
    return {**document_of(step), "rule_text": step.rule.text, **write_failure(shown)}


def _name(kind: type[Event]) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


EVENT_TYPES: Final[Mapping[str, type[Event]]] = {_name(one): one for one, kind in EVENT_KINDS.items() if kind.in_feed}
"""The classes of events by their names in JSON."""


def write_event(event: Event) -> dict[str, Any]:
    """Return an event, with its type."""
    return {
        "number": event.number,
        "type": _name(type(event)),
        **document_of(event, "number", "workspace_id"),
    }
