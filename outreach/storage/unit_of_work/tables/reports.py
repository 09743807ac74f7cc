"""The figures of reports, counted by sets."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

import attrs

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.models.campaign_report import SenderFigures
from outreach.models.states import CallStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.serialization.documents import json_text, money_of
from outreach.storage.unit_of_work.kinds import CALLS, DISPATCHES, INBOUND, RECIPIENTS, UNSUBSCRIBES, Kind
from outreach.storage.unit_of_work.tables.base import Table, json_list

_MIDNIGHT: Final = "2000-01-01T00:00:00.000000Z"
_LENGTHS: Final = {
    timedelta(minutes=1): len("2000-01-01T00:00"),
    timedelta(minutes=10): len("2000-01-01T00:0"),
    timedelta(hours=1): len("2000-01-01T00"),
    timedelta(days=1): len("2000-01-01"),
}
"""How much of a stored time tells steps of a length apart."""


class ResultRow(NamedTuple):
    """Contacts with one result; `contacted` of them had a request."""

    status: RecipientStatus
    reason: str | None
    contacts: int
    contacted: int


class AcceptedRow(NamedTuple):
    """Messages of one provider that were accepted, without a reason or a code.

    If they are by country, `place` is one of their numbers, which stands for all; of erased numbers it is
    their country.
    """

    provider: str
    place: str | None
    requests: int
    delivered: int
    undelivered: int
    segments: int


class RequestRow(NamedTuple):
    """Other messages of one provider with one outcome; `place` as above."""

    provider: str
    place: str | None
    state: DispatchState
    report: MessageStatus | None
    reason: str | None
    error_code: str | None
    requests: int
    segments: int
    error_message: str | None


class CallRow(NamedTuple):
    """Calls of one provider with one status, outcome and currency of their cost; `place` as above.

    `cost` is the sum of what the provider charges for `priced` of them; None if it tells no cost.
    `milliseconds` are between answer and end, whole ones of each call. `minutes` are the minutes that each call has
    begun.
    """

    status: CallStatus
    outcome: str | None
    provider: str
    place: str | None
    calls: int
    answered: int
    milliseconds: int
    minutes: int
    currency: str | None
    cost: Decimal | None
    priced: int


class Reports(Table):
    """The figures of campaigns; each query reads a campaign's rows of one table at most once.

    Figures by country have more groups: the numbers of each are of one country.
    """

    def results(self, workspace_id: str, campaign_id: str) -> Sequence[ResultRow]:
        """Return the contacts by status and reason, without pending ones and those of the plain good end.

        These were contacted, and are completed without a reason.
        """
        rows = self._campaign_rows("reports.results", workspace_id, campaign_id, RECIPIENTS)
        return [ResultRow(RecipientStatus(status), *rest) for status, *rest in rows]

    def accepted_messages(self, workspace_id: str, campaign_id: str, *, by_country: bool) -> Sequence[AcceptedRow]:
        """Return the accepted messages without a reason or a code, by provider, and by country if `by_country`."""
        number = self._rows.number(workspace_id, campaign_id)
        if not by_country:
            # Without groups it takes half the time, and nearly every campaign has one provider.
            [(provider, *figures, has_others)] = self._rows.query("reports.accepted", DISPATCHES, number=number)
            if provider is None:
                return []
            if not has_others:
                return [AcceptedRow(provider, None, *figures)]
        rows = self._rows.query("reports.accepted_by_place", DISPATCHES, number=number, by_country=by_country)
        return [AcceptedRow(*row) for row in rows]

    def by_sender(self, workspace_id: str, campaign_id: str) -> Sequence[SenderFigures]:
        """Return the messages of a campaign by what they came from, in order."""
        rows = self._campaign_rows("reports.by_sender", workspace_id, campaign_id, DISPATCHES)
        names = [name for name in attrs.fields_dict(SenderFigures) if name != "opt_outs"]
        return [SenderFigures(**dict(zip(names, row, strict=True))) for row in rows]

    def other_messages(self, workspace_id: str, campaign_id: str, *, by_country: bool) -> Sequence[RequestRow]:
        """Return all other messages, by provider and outcome, and by country if `by_country`."""
        rows = self._campaign_rows("reports.others", workspace_id, campaign_id, DISPATCHES, by_country=by_country)
        return [
            RequestRow(provider, place, DispatchState(state), None if report is None else MessageStatus(report), *rest)
            for provider, place, state, report, *rest in rows
        ]

    def calls(self, workspace_id: str, campaign_id: str, *, by_country: bool) -> Sequence[CallRow]:
        """Return the calls by status, outcome, provider and currency, and by country if `by_country`."""
        rows = self._campaign_rows("reports.calls", workspace_id, campaign_id, CALLS, by_country=by_country)
        return [
            CallRow(CallStatus(status), *rest)._replace(cost=None if rest[-2] is None else money_of(rest[-2]))
            for status, *rest in rows
        ]

    def first_and_last_request(self, workspace_id: str, campaign_id: str) -> tuple[datetime, datetime] | None:
        """Return when the first and the last dispatch were created; None without any."""
        [[first, last]] = self._campaign_rows("reports.first_and_last", workspace_id, campaign_id, DISPATCHES)
        return None if first is None else (parse_timestamp(first), parse_timestamp(last))

    def requests_by_step(
        self, workspace_id: str, campaign_id: str, *, since: datetime, step: timedelta
    ) -> Sequence[tuple[datetime, DispatchState, MessageStatus | None, int]]:
        """Return how many dispatches were created in each step since a moment, by (step, state, report).

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            since: The first moment.
            step: A minute, ten minutes, an hour or a day.

        Returns:
            The beginning of each step that has any, with state, report (no report first) and number.
        """
        rows = self._rows.query(
            "reports.requests_by_step",
            DISPATCHES,
            number=self._rows.number(workspace_id, campaign_id),
            since=format_timestamp(since),
            length=_LENGTHS[step],
        )
        return [
            (
                parse_timestamp(begins + _MIDNIGHT[len(begins) :]),
                DispatchState(state),
                None if report is None else MessageStatus(report),
                count,
            )
            for begins, state, report, count in rows
        ]

    def requests_between(self, workspace_id: str, campaign_id: str, bounds: Sequence[datetime]) -> Sequence[int]:
        """Return how many dispatches were created from each bound until before the next one."""
        moments = [format_timestamp(bound) for bound in bounds]
        rows = self._rows.query(
            "reports.requests_between",
            DISPATCHES,
            number=self._rows.number(workspace_id, campaign_id),
            wanted=json_text([list(pair) for pair in itertools.pairwise(moments)]),
        )
        return [row[0] for row in rows]

    def _belonging(
        self,
        query: str,
        kind: Kind[Any],
        workspace_id: str,
        campaign_id: str,
        since: datetime,
        until: datetime,
        **more: str,
    ) -> Sequence[Sequence[Any]]:
        """Return the rows of a query for what belongs to a campaign by its requests, between two moments."""
        return self._rows.query(
            query,
            kind,
            DISPATCHES,
            workspace_id=workspace_id,
            number=self._rows.number(workspace_id, campaign_id),
            since=format_timestamp(since),
            until=format_timestamp(until),
            **more,
        )

    def replies(
        self, workspace_id: str, campaign_id: str, since: datetime, until: datetime
    ) -> Sequence[tuple[datetime, str]]:
        """Return the time and number of each inbound message that belongs to a campaign, by time.

        It belongs to the campaign that sent the last request to its number before it.
        """
        rows = self._belonging("reports.replies", INBOUND, workspace_id, campaign_id, since, until)
        return [(parse_timestamp(at), phone) for at, phone in rows]

    def opt_outs(self, workspace_id: str, campaign_id: str, since: datetime, until: datetime) -> Sequence[datetime]:
        """Return when contacts came onto the register by themselves; they belong to campaigns as `replies` do."""
        rows = self._belonging("reports.opt_outs", UNSUBSCRIBES, workspace_id, campaign_id, since, until)
        return [parse_timestamp(row[0]) for row in rows]

    def opt_outs_by_sender(
        self, workspace_id: str, campaign_id: str, since: datetime, until: datetime
    ) -> Mapping[str, int]:
        """Return how many `opt_outs` follow a message from each number."""
        rows = self._belonging("reports.opt_outs_by_sender", UNSUBSCRIBES, workspace_id, campaign_id, since, until)
        return {str(sender): int(count) for sender, count in rows}

    def replies_of(
        self, workspace_id: str, campaign_id: str, phones: Collection[str], since: datetime, until: datetime
    ) -> Mapping[str, Sequence[tuple[datetime, str]]]:
        """Return the time and text of each number's messages that belong to a campaign (see `replies`), by time."""
        rows = self._belonging(
            "reports.replies_of", INBOUND, workspace_id, campaign_id, since, until, phones=json_list(phones)
        )
        return _by_phone(rows)

    def opt_outs_of(
        self, workspace_id: str, campaign_id: str, phones: Collection[str], since: datetime, until: datetime
    ) -> Mapping[str, datetime]:
        """Return when each of the numbers opted out, of those that `opt_outs` counts."""
        rows = self._belonging(
            "reports.opt_outs_of", UNSUBSCRIBES, workspace_id, campaign_id, since, until, phones=json_list(phones)
        )
        return {phone: parse_timestamp(at) for phone, at in rows}

    def archived_replies_of(
        self, workspace_id: str, campaign_id: str, phones: Collection[str]
    ) -> Mapping[str, Sequence[tuple[datetime, str]]]:
        """Return, in an archive, what `replies_of` returned before the campaign was moved there."""
        rows = self._rows.query(
            "archives.replies_of",
            INBOUND,
            workspace_id=workspace_id,
            number=self._rows.number(workspace_id, campaign_id),
            phones=json_list(phones),
        )
        return _by_phone(rows)

    def archived_opt_outs_of(
        self, workspace_id: str, campaign_id: str, phones: Collection[str]
    ) -> Mapping[str, datetime]:
        """Return, in an archive, what `opt_outs_of` returned before the campaign was moved there."""
        rows = self._rows.query(
            "archives.opt_outs_of",
            UNSUBSCRIBES,
            workspace_id=workspace_id,
            number=self._rows.number(workspace_id, campaign_id),
            phones=json_list(phones),
        )
        return {phone: parse_timestamp(at) for phone, at in rows}


def _by_phone(rows: Sequence[Sequence[str]]) -> Mapping[str, Sequence[tuple[datetime, str]]]:
    found: dict[str, list[tuple[datetime, str]]] = {}
    for phone, at, body in rows:
        found.setdefault(phone, []).append((parse_timestamp(at), body))
    return found
