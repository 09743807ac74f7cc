"""Contacts of a restored campaign whom its provider lists as contacted, though no request here says so.

A message is recognised by its sender's list, its number and its text. Where the list does not have the text, or has
another one, or has several, the contact may have been contacted: it counts as that, and is counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import attrs

from outreach.ledger.campaigns.recipients import put_recipient, steps_of
from outreach.ledger.campaigns.trail import ENGINE
from outreach.ledger.common import settings_of
from outreach.ledger.settling.ledger import settle
from outreach.models.call import Call
from outreach.models.campaign import Campaign, Counters, Recipient
from outreach.models.dispatch import FROM_ELSEWHERE, Dispatch
from outreach.models.recovery import ListedContacts
from outreach.models.states import CLOSABLE_RECIPIENT_STATUSES, CallStatus, RecipientStatus, TrailRule
from outreach.protocols.sent_list import SentRequest
from outreach.rules.deciding import MAX_AHEAD, RenderedText, render_message
from outreach.rules.flows import current_send_step
from outreach.rules.numbering import person_key
from outreach.rules.rendering import template_of
from outreach.rules.settlement import Backoff
from outreach.storage.unit_of_work import Transaction

_LATEST: Final = 1000
"""How many requests are searched for the latest one that was made from here; an earlier time lists more."""


class Match(NamedTuple):
    """A listed request that is taken for one to a contact.

    Attributes:
        body: The text that the campaign has for the contact; None for a call.
        ambiguous: Whether it may have been another one. Its ids are not kept then: another campaign may know them.
    """

    request: SentRequest
    body: str | None
    segments: int | None
    ambiguous: bool


def sent_since(tx: Transaction, campaign: Campaign) -> datetime:
    """Return a time before which every request of a campaign is in this database, such as that of its latest one.

    Those that were made here since the restore are left out, and those that came from elsewhere: earlier ones may be
    missing.
    """
    lease = tx.leases.current()
    restored = None if lease is None else lease.quarantine_epoch
    latest = tx.dispatches.recent(campaign.workspace_id, campaign.id, since=campaign.created_at, limit=_LATEST)
    here = (one for one in latest if one.epoch != FROM_ELSEWHERE)
    own = next((one for one in here if restored is None or one.epoch < restored), None)
    return campaign.created_at if own is None else own.created_at - MAX_AHEAD


def by_person(listed: Sequence[SentRequest]) -> Mapping[str, Sequence[SentRequest]]:
    """Return listed requests by the person whom they went to, oldest first."""
    found: dict[str, list[SentRequest]] = {}
    for one in sorted(listed, key=lambda one: one.at):
        number = one.to if one.to.startswith("+") else f"+{one.to}"
        found.setdefault(person_key(number), []).append(one)
    return found


def compare_listed(
    tx: Transaction,
    campaign: Campaign,
    recipients: Sequence[Recipient],
    listed: Mapping[str, Sequence[SentRequest]],
    *,
    provider: str,
    known: Collection[str],
) -> ListedContacts:
    """Return how many contacts `mark_listed` would mark.

    Args:
        tx: The transaction.
        campaign: The campaign.
        recipients: Some of its contacts.
        listed: What the provider lists, by person.
        provider: The provider.
        known: Ids of dispatches, and of requests at the provider, that the replaced database has.
    """
    found = ListedContacts()
    for recipient in recipients:
        match = _match(tx, campaign, recipient, listed, provider, known)
        if match is not None:
            found += ListedContacts(contacts=1, ambiguous=int(match.ambiguous))
    return found


def mark_listed(
    tx: Transaction,
    campaign: Campaign,
    recipients: Sequence[Recipient],
    listed: Mapping[str, Sequence[SentRequest]],
    *,
    provider: str,
    known: Collection[str],
    new_id: Callable[[], str],
    backoff: Backoff,
    now: datetime,
    actor: str = ENGINE,
) -> ListedContacts:
    """Write what a provider lists to the ledger, as requests with that outcome; return whom it concerned.

    A contact of a flow takes one step for each message that has the text of the step. A repetition changes
    nothing: the requests are known then.
    """
    found = ListedContacts()
    for recipient in recipients:
        current: Recipient | None = recipient
        before = found
        while current is not None:
            match = _match(tx, campaign, current, listed, provider, known)
            if match is None or (match.ambiguous and found != before):
                break
            dispatch = _write(tx, campaign, current, match, provider=provider, new_id=new_id, now=now, actor=actor)
            outcome = match.request.outcome
            if match.ambiguous:
                outcome = attrs.evolve(outcome, provider_id=None)
            settle(tx, campaign.workspace_id, dispatch.id, outcome, backoff=backoff, now=now, by=TrailRule.OPERATOR)
            if found == before:
                found += ListedContacts(contacts=1, ambiguous=int(match.ambiguous))
            current = tx.recipients.get(campaign.workspace_id, campaign.id, current.position)
    return found


def _match(
    tx: Transaction,
    campaign: Campaign,
    recipient: Recipient,
    listed: Mapping[str, Sequence[SentRequest]],
    provider: str,
    known: Collection[str],
) -> Match | None:
    if recipient.status not in CLOSABLE_RECIPIENT_STATUSES or recipient.phone is None:
        return None
    unknown = [
        one
        for one in listed.get(person_key(recipient.phone), ())
        if not _is_known(tx, provider, one, known) and not _is_taken(tx, campaign, recipient, one)
    ]
    if not unknown:
        return None
    if campaign.channel == "call":
        return Match(unknown[0], None, None, ambiguous=_our_id(unknown[0]) is None)
    text = _text(tx, campaign, recipient)
    if text is None:
        return None
    same = [one for one in unknown if one.body == text.body]
    if same:
        return Match(same[0], text.body, text.segments, ambiguous=len(same) > 1)
    return Match(unknown[0], text.body, text.segments, ambiguous=True)


def _is_taken(tx: Transaction, campaign: Campaign, recipient: Recipient, one: SentRequest) -> bool:
    """Return whether a listed request was marked before, without its ids."""
    made = tx.dispatches.of_recipient(campaign.workspace_id, campaign.id, recipient.position)
    return any(known.epoch == FROM_ELSEWHERE and known.slot_at == one.at for known in made)


def _our_id(one: SentRequest) -> str | None:
    """Return our id of a listed request; None for what only looks like one, such as the name of a call."""
    try:
        return str(UUID(one.dispatch_id)) if one.dispatch_id is not None else None
    except ValueError:
        return None


def _is_known(tx: Transaction, provider: str, one: SentRequest, known: Collection[str]) -> bool:
    provider_id, ours = one.outcome.provider_id, _our_id(one)
    if provider_id in known or ours in known:
        return True
    # Workspaces may share an account, so those of all count.
    if ours is not None and tx.dispatches.find(ours) is not None:
        return True
    return provider_id is None or bool(tx.dispatches.with_provider_id(provider, provider_id))


def _text(tx: Transaction, campaign: Campaign, recipient: Recipient) -> RenderedText | None:
    """Return what the campaign would send to a contact next; None if nothing."""
    template, steps = campaign.body, steps_of(tx, campaign)
    if steps is not None:
        step = current_send_step(recipient, steps)
        if step is None:
            return None
        template = step.body
    text = render_message(template_of(campaign, template), recipient, campaign, settings_of(tx, campaign.workspace_id))
    return text if isinstance(text, RenderedText) else None


def _write(
    tx: Transaction,
    campaign: Campaign,
    recipient: Recipient,
    match: Match,
    *,
    provider: str,
    new_id: Callable[[], str],
    now: datetime,
    actor: str,
) -> Dispatch:
    """Write a listed request as one that was made from here; return it."""
    request, attempt = match.request, recipient.attempts + (recipient.leg == 1)
    dispatch = Dispatch(
        id=(None if match.ambiguous else _our_id(request)) or new_id(),
        workspace_id=campaign.workspace_id,
        channel=campaign.channel,
        campaign_id=campaign.id,
        position=recipient.position,
        call_id=new_id() if campaign.channel == "call" else None,
        step=recipient.step,
        attempt=attempt,
        leg=recipient.leg,
        try_number=recipient.tries + 1,
        provider=provider,
        from_number=campaign.from_number,
        to=recipient.phone or request.to,
        body=match.body,
        segments=match.segments,
        slot_at=request.at,
        valid_until=request.at,
        epoch=FROM_ELSEWHERE,
        created_at=request.at,
    )
    if dispatch.call_id is not None:
        tx.calls.insert(_call(campaign, recipient, dispatch))
    tx.dispatches.insert(dispatch)
    after = attrs.evolve(
        recipient,
        status=RecipientStatus.DISPATCHING,
        reason=None,
        due_at=None,
        attempts=attempt,
        tries=recipient.tries + 1,
    )
    change: Counters = put_recipient(
        tx, campaign.workspace_id, recipient, after, rule=TrailRule.OPERATOR, now=now, actor=actor, dispatch=dispatch
    )
    tx.campaigns.add_counters(campaign.workspace_id, campaign.id, change)
    return dispatch


def _call(campaign: Campaign, recipient: Recipient, dispatch: Dispatch) -> Call:
    return Call(
        id=dispatch.call_id or "",
        workspace_id=campaign.workspace_id,
        agent_id=campaign.agent_id or "",
        campaign_id=campaign.id,
        position=recipient.position,
        provider=dispatch.provider,
        to=dispatch.to,
        from_number=dispatch.from_number,
        status=CallStatus.DISPATCHING,
        variables={},
        attempt=dispatch.attempt,
        tries=1,
        created_at=dispatch.created_at,
    )
