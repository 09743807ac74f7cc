"""Requests whose outcome nobody knows, with their evidence, decided one by one or by a filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from starlette.responses import Response

from outreach import Conflict, Dispatch
from outreach.models import DecisionResult, DispatchFilter, DispatchLookUp, DispatchState, PriceTable
from outreach.reasons import describe_reason
from outreach.server_support import JoinedReads
from outreach_server.console import words
from outreach_server.console.context import Visit, not_found
from outreach_server.console.pages.campaign_views import MomentView, moment_of
from outreach_server.console.pages.new.steps import Choice, key_of
from outreach_server.console.pages.phones import phone_url
from outreach_server.console.pages.unknown_words import cost_of_retry, decided_meanwhile, latest_decision, reported

PAGE_SIZE: Final = 50
_MOST_CAMPAIGNS: Final = 100
DECISIONS: Final[Mapping[str, tuple[str, str]]] = {
    "assume_sent": (
        "Treat as sent",
        "It counts as accepted. Who did not get it gets nothing more for this request.",
    ),
    "retry": ("Try again", "The person may get it twice, if the first one has arrived."),
}
"""Of each decision: its button, and what it risks."""

_SHARE: Final = 0.01
"""How far the number of requests may be from the one that was shown."""

_OTHER_NUMBER: Final = "The number of requests has changed since this page was shown. Look at it, and decide again."


@attrs.frozen(kw_only=True)
class UnknownView:
    """A request with an unknown outcome.

    Attributes:
        contact_url: The trail of its contact; empty for a single message or call.
        why: Why nobody knows.
        said: The provider's reports, if any.
        second_try: The cost of a second try.
        deadline: When it ends as unconfirmed.
        retry_from: From when on it can be tried again; None for now.
        keys: The keys of its two forms.
    """

    id: str
    phone: str
    phone_url: str
    contact_url: str
    campaign: str
    channel: str
    text: str
    provider: str
    why: str
    said: str
    second_try: str
    asked_at: MomentView
    deadline: MomentView
    retry_from: MomentView | None
    keys: tuple[str, str]


@attrs.frozen(kw_only=True)
class PlanView:
    """The effect that a decision about many requests would have.

    Attributes:
        label: Its button, with the number.
        becomes: The states of the contacts after it, in words.
    """

    decision: str
    label: str
    risk: str
    changed: int
    kept: int
    becomes: Sequence[str]
    chosen: Mapping[str, str]
    key: str


async def show(visit: Visit) -> Response:
    """Show the oldest, or what a decision about many of them would do."""
    decision = visit.request.query_params.get("decide", "")
    if decision not in {*DECISIONS, ""}:
        raise not_found()
    return await _page(visit, decision=decision)


async def act(visit: Visit) -> Response:
    """Decide about one request, or about all that a filter names, if they are as many as were shown."""
    decision: Any = visit.chosen("look-up", *DECISIONS)
    key_of(visit)
    form, place, dispatches = visit.form, visit.place.id, visit.engine.dispatches
    if decision == "look-up" or "dispatch" in form:
        try:
            if decision == "look-up":
                found = await dispatches.look_up(place, form.get("dispatch", ""), actor=visit.actor)
                if found.dispatch.state is DispatchState.UNKNOWN:
                    return await _page(visit, note=_no_evidence(found))
            else:
                await dispatches.resolve(place, form["dispatch"], decision, actor=visit.actor)
        except Conflict as error:
            return await _page(visit, status=409, problem=await _collision(visit, form["dispatch"]) or error.message)
        return visit.go("unknown", said=decision)
    shown = visit.shown_number("number")
    which = _filter(form)
    planned = await dispatches.resolve_many(place, decision, which, dry_run=True, actor=visit.actor)
    if abs(planned.changed - shown) > _SHARE * shown:
        problem = f"{_OTHER_NUMBER} {await latest_decision(visit)}".rstrip()
        return await _page(visit, status=409, problem=problem, decision=decision, planned=planned)
    await dispatches.resolve_many(place, decision, which, actor=visit.actor)
    return visit.go("unknown", said=decision)


async def _collision(visit: Visit, dispatch_id: str) -> str:
    """Return who has settled a request meanwhile; empty while it is unknown."""
    found = await visit.engine.dispatches.get(visit.place.id, dispatch_id)
    return "" if found.state is DispatchState.UNKNOWN else await decided_meanwhile(visit, found)


def _no_evidence(found: DispatchLookUp) -> str:
    """Return what a look-up that settled nothing has found."""
    if found.answer is None:
        said = "has no record that proves anything, or cannot be asked"
    else:
        said = f"said {found.answer.replace('_', ' ')}, which proves nothing yet"
    return f"{found.dispatch.provider} was asked about {found.dispatch.to}: it {said}. The request stays unknown."


def _filter(given: Mapping[str, str]) -> DispatchFilter:
    return DispatchFilter(
        campaign_id=given.get("campaign") or None,
        provider=given.get("provider") or None,
        reason=given.get("reason") or None,
    )


async def _page(
    visit: Visit,
    *,
    status: int = 200,
    problem: str = "",
    note: str = "",
    decision: str = "",
    planned: DecisionResult | None = None,
) -> Response:
    query, place = visit.request.query_params, visit.place.id
    after = query.get("after")
    async with JoinedReads() as reads:
        listing = reads.start(visit.engine.dispatches.list_unknown(place, after=after or None, limit=PAGE_SIZE))
        listed = reads.start(visit.engine.campaigns.list(place, limit=_MOST_CAMPAIGNS))
        priced = reads.start(visit.engine.prices.get(place))
    page, names = listing.result(), {one.id: one.name for one in listed.result().items}
    given = visit.form or query
    chosen = {name: given.get(name, "") for name in ("campaign", "provider", "reason")}
    if decision and planned is None:
        planned = await visit.engine.dispatches.resolve_many(
            place, "retry" if decision == "retry" else "assume_sent", _filter(chosen), dry_run=True, actor=visit.actor
        )
    campaigns = {one.campaign_id: names.get(one.campaign_id, "A campaign") for one in page.items if one.campaign_id}
    reasons = {one.reason: (one.reason or "").replace("_", " ") for one in page.items if one.reason}
    return visit.page(
        "unknown",
        title="Unknown requests",
        current="unknown",
        status=status,
        problem=problem,
        note=note,
        rows=[_view(visit, one, names, priced.result()) for one in page.items],
        decisions=[(name, label, risk) for name, (label, risk) in DECISIONS.items()],
        plan=None if planned is None else _plan(visit, decision, planned, chosen),
        filters=[
            (label, name, [Choice(value=value, word=word, chosen=value == chosen[name]) for value, word in found])
            for label, name, found in (
                ("Campaign", "campaign", campaigns.items()),
                ("Provider", "provider", {one.provider: one.provider for one in page.items}.items()),
                ("Reason", "reason", reasons.items()),
            )
        ],
        zone=visit.clocks().name,
        first_url=visit.url("unknown") if after else "",
        next_url=visit.url("unknown", {"after": page.next}) if page.next else "",
    )


def _plan(visit: Visit, decision: str, planned: DecisionResult, chosen: Mapping[str, str]) -> PlanView:
    label, risk = DECISIONS[decision]
    count = words.plural(planned.changed, "request")
    return PlanView(
        decision=decision,
        label=f"{label}: {count}",
        risk=risk,
        changed=planned.changed,
        kept=planned.kept,
        becomes=[
            f"{words.number(many)} {words.CONTACT_STATES.get(state, (state.replace('_', ' '), '', ''))[0].lower()}"
            for state, many in sorted(planned.becomes.items())
        ],
        chosen={name: value for name, value in chosen.items() if value},
        key=visit.new_key(),
    )


def _view(visit: Visit, one: Dispatch, names: Mapping[str, str], prices: PriceTable | None) -> UnknownView:
    limits = visit.engine.dispatches.deadlines
    retry_from = one.created_at + limits.retry_after

    def at(moment: Any) -> MomentView:
        return moment_of(moment, visit.now, visit.clocks(), seconds=True)

    return UnknownView(
        id=one.id,
        phone=one.to,
        phone_url=phone_url(visit, "person", one.to),
        contact_url=""
        if one.campaign_id is None or one.position is None
        else visit.url("contact", campaign=one.campaign_id, position=one.position),
        campaign="" if one.campaign_id is None else names.get(one.campaign_id, "a campaign"),
        channel=one.channel,
        text=one.body or "",
        provider=one.provider,
        why=describe_reason("unknown", one.reason, one.channel) or (one.reason or "").replace("_", " "),
        said=reported(one),
        second_try=cost_of_retry(prices, one),
        asked_at=at(one.created_at),
        deadline=at(one.created_at + limits.unconfirmed_after),
        retry_from=at(retry_from) if retry_from > visit.now else None,
        keys=(visit.new_key(), visit.new_key()),
    )
