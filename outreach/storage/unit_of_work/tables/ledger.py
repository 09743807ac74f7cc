"""The ledger of dispatches, single calls and messages, and inbound messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

import attrs

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.models.call import Call, CallOutcomeFilter
from outreach.models.dispatch import Dispatch, DispatchCount, DispatchFilter, RecentRequest, UnknownDispatchCount
from outreach.models.message import InboundMessage, Keyword, Message
from outreach.models.settings import ReplyPurpose
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.rules.numbering import spellings
from outreach.serialization.documents import Value, json_text
from outreach.storage.unit_of_work.kinds import CALLS, DISPATCHES, INBOUND, MESSAGES, Row, filtered
from outreach.storage.unit_of_work.tables.base import LAST, IdentifiedTable, Place, json_list, page_begin
from outreach.storage.unit_of_work.unit_of_work import AlreadyExists

C = TypeVar("C", Dispatch, Call, Message)

_OF_RECIPIENT: Final = "dispatches.of_recipient"
_BY_PROVIDER_ID: Final = "dispatches.by_provider_id"
_WITH_PROVIDER_ID: Final = "dispatches.with_provider_id"


class Dispatches(IdentifiedTable[Dispatch]):
    """The ledger: at most one unsettled dispatch for each recipient and step, message or call."""

    def insert(self, dispatch: Dispatch) -> None:
        """Write an intent, or raise `AlreadyExists` if its subject has an unsettled dispatch."""
        if not self.open([dispatch]):
            raise AlreadyExists("There is an unsettled dispatch already, or one with this identifier.")

    def open(self, dispatches: Sequence[Dispatch]) -> Sequence[Dispatch]:
        """Write many intents; return those that were written.

        One is refused if its subject has an unsettled dispatch, or if its identifier is taken. The change number rises,
        so that a copy without them is known to be older (`HighWaterMark`).
        """
        for dispatch in dispatches:
            self._require_campaign(dispatch)
        for name in (_OF_RECIPIENT, _BY_PROVIDER_ID, _WITH_PROVIDER_ID):
            self._rows.prefetched_keys.pop(name, None)
        keys = [DISPATCHES.key_of(dispatch) for dispatch in dispatches]
        taken = set(self._rows.existing_keys(DISPATCHES, keys))
        fresh = [(key, it) for key, it in zip(keys, dispatches, strict=True) if key not in taken]
        inserted = self._rows.insert_many_now(DISPATCHES, fresh)
        self._rows.raise_change()
        if inserted == len(fresh):
            return [dispatch for _, dispatch in fresh]
        written = set(self._rows.existing_keys(DISPATCHES, [key for key, _ in fresh]))
        return [dispatch for key, dispatch in fresh if key in written]

    def prefetch(self, workspace_and_dispatch: Iterable[tuple[str, str]]) -> None:
        """Read many dispatches in one go, for `get`."""
        self._rows.prefetch(DISPATCHES, workspace_and_dispatch)

    def find(self, dispatch_id: str) -> Dispatch | None:
        """Return a dispatch of any workspace, for operators' commands."""
        return self._one(DISPATCHES, "dispatches.find", dispatch_id=dispatch_id)

    def by_provider_id(self, workspace_id: str, provider: str, provider_id: str) -> Dispatch | None:
        """Return the newest dispatch, by (created_at, id), with a provider's identifier."""
        name = (workspace_id, provider, provider_id)
        if not self._rows.is_prefetched(_BY_PROVIDER_ID, name):
            self.prefetch_by_provider_id([name])
        found = self._rows.prefetched(DISPATCHES, _BY_PROVIDER_ID, name)
        return found[0] if found else None

    def prefetch_by_provider_id(self, names: Iterable[tuple[str, str, str]]) -> None:
        """Read many by (workspace, provider, provider's identifier) in one go, for `by_provider_id`."""
        self._rows.prefetch_lists(
            DISPATCHES,
            _BY_PROVIDER_ID,
            {name: name for name in names},
            lambda found: [(found.workspace_id, found.provider, found.provider_id)],
        )

    def with_provider_id(self, provider: str, provider_id: str) -> Sequence[Dispatch]:
        """Return the dispatches of all workspaces with a provider's identifier, newest first by (created_at, id).

        Nothing of one may be shown to another workspace.
        """
        name = (provider, provider_id)
        if not self._rows.is_prefetched(_WITH_PROVIDER_ID, name):
            self.prefetch_with_provider_id([name])
        return self._rows.prefetched(DISPATCHES, _WITH_PROVIDER_ID, name)

    def prefetch_with_provider_id(self, names: Iterable[tuple[str, str]]) -> None:
        """Read many by (provider, provider's identifier) in one go, for `with_provider_id`."""
        wanted = {name: name for name in names}
        self._rows.prefetch_lists(
            DISPATCHES, _WITH_PROVIDER_ID, wanted, lambda found: [(found.provider, found.provider_id or "")]
        )
        if not self._rows.read_only:
            lists = self._rows.prefetched_keys[_WITH_PROVIDER_ID]
            for name in wanted:
                self._rows.answers.setdefault(name, {workspace_id for workspace_id, _ in lists[name]})

    def similar(
        self, dispatch: Dispatch, *, since: datetime, until: datetime, states: Collection[DispatchState]
    ) -> Sequence[Dispatch]:
        """Return others of all workspaces with the same provider, sender and contact, by (created_at, id).

        They are in one of `states` and were created from `since` to `until`, inclusive.
        """
        found = self._list(
            DISPATCHES,
            "dispatches.similar",
            dispatch_id=dispatch.id,
            provider=dispatch.provider,
            from_number=dispatch.from_number,
            phone=dispatch.to,
            since=format_timestamp(since),
            until=format_timestamp(until),
        )
        return [one for one in found if one.state in states]

    def update(self, dispatch: Dispatch) -> None:
        """Write a dispatch's outcome, or raise `AlreadyExists` if it would be a second unsettled one."""
        known = self.get(dispatch.workspace_id, dispatch.id)
        if known is not None and dispatch.unsettled and not known.unsettled and self._has_unsettled(dispatch):
            raise AlreadyExists("There is an unsettled dispatch already.")
        if known is not None and known.provider_id != dispatch.provider_id:
            self._rows.prefetched_keys.pop(_BY_PROVIDER_ID, None)
            for provider_id in (known.provider_id, dispatch.provider_id):
                self._rows.prefetched_keys.get(_WITH_PROVIDER_ID, {}).pop((dispatch.provider, provider_id or ""), None)
        self._rows.update(DISPATCHES, DISPATCHES.key_of(dispatch), dispatch)

    def of_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[Dispatch]:
        """Return a recipient's dispatches, oldest first by (created_at, id)."""
        recipient = (workspace_id, campaign_id, position)
        if not self._rows.is_prefetched(_OF_RECIPIENT, recipient):
            self.prefetch_of_recipients([recipient])
        return self._rows.prefetched(DISPATCHES, _OF_RECIPIENT, recipient)

    def prefetch_of_recipients(self, recipients: Iterable[tuple[str, str, int]]) -> None:
        """Read those of many recipients (workspace, campaign, position) in one go, for `of_recipient`."""
        wanted = {
            (workspace_id, campaign_id, position): (self._rows.number(workspace_id, campaign_id), position)
            for workspace_id, campaign_id, position in recipients
        }
        self._rows.prefetch_lists(
            DISPATCHES, _OF_RECIPIENT, wanted, lambda found: [(found.workspace_id, found.campaign_id, found.position)]
        )

    def of_call(self, workspace_id: str, call_id: str) -> Sequence[Dispatch]:
        """Return a call's dispatches, oldest first by (created_at, id)."""
        return self._list(DISPATCHES, "dispatches.of_call", workspace_id=workspace_id, call_id=call_id)

    def of_message(self, workspace_id: str, message_id: str) -> Sequence[Dispatch]:
        """Return a message's dispatches, oldest first by (created_at, id)."""
        return self._list(DISPATCHES, "dispatches.of_message", workspace_id=workspace_id, message_id=message_id)

    def sent_to(self, workspace_id: str, phone: str, *, since: datetime) -> Sequence[RecentRequest]:
        """Return dispatches to the person at a number created at or after `since`, oldest first.

        Those that certainly reached nobody (not sent, withdrawn, deferred, failed at a limit) and replies to keywords
        are left out.
        """
        rows = [
            row
            for form in self._forms(workspace_id, phone)
            for row in self._rows.query(
                "dispatches.sent_to",
                DISPATCHES,
                MESSAGES,
                workspace_id=workspace_id,
                phone=form,
                since=format_timestamp(since),
            )
        ]
        found = [RecentRequest(parse_timestamp(created_at), bool(in_flight)) for created_at, in_flight in rows]
        return sorted(found, key=lambda one: one.at)

    def to_person(self, workspace_id: str, phone: str, *, after: Place | None = None, limit: int) -> Sequence[Dispatch]:
        """Return the newest messages of campaigns to the person at a number, by (created_at, id), descending."""
        rows = self._rows_of_person("dispatches.to_person", DISPATCHES, workspace_id, phone, after=after, limit=limit)
        return _newest(self._rows.cache_rows(DISPATCHES, rows), limit)

    def contacted(self, workspace_id: str, phones: Collection[str], *, since: datetime) -> frozenset[str]:
        """Return those of the numbers (at most 1,000) to whose person `sent_to` has a request after a moment."""
        at = format_timestamp(since)
        return self._persons_among(
            "dispatches.contacted", DISPATCHES, MESSAGES, workspace_id=workspace_id, phones=phones, since=at
        )

    def dialled_spelling(self, workspace_id: str, phone: str) -> str:
        """Return the spelling of a number that was dialled last; the number itself if none was."""
        known = spellings(phone)
        if len(known) == 1:
            return phone
        rows = self._rows.query("dispatches.dialled", DISPATCHES, workspace_id=workspace_id, phones=json_list(known))
        return rows[0][0] if rows else phone

    def recent(self, workspace_id: str, campaign_id: str, *, since: datetime, limit: int) -> Sequence[Dispatch]:
        """Return a campaign's settled or unknown dispatches created at or after `since`.

        The newest come first, those of one moment in the reverse order of their writing.
        """
        number = self._rows.number(workspace_id, campaign_id)
        return self._list(DISPATCHES, "dispatches.recent", number=number, since=format_timestamp(since), limit=limit)

    def judged(
        self, workspace_id: str, campaign_id: str, *, since: datetime, until: datetime, limit: int
    ) -> Sequence[Dispatch]:
        """Return the latest dispatches that a campaign's error budget is judged by, created from `since` to `until`.

        Those that show nothing about the provider are left out: withdrawn, deferred and not sent ones, and those that
        our own process has interrupted. The order is that of `recent`.
        """
        return self._list(
            DISPATCHES,
            "dispatches.judged",
            number=self._rows.number(workspace_id, campaign_id),
            since=format_timestamp(since),
            until=format_timestamp(until),
            limit=limit,
        )

    def count_unknown(self, workspace_id: str | None, *, limit: int) -> Sequence[UnknownDispatchCount]:
        """Return the number of unknown dispatches of each workspace, or of one, among the oldest `limit`.

        The workspace with the oldest one comes first, by (its created_at, workspace).
        """
        rows = self._rows.query("dispatches.count_unknown", DISPATCHES, workspace_id=workspace_id, limit=limit)
        return [
            UnknownDispatchCount(workspace_id=owner, count=count, since=parse_timestamp(since))
            for owner, count, since in rows
        ]

    def groups(self, workspace_id: str, campaign_id: str) -> Sequence[DispatchCount]:
        """Return a campaign's dispatches in groups, the largest first, at most a thousand.

        Equal ones come by (provider, state, report, reason, error_code), empty values first. A failed or cancelled call
        has its record's error as error code.
        """
        rows = self._campaign_rows("dispatches.groups", workspace_id, campaign_id, DISPATCHES, CALLS)
        return [
            DispatchCount(
                provider=provider,
                state=DispatchState(state),
                report=None if report is None else MessageStatus(report),
                reason=reason,
                error_code=error_code,
                error_message=error_message,
                count=count,
            )
            for provider, state, report, reason, error_code, count, error_message in rows
        ]

    def abandoned(self, living: Collection[int], *, limit: int) -> Sequence[Dispatch]:
        """Return those `dispatching` under epochs that are not living, in all workspaces.

        The oldest first, by (created_at, id).
        """
        return self._list(DISPATCHES, "dispatches.abandoned", living=json_text(sorted(living)), limit=limit)

    def unknown(
        self, workspace_id: str | None, *, limit: int, after: tuple[datetime, str] | None = None
    ) -> Sequence[Dispatch]:
        """Return the unknown dispatches of a workspace or all, oldest first by (created_at, id), from `after` on."""
        place = page_begin(after, after_at="", after_id="")
        return self._list(DISPATCHES, "dispatches.unknown", workspace_id=workspace_id, **place, limit=limit)

    def undecided(
        self, workspace_id: str, which: DispatchFilter, *, after: tuple[datetime, str] | None, limit: int
    ) -> Sequence[Dispatch]:
        """Return a workspace's unknown dispatches that a filter names, oldest first by (created_at, id).

        `after` is the place of the last one of the page before.
        """
        return self._of_filter("dispatches.undecided", workspace_id, which, after, limit)

    def decided(
        self, workspace_id: str, which: DispatchFilter, *, after: tuple[datetime, str] | None, limit: int
    ) -> Sequence[Dispatch]:
        """Return in the same way those that are given up or assumed as sent."""
        return self._of_filter("dispatches.decided", workspace_id, which, after, limit)

    def _of_filter(
        self, name: str, workspace_id: str, which: DispatchFilter, after: tuple[datetime, str] | None, limit: int
    ) -> Sequence[Dispatch]:
        begin = after or (None if which.since is None else (which.since, ""))
        return self._list(
            DISPATCHES,
            name,
            workspace_id=workspace_id,
            number=None if which.campaign_id is None else self._rows.number(workspace_id, which.campaign_id),
            provider=which.provider,
            reason=which.reason,
            until=None if which.until is None else format_timestamp(which.until),
            **page_begin(begin, after_at="", after_id=""),
            limit=limit,
        )

    def _require_campaign(self, dispatch: Dispatch) -> None:
        if dispatch.campaign_id is not None and self._rows.ref(dispatch.workspace_id, dispatch.campaign_id) is None:
            raise LookupError("There is no such campaign.")

    def _has_unsettled(self, dispatch: Dispatch) -> bool:
        """Return whether the subject of a settled dispatch has an unsettled one."""
        others: list[Dispatch] = []
        if dispatch.campaign_id is not None and dispatch.position is not None:
            of_all = self.of_recipient(dispatch.workspace_id, dispatch.campaign_id, dispatch.position)
            others += [other for other in of_all if other.step == dispatch.step]
        if dispatch.message_id is not None:
            others += self.of_message(dispatch.workspace_id, dispatch.message_id)
        if dispatch.call_id is not None:
            others += self.of_call(dispatch.workspace_id, dispatch.call_id)
        return any(other.unsettled for other in others)


