"""The ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from typing import Final

from outreach.models.dispatch import Dispatch, DispatchGroup, Sent
from outreach.models.states import CallStatus, DispatchState
from outreach.protocols.storage import AlreadyThere
from outreach.storage.memory.calls import Calls, Messages
from outreach.storage.memory.journal import Journal
from outreach.storage.memory.owned import OwnedRows, by_age
from outreach.storage.memory.table import Place


class Dispatches:
    """The ledger. At most one unsettled dispatch a recipient and step, message or call."""

    def __init__(self, journal: Journal, messages: Messages, calls: Calls) -> None:
        self._messages, self._calls = messages, calls
        self._rows = rows = OwnedRows[Dispatch](journal, "dispatch")
        self._by_provider_id = rows.index(_grouped(_provider_id))
        self._by_recipient = rows.index(_grouped(_recipient))
        self._by_campaign = rows.index(_grouped(_campaign))
        self._by_number = rows.index(_grouped(_number))
        self._by_call = rows.index(_grouped(_call))
        self._by_message = rows.index(_grouped(_message))
        self._unsettled = [rows.index(_if_unsettled(of)) for of in (_recipient_and_step, _call, _message)]
        self._by_state = rows.index(_in_open_state)

    def insert(self, dispatch: Dispatch) -> None:
        """Write an intent."""
        self._refuse_second(dispatch)
        self._rows.insert(dispatch.id, dispatch)

    def get(self, workspace_id: str, dispatch_id: str) -> Dispatch | None:
        """Return a dispatch."""
        return self._rows.within(workspace_id, dispatch_id)

    def find(self, dispatch_id: str) -> Dispatch | None:
        """Return a dispatch of whatever workspace."""
        return self._rows.get(dispatch_id)

    def by_provider_id(self, workspace_id: str, provider: str, provider_id: str) -> Dispatch | None:
        """Return the newest dispatch with this identifier of this provider."""
        dispatch_id = self._by_provider_id.last((workspace_id, provider, provider_id))
        return None if dispatch_id is None else self._rows.get(dispatch_id)

    def update(self, dispatch: Dispatch) -> None:
        """Write over a dispatch."""
        if self._rows.within(dispatch.workspace_id, dispatch.id) is None:
            raise self._rows.missing(dispatch.id)
        self._refuse_second(dispatch)
        self._rows.put(dispatch.id, dispatch)

    def of_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[Dispatch]:
        """Return a recipient's dispatches, oldest first."""
        return self._rows.rows(self._by_recipient.keys((workspace_id, campaign_id, position)))

    def of_call(self, workspace_id: str, call_id: str) -> Sequence[Dispatch]:
        """Return a call's dispatches, oldest first."""
        return self._rows.rows(self._by_call.keys((workspace_id, call_id)))

    def of_message(self, workspace_id: str, message_id: str) -> Sequence[Dispatch]:
        """Return a message's dispatches, oldest first."""
        return self._rows.rows(self._by_message.keys((workspace_id, message_id)))

    def sent_to(self, workspace_id: str, phone: str, *, since: datetime) -> Sequence[Sent]:
        """Return dispatches to a number that were created at or after a moment, oldest first."""
        rows = self._rows.rows(self._by_number.keys((workspace_id, phone)))
        return [
            Sent(row.created_at, row.state is DispatchState.DISPATCHING)
            for row in rows
            if row.created_at >= since and row.state not in _REACHED_NOBODY and not self._answers_keyword(row)
        ]

    def recent(self, workspace_id: str, campaign_id: str, *, since: datetime, limit: int) -> Sequence[Dispatch]:
        """Return a campaign's latest dispatches that are no more `dispatching`, newest first."""
        rows = self._rows.rows(self._by_campaign.keys((workspace_id, campaign_id)))
        settled = [row for row in rows if row.created_at >= since and row.state is not DispatchState.DISPATCHING]
        return settled[::-1][:limit]

    def groups(self, workspace_id: str, campaign_id: str) -> Sequence[DispatchGroup]:
        """Return what a campaign's dispatches came to, the most frequent first."""
        rows = self._rows.rows(self._by_campaign.keys((workspace_id, campaign_id)))
        counted = Counter((row.provider, row.state, row.report, row.reason, self._error_of(row)) for row in rows)
        ordered = sorted(counted.items(), key=lambda item: (-item[1], tuple((v is not None, v or "") for v in item[0])))
        return [
            DispatchGroup(provider=provider, state=state, report=report, reason=reason, error_code=code, count=count)
            for (provider, state, report, reason, code), count in ordered[:1000]
        ]

    def abandoned(self, epoch: int, *, limit: int) -> Sequence[Dispatch]:
        """Return those `dispatching` of epochs below this one, in all workspaces, oldest first."""
        rows = self._rows.rows(self._by_state.keys(DispatchState.DISPATCHING))
        return [row for row in rows if row.epoch < epoch][:limit]

    def unknown(self, workspace_id: str | None, *, limit: int, after: Dispatch | None = None) -> Sequence[Dispatch]:
        """Return the unknown ones of one workspace or of all, oldest first, those after one of them."""
        rows = self._rows.rows(self._by_state.keys(DispatchState.UNKNOWN))
        behind = [row for row in rows if after is None or (row.created_at, row.id) > (after.created_at, after.id)]
        return [row for row in behind if workspace_id in {None, row.workspace_id}][:limit]

    def _error_of(self, row: Dispatch) -> str | None:
        call = None if row.call_id is None else self._calls.get(row.workspace_id, row.call_id)
        failed = call is not None and call.status is CallStatus.FAILED
        return row.error_code or (call.error if call is not None and failed else None)

    def _answers_keyword(self, row: Dispatch) -> bool:
        message = None if row.message_id is None else self._messages.get(row.workspace_id, row.message_id)
        return message is not None and message.purpose != "message"

    def _refuse_second(self, dispatch: Dispatch) -> None:
        if not dispatch.unsettled:
            return
        for index, of in zip(self._unsettled, (_recipient_and_step, _call, _message), strict=True):
            group = of(dispatch)
            if group is not None and index.first(group) not in {None, dispatch.id}:
                raise AlreadyThere("What this dispatch is for has another one whose outcome is not known.")


