"""What providers call back, taken in: each event once, in one transaction with all that it does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeGuard

import attrs

from outreach.adapters import own_starts
from outreach.ids import IdSource
from outreach.models.account import Account, CallbackRecord, CallbackResult
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.operations import inbound, matching, settling
from outreach.operations.common import workspace_of
from outreach.policy.settlement import Backoff
from outreach.protocols.adapter import CallbackEvent, InboundText
from outreach.protocols.analyser import Analyser
from outreach.working_set import Transaction

_NOWHERE: Final = frozenset({"unmatched", "mismatched"})
"""Results of events that belonged to nothing: they have not been processed."""


@attrs.frozen(kw_only=True)
class Intake:
    """What the taking in of events works with."""

    ids: IdSource
    backoff: Backoff
    analyser: Analyser


def load(tx: Transaction, calls: Sequence[tuple[Account, Sequence[CallbackEvent]]]) -> None:
    """Read what these callbacks concern, all at once."""
    all_events = [(account, event) for account, events in calls for event in events]
    tx.callbacks.load((account.workspace_id, account.id, event.event_id) for account, event in all_events)
    contents = (event.content for _, event in all_events)
    settling.load_reported(tx, [it for it in contents if isinstance(it, MessageReport | CallReport)])


def take_in(
    tx: Transaction, account: Account, events: Sequence[CallbackEvent], body: bytes, *, intake: Intake, now: datetime
) -> Sequence[CallbackRecord]:
    """Do what a verified callback says, and keep it; return the events that were new, or could be matched only now.

    An event that has come before changes nothing, however often it comes; but one that belonged to nothing then is
    tried again, because what it names may be known by now, and a repeat may name it better. What an event tells is
    merged by the rules of every report: statuses only move up (design, section 5).
    """
    new = []
    for event in events:
        known = tx.callbacks.get(account.workspace_id, account.id, event.event_id)
        if known is not None and known.result not in _NOWHERE:
            continue
        result = _do(tx, account, event, intake, now)
        early = event.content if result == "unmatched" and _names_something(event.content) else None
        if known is None:
            record = CallbackRecord(
                workspace_id=account.workspace_id,
                account_id=account.id,
                event_id=event.event_id,
                result=result,
                body=body,
                received_at=now,
                report=early,
            )
            tx.callbacks.insert(record)
            new.append(record)
        elif result != known.result:
            record = attrs.evolve(known, result=result, report=early)
            tx.callbacks.update(record)
            new.append(record)
    return new


def _names_something(content: object) -> TypeGuard[Report]:
    return isinstance(content, MessageReport | CallReport) and bool(settling.names_of(content))


def _do(tx: Transaction, account: Account, event: CallbackEvent, intake: Intake, now: datetime) -> CallbackResult:
    match event.content:
        case None:
            return "ignored"
        case InboundText() as text:
            taken = inbound.receive(
                tx,
                workspace_of(tx, account.workspace_id),
                text,
                provider=account.provider,
                own_starts=own_starts(account.provider, text.to) if account.replies_to_keywords else None,
                ids=intake.ids,
                now=now,
            )
            return "received" if taken is not None else "unchanged"
        case report:
            return matching.take_event(
                tx,
                report,
                to=event.to,
                other_id=event.other_id,
                backoff=intake.backoff,
                analyser=intake.analyser,
                now=now,
            )
