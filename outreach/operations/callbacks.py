"""What providers call back, taken in: each event once, in one transaction with all that it does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from outreach.ids import IdSource
from outreach.models.account import Account, CallbackRecord, CallbackResult
from outreach.models.reports import CallReport, Report
from outreach.operations import inbound, settling
from outreach.operations.common import workspace_of
from outreach.policy.settlement import Backoff
from outreach.protocols.adapter import CallbackEvent, InboundText
from outreach.protocols.analyser import Analyser
from outreach.protocols.storage import Transaction


@attrs.frozen(kw_only=True)
class Intake:
    """What the taking in of events works with."""

    ids: IdSource
    backoff: Backoff
    analyser: Analyser


def take_in(
    tx: Transaction, account: Account, events: Sequence[CallbackEvent], body: bytes, *, intake: Intake, now: datetime
) -> Sequence[CallbackRecord]:
    """Do what a verified callback says, and keep it; return the events that were new.

    An event that has come before changes nothing, however often it comes. What it tells is merged by the rules of
    every report: statuses only move up (design, section 5).
    """
    new = []
    for event in events:
        if tx.callbacks.known(account.workspace_id, account.id, event.event_id):
            continue
        record = CallbackRecord(
            workspace_id=account.workspace_id,
            account_id=account.id,
            event_id=event.event_id,
            result=_do(tx, account, event, intake, now),
            body=body,
            received_at=now,
        )
        tx.callbacks.insert(record)
        new.append(record)
    return new


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
                answers_keywords=account.replies_to_keywords,
                ids=intake.ids,
                now=now,
            )
            return "received" if taken is not None else "unchanged"
        case report:
            return _merge(tx, report, event.to, intake, now)


def _merge(tx: Transaction, report: Report, to: str | None, intake: Intake, now: datetime) -> CallbackResult:
    dispatch = settling.dispatch_of(tx, report)
    if dispatch is None:
        return "unmatched"
    if to is not None and to != dispatch.to:
        # What names the dispatch was not signed, and the number that was signed is another one.
        return "mismatched"
    if report.provider != dispatch.provider or isinstance(report, CallReport) is not (dispatch.channel == "call"):
        # Signed by a provider that was never asked for it.
        return "mismatched"
    changed = settling.report(tx, report, backoff=intake.backoff, analyser=intake.analyser, now=now)
    return "merged" if changed else "unchanged"
