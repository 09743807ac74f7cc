"""The contacts of a campaign by state, and the decision trail of one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
from starlette.responses import Response

from outreach import Campaign, Conflict, InvalidRequest, MessageStatus, Recipient, RecipientStatus
from outreach.reasons import describe_reason
from outreach.server_support import JoinedReads
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit, not_found
from outreach_server.console.pages.campaign_views import MomentView, StateView, moment_of
from outreach_server.console.pages.follow_up import ENDED
from outreach_server.console.pages.new.steps import key_of
from outreach_server.console.pages.phones import phone_url
from outreach_server.console.pages.trail import steps_of
from outreach_server.console.pages.views import Tab

PAGE_SIZE: Final = 50
_MOST_REQUESTS: Final = 100
_MOST_TEXTS: Final = 5
_TO_COME: Final = frozenset({RecipientStatus.PENDING, RecipientStatus.WAITING})


@attrs.frozen(kw_only=True)
class ContactRow:
    """A contact in the list.

    Attributes:
        when: What its time is, such as `Due`; empty without one.
    """

    number: str
    name: str
    external_id: str
    url: str
    state: StateView
    attempts: int
    when: str
    at: MomentView | None


async def show(visit: Visit) -> Response:
    """Show a page of the contacts."""
    campaign_id = visit.request.path_params["campaign"]
    query = visit.request.query_params
    status, reason, text = query.get("status", ""), query.get("reason", ""), query.get("q", "").strip()
    if status not in {*words.CONTACT_STATES, ""}:
        raise not_found()
    campaign, number = visit.subject, number_in(text)
    async with JoinedReads() as reads:
        counted = reads.start(visit.engine.campaigns.count_recipients(visit.place.id, campaign_id))
        listed = reads.start(
            visit.engine.campaigns.list_recipients(
                visit.place.id,
                campaign_id,
                status=RecipientStatus(status) if status else None,
                reason=reason or None,
                phone=number or None,
                external_id=(text or None) if not number else None,
                after=query.get("after") or None,
                limit=PAGE_SIZE,
            )
        )
    counts, page = counted.result(), listed.result()
    kept = {"status": status, "reason": reason, "q": text}

    def url(query: Mapping[str, object]) -> str:
        return visit.url("contacts", query, campaign=campaign_id)

    by_state: dict[str, int] = {}
    for one in counts:
        by_state[one.status] = by_state.get(one.status, 0) + one.count
    tabs = [Tab(word="All", count=words.number(sum(by_state.values())), url=url({"q": text}), current=not status)]
    tabs += [
        Tab(
            word=words.CONTACT_STATES[name][0],
            count=words.number(count),
            url=url({"status": name}),
            current=name == status,
        )
        for name, count in by_state.items()
    ]
    why = describe_reason(status, reason, campaign.channel) if reason else None
    return visit.page(
        "contacts",
        title=f"Contacts · {words.visible(campaign.name)}",
        current="campaigns",
        name=campaign.name,
        campaign_url=visit.url("campaign", campaign=campaign_id),
        contacts_url=url({}),
        tabs=tabs,
        chosen=status,
        reason=reason,
        reason_words=(why or reason.replace("_", " ")) if reason else "",
        without_reason_url=url({"status": status}),
        text=text,
        rows=[_row(visit, campaign, one) for one in page.items],
        follow_up_url=visit.url("follow-up", {"status": status, "reason": reason}, campaign=campaign_id)
        if status in ENDED and visit.may(Right.DRAFT) and page.items and not text and not campaign.erased_at
        else "",
        first_url=url(kept) if query.get("after") else "",
        next_url=url({**kept, "after": page.next}) if page.next else "",
    )


async def show_one(visit: Visit) -> Response:
    """Show the decision trail of one contact."""
    return await _contact_page(visit)


async def act_on_one(visit: Visit) -> Response:
    """Leave a contact out of its campaign; a second time that changes nothing."""
    name = visit.chosen("skip")
    key_of(visit)
    campaign, position = visit.subject, visit.request.path_params["position"]
    reason = visit.form.get("reason", "").strip() or None
    try:
        await visit.engine.campaigns.skip_recipient(
            visit.place.id, campaign.id, position, reason=reason, actor=visit.actor
        )
    except InvalidRequest as error:
        return await _contact_page(visit, status=422, problems={"reason": f"The reason {error.details[0].message}."})
    except Conflict as error:
        return await _contact_page(visit, status=409, problems={"": error.message})
    return visit.go("contact", said=name, campaign=campaign.id, position=position)


async def _contact_page(visit: Visit, *, status: int = 200, problems: Mapping[str, str] | None = None) -> Response:
    campaign_id, position = visit.request.path_params["campaign"], visit.request.path_params["position"]
    campaign, campaigns = visit.subject, visit.engine.campaigns
    place = (visit.place.id, campaign_id, position)
    async with JoinedReads() as reads:
        found = reads.start(campaigns.get_recipient(*place))
        sent = reads.start(campaigns.list_dispatches(*place, limit=_MOST_REQUESTS))
        decided = reads.start(campaigns.recipient_history(*place))
        failed = reads.start(campaigns.recipient_failures(*place))
    recipient, requests, history = found.result(), sent.result().items, decided.result()
    async with JoinedReads() as reads:
        steps = reads.start(
            steps_of(visit, campaign, recipient, requests=requests, history=history, failures=failed.result())
        )
        coming = reads.start(_to_come(visit, campaign, recipient))
    return visit.page(
        "contact",
        title=f"Contact {position + 1} · {words.visible(campaign.name)}",
        current="campaigns",
        status=status,
        problems=problems or {},
        page_url=visit.url("contact", campaign=campaign_id, position=position),
        may_skip=visit.may(Right.DECIDE) and recipient.status in _TO_COME and not campaign.is_terminal,
        reason=visit.form.get("reason", ""),
        key=visit.new_key(),
        name=campaign.name,
        campaign_url=visit.url("campaign", campaign=campaign_id),
        contacts_url=visit.url("contacts", campaign=campaign_id),
        erased=campaign.erased_at is not None,
        person_url=phone_url(visit, "person", recipient.phone),
        contact=_row(visit, campaign, recipient, requests[-1].report if requests else None),
        facts=_facts(recipient),
        days=steps.result(),
        to_come=coming.result(),
    )


async def _to_come(visit: Visit, campaign: Campaign, recipient: Recipient) -> Sequence[str]:
    """Return the texts that a contact gets next: those that no request has been made for."""
    if campaign.channel != "sms" or campaign.is_terminal or recipient.status not in _TO_COME:
        return ()
    found = await visit.engine.campaigns.preview_recipient(visit.place.id, campaign.id, recipient.position)
    return [one.text for one in found.messages if one.step >= recipient.step and one.problem is None][:_MOST_TEXTS]


def number_in(text: str) -> str:
    """Return a text that is a number as it may stand in a URL, with its plus; empty for another text."""
    digits = "".join(one for one in text if one.isdigit())
    if len(digits) < 5 or any(one.isalpha() for one in text):
        return ""
    return text if text.startswith("+") or len(digits) < 11 else f"+{digits}"


def state_of_contact(status: str, why: str) -> StateView:
    """Return the state of a contact."""
    word, icon, tone = words.CONTACT_STATES[status]
    return StateView(word=word, icon=icon, tone=tone, why=why)


def _row(visit: Visit, campaign: Campaign, one: Recipient, report: MessageStatus | None = None) -> ContactRow:
    why = (
        # Whether it was delivered is known of the contact's page alone.
        "sent"
        if (one.status, one.reason, campaign.channel, report) == ("completed", None, "sms", None)
        else describe_reason(one.status, one.reason, campaign.channel, report=report, campaign=campaign.status)
    )
    when, at = ("Due", one.due_at) if one.due_at is not None and one.is_open else ("Ended", one.ended_at)
    clocks = visit.clocks(campaign.timezone)
    return ContactRow(
        number=one.phone or one.phone_number,
        name=" ".join(part for part in (one.first_name, one.last_name) if part),
        external_id=one.external_id or "",
        url=visit.url("contact", campaign=campaign.id, position=one.position),
        state=state_of_contact(one.status, why or (one.reason or "").replace("_", " ")),
        attempts=one.attempts,
        when=when if at is not None else "",
        at=None if at is None else moment_of(at, visit.now, clocks, seconds=True),
    )


def _facts(one: Recipient) -> Sequence[tuple[str, str]]:
    """Return what is known of a contact."""
    found = [
        ("Name", " ".join(part for part in (one.first_name, one.last_name) if part)),
        ("Company", one.company or ""),
        ("E-mail", one.email or ""),
        ("Supplied as", one.phone_number if one.phone_number != one.phone else ""),
        ("Your id", one.external_id or ""),
        *((name, str(value)) for name, value in list(one.custom_variables.items())[:20]),
    ]
    return [(words.visible(name), words.visible(value)[:500]) for name, value in found if value]
