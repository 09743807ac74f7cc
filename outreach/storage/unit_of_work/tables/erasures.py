"""Archives, and erasing people: the statements that take numbers, names and texts out of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.models.archive import Archive, ArchivedErasure, ArchivedLedger
from outreach.models.campaign import Recipient
from outreach.models.message import InboundMessage
from outreach.rules.number_zones import country_of_phone
from outreach.serialization.documents import Value, json_text
from outreach.storage.unit_of_work.kinds import (
    CALLBACKS,
    CALLS,
    CAMPAIGNS,
    DISPATCHES,
    IDEMPOTENCY_KEYS,
    INBOUND,
    MESSAGES,
    OCCURRENCES,
    RECIPIENTS,
    RUNS,
    SCHEDULES,
    TRAIL,
    UNSUBSCRIBES,
    WEBHOOK_ATTEMPTS,
    WORKSPACES,
)
from outreach.storage.unit_of_work.tables.base import Table, json_list

_LIMIT: Final = 1000


class PersonRows(NamedTuple):
    """Where a number stands in a workspace.

    Attributes:
        recipients: Its places in campaigns.
        messages: Single messages; `open_singles` counts those that have not ended.
        calls: Calls, those of campaigns included.
        callbacks: The storage's own names of events whose body holds the number.
        answers: Operations and idempotency keys whose stored answer holds the number.
    """

    recipients: Sequence[Recipient]
    messages: Sequence[str]
    calls: Sequence[str]
    open_singles: int
    callbacks: Sequence[int | str]
    answers: Sequence[tuple[str, str]]


class Erasures(Table):
    """Erasures: the figures that they keep, their progress, and the rows that are due."""

    def hide_campaign(self, workspace_id: str, campaign_id: str, *, now: datetime) -> bool:
        """Make a campaign without requests one whose loading was given up; return whether it was visible."""
        number = self._rows.number(workspace_id, campaign_id)
        if number is None:
            return False
        moment = format_timestamp(now)
        hidden = self._rows.execute_on(
            CAMPAIGNS, "erasure.hide", workspace_id=workspace_id, campaign_id=campaign_id, now=moment
        )
        if hidden:
            self._rows.execute("erasure.delete_run", number=number)
            self._rows.execute("erasure.delete_forecasts", number=number)
            self._rows.execute("approvals.delete", number=number)
            self._rows.evict(RUNS, [(campaign_id,)])
        return bool(hidden)

    def begin(self, workspace_id: str, campaign_id: str, *, figures: str) -> None:
        """Note that a campaign is being erased, and the figures that its report keeps."""
        number = self._rows.number(workspace_id, campaign_id)
        if number is None:
            raise LookupError("There is no such campaign.")
        self._rows.execute("erasure.begin", number=number, figures=figures)

    def figures(self, workspace_id: str, campaign_id: str) -> str | None:
        """Return the figures of an erased campaign, as they were given to `begin`."""
        rows = self._campaign_rows("erasure.figures", workspace_id, campaign_id)
        return rows[0][0] if rows else None

    def unfinished(self, workspace_id: str | None) -> tuple[str, str, int] | None:
        """Return (workspace, campaign, next position) of one that is not wholly erased, of a workspace or all."""
        rows = self._rows.query("erasure.unfinished", CAMPAIGNS, workspace_id=workspace_id)
        return (rows[0][0], rows[0][1], rows[0][2]) if rows else None

    def erase_positions(self, workspace_id: str, campaign_id: str, first: int, *, limit: int) -> bool:
        """Erase at most `limit` places of a campaign from `first` on, and note it; return whether more are left."""
        number = self._rows.number(workspace_id, campaign_id)
        [[last]] = self._rows.query("erasure.last_position", RECIPIENTS, number=number)
        until = first + limit - 1
        given: dict[str, Value] = {"workspace_id": workspace_id, "number": number, "first": first, "last": until}
        self._rows.execute_on(INBOUND, "erasure.assign_replies", **given)
        self._rows.execute_on(UNSUBSCRIBES, "erasure.assign_opt_outs", **given)
        for kind, name in ((RECIPIENTS, "recipients"), (DISPATCHES, "dispatches"), (CALLS, "calls")):
            self._rows.execute_on(kind, f"erasure.{name}", number=number, first=first, last=until)
        self._rows.execute("erasure.transcripts", number=number, first=first, last=until)
        self._rows.prefetched_keys.clear()
        more = last is not None and until < last
        self._rows.execute("erasure.advance", number=number, next_position=until + 1 if more else None)
        return more

    def due_campaign(self, workspace_id: str | None, *, now: datetime) -> tuple[str, str] | None:
        """Return (workspace, campaign) of the oldest that the retention of its workspace has reached."""
        given: dict[str, Value] = {"workspace_id": workspace_id, "now": format_timestamp(now)}
        kinds = (CAMPAIGNS, OCCURRENCES, SCHEDULES, WORKSPACES)
        rows = self._rows.query("erasure.due_campaign", *kinds, **given)
        return (rows[0][0], rows[0][1]) if rows else None

    def with_retention(self, workspace_id: str | None) -> Sequence[tuple[str, int]]:
        """Return (workspace, days) of those that keep nothing for good."""
        rows = self._rows.query("erasure.with_retention", WORKSPACES, workspace_id=workspace_id)
        return [(row[0], row[1]) for row in rows]

    def erase_old_singles(self, workspace_id: str, before: datetime, *, limit: int) -> int:
        """Erase single messages and calls that ended before a moment; return how many."""
        given: dict[str, Value] = {"workspace_id": workspace_id, "before": format_timestamp(before), "limit": limit}
        messages = [row[0] for row in self._rows.query("erasure.old_messages", MESSAGES, **given)]
        calls = [row[0] for row in self._rows.query("erasure.old_calls", CALLS, **given)]
        self.erase_singles(workspace_id, messages=messages, calls=calls, name="")
        return len(messages) + len(calls)

    def erase_singles(
        self,
        workspace_id: str,
        *,
        messages: Collection[str],
        calls: Collection[str],
        name: str,
        country: str | None = None,
    ) -> None:
        """Erase messages and calls by their identifiers; the name stands for their numbers, which are of a country."""
        for kind, statements, ids in (
            (MESSAGES, ("messages", "dispatches_of_messages"), messages),
            (CALLS, ("single_calls", "dispatches_of_calls"), calls),
        ):
            if not ids:
                continue
            given: dict[str, Value] = {"workspace_id": workspace_id, "name": name, "ids": json_text(list(ids))}
            more: dict[str, Value] = {"country": country} if kind is CALLS else {}
            self._rows.execute_on(kind, f"erasure.{statements[0]}", **given, **more)
            self._rows.execute_on(DISPATCHES, f"erasure.{statements[1]}", **given)
            if kind is CALLS:
                self._rows.execute("erasure.transcripts_of_calls", workspace_id=workspace_id, ids=given["ids"])
        self._rows.prefetched_keys.clear()

    def delete_old_events(
        self,
        workspace_id: str,
        before: datetime,
        *,
        waiting_since: datetime,
        limit: int,
        on_inbound: Callable[[InboundMessage], None] = lambda _: None,
    ) -> int:
        """Delete inbound messages and events from before a moment, and numbers of the trail; return how many.

        Replies that came since `waiting_since` are kept while a campaign that is not erased counts them.
        `on_inbound` is called with each message before it is deleted.
        """
        given: dict[str, Value] = {"workspace_id": workspace_id, "before": format_timestamp(before), "limit": limit}
        messages = self._list(INBOUND, "erasure.old_inbound", **given, waiting_since=format_timestamp(waiting_since))
        for message in messages:
            on_inbound(message)
        ids = json_text([message.id for message in messages])
        found = self._rows.execute_on(INBOUND, "erasure.inbound", workspace_id=workspace_id, ids=ids) if messages else 0
        found += self._rows.execute_on(CALLBACKS, "erasure.old_callbacks", **given)
        self._rows.prefetched_keys.clear()
        until = self._first_entry_since(before)
        return found + self._rows.execute("erasure.old_trail", workspace_id=workspace_id, until=until, limit=limit)

    def _first_entry_since(self, moment: datetime) -> int:
        """Return the number of the first entry of the trail at or after a moment, or one above the last."""
        first, end = 1, int((self._rows.query("trail.last_number", TRAIL) or [[0]])[0][0]) + 1
        since = format_timestamp(moment)
        while first < end:
            middle = (first + end) // 2
            rows = self._rows.query("erasure.next_in_trail", number=middle)
            if not rows or rows[0][1] >= since:
                end = middle
            else:
                first = rows[0][0] + 1
        return first

    def is_loading(self, workspace_id: str, *, now: datetime) -> bool:
        """Return whether contacts are being loaded into a campaign of a workspace."""
        return bool(self._rows.query("erasure.loading", workspace_id=workspace_id, now=format_timestamp(now)))

    def rows_of_person(self, workspace_id: str, phone: str, *, limit: int) -> PersonRows:
        """Return where the number of a person stands, in all its forms: at most `limit` rows of each kind.

        It reads all messages, calls, events and stored answers.
        """
        recipients = self._query_forms("erasure.recipients_of_person", RECIPIENTS, workspace_id, phone, limit=limit)
        messages = self._query_forms("erasure.messages_of_person", MESSAGES, workspace_id, phone, limit=limit)
        calls = self._query_forms("erasure.calls_of_person", CALLS, workspace_id, phone, limit=limit)
        callbacks: dict[int, None] = {}
        answers: dict[tuple[str, str], None] = {}
        for form in self._forms(workspace_id, phone):
            given: dict[str, Value] = {"workspace_id": workspace_id, "limit": limit, "digits": form.removeprefix("+")}
            found = self._rows.query("erasure.callbacks_of_person", CALLBACKS, **given)
            callbacks |= dict.fromkeys(row[0] for row in found)
            found = self._rows.query("erasure.answers_of_person", IDEMPOTENCY_KEYS, **given)
            answers |= dict.fromkeys((row[0], row[1]) for row in found)
        return PersonRows(
            recipients=self._rows.cache_rows(RECIPIENTS, recipients),
            messages=[row[0] for row in messages],
            calls=[row[0] for row in calls],
            open_singles=sum(row[1] for row in messages) + sum(row[1] for row in calls),
            callbacks=list(callbacks),
            answers=list(answers),
        )

    def erase_person(self, workspace_id: str, phone: str, found: PersonRows, *, name: str) -> int:
        """Put a name in the place of a number in all these rows, and take everything else about the person out.

        Inbound messages are erased too; it returns how many.
        Requests and calls keep the country of the number, so that what they cost stays the same.
        """
        country = country_of_phone(phone)
        replies = 0
        for recipient in found.recipients:
            number = self._rows.number(workspace_id, recipient.campaign_id)
            self._rows.execute_on(
                RECIPIENTS, "erasure.person_in_recipients", number=number, position=recipient.position, name=name
            )
        for form in self._forms(workspace_id, phone):
            person = {"workspace_id": workspace_id, "phone": form, "name": name}
            self._rows.execute_on(DISPATCHES, "erasure.person_in_dispatches", country=country, **person)
            replies += self._rows.execute_on(INBOUND, "erasure.person_in_inbound", **person)
            self._rows.execute("erasure.person_in_trail", **person)
            self._rows.execute("erasure.person_in_figures", **person)
            self._rows.execute_on(WEBHOOK_ATTEMPTS, "erasure.person_in_attempts", workspace_id=workspace_id, phone=form)
        self.erase_singles(workspace_id, messages=found.messages, calls=found.calls, name=name, country=country)
        if found.callbacks:
            self._rows.execute_on(
                CALLBACKS,
                "erasure.person_in_callbacks",
                workspace_id=workspace_id,
                ids=json_text(list(found.callbacks)),
            )
        self._rows.prefetched_keys.clear()
        return replies


class Archives(Table):
    """Which campaigns have their ledger in a file, and in which; `integrations.archives.moving` writes it."""

    def of_campaign(self, workspace_id: str, campaign_id: str) -> ArchivedLedger | None:
        """Return where the ledger of a campaign is; None while it is in the database, and no move was begun."""
        rows = self._rows.query("archives.of_campaign", workspace_id=workspace_id, campaign_id=campaign_id)
        if not rows:
            return None
        [[archive_id, file, state, figures]] = rows
        return ArchivedLedger(archive_id=archive_id, file=file, state=state, figures=figures)

    def list(self, workspace_id: str | None) -> Sequence[Archive]:
        """Return those that hold something of a workspace, or all, by (created_at, id)."""
        rows = self._rows.query("archives.list", workspace_id=workspace_id)
        return [
            Archive(id=identity, file=file, created_at=parse_timestamp(created_at), campaigns=count)
            for identity, file, created_at, count in rows
        ]

    def to_erase(self, workspace_id: str | None, *, without: Collection[str] = ()) -> Sequence[ArchivedErasure]:
        """Return campaigns of a workspace, or all, that their archives still have to erase, at most 1,000.

        Those in the archives `without`, which are given by their ids, are left out.
        """
        rows = self._rows.query(
            "archives.to_erase", workspace_id=workspace_id, without=json_list(without), limit=_LIMIT
        )
        return [
            ArchivedErasure(workspace_id=owner, campaign_id=campaign_id, number=number, archive_id=identity, file=file)
            for owner, campaign_id, number, identity, file in rows
        ]

    def note_erasure(self, workspace_id: str, campaign_id: str, *, figures: str) -> None:
        """Note that the archive of a campaign, if any, has to erase it, and the figures that its report keeps."""
        number = self._rows.number(workspace_id, campaign_id)
        self._rows.execute("archives.note_erasure", number=number, figures=figures)

    def erased(self, one: ArchivedErasure) -> None:
        """Note that an archive has erased a campaign."""
        self._rows.execute("archives.erased", number=one.number)