class Calls(IdentifiedTable[Call]):
    """Call records."""

    def prefetch(self, workspace_and_call: Iterable[tuple[str, str]]) -> None:
        """Read many calls in one go, for `get`."""
        self._rows.prefetch(CALLS, workspace_and_call)

    def find(self, call_id: str) -> Call | None:
        """Return a call of any workspace, for operators' commands."""
        return self._one(CALLS, "calls.find", call_id=call_id)

    def by_provider_id(self, workspace_id: str, provider_call_id: str) -> Call | None:
        """Return the newest call, by (created_at, id), with a provider's identifier."""
        return self._one(CALLS, "calls.by_provider_id", workspace_id=workspace_id, provider_call_id=provider_call_id)

    def insert(self, call: Call) -> None:
        """Write a new call, or raise `LookupError` if its workspace has no such campaign."""
        if call.campaign_id is not None and self._rows.ref(call.workspace_id, call.campaign_id) is None:
            raise LookupError("There is no such campaign.")
        # The caller owns the dictionary, and this row outlives the transaction.
        self._rows.insert(CALLS, CALLS.key_of(call), attrs.evolve(call, variables=dict(call.variables)))

    def transcripts(self, workspace_id: str, call_ids: Collection[str]) -> Mapping[str, str]:
        """Return what was said in calls, by their ids, as far as it is known and not erased."""
        if not call_ids:
            return {}
        rows = self._rows.query("calls.transcripts", workspace_id=workspace_id, ids=json_list(call_ids))
        return {row[0]: row[1] for row in rows}

    def put_transcript(self, call: Call, content: str) -> None:
        """Store what was said in a call, if that is longer than what is known of it."""
        number = None if call.campaign_id is None else self._rows.number(call.workspace_id, call.campaign_id)
        self._rows.execute(
            "calls.put_transcript",
            call_id=call.id,
            workspace_id=call.workspace_id,
            number=number,
            position=call.position,
            content=content,
        )

    def list(
        self,
        workspace_id: str,
        *,
        campaign_id: str | None = None,
        agent_id: str | None = None,
        status: CallStatus | None = None,
        outcome: CallOutcomeFilter | None = None,
        external_id: str | None = None,
        metadata: str | None = None,
        after: str | None = None,
        limit: int,
    ) -> Sequence[Call]:
        """Return calls of a workspace that pass the given filters, by id, descending, below `after`.

        The outcome `unknown` is that of calls without one.
        """
        filters: dict[str, Value] = {
            "number": None if campaign_id is None else self._rows.number(workspace_id, campaign_id),
            "agent_id": agent_id,
            "status": None if status is None else status.value,
            "outcome": outcome,
            "external_id": external_id,
            "metadata": metadata,
        }
        given = {name: value for name, value in filters.items() if value is not None}
        below = LAST if after is None else after
        name = filtered("calls.list", given)
        return self._list(CALLS, name, workspace_id=workspace_id, **given, after=below, limit=limit)

    def to_person(self, workspace_id: str, phone: str, *, after: Place | None = None, limit: int) -> Sequence[Call]:
        """Return the newest calls to the person at a number, by (created_at, id), descending."""
        rows = self._rows_of_person("calls.to_person", CALLS, workspace_id, phone, after=after, limit=limit)
        return _newest(self._rows.cache_rows(CALLS, rows), limit)

    def open_of_agent(self, workspace_id: str, agent_id: str) -> Call | None:
        """Return the oldest open call, by (created_at, id), of this agent."""
        return self._one(CALLS, "calls.open_of_agent", workspace_id=workspace_id, agent_id=agent_id)

    def open_call_between(self, workspace_id: str, agent_id: str, to: str) -> Call | None:
        """Return the oldest open call, by (created_at, id), of this agent to the person at this number."""
        found = [
            call
            for form in self._forms(workspace_id, to)
            for call in self._list(
                CALLS, "calls.open_call_between", workspace_id=workspace_id, agent_id=agent_id, to_number=form
            )
        ]
        return min(found, key=lambda call: (call.created_at, call.id), default=None)


