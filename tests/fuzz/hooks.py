"""What only the server can know, told to Schemathesis. Everything else is said by openapi.yaml itself.

Only what Schemathesis takes for valid is touched. What it has broken on purpose is sent as it is, and no check is
left out: one failure of one check is accepted. Each rule has its reason beside it.

`schemathesis.toml` names this module, so that `st run openapi.yaml …` in a checkout uses it too. There the rules
know of no agent and no flow, unless the environment names them (see `Known`).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import attrs
import holidays
import schemathesis
from hypothesis import strategies as st
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import UseAfterFree

from outreach.core.clock import is_contact_zone, zone_names
from outreach.models.fields import Refused
from outreach.models.metadata import METADATA
from tests.fuzz import managing

Body = dict[str, Any]


def _named(name: str) -> Any:
    return attrs.field(factory=lambda: os.environ.get(f"OUTREACH_FUZZ_{name}"))


@attrs.define(kw_only=True)
class Known:
    """What exists in the workspace that is fuzzed; None where that is not known.

    Attributes:
        agent_id: An agent that may call out; `OUTREACH_FUZZ_AGENT`.
        flow_id: A flow that a campaign uses; `OUTREACH_FUZZ_FLOW`.
        trunk_id: A SIP trunk; `OUTREACH_FUZZ_TRUNK`.
        campaign_id: An SMS campaign with contacts; `OUTREACH_FUZZ_CAMPAIGN`.
        number_id: A number that a campaign uses; `OUTREACH_FUZZ_NUMBER`.
        message_id: A single message; `OUTREACH_FUZZ_MESSAGE`.
        inbound_id: An inbound message; `OUTREACH_FUZZ_INBOUND`.
        phone: A number on the register; `OUTREACH_FUZZ_PHONE`.
        schedule_id: A schedule of that campaign; `OUTREACH_FUZZ_SCHEDULE`.
        webhook_id: An endpoint; `OUTREACH_FUZZ_WEBHOOK`.
        upload_id: An upload of `managing.LIST`, complete; `OUTREACH_FUZZ_UPLOAD`.
        spare_upload_id: An upload that nothing but its removal is tried with; `OUTREACH_FUZZ_SPARE_UPLOAD`.
    """

    agent_id: str | None = _named("AGENT")
    flow_id: str | None = _named("FLOW")
    trunk_id: str | None = _named("TRUNK")
    campaign_id: str | None = _named("CAMPAIGN")
    number_id: str | None = _named("NUMBER")
    message_id: str | None = _named("MESSAGE")
    inbound_id: str | None = _named("INBOUND")
    phone: str | None = _named("PHONE")
    schedule_id: str | None = _named("SCHEDULE")
    webhook_id: str | None = _named("WEBHOOK")
    upload_id: str | None = _named("UPLOAD")
    spare_upload_id: str | None = _named("SPARE_UPLOAD")


KNOWN: Final = Known()
KEYS: Final = frozenset(f"#/components/parameters/{name}" for name in ("IdempotencyKey", "IdempotencyDays"))


# Which time zones there are, the server knows: of texts made up by the pattern next to none exists, and of the files
# of the database (`zoneinfo.available_timezones`) some are no zones, and some no contact's.
schemathesis.openapi.format("iana-time-zone", st.sampled_from(sorted(filter(is_contact_zone, zone_names()))))


def use(known: Known) -> None:
    """Let the rules name what exists in this workspace."""
    for field in attrs.fields(Known):
        setattr(KNOWN, field.name, getattr(known, field.name))


def use_a_flow_of_the_workspace(body: Body) -> None:
    """Name a flow that exists, or none.

    Reason: a flow that is not the workspace's own is a 400, since the interface lists no 404 for the operation, and
    no schema can hold the flows of a workspace.
    """
    if not _is_uuid(body.get("sms_flow_id")):
        return
    body["sms_flow_id"] = KNOWN.flow_id
    if KNOWN.flow_id is None and body.get("sms_message_source") == "flow":
        body["sms_message_source"] = "custom"
        body.setdefault("message_body", "")


def let_the_expiry_follow_the_start(body: Body) -> None:
    """Take an expiry out that is not after the start of a scheduled campaign.

    Reason: JSON Schema cannot compare two values.
    """
    if body.get("schedule_type") != "scheduled":
        return
    start, expiry = _moment(body.get("scheduled_start_at")), _moment(body.get("scheduled_expires_at"))
    if start is not None and expiry is not None and expiry <= start:
        del body["scheduled_expires_at"]


def let_windows_end_at_another_time(body: Body) -> None:
    """Let a window that would end when it starts end with the day.

    Reason: JSON Schema cannot compare two values; an empty window is no window, and 24 hours are 00:00 to 24:00.
    """
    for window in _windows(body.get("business_hours_config")):
        if window.get("start") is not None and window.get("start") == window.get("end"):
            window["end"] = "24:00"


def use_a_subdivision_of_the_country(body: Body) -> None:
    """Name a part that the country has, or none.

    Reason: which parts a country has is the library's to say, and is not repeated in the contract.
    """
    calendar = body.get("holidays_config")
    if not isinstance(calendar, dict) or not isinstance(calendar.get("subdivision"), str):
        return
    parts = holidays.list_supported_countries(include_aliases=False).get(str(calendar.get("country")), [])
    if parts:
        calendar["subdivision"] = parts[len(calendar["subdivision"]) % len(parts)]
    else:
        del calendar["subdivision"]


def leave_no_nul_in_variables(body: Body) -> None:
    """Take NUL out of the texts and keys within variables and metadata.

    Reason: a schema that refuses it at every depth is recursive, and generators of clients drop it.
    """
    people = body.get("recipients")
    owners = [
        (body, "variables"),
        (body, "metadata"),
        *((one, "custom_variables") for one in (people if isinstance(people, list) else [])),
    ]
    for owner, field in owners:
        if isinstance(owner, dict) and isinstance(owner.get(field), dict):
            owner[field] = _without_nul(owner[field])


def let_metadata_be_small(body: Body) -> None:
    """Take metadata out that is too long, or holds a number of more than 64 bits.

    Reason: no schema bounds the bytes of an object, or, without recursion, the numbers at every depth.
    """
    if isinstance(body.get("metadata"), dict):
        try:
            METADATA(body["metadata"])
        except Refused:
            del body["metadata"]


def let_the_number_be_the_first_of_its_pool(body: Body) -> None:
    """Name the first number of a pool where one number is named beside it.

    Reason: JSON Schema cannot compare two values.
    """
    pool = body.get("sms_from_numbers")
    if isinstance(pool, list) and pool and isinstance(body.get("sms_from_number"), str):
        body["sms_from_number"] = pool[0]


def use_an_agent_of_the_workspace(body: Body) -> None:
    """Name an agent that exists, in three of four bodies; a made-up one stays in the others.

    Reason: with made-up identifiers alone the answer is always 404, and nothing behind it would be tried.
    """
    if KNOWN.agent_id is not None and _is_three_of_four(body.get("agent_id")):
        body["agent_id"] = KNOWN.agent_id


def use_a_trunk_of_the_workspace(body: Body) -> None:
    """Name a trunk that exists, in three of four bodies that name one.

    Reason: the same as for agents.
    """
    if KNOWN.trunk_id is not None and _is_three_of_four(body.get("sip_trunk_id")):
        body["sip_trunk_id"] = KNOWN.trunk_id


def use_a_campaign_of_the_workspace(body: Body) -> None:
    """Name a campaign that exists as the template of a schedule, or as what a list is added to.

    Reason: one that is not the workspace's own is a 400 or 404, and no schema can hold the campaigns of a workspace.
    """
    for name in {"template_id", "campaign_id"} & body.keys():
        if KNOWN.campaign_id is not None and isinstance(body[name], str):
            body[name] = KNOWN.campaign_id


def begin_with_the_first_page(query: Body) -> None:
    """Take the place of a page in a list out.

    Reason: a place that the list has not given is a 400, and no schema can hold the places that it has given.
    """
    query.pop("after", None)


# Two other answers that only the server can know need no rule. "All contacts opted out" needs a number that is on
# the register: none of the numbers of openapi.yaml is, and no generator guesses one. "Undeclared variable" needs
# an agent that declares its placeholders: the one that is known declares none.
TRAIL_RULES: Final[tuple[Callable[[Body], None], ...]] = (
    use_a_flow_of_the_workspace,
    let_the_expiry_follow_the_start,
    let_windows_end_at_another_time,
    use_a_subdivision_of_the_country,
    leave_no_nul_in_variables,
    let_metadata_be_small,
    let_the_number_be_the_first_of_its_pool,
    use_an_agent_of_the_workspace,
    use_a_trunk_of_the_workspace,
    use_a_campaign_of_the_workspace,
)


@schemathesis.hook
def before_load_schema(context: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """Leave the idempotency key out.

    Reason: Schemathesis sends one value of a parameter with many bodies, and the same key with another body is a 400.
    """
    for item in raw_schema["paths"].values():
        for operation in item.values():
            listed = operation.get("parameters", [])
            operation["parameters"] = [parameter for parameter in listed if parameter.get("$ref") not in KEYS]


@schemathesis.hook
def map_path_parameters(context: schemathesis.HookContext, path_parameters: Body | None) -> Body | None:
    """Apply the rule to a path as it is made; what a link puts in afterwards stays."""
    if context.operation is not None and path_parameters is not None:
        managing.name_what_exists(context.operation.path, path_parameters, KNOWN, method=context.operation.method)
    return path_parameters


@schemathesis.hook
def before_call(context: Any, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:
    """Apply the rules to a path, a query and a body that are meant to be valid.

    The paths of examples are made before it is known what exists. They alone name it for certain: what else is made
    depends on the constants of the modules that are loaded, which Schemathesis uses.
    """
    if case.meta is None:
        return
    if case.meta.phase.name is TestPhase.EXAMPLES and case.method != "DELETE":
        managing.name_what_exists(case.operation.path, case.path_parameters, KNOWN, always=True)
    if not case.meta.is_negative_at(ParameterLocation.QUERY):
        begin_with_the_first_page(case.query)
    operation = str(case.operation.definition.raw.get("operationId"))
    if case.meta.is_negative_at(ParameterLocation.BODY):
        return
    if operation == "addUploadChunk" and not case.meta.is_negative_at(ParameterLocation.QUERY):
        case.body = managing.repeat_the_list(case.query)
    if isinstance(case.body, dict):
        for rule in TRAIL_RULES:
            rule(case.body)
        managing.repair(operation, case.body)


@schemathesis.hook
def after_call(context: Any, case: schemathesis.Case, response: schemathesis.Response) -> None:
    """Note which campaigns stay after their deletion."""
    managing.note_erased(case.operation.label, response.status_code, response.content)


@schemathesis.hook
def filter_failure(context: Any, failure: Failure, case: schemathesis.Case, response: schemathesis.Response) -> bool:
    """Return whether a failure counts.

    A campaign is there after its deletion, if it had ended. Reason: its contacts are erased then, and its figures
    stay, which the check knows nothing of. The times of a closed day may be anything. Reason: they are not read, and
    to say so, a schema must have a form of its own for closed days, which makes a union of the types of clients.
    """
    if isinstance(failure, AcceptedNegativeData):
        return not _has_a_closed_day(case.body)
    return not (isinstance(failure, UseAfterFree) and managing.is_erased(case.operation.path, case.path_parameters))


def _has_a_closed_day(body: Any) -> bool:
    hours = body.get("business_hours_config") if isinstance(body, dict) else None
    days = hours.get("days") if isinstance(hours, dict) else None
    return isinstance(days, dict) and any(
        isinstance(one, dict) and one.get("enabled") is False for one in days.values()
    )


def _windows(hours: Any) -> Iterator[dict[str, Any]]:
    """Yield everything in business hours that has a start and an end, in each of the three forms."""
    if not isinstance(hours, dict):
        return
    yield hours
    days = hours.get("days")
    if isinstance(days, dict):
        yield from (day for day in days.values() if isinstance(day, dict))
    schedule = hours.get("schedule")
    if isinstance(schedule, dict):
        for windows in schedule.values():
            if isinstance(windows, list):
                yield from (window for window in windows if isinstance(window, dict))


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\x00", "")
    if isinstance(value, list):
        return [_without_nul(item) for item in value]
    if isinstance(value, dict):
        return {_without_nul(key): _without_nul(item) for key, item in value.items()}
    return value


def _moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text.upper())
    except (AttributeError, ValueError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _is_uuid(value: Any) -> bool:
    try:
        return str(uuid.UUID(value)) == value.lower()
    except (AttributeError, TypeError, ValueError):
        return False


def _is_three_of_four(value: Any) -> bool:
    """Choose by the identifier itself, so that a case that is run again is the same case."""
    return _is_uuid(value) and value[-1].lower() not in "1357"
