"""What only the server can know of the operations under /manage. Each rule has its reason beside it.

As in `tests.fuzz.hooks`, only what Schemathesis takes for valid is touched.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

Body = dict[str, Any]

NOUNS: Final[Mapping[str, str]] = {
    "campaigns": "campaign_id",
    "agents": "agent_id",
    "numbers": "number_id",
    "flows": "flow_id",
    "schedules": "schedule_id",
    "webhooks": "webhook_id",
    "sms": "message_id",
    "inbound": "inbound_id",
    "unsubscribes": "phone",
    "uploads": "upload_id",
    "contacts": "phone",
}
"""What is known (`hooks.Known`), by the noun in a path. Accounts are not: no sandbox has one."""

_new_numbers: Final = itertools.count()
_erased: Final[set[str]] = set()


LIST: Final = b"phone\n+14155550400\n"
"""What the upload that is known holds: a number that no other rule names, so that nobody opts it out."""


def name_what_exists(
    path: str, parameters: dict[str, Any], known: Any, *, method: str = "get", always: bool = False
) -> None:
    """Name something that exists in three of four paths, or always; a made-up name stays in the others.

    Reason: with made-up names alone the answer is always 404, and nothing behind it would be tried.
    """
    noun = path.removeprefix("/manage/").split("/")[0]
    if not path.startswith("/manage/") or noun not in NOUNS:
        return
    # Nothing keeps an upload from being removed, as a campaign keeps what it uses.
    removes_upload = noun == "uploads" and method.lower() == "delete"
    exists = known.spare_upload_id if removes_upload else getattr(known, NOUNS[noun])
    for name, value in parameters.items():
        # Chosen by the text itself, so that a case that is run again is the same case; what is no text is no name.
        if not isinstance(value, str) or not value:
            continue
        if not always and zlib.crc32(repr(value).encode()) % 4 == 0:
            continue
        if name == "position":
            parameters[name] = "0"
        elif exists is not None:
            parameters[name] = exists


def note_erased(operation: str, status: int, answer: bytes) -> None:
    """Note a campaign that had ended when it was deleted: its contacts are erased, and it stays."""
    if operation == "DELETE /manage/campaigns/{id}" and status == HTTPStatus.OK:
        campaign = json.loads(answer)
        if campaign["erased_at"] is not None:
            _erased.add(campaign["id"])


def is_erased(path: str, parameters: Body) -> bool:
    """Return whether a path is one of such a campaign."""
    return path.startswith("/manage/campaigns/{id}") and parameters.get("id") in _erased


def repair(operation: str, body: Body) -> None:
    """Apply the rule of an operation, if it has one, to a body that is meant to be valid."""
    rule = RULES.get(operation)
    if rule is not None:
        rule(body)


def keep_to_the_channel_and_the_stored_times(body: Body) -> None:
    """Leave out what an SMS campaign has not, and an expiry, which the stored start may follow.

    Reason: both depend on the campaign.
    """
    body.pop("agent_id", None)
    for name in ("batch_concurrency", "cli_group_config", "retry_voicemail"):
        body.pop(name, None)
    if body.get("scheduled_expires_at") is not None:
        del body["scheduled_expires_at"]


def use_what_agents_can_have(body: Body) -> None:
    """Name a provider and a number that exist, declare no placeholders, and let the message go with its policy.

    Reason: which adapters there are, and which numbers, no schema can say; whether a message is needed depends, in an
    update, on the agent; and an agent that declares placeholders refuses calls with other variables.
    """
    if "placeholders" in body:
        body["placeholders"] = None
    if "provider" in body:
        body["provider"] = "simulator"
    if isinstance(body.get("from_number"), str):
        body["from_number"] = "+14155550100"
    if body.get("voicemail") == "leave_message":
        body["voicemail_message"] = "Call us back."
    else:
        body.pop("voicemail_message", None)


def use_a_new_number(body: Body) -> None:
    """Name a number that the workspace does not have.

    Reason: of texts made up by the pattern none is a number, and a workspace has each number once.
    """
    body["phone"] = f"+1415{2_000_000 + next(_new_numbers)}"


def let_steps_send_something(body: Body) -> None:
    """Give a blank text some words, and let one step send.

    Reason: `contains` is left out by generators of clients, and what is blank depends on the script.
    """
    steps = body.get("steps")
    if not isinstance(steps, list):
        return
    for step in steps:
        if isinstance(step.get("body"), str) and not step["body"].strip():
            step["body"] = "Hi"
    if all(step.get("kind") != "send" for step in steps):
        steps[0] = {"kind": "send", "body": "Hi"}


def use_numbers_that_could_be(body: Body) -> None:
    """Name numbers that are none of the examples' contacts.

    Reason: of texts made up by the pattern none is a number.
    """
    body["phone_numbers"] = [f"+14155550{300 + zlib.crc32(repr(one).encode()) % 100}" for one in body["phone_numbers"]]


def erase_a_number_that_could_be(body: Body) -> None:
    """Name a number that is none of the examples' contacts.

    Reason: of texts made up by the pattern none is a number.
    """
    body["phone_number"] = f"+14155550{300 + zlib.crc32(repr(body['phone_number']).encode()) % 100}"


def simulate_what_could_be(body: Body) -> None:
    """Name a contact that exists, and only what the event takes.

    Reason: which fields go with which event, and which numbers could be, no schema can say.
    """
    taken = {"reply": {"body": "Yes", "to": "+14155550100"}, "stop": {"to": "+14155550100"}}
    event = body["event"]
    body.clear()
    body |= {"event": event, "phone_number": "+14155550200"}
    body |= {"status": "delivered"} if event == "receipt" else taken.get(event, {})


def leave_no_text_blank(body: Body) -> None:
    """Empty a blank text, which restores the default.

    Reason: what is blank depends on the script.
    """
    for name in ("stop_text", "start_text", "help_text"):
        if isinstance(body.get(name), str) and not body[name].strip():
            body[name] = ""


def leave_nobody_out(body: Body) -> None:
    """Name no campaigns and no days.

    Reason: which campaigns there are the server knows, and whether somebody is left then.
    """
    if isinstance(body.get("leave_out"), dict):
        body["leave_out"] = {}


def take_any_failure(body: Body) -> None:
    """Name results that there are, and keep the text of the campaign.

    Reason: the names of results are the server's to say, and so is which text every contact can get.
    """
    leave_nobody_out(body)
    body["results"] = ["failed", "skipped"]
    body.pop("message_body", None)


def try_the_first_contact(body: Body) -> None:
    """Name a contact and a number that exist.

    Reason: of texts made up by the pattern none does.
    """
    body["contact"], body["to"] = "+14155550200", "+14155550300"
    body.pop("message", None)


def price_each_thing_once(body: Body) -> None:
    """Keep the first price, for every provider and country.

    Reason: which of them there are, and which prices are for the same thing, no schema can say.
    """
    body["prices"] = [{**body["prices"][0], "provider": None, "country": None}]


def narrow_the_hours_of_one_place(body: Body) -> None:
    """Keep the hours of one place that there is, with windows that end after their start.

    Reason: which countries and states there are, and which of two times is the later one, no schema can say.
    """
    if body["narrower_hours"]:
        hours = body["narrower_hours"][0]
        window = {"start": "09:00", "end": "20:00"}
        body["narrower_hours"] = [{**hours, "place": "US-FL", "schedule": {day: [window] for day in hours["schedule"]}}]


def read_the_list_as_it_is(body: Body) -> None:
    """Map nothing, read the file as it is, and load it into a campaign that could be.

    Reason: which columns and sheets a file has, and which campaigns there are, no schema can say; the campaign is that
    of POST /campaigns, whose own body is tried there.
    """
    for name in ("map", "region", "sheet", "encoding", "delimiter", "corrections"):
        body.pop(name, None)
    if isinstance(body.get("leave_out"), dict):
        body["leave_out"].pop("campaigns", None)
    if isinstance(body.get("campaign"), dict):
        body["campaign"] = {"channel": "sms", "name": "List", "message_body": "Hi"}


def repeat_the_list(query: Body) -> bytes:
    """Return the one chunk of the upload that is known, and name its place.

    Reason: where the next chunk begins, and how long the file is, no schema can say.
    """
    query["offset"] = 0
    return LIST


def repeat_each_week(body: Body) -> None:
    """Repeat by a rule and in a zone that exist, on days that follow each other.

    Reason: which rules and zones there are, and which days come before others, no schema can say.
    """
    given = {"rule": "FREQ=WEEKLY", "zone": "UTC", "starts_on": "2026-12-01"}
    for name in given.keys() & body.keys():
        body[name] = given[name]
    for name in ("ends_on", "audience_id", "except_dates"):
        body.pop(name, None)


def deliver_to_an_address_that_could_be(body: Body) -> None:
    """Name a public target, and types that there are.

    Reason: which hosts are public, and which types there are, no schema can say.
    """
    for name, value in (("url", "https://hooks.example.com/events"), ("types", ["campaign.*"])):
        if name in body:
            body[name] = value


def replay_from_the_beginning(body: Body) -> None:
    """Begin with the first event.

    Reason: how many there are, and that one of two is wanted, no schema can say.
    """
    body.clear()
    body["number"] = 1


RULES: Final[Mapping[str, Callable[[Body], None]]] = {
    "updateCampaign": keep_to_the_channel_and_the_stored_times,
    "createAgent": use_what_agents_can_have,
    "updateAgent": use_what_agents_can_have,
    "addNumber": use_a_new_number,
    "createFlow": let_steps_send_something,
    "updateFlow": let_steps_send_something,
    "createSchedule": repeat_each_week,
    "previewSchedule": repeat_each_week,
    "updateSchedule": repeat_each_week,
    "createWebhook": deliver_to_an_address_that_could_be,
    "updateWebhook": deliver_to_an_address_that_could_be,
    "replayWebhook": replay_from_the_beginning,
    "addUnsubscribes": use_numbers_that_could_be,
    "addRecipients": leave_nobody_out,
    "cloneCampaign": leave_nobody_out,
    "countAudience": leave_nobody_out,
    "erasePerson": erase_a_number_that_could_be,
    "followUpCampaign": take_any_failure,
    "simulateEvent": simulate_what_could_be,
    "sendTestMessage": try_the_first_contact,
    "setContactHours": narrow_the_hours_of_one_place,
    "setPrices": price_each_thing_once,
    "updateReplySettings": leave_no_text_blank,
    "checkUpload": read_the_list_as_it_is,
    "listUploadRejects": read_the_list_as_it_is,
    "loadUpload": read_the_list_as_it_is,
    "addUpload": read_the_list_as_it_is,
}