Group = Callable[[Dispatch], Hashable | None]


def _grouped(of: Group) -> Callable[[Dispatch], Place | None]:
    def place(row: Dispatch) -> Place | None:
        group = of(row)
        return None if group is None else (group, by_age(row))

    return place


def _if_unsettled(of: Group) -> Callable[[Dispatch], Place | None]:
    def place(row: Dispatch) -> Place | None:
        return _grouped(of)(row) if row.unsettled else None

    return place


def _provider_id(row: Dispatch) -> Hashable | None:
    return None if row.provider_id is None else (row.workspace_id, row.provider, row.provider_id)


def _recipient(row: Dispatch) -> Hashable | None:
    return None if row.campaign_id is None else (row.workspace_id, row.campaign_id, row.position)


_REACHED_NOBODY: Final = frozenset({DispatchState.NOT_SENT, DispatchState.WITHDRAWN, DispatchState.DEFERRED})


def _number(row: Dispatch) -> Hashable | None:
    return row.workspace_id, row.to


def _campaign(row: Dispatch) -> Hashable | None:
    return None if row.campaign_id is None else (row.workspace_id, row.campaign_id)


def _recipient_and_step(row: Dispatch) -> Hashable | None:
    return None if row.campaign_id is None else (row.workspace_id, row.campaign_id, row.position, row.step)


def _call(row: Dispatch) -> Hashable | None:
    return None if row.call_id is None else (row.workspace_id, row.call_id)


def _message(row: Dispatch) -> Hashable | None:
    return None if row.message_id is None else (row.workspace_id, row.message_id)


def _in_open_state(row: Dispatch) -> Place | None:
    return (row.state, by_age(row)) if row.unsettled else None
