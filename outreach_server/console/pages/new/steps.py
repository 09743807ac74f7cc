"""Shared parts of the steps of a new campaign: their places, the draft, and the faults of fields."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from typing import Final

import attrs
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from outreach import Campaign, CampaignStatus, InvalidRequest
from outreach.errors import Problem
from outreach_server.console.context import Visit
from outreach_server.console.security.forms import KEY_FIELD
from outreach_server.console.sent_again import as_of_form

STEPS: Final = (("audience", "Contacts"), ("text", "Text"), ("when", "Time"), ("check", "Check"))

REVISION_FIELD: Final = "revision"

_CHANGED: Final = (
    "It was changed since this page was loaded, so nothing was done. Here is how it is now, with what you typed: look "
    "at it, and send it again."
)

_NOT_STARTED: Final = frozenset({CampaignStatus.DRAFT, CampaignStatus.READY})

FIELDS: Final[Mapping[str, str]] = {
    "rate_per_minute": "rate",
    "batch_concurrency": "rate",
    "scheduled_start_at": "start_at",
    "scheduled_expires_at": "expires_at",
    "from_number": "number",
    "carrier": "number",
    "business_hours": "opens",
    "agent_id": "agent",
    "contacted_within_days": "days",
}
"""The field of a form that has a field of a campaign, where it has another name."""

_LABELS: Final[Mapping[str, str]] = {
    "name": "The name",
    "body": "The text",
    "number": "The number",
    "rate": "The rate",
    "start_at": "The start",
    "expires_at": "The end",
    "opens": "The hours",
    "to": "Your number",
    "country": "The country",
    "dates": "The dates",
    "days": "What you typed",
}


@attrs.frozen(kw_only=True)
class StepView:
    """A step of a new campaign.

    Attributes:
        url: Its page; empty while it has none.
    """

    word: str
    url: str
    current: bool


@attrs.frozen(kw_only=True)
class Choice:
    """One value that can be chosen."""

    value: str
    word: str
    chosen: bool


_NEEDS: Final[Mapping[str, str]] = {
    "body": "It has no text yet",
    "flow_id": "It has no flow yet",
    "from_number": "It has no number to send from",
    "carrier": "It has no carrier that sends",
    "agent_id": "It has no agent that calls",
}
"""The parts that a draft lacks, without the names of fields."""


def steps_of(visit: Visit, current: str, campaign: Campaign | None = None) -> Sequence[StepView]:
    """Return the four steps; those after the contacts have a page once there is a draft."""
    return [
        StepView(
            word=word,
            url="" if campaign is None or name == "audience" else step_url(visit, name, campaign),
            current=name == current,
        )
        for name, word in STEPS
    ]


def step_url(visit: Visit, name: str, campaign: Campaign) -> str:
    """Return the address of a step of a draft."""
    return visit.url(f"new-{name}", {"campaign": campaign.id})


def go_to(visit: Visit, name: str, campaign: Campaign) -> Response:
    """Return the answer to a form that leads to another step."""
    return RedirectResponse(step_url(visit, name, campaign), 303)


def is_draft(campaign: Campaign) -> bool:
    """Return whether a campaign has not been started, so that it has these steps."""
    return campaign.status in _NOT_STARTED


def of_draft(
    page: Callable[[Visit, Campaign], Awaitable[Response]],
) -> Callable[[Visit], Awaitable[Response]]:
    """Give a page of a step the campaign that the address names; lead to that campaign's page if it is no draft.

    Raises:
        NotFound: The workspace has no such campaign.
    """

    @wraps(page)
    async def answer(visit: Visit) -> Response:
        campaign = await visit.engine.campaigns.get(visit.place.id, visit.request.query_params.get("campaign", ""))
        if not is_draft(campaign):
            return visit.go("campaign", campaign=campaign.id)
        return await page(visit, campaign)

    return answer


def stale_of(visit: Visit, campaign: Campaign) -> str:
    """Return what is said if a draft was changed after the form that was sent was made; empty if it was not."""
    return "" if visit.form.get(REVISION_FIELD) == str(campaign.revision) else _CHANGED


def problems_of(error: InvalidRequest) -> dict[str, str]:
    """Return the problems by the field of the form; one about no field has an empty name."""
    error = as_of_form(error)
    if not error.details:
        return {"": error.message}
    found: dict[str, str] = {}
    for one in error.details:
        path = one.path.removeprefix("campaign.").partition(".")[0].partition("[")[0]
        field = FIELDS.get(path, path)
        is_sentence = one.message[:1].isupper()
        said = sentence_of(one) if is_sentence else f"{_LABELS.get(field, field)} {_in_words(one.message)}."
        found.setdefault(field if field in _LABELS else "", said)
    return found


def sentence_of(one: Problem) -> str:
    """Return a problem that is said in a sentence, without the names of fields."""
    lacks = _NEEDS.get(one.path) if one.message.startswith("It has no ") else None
    message = one.message.replace(" (max_segments)", "").replace("scheduled_expires_at", "end")
    return f"{(lacks or message).rstrip('.')}."


def _in_words(message: str) -> str:
    """Return a message with the words of this page for the fields of a campaign that it names."""
    for name, field in FIELDS.items():
        if "_" in name and field in _LABELS:
            message = message.replace(name, _LABELS[field].lower())
    return message.rstrip(".")


def key_of(visit: Visit) -> str:
    """Return the key of the form that was sent, for what is done once.

    Raises:
        HTTPException: It has none.
    """
    key = visit.form.get(KEY_FIELD, "")
    if not 1 <= len(key) <= 100:
        raise HTTPException(400)
    return f"console:{key}"
