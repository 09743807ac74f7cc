"""The words about an unknown request: the cost of a second try, and the person who has decided about it meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from outreach import Dispatch
from outreach.models import AuditEntry, DispatchState, PriceTable
from outreach.server_support import JoinedReads, cost_of, country_of
from outreach_server.console import words
from outreach_server.console.context import Visit
from outreach_server.console.people import names_of

_MOST_ENTRIES: Final = 20
_DECISIONS: Final[Mapping[str, str]] = {
    "dispatch.assume_sent": "it counts as sent",
    "dispatch.retry": "it is tried again",
}
_NO_EVIDENCE: Final = "no evidence"

_SETTLED: Final[Mapping[DispatchState, str]] = {
    DispatchState.ACCEPTED: "the provider has accepted it",
    DispatchState.REFUSED: "the provider has refused it",
    DispatchState.NOT_SENT: "the provider has never received it",
    DispatchState.UNCONFIRMED: "no evidence came before its deadline, and it ended as unconfirmed",
}
_NOTHING_CHANGED: Final = "Your decision has changed nothing."


def cost_of_retry(table: PriceTable | None, one: Dispatch) -> str:
    """Return the cost of a second try of a request by the prices of the workspace, or that it is not known."""
    quantity = 1 if one.channel == "call" else one.segments or 1
    found = None
    if table is not None:
        found = cost_of(table, one.channel, {(one.provider, country_of(one.to)): quantity})
    if found is None or found.unpriced:
        return "Not known: the workspace has no price for it."
    amount = f"{found.amount_text} {found.currency}"
    if one.channel == "call":
        return f"{amount} for each minute, if somebody answers"
    [line] = found.lines
    return f"{amount}, for {words.plural(quantity, 'segment')} at {line.price or Decimal():f} {found.currency}"


def reported(one: Dispatch) -> str:
    """Return the provider's reports of a request, as far as they are stored; empty for none."""
    parts = (
        one.provider_id and f"its identifier {one.provider_id}",
        one.report and f"the state {one.report.value.replace('_', ' ')}",
        one.error_code and f"the code {one.error_code}",
        one.error_message,
    )
    return "; ".join(part for part in parts if part)


async def decided_meanwhile(visit: Visit, one: Dispatch) -> str:
    """Return who or what settled a request that is not unknown any more, and when."""
    audit = visit.engine.audit
    entries = (await audit.list(visit.place.id, subject=one.id, limit=_MOST_ENTRIES)).items
    entry = next((each for each in entries if _settles(each)), None)
    if entry is not None:
        became = _DECISIONS.get(entry.action) or f"the provider was asked, and said {_plain(entry.detail)}"
        return await _sentence(visit, entry, became)
    at = visit.clocks().moment(one.settled_at or visit.now, visit.now, seconds=True)
    became = _SETTLED.get(one.state, f"it is {one.state.value.replace('_', ' ')}")
    return f"It was settled at {at} ({visit.clocks().name}) without a decision: {became}. {_NOTHING_CHANGED}"


async def latest_decision(visit: Visit) -> str:
    """Return who decided last about unknown requests of the workspace, and when; empty if nobody has."""
    audit, place = visit.engine.audit, visit.place.id
    async with JoinedReads() as reads:
        started = [reads.start(audit.list(place, action=action, limit=1)) for action in _DECISIONS]
    found = [entry for one in started for entry in one.result().items]
    if not found:
        return ""
    latest = max(found, key=lambda one: one.at)
    return f"The latest decision: {await _who_and_when(visit, latest)}."


def _settles(entry: AuditEntry) -> bool:
    return entry.action in _DECISIONS or (entry.action == "dispatch.look_up" and entry.detail != _NO_EVIDENCE)


async def _sentence(visit: Visit, entry: AuditEntry, became: str) -> str:
    return f"Decided meanwhile by {await _who_and_when(visit, entry)}: {became}. {_NOTHING_CHANGED}"


async def _who_and_when(visit: Visit, entry: AuditEntry) -> str:
    name = "yourself" if entry.actor == visit.actor else (await names_of(visit.engine, [entry.actor]))[entry.actor]
    at = visit.clocks().moment(entry.at, visit.now, seconds=True)
    return f"{name}, {at} ({visit.clocks().name})"


def _plain(detail: str | None) -> str:
    return (detail or "").replace("_", " ")
