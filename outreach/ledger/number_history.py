"""Everything with one number: what the tables have of it, merged, newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from outreach.ledger.common import campaign_of
from outreach.models.call import Call
from outreach.models.dispatch import Dispatch
from outreach.models.history import HistoryItem
from outreach.models.message import InboundMessage, Message
from outreach.models.states import TrailEntry, TrailStepKind
from outreach.storage.unit_of_work import Transaction

_BEFORE_ALL: Final = ("~", 2**63 - 1)
_BEHIND_ALL: Final = ("", -1)
"""Places before and behind every id and number of one moment."""


class HistoryPlace(NamedTuple):
    """The place of an item: the latest time comes first, then the first source, then the greatest id and number."""

    at: datetime
    source: int
    id: str
    number: int


Placed = tuple[HistoryPlace, HistoryItem]
_Place = tuple[datetime, str, int]
_Items = Iterator[tuple[_Place, HistoryItem]]
_Read = Callable[[Transaction, str, str, _Place | None, int], _Items]


def history_of_number(
    tx: Transaction, workspace_id: str, phone: str, *, after: HistoryPlace | None, limit: int
) -> Sequence[Placed]:
    """Return the newest items of the person at a number behind a place, at most `limit`.

    Campaigns in a ledger archive are not looked at. Of an erased person only the register's entry is found.
    """
    found = [
        (HistoryPlace(at, source, id_, number), item)
        for source, read in enumerate(_SOURCES)
        for (at, id_, number), item in read(tx, workspace_id, phone, _begin(after, source), limit)
    ]
    return sorted(found, key=lambda one: _rank(one[0]), reverse=True)[:limit]


def _rank(place: HistoryPlace) -> tuple[datetime, int, str, int]:
    return place.at, -place.source, place.id, place.number


def _begin(after: HistoryPlace | None, source: int) -> _Place | None:
    """Return the place in one source behind which a page begins."""
    if after is None:
        return None
    if source == after.source:
        return after.at, after.id, after.number
    return (after.at, *(_BEFORE_ALL if source > after.source else _BEHIND_ALL))


def _opt_outs(tx: Transaction, workspace_id: str, phone: str, after: _Place | None, limit: int) -> _Items:
    for entry in tx.trail.opt_outs_of_person(workspace_id, phone, after=after, limit=limit):
        opted_out = entry.what is TrailStepKind.OPTED_OUT
        yield (
            (entry.at, "", entry.number),
            HistoryItem(
                at=entry.at,
                kind="opted_out" if opted_out else "opted_in",
                phone=entry.phone or phone,
                status=entry.state,
                reason=entry.reason,
            ),
        )


def _register(tx: Transaction, workspace_id: str, phone: str, after: _Place | None, _: int) -> _Items:
    """Yield the register's entry where the trail no longer shows it: it is held, or its number was erased."""
    entry = tx.register.get(workspace_id, phone)
    if entry is None:
        return
    shown: Sequence[TrailEntry] = tx.trail.opt_outs_of_person(workspace_id, phone, limit=1)
    place = (entry.created_at, "", 0)
    if not (shown and shown[0].what is TrailStepKind.OPTED_OUT) and (after is None or place < after):
        yield (
            place,
            HistoryItem(at=entry.created_at, kind="opted_out", phone=phone, status=entry.scope, reason=entry.source),
        )


def _inbound(tx: Transaction, workspace_id: str, phone: str, after: _Place | None, limit: int) -> _Items:
    for message in tx.inbound.from_person(workspace_id, phone, after=after, limit=limit):
        yield (message.received_at, message.id, 0), _of_inbound(message)


def _messages(tx: Transaction, workspace_id: str, phone: str, after: _Place | None, limit: int) -> _Items:
    for message in tx.messages.to_person(workspace_id, phone, after=after, limit=limit):
        yield (message.created_at, message.id, 0), _of_message(message)


