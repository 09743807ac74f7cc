"""Campaigns whose contacts came to every kind of end, written by chance as the engine would have written them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs

from outreach.models.campaign import Campaign
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_call,
    make_call_campaign,
    make_campaign,
    make_dispatch,
    make_inbound,
    make_prepared,
    make_unsubscribe,
)
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE, pending

MINUTE = timedelta(minutes=1)

_SMS_ENDS = (
    ("completed", None, True),
    ("completed", None, True),
    ("completed", "no_receipt", True),
    ("completed", "replied", True),
    ("failed", "unreachable", True),
    ("failed", "invalid_number", True),
    ("failed", "over_segment_cap", False),
    ("skipped", "duplicate", False),
    ("skipped", "opted_out", False),
    ("unconfirmed", "no_evidence", True),
    ("canceled", None, False),
)
_CALL_ENDS = (
    ("completed", None, True),
    ("completed", "negative", True),
    ("failed", "no_answer", True),
    ("failed", "busy", True),
    ("failed", "voicemail", True),
    ("skipped", "invalid_number", False),
    ("expired", None, False),
)


Phones = Callable[[int], Mapping[str, str]]


def new_phones(position: int) -> Mapping[str, str]:
    """Leave each contact the number that it gets."""
    return {}


async def given_endings(
    storage: Storage, seed: int, *, channel: str = "sms", count: int = 60, phones: Phones = new_phones, **fields: Any
) -> Campaign:
    """Write an ended campaign of so many contacts, with requests, reports, calls, replies and opt-outs."""
    rng = random.Random(seed)
    made = make_campaign if channel == "sms" else make_call_campaign
    agent = make_agent()
    known: dict[str, Any] = {} if channel == "sms" else {"agent_id": agent.id}
    campaign = made(
        status=CampaignStatus.COMPLETED,
        started_at=NOW,
        completed_at=NOW + timedelta(hours=5),
        variable_names=("city",),
        **known,
        **fields,
    )

    def operation(tx: Transaction) -> Campaign:
        if channel == "call":
            tx.agents.insert(agent)
        contacts = [
            make_prepared(
                **phones(position),
                first_name=rng.choice(("=1+1", "Ann", "Zoë")),
                custom_variables='{"city":"@SUM(A1)"}',
                external_id=f"=crm-{position}",
                time_zone="UTC",
                us_place="331",
            )
            for position in range(count)
        ]
        tx.campaigns.insert_loading(campaign, loading_until=NOW + timedelta(minutes=5))
        tx.recipients.insert(campaign.workspace_id, campaign.id, pending(*contacts), now=NOW)
        for position in range(count):
            _end(tx, campaign, position, rng)
        counters = tx.recipients.recount(campaign.workspace_id, campaign.id)
        tx.campaigns.publish(attrs.evolve(campaign, counters=counters))
        return tx.campaigns.get(campaign.workspace_id, campaign.id) or campaign

    return await storage.write(operation)


def _end(tx: Transaction, campaign: Campaign, position: int, rng: random.Random) -> None:
    status, reason, dispatched = rng.choice(_SMS_ENDS if campaign.channel == "sms" else _CALL_ENDS)
    recipient = tx.recipients.get(THIS_WORKSPACE, campaign.id, position)
    assert recipient is not None
    at = NOW + MINUTE * rng.randrange(240)
    ended = attrs.evolve(
        recipient,
        status=RecipientStatus(status),
        reason=reason,
        attempts=int(dispatched),
        dispatched=dispatched,
        successful=dispatched and status == "completed" and reason != "negative",
        ended_at=at,
    )
    tx.recipients.put(THIS_WORKSPACE, ended)
    if not dispatched:
        return
    place: dict[str, Any] = {"campaign_id": campaign.id, "position": position, "to": recipient.phone, "created_at": at}
    if campaign.channel == "sms":
        place["provider"] = rng.choice(("twilio", "telnyx"))
        _requests(tx, place, status, reason, rng)
    else:
        _call(tx, campaign, place, status, reason, rng)
    _answers(tx, str(recipient.phone), at, rng)


def _requests(tx: Transaction, place: dict[str, Any], status: str, reason: str | None, rng: random.Random) -> None:
    if rng.random() < 0.3:
        tx.dispatches.insert(make_dispatch(**place, state=DispatchState.DEFERRED, reason="rate_limited", segments=2))
    later = place | {"created_at": place["created_at"] + MINUTE, "segments": rng.randrange(1, 4)}
    if status == "completed":
        report = rng.choice((None, MessageStatus.SENT, MessageStatus.DELIVERED, MessageStatus.DELIVERED))
        tx.dispatches.insert(make_dispatch(**later, state=DispatchState.ACCEPTED, report=report, provider_id="p"))
    elif status == "unconfirmed":
        tx.dispatches.insert(make_dispatch(**later, state=DispatchState.UNCONFIRMED, reason=reason))
    elif rng.random() < 0.5:
        tx.dispatches.insert(
            make_dispatch(**later, state=DispatchState.ACCEPTED, report=MessageStatus.FAILED, reason=reason)
        )
    else:
        tx.dispatches.insert(make_dispatch(**later, state=DispatchState.REFUSED, reason=reason, error_code="30003"))


def _call(
    tx: Transaction, campaign: Campaign, place: dict[str, Any], status: str, reason: str | None, rng: random.Random
) -> None:
    at = place["created_at"]
    answered = status == "completed" or reason == "voicemail"
    leg = rng.randrange(1, 3)
    if leg == 2:
        # Nobody answered the first call of a double dial.
        _record(tx, campaign, place, status=CallStatus.NO_ANSWER, outcome="no_answer", ended_at=at + MINUTE / 2)
    _record(
        tx,
        campaign,
        place | {"created_at": at + MINUTE * (leg - 1)},
        leg=leg,
        status=CallStatus.COMPLETED if answered else CallStatus.NO_ANSWER,
        outcome=reason or "positive",
        answered_by="human" if status == "completed" else None,
        answered_at=at + MINUTE + timedelta(microseconds=rng.randrange(10**6)) if answered else None,
        # Many a call lasts for some milliseconds more, or less, than whole minutes.
        ended_at=at + MINUTE * rng.randrange(1, 4) + timedelta(milliseconds=rng.randrange(2000)),
        summary="-cmd|' /C calc'!A0",
        cost=rng.choice((None, Decimal("0.14"), Decimal("0.000001"), Decimal(2))),
    )


def _record(tx: Transaction, campaign: Campaign, place: dict[str, Any], *, leg: int = 1, **fields: Any) -> None:
    """Write one call with its dispatch."""
    call = make_call(
        agent_id=campaign.agent_id,
        campaign_id=campaign.id,
        position=place["position"],
        to=place["to"],
        created_at=place["created_at"],
        dialed_at=place["created_at"],
        cost_currency=None if fields.get("cost") is None else "USD",
        **fields,
    )
    tx.calls.insert(call)
    if call.answered_at is not None:
        tx.calls.put_transcript(call, f"agent: Hello, contact {call.position}\n=user: Yes?")
    known: dict[str, Any] = {"channel": "call", "call_id": call.id, "leg": leg, "body": None, "segments": None}
    tx.dispatches.insert(make_dispatch(**place, **known, state=DispatchState.ACCEPTED))


def _answers(tx: Transaction, phone: str, at: datetime, rng: random.Random) -> None:
    if rng.random() < 0.3:
        for _ in range(rng.randrange(1, 3)):
            tx.inbound.insert(make_inbound(from_number=phone, body="=HYPERLINK(1)", received_at=at + 3 * MINUTE))
    if rng.random() < 0.2:
        tx.register.put(make_unsubscribe(phone=phone, source="keyword", created_at=at + 4 * MINUTE))
