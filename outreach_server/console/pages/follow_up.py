"""New campaigns from an earlier one: the same again, and to those who were not reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from starlette.responses import Response

from outreach import Campaign, Conflict, InvalidRequest
from outreach.models import NewFollowUp, RecipientCount
from outreach.reasons import describe_reason
from outreach_server.console import words
from outreach_server.console.context import Visit
from outreach_server.console.pages.new.steps import go_to, key_of
from outreach_server.console.sent_again import as_of_form

_RESULT: Final = "result-"
_INCLUDE: Final = "include-"
_INCLUDED: Final = {"replied": "Also who replied", "reached": "Also who was reached by another try"}
ENDED: Final = ("failed", "unconfirmed", "expired", "canceled", "skipped", "completed")
"""The states of contacts that have ended, in the order in which they are offered."""

_NOT_REACHED: Final = frozenset({"failed", "unconfirmed", "expired", "canceled"})
_NEVER: Final = frozenset({"invalid_number", "opted_out", "erased", "duplicate", "by_operator"})
"""Reasons that another message does not change: they are not chosen by themselves."""

_NONE: Final = "Choose at least one result."


@attrs.frozen(kw_only=True)
class ResultView:
    """A result to choose.

    Attributes:
        field: The name of its field.
        value: The state or reason.
    """

    field: str
    value: str
    word: str
    count: int
    chosen: bool


async def show(visit: Visit) -> Response:
    """Show the results with their counts; those who were not reached are chosen."""
    return await _page(visit, visit.subject)


async def act(visit: Visit) -> Response:
    """Create the campaign, and go on to its text."""
    campaign = visit.subject
    visit.chosen("follow-up")
    key, form = key_of(visit), visit.form
    results = [value for name, value in form.items() if name.startswith(_RESULT)]
    included: Any = [name for name in _INCLUDED if form.get(f"{_INCLUDE}{name}")]
    if not results:
        return await _page(visit, campaign, status=422, problems={"results": _NONE})
    body = form.get("body", "").replace("\r\n", "\n").strip()
    try:
        new = NewFollowUp(
            results=results,
            include=included,
            name=form.get("name", "").strip() or None,
            body=body if body and body != campaign.body else None,
        )
        made = await visit.engine.campaigns.follow_up(
            visit.place.id, campaign.id, new, idempotency_key=key, actor=visit.actor
        )
    except InvalidRequest as refused:
        error = as_of_form(refused)
        found = {one.path if one.path in {"name", "body"} else "": error.message for one in error.details}
        return await _page(visit, campaign, status=422, problems=found or {"": error.message})
    except Conflict as error:
        return await _page(visit, campaign, status=409, problems={"": error.message})
    return go_to(visit, "text", made.created.campaign)


async def clone(visit: Visit, campaign_id: str) -> Response:
    """Create the same campaign again with all its contacts, and go on to its text.

    Raises:
        OutreachError: The engine refuses it.
    """
    visit.chosen("clone")
    key = key_of(visit)
    made = await visit.engine.campaigns.clone(visit.place.id, campaign_id, idempotency_key=key, actor=visit.actor)
    return go_to(visit, "text", made.campaign)


async def _page(
    visit: Visit, campaign: Campaign, *, status: int = 200, problems: Mapping[str, str] | None = None
) -> Response:
    form = visit.form
    counts = await visit.engine.campaigns.count_recipients(visit.place.id, campaign.id)
    return visit.page(
        "follow_up",
        title=f"Follow-up · {words.visible(campaign.name)}",
        current="campaigns",
        status=status,
        problems=problems or {},
        campaign_id=campaign.id,
        name=campaign.name,
        results=_results(campaign, counts, form, visit.request.query_params),
        included=[(f"{_INCLUDE}{name}", word, bool(form.get(f"{_INCLUDE}{name}"))) for name, word in _INCLUDED.items()],
        new_name=form.get("name", ""),
        has_text=campaign.channel == "sms" and campaign.message_source == "custom",
        body=form.get("body", campaign.body or ""),
        key=visit.new_key(),
    )


def _results(
    campaign: Campaign, counts: Sequence[RecipientCount], form: Mapping[str, str], query: Mapping[str, str]
) -> Sequence[ResultView]:
    """Return the results that contacts have had: a state with all its reasons, or each reason where it has several.

    Args:
        campaign: The campaign.
        counts: Its contacts.
        form: What was chosen.
        query: The state and the reason that the address chooses; without a state, those who were not reached.
    """
    found: list[ResultView] = []
    state, of_reason = query.get("status", ""), query.get("reason", "")
    for status in ENDED:
        reasons = {one.reason: one.count for one in counts if one.status == status and one.count}
        word = words.CONTACT_STATES[status][0]
        if None in reasons or len(reasons) == 1:
            reasons = {None if None in reasons else next(iter(reasons)): sum(reasons.values())}
        for reason, count in reasons.items():
            field, value = f"{_RESULT}{len(found)}", reason or status
            why = describe_reason(status, reason, campaign.channel) if reason else None
            by_itself = (
                status == state and of_reason in {"", reason or status}
                if state
                else status in _NOT_REACHED and reason not in _NEVER
            )
            found.append(
                ResultView(
                    field=field,
                    value=value,
                    word=f"{word}: {why or reason.replace('_', ' ')}" if reason else word,
                    count=count,
                    chosen=form.get(field) == value if form else by_itself,
                )
            )
    return found