class Messages(IdentifiedTable[Message]):
    """Single messages."""

    def prefetch(self, workspace_and_message: Iterable[tuple[str, str]]) -> None:
        """Read many messages in one go, for `get`."""
        self._rows.prefetch(MESSAGES, workspace_and_message)

    def insert(self, message: Message) -> None:
        """Write a new message."""
        self._rows.insert(MESSAGES, MESSAGES.key_of(message), message)

    def list(
        self,
        workspace_id: str,
        *,
        external_id: str | None = None,
        metadata: str | None = None,
        after: str | None = None,
        limit: int,
    ) -> Sequence[Message]:
        """Return messages of a workspace that pass the given filters, by id, descending, below `after`."""
        below = LAST if after is None else after
        filters: dict[str, Value] = {"external_id": external_id, "metadata": metadata}
        given = {name: value for name, value in filters.items() if value is not None}
        name = filtered("messages.list", given)
        return self._list(MESSAGES, name, workspace_id=workspace_id, **given, after=below, limit=limit)

    def to_person(self, workspace_id: str, phone: str, *, after: Place | None = None, limit: int) -> Sequence[Message]:
        """Return the newest single messages to the person at a number, by (created_at, id), descending."""
        rows = self._rows_of_person("messages.to_person", MESSAGES, workspace_id, phone, after=after, limit=limit)
        return _newest(self._rows.cache_rows(MESSAGES, rows), limit)

    def last_reply(
        self, workspace_id: str, phone: str, purpose: ReplyPurpose, *, until: datetime | None = None
    ) -> datetime | None:
        """Return when the newest reply with this purpose to a number was created, up to `until`; None without one."""
        rows = self._query_forms(
            "messages.last_reply",
            MESSAGES,
            workspace_id,
            phone,
            purpose=purpose,
            until=None if until is None else format_timestamp(until),
        )
        return _latest(rows)


