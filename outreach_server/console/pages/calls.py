"""The calls of a workspace, and one call with what was said and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

import attrs
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outreach import (
    Call,
    CallStatus,
    Campaign,
    CampaignStatus,
    Conflict,
    InvalidRequest,
    NewCall,
    NotFound,
    Recipient,
    RecipientStatus,
)
from outreach.models import CallVerdict, HistoryItem
from outreach.server_support import JoinedReads
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.actions import FORM_ACTIONS
from outreach_server.console.context import Visit, not_found
from outreach_server.console.pages.campaign_views import MomentView, StateView, moment_of
from outreach_server.console.pages.new.steps import Choice, key_of
from outreach_server.console.pages.phones import phone_url

PAGE_SIZE: Final = 50
_MOST_CHOICES: Final = 100

VERDICTS: Final = get_args(CallVerdict)

_AGAIN: Final = "call-again"
_CALLED_MEANWHILE: Final = (
    "The number was called after this call, so nobody was called now. Look at the later call first."
)


@attrs.frozen(kw_only=True)
class CallRow:
    """A call in the list."""

    url: str
    phone: str
    agent: str
    campaign: str
    campaign_url: str
    status: str
    outcome: StateView
    length: str
    summary: str
    at: MomentView


async def show(visit: Visit) -> Response:
    """Show a page of the calls that the filters in the address choose."""
    query, engine, place = visit.request.query_params, visit.engine, visit.place.id
    names = ("campaign", "agent", "status", "outcome")
    chosen = {name: query.get(name, "") for name in names}
    if chosen["status"] not in {*words.CALL_STATES, ""} or chosen["outcome"] not in {*words.OUTCOMES, ""}:
        raise not_found()
    wanted: Any = chosen["outcome"] or None
    calls = engine.calls.list(
        place,
        campaign_id=chosen["campaign"] or None,
        agent_id=chosen["agent"] or None,
        status=CallStatus(chosen["status"]) if chosen["status"] else None,
        outcome=wanted,
        after=query.get("after") or None,
        limit=PAGE_SIZE,
    )
    async with JoinedReads() as reads:
        listed = reads.start(calls)
        callers = reads.start(engine.agents.list(place, limit=_MOST_CHOICES))
        of = reads.start(engine.campaigns.list(place, channel="call", limit=_MOST_CHOICES))
    page = listed.result()
    agents = {one.id: one.name for one in callers.result().items}
    campaigns = {one.id: one.name for one in of.result().items}
    outcomes = {name: word for name, (word, _, _) in words.OUTCOMES.items()}
    return visit.page(
        "calls",
        title="Calls",
        current="calls",
        rows=[_row(visit, one, agents, campaigns) for one in page.items],
        filtered=any(chosen.values()),
        filters=[
            (label, name, [Choice(value=value, word=word, chosen=value == chosen[name]) for value, word in found])
            for label, name, found in (
                ("Campaign", "campaign", _with(campaigns, chosen["campaign"])),
                ("Agent", "agent", _with(agents, chosen["agent"])),
                ("State", "status", words.CALL_STATES.items()),
                ("Outcome", "outcome", outcomes.items()),
            )
        ],
        zone=visit.clocks().name,
        first_url=visit.url("calls", chosen) if query.get("after") else "",
        next_url=visit.url("calls", {**chosen, "after": page.next}) if page.next else "",
    )


def _with(named: Mapping[str, str], chosen: str) -> Sequence[tuple[str, str]]:
    """Return the choices of a filter, with the chosen one though it is not among the first."""
    return [*named.items(), *([(chosen, "The chosen one")] if chosen and chosen not in named else [])]


async def show_one(visit: Visit) -> Response:
    """Show one call."""
    return await _page(visit)


async def act(visit: Visit) -> Response:
    """Give a call its outcome, or place it again."""
    name = visit.chosen("outcome", _AGAIN)
    key_of(visit)
    if name == _AGAIN:
        return await _call_again(visit)
    verdict: Any = visit.form.get("verdict", "")
    if verdict not in VERDICTS:
        raise HTTPException(400)
    call = await visit.engine.calls.get(visit.place.id, visit.request.path_params["call"])
    try:
        await visit.engine.calls.set_outcome(
            visit.place.id,
            call.id,
            verdict,
            summary=visit.form.get("summary", "").replace("\r\n", "\n").strip() or None,
            actor=visit.actor,
        )
    except InvalidRequest as error:
        return await _page(visit, status=422, problems={"summary-text": error.message})
    except Conflict as error:
        return await _page(visit, status=409, problems={"": error.message})
    return visit.go("call", said=name, call=call.id)


async def _call_again(visit: Visit) -> Response:
    """Place a call like one that has ended: by the same agent, to the same number, with the same variables.

    The key is that call: one call follows it, also if two people press at once.
    """
    call = await visit.engine.calls.get(visit.place.id, visit.request.path_params["call"])
    if call.is_open:
        return await _page(visit, status=409, problems={"": "This call has not ended yet, so nothing was done."})
    if await _later(visit, call) is not None:
        return await _page(visit, status=409, problems={"": _CALLED_MEANWHILE})
    try:
        new = NewCall(agent_id=call.agent_id, to=call.to, variables=call.variables)
        key = f"console:{_AGAIN}:{call.id}"
        made = await visit.engine.calls.create(visit.place.id, new, idempotency_key=key, actor=visit.actor)
    except NotFound:
        return await _page(visit, status=409, problems={"": "Its agent was removed, so nobody was called."})
    except (Conflict, InvalidRequest) as error:
        return await _page(visit, status=409, problems={"": error.message})
    return visit.go("call", said=_AGAIN, call=made.id)


async def _later(visit: Visit, call: Call) -> HistoryItem | None:
    """Return the newest call to the number of a call, if it is a later one."""
    if not phone_url(visit, "person", call.to):
        return None
    async for one in visit.engine.contacts.iter_history(visit.place.id, call.to):
        if one.at < call.created_at or one.call_id == call.id:
            break
        if one.call_id is not None:
            return one
    return None


async def _page(visit: Visit, *, status: int = 200, problems: Mapping[str, str] | None = None) -> Response:
    engine, place = visit.engine, visit.place.id
    call = await engine.calls.get(place, visit.request.path_params["call"])
    contact = None
    async with JoinedReads() as reads:
        failed = reads.start(engine.calls.failure(call))
        spoken = reads.start(engine.calls.transcript(place, call.id))
        of = None if call.campaign_id is None else reads.start(engine.campaigns.get(place, call.campaign_id))
        if call.campaign_id is not None and call.position is not None:
            contact = reads.start(engine.campaigns.get_recipient(place, call.campaign_id, call.position))
        called_by = reads.start(_agent_name(visit, call.agent_id))
        called_later = reads.start(_later(visit, call))
    failure, transcript, agent = failed.result(), spoken.result(), called_by.result()
    campaign, later = None if of is None else of.result(), called_later.result()
    said = [] if failure is None else [failure.meaning or failure.error_message]
    return visit.page(
        "call",
        title="One call",
        current="calls",
        status=status,
        problems=problems or {},
        call_id=call.id,
        phone=call.to,
        person_url=phone_url(visit, "person", call.to),
        call_state=words.CALL_STATES[call.status],
        outcome=_outcome(call),
        error=next((one for one in (*said, call.error) if one), ""),
        summary_text=call.summary or "",
        turns=(transcript or "").splitlines(),
        facts=_facts(visit, call, agent, campaign),
        campaign=None if campaign is None else campaign.name,
        contact_url=""
        if campaign is None or call.position is None
        else visit.url("contact", campaign=campaign.id, position=call.position),
        may_judge=visit.may(Right.DECIDE) and call.status is CallStatus.COMPLETED and call.judged_at is None,
        retry_at=_retry_at(visit, campaign, None if contact is None else contact.result()),
        later_at=None if later is None else moment_of(later.at, visit.now, visit.clocks()),
        later_url="" if later is None else visit.url("call", call=later.call_id),
        may_call_again=visit.may(FORM_ACTIONS[_AGAIN].right)
        and not (call.is_open or later)
        and phone_url(visit, "person", call.to) != "",
        verdicts=[
            Choice(value=one, word=words.OUTCOMES[one][0], chosen=one == visit.form.get("verdict", call.outcome))
            for one in VERDICTS
        ],
        typed=visit.form.get("summary", call.summary or ""),
        key=visit.new_key(),
    )


def _retry_at(visit: Visit, campaign: Campaign | None, contact: Recipient | None) -> MomentView | None:
    """Return when the campaign of a call calls the contact again by itself; None if it does not."""
    if campaign is None or contact is None or contact.due_at is None:
        return None
    if campaign.status is not CampaignStatus.ACTIVE or contact.status is not RecipientStatus.WAITING:
        return None
    return moment_of(contact.due_at, visit.now, visit.clocks(campaign.timezone))


async def _agent_name(visit: Visit, agent_id: str) -> str:
    try:
        return (await visit.engine.agents.get(visit.place.id, agent_id)).name
    except NotFound:
        return "an agent that was removed"


def _facts(visit: Visit, call: Call, agent: str, campaign: Campaign | None) -> Sequence[tuple[str, str]]:
    clocks = visit.clocks(campaign.timezone if campaign is not None else "UTC")

    def at(moment: Any) -> str:
        return "" if moment is None else clocks.moment(moment, visit.now, seconds=True)

    found = {
        "Agent": agent,
        "From": call.from_number or "",
        "Answered by": {"human": "a person", "machine": "a machine"}.get(call.answered_by or "", ""),
        "Dialled": at(call.dialed_at),
        "Answered": at(call.answered_at),
        "Ended": at(call.ended_at),
        "Length": _length(call),
        "Attempt": str(call.attempt) if call.attempt > 1 else "",
        "Charged": "" if call.cost is None else f"{call.cost} {call.cost_currency or ''}",
        "Times": clocks.name,
        **{words.visible(name): value[:500] for name, value in list(call.variables.items())[:20]},
    }
    return [(name, words.visible(value)) for name, value in found.items() if value]


def _length(call: Call) -> str:
    return "" if call.duration_seconds is None else words.duration(call.duration_seconds)


def _outcome(call: Call) -> StateView:
    word, icon, tone = words.OUTCOMES[call.outcome or "unknown"]
    return StateView(word=word, icon=icon, tone=tone)


def _row(visit: Visit, call: Call, agents: Mapping[str, str], campaigns: Mapping[str, str]) -> CallRow:
    return CallRow(
        url=visit.url("call", call=call.id),
        phone=call.to,
        agent=agents.get(call.agent_id, ""),
        campaign="" if call.campaign_id is None else campaigns.get(call.campaign_id, "A campaign"),
        campaign_url="" if call.campaign_id is None else visit.url("campaign", campaign=call.campaign_id),
        status=words.CALL_STATES[call.status],
        outcome=_outcome(call),
        length=_length(call),
        summary=(call.summary or "")[:200],
        at=moment_of(call.created_at, visit.now, visit.clocks()),
    )