def _calls(tx: Transaction, workspace_id: str, phone: str, after: _Place | None, limit: int) -> _Items:
    found = tx.calls.to_person(workspace_id, phone, after=after, limit=limit)
    names = _names(tx, workspace_id, found)
    for call in found:
        yield (call.created_at, call.id, 0), _of_call(call, names(call.campaign_id))


def _campaign_messages(tx: Transaction, workspace_id: str, phone: str, after: _Place | None, limit: int) -> _Items:
    found = tx.dispatches.to_person(workspace_id, phone, after=after, limit=limit)
    names = _names(tx, workspace_id, found)
    for dispatch in found:
        yield (dispatch.created_at, dispatch.id, 0), _of_dispatch(dispatch, names(dispatch.campaign_id))


def _campaigns(tx: Transaction, workspace_id: str, phone: str, after: _Place | None, limit: int) -> _Items:
    found = tx.recipients.of_person(workspace_id, phone, after=after, limit=limit)
    tx.campaigns.prefetch((workspace_id, one.campaign_id) for one in found)
    for recipient in found:
        campaign = campaign_of(tx, workspace_id, recipient.campaign_id)
        yield (
            (campaign.created_at, campaign.id, recipient.position),
            HistoryItem(
                at=campaign.created_at,
                kind="campaign",
                phone=recipient.phone or phone,
                status=recipient.status.value,
                reason=recipient.reason,
                campaign_id=campaign.id,
                campaign_name=campaign.name,
                position=recipient.position,
            ),
        )


_SOURCES: Final[Sequence[_Read]] = (
    _opt_outs,
    _register,
    _inbound,
    _messages,
    _calls,
    _campaign_messages,
    _campaigns,
)
"""In the order in which items of one moment are listed: what follows from another comes first."""


def _names(
    tx: Transaction, workspace_id: str, found: Sequence[Call] | Sequence[Dispatch]
) -> Callable[[str | None], str | None]:
    """Return what tells the name of a campaign of some requests."""
    ids = {one.campaign_id for one in found if one.campaign_id is not None}
    tx.campaigns.prefetch((workspace_id, id_) for id_ in ids)
    campaigns = {id_: tx.campaigns.get(workspace_id, id_) for id_ in ids}

    def name(campaign_id: str | None) -> str | None:
        campaign = None if campaign_id is None else campaigns[campaign_id]
        return None if campaign is None else campaign.name

    return name


def _of_inbound(message: InboundMessage) -> HistoryItem:
    return HistoryItem(
        at=message.received_at,
        kind="message",
        direction="inbound",
        phone=message.from_number,
        own_number=message.to,
        reason=message.keyword or ("unclear" if message.unclear else None),
        text=message.body,
        message_id=message.id,
    )


def _of_message(message: Message) -> HistoryItem:
    return HistoryItem(
        at=message.created_at,
        kind="message",
        direction="outbound",
        phone=message.to,
        own_number=message.from_number,
        status=message.status.value,
        reason=message.reason or (None if message.purpose == "message" else message.purpose),
        text=message.body,
        message_id=message.id,
    )


def _of_call(call: Call, campaign_name: str | None) -> HistoryItem:
    return HistoryItem(
        at=call.created_at,
        kind="call",
        direction="outbound",
        phone=call.to,
        own_number=call.from_number,
        status=call.status.value,
        reason=call.outcome or call.error,
        campaign_id=call.campaign_id,
        campaign_name=campaign_name,
        position=call.position,
        call_id=call.id,
    )


def _of_dispatch(dispatch: Dispatch, campaign_name: str | None) -> HistoryItem:
    return HistoryItem(
        at=dispatch.created_at,
        kind="message",
        direction="outbound",
        phone=dispatch.to,
        own_number=dispatch.from_number,
        status=(dispatch.report or dispatch.state).value,
        reason=dispatch.reason,
        text=dispatch.body,
        campaign_id=dispatch.campaign_id,
        campaign_name=campaign_name,
        position=dispatch.position,
        dispatch_id=dispatch.id,
    )