class Inbound(IdentifiedTable[InboundMessage]):
    """Inbound messages."""

    def last_keyword(self, workspace_id: str, phone: str, keyword: Keyword) -> datetime | None:
        """Return when a number last wrote a keyword, by `written_at`, or None."""
        return _latest(self._query_forms("inbound.last_keyword", INBOUND, workspace_id, phone, keyword=keyword))

    def last_unclear(self, workspace_id: str, phone: str) -> datetime | None:
        """Return when a number last wrote an unclear message, by `written_at`, or None."""
        return _latest(self._query_forms("inbound.last_unclear", INBOUND, workspace_id, phone))

    def list(
        self,
        workspace_id: str,
        *,
        unclear: bool = False,
        after: tuple[datetime, str] | None = None,
        limit: int = 1000,
    ) -> Sequence[InboundMessage]:
        """Return the newest messages, or the unclear ones, by (received_at, id), both descending, from `after` on."""
        query = "inbound.list_unclear" if unclear else "inbound.list"
        place = page_begin(after, after_at=LAST, after_id="")
        return self._list(INBOUND, query, workspace_id=workspace_id, **place, limit=limit)

    def list_unanswered(
        self,
        workspace_id: str,
        *,
        since: datetime,
        unclear: bool = False,
        after: tuple[datetime, str] | None = None,
        limit: int,
    ) -> Sequence[InboundMessage]:
        """Return the newest messages since a moment that nobody has answered, or the unclear ones, as `list` does."""
        return self._list(
            INBOUND,
            "inbound.list_unanswered",
            workspace_id=workspace_id,
            since=format_timestamp(since),
            unclear=int(unclear),
            **page_begin(after, after_at=LAST, after_id=""),
            limit=limit,
        )

    def from_person(
        self, workspace_id: str, phone: str, *, after: Place | None = None, limit: int
    ) -> Sequence[InboundMessage]:
        """Return the newest messages of the person at a number, by (received_at, id), descending."""
        rows = self._rows_of_person("inbound.from_person", INBOUND, workspace_id, phone, after=after, limit=limit)
        found = self._rows.cache_rows(INBOUND, rows)
        return sorted(found, key=lambda one: (one.received_at, one.id), reverse=True)[:limit]

    def senders_among(self, workspace_id: str, phones: Collection[str], *, since: datetime) -> frozenset[str]:
        """Return those of the numbers (at most 5,000) that have written at or after a moment."""
        at = format_timestamp(since)
        return self._persons_among("inbound.senders_among", INBOUND, workspace_id=workspace_id, phones=phones, since=at)

    def replied_since(self, workspace_id: str, phone: str, since: datetime) -> bool:
        """Return whether a number has written at or after a moment."""
        at = format_timestamp(since)
        return bool(self._query_forms("inbound.replied_since", INBOUND, workspace_id, phone, since=at))


def _newest(found: Sequence[C], limit: int) -> Sequence[C]:
    return sorted(found, key=lambda one: (one.created_at, one.id), reverse=True)[:limit]


def _latest(rows: Sequence[Row]) -> datetime | None:
    """Return the latest of the times in some rows, each of which has one or None."""
    return max((parse_timestamp(row[0]) for row in rows if row[0] is not None), default=None)
