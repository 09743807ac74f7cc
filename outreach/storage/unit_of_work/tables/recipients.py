"""The recipients of campaigns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.models.base import Channel
from outreach.models.campaign import Counters, PreparedRecipient, Recipient, contribution
from outreach.models.resources import StepCount
from outreach.models.states import OPEN_RECIPIENT_STATUSES, RecipientStatus
from outreach.rules.numbering import person_key, spellings
from outreach.rules.settlement import DOUBLE_DIAL
from outreach.serialization.documents import Value, json_text
from outreach.storage.unit_of_work.kinds import CAMPAIGNS, RECIPIENTS, UNSUBSCRIBES
from outreach.storage.unit_of_work.tables.base import LAST, Place, Table, json_list, page_begin
from outreach.storage.unit_of_work.unit_of_work import AlreadyExists

NewRow = tuple[int, PreparedRecipient, RecipientStatus, str | None]


class StoredContact(NamedTuple):
    """A recipient as it is stored: plain values, because a look at all of them reads hundreds of thousands.

    Attributes:
        custom_variables: JSON object; None for an empty one.
        status: A `RecipientStatus`, as text.
        due_at: A timestamp, as text.
    """

    position: int
    phone_number: str
    phone: str | None
    first_name: str | None
    last_name: str | None
    email: str | None
    company: str | None
    custom_variables: str | None
    status: str
    reason: str | None
    due_at: str | None
    step: int
    attempts: int
    dispatched: int
    time_zone: str | None
    us_place: str | None


class LoadedRow(NamedTuple):
    """A recipient of a loading campaign: what decides whether it is a duplicate elsewhere."""

    position: int
    phone: str | None
    status: RecipientStatus


class Recipients(Table):
    """The recipients of campaigns, keyed by (campaign, position)."""

    def insert(self, workspace_id: str, campaign_id: str, rows: Iterable[NewRow], *, now: datetime) -> None:
        """Write recipients: position, contact, status and reason; ended ones end now.

        Raises:
            LookupError: The workspace has no such campaign, loading or published.
            AlreadyExists: A position is taken or repeated; no row was written.
        """
        number = self._rows.number(workspace_id, campaign_id)
        if number is None:
            raise LookupError("There is no such campaign.")
        short, whole = _new_rows(number, rows, format_timestamp(now))
        positions = {position for _, position, *_ in (*short, *whole) if isinstance(position, int)}
        if not positions:
            return
        taken = self._rows.query(
            "recipients.taken", RECIPIENTS, number=number, first=min(positions), last=max(positions)
        )
        if len(positions) < len(short) + len(whole) or not positions.isdisjoint(row[0] for row in taken):
            raise AlreadyExists(f"There is such a {RECIPIENTS.noun} already.")
        self._rows.run_many("recipients.insert_short", short)
        self._rows.run_many("recipients.insert", whole)
        self._rows.written_in.add(workspace_id)
        self._rows.evict(RECIPIENTS, ((campaign_id, position) for position in positions))

    def known_phones(self, workspace_id: str, campaign_id: str, phones: Collection[str]) -> frozenset[str]:
        """Return those of the numbers (at most 5,000) that the campaign already has, in any spelling."""
        rows = self._rows.query(
            "recipients.known_phones",
            RECIPIENTS,
            number=self._rows.number(workspace_id, campaign_id),
            phones=json_list({each for phone in phones for each in spellings(phone)}),
        )
        known = {person_key(row[0]) for row in rows}
        return frozenset(phone for phone in phones if person_key(phone) in known)

    def next_position(self, workspace_id: str, campaign_id: str) -> int:
        """Return the position behind the last recipient of a campaign, loading or published."""
        [[last]] = self._campaign_rows("erasure.last_position", workspace_id, campaign_id, RECIPIENTS)
        return 0 if last is None else last + 1

    def mark_added(self, workspace_id: str, campaign_id: str, *, first: int, now: datetime) -> None:
        """Record that the recipients from a position on, just written, were added to a campaign that existed."""
        self._rows.execute(
            "recipients.mark_added",
            number=self._rows.number(workspace_id, campaign_id),
            first=first,
            now=format_timestamp(now),
        )

    def first_rows(self, workspace_id: str, campaign_id: str, *, limit: int) -> Sequence[LoadedRow]:
        """Return the first recipients of a loading campaign, by position; nothing is cached."""
        rows = self._campaign_rows("recipients.first_rows", workspace_id, campaign_id, RECIPIENTS, limit=limit)
        return [LoadedRow(position, phone, RecipientStatus(status)) for position, phone, status in rows]

    def move(
        self,
        workspace_id: str,
        campaign_id: str,
        target_id: str,
        rows: Sequence[LoadedRow],
        *,
        duplicates: Collection[int],
        now: datetime,
    ) -> None:
        """Move the first recipients of a loading campaign behind the last one of another campaign, in their order.

        Args:
            workspace_id: The workspace.
            campaign_id: The loading campaign.
            target_id: The campaign that they are added to.
            rows: The recipients, as `first_rows` returned them in this transaction; at least one.
            duplicates: The positions of those who are there already: they are skipped.
            now: When they are added.
        """
        number, target = (self._rows.number(workspace_id, one) for one in (campaign_id, target_id))
        at = format_timestamp(now)
        if duplicates:
            positions = json_text(sorted(duplicates))
            self._rows.execute("recipients.skip_duplicates", number=number, positions=positions, now=at)
        offset = self.next_position(workspace_id, target_id) - rows[0].position
        last = rows[-1].position
        self._rows.execute("recipients.move", number=number, target=target, offset=offset, last=last, now=at)
        self._rows.evict(RECIPIENTS, ((target_id, row.position + offset) for row in rows))

    def delete_stopped_since(self, workspace_id: str, campaign_id: str, channel: Channel, since: datetime) -> Counters:
        """Delete recipients whose number, in any spelling, came onto the register at or after `since`.

        Returns what they counted.
        """
        stopped = self._rows.query(
            "register.stopped_since",
            UNSUBSCRIBES,
            workspace_id=workspace_id,
            channel=channel,
            since=format_timestamp(since),
        )
        rows = self._rows.query(
            "recipients.with_phones",
            RECIPIENTS,
            number=self._rows.number(workspace_id, campaign_id),
            phones=json_list({each for row in stopped for each in spellings(row[0])}),
        )
        counted = Counters()
        for it in self._rows.cache_rows(RECIPIENTS, rows):
            counted += contribution(it.status, attempts=it.attempts, dispatched=it.dispatched, successful=it.successful)
            self._rows.delete(RECIPIENTS, (campaign_id, it.position))
        return counted

    def get(self, workspace_id: str, campaign_id: str, position: int) -> Recipient | None:
        """Return a recipient."""
        if self._rows.ref(workspace_id, campaign_id) is None:
            return None
        return self._rows.get(RECIPIENTS, (campaign_id, position))

    def prefetch(self, recipients: Collection[tuple[str, str, int]]) -> None:
        """Read many (workspace, campaign, position) in one go, for `get`."""
        self._rows.prefetch_refs(campaign_id for _, campaign_id, _ in recipients)
        self._rows.prefetch(
            RECIPIENTS,
            (
                (campaign_id, position)
                for workspace_id, campaign_id, position in recipients
                if self._rows.ref(workspace_id, campaign_id) is not None
            ),
        )

    def put(self, workspace_id: str, recipient: Recipient) -> None:
        """Replace a recipient's state; the contact's own fields stay."""
        if self._rows.ref(workspace_id, recipient.campaign_id) is None:
            raise LookupError(f"There is no such {RECIPIENTS.noun}.")
        self._rows.update(RECIPIENTS, (recipient.campaign_id, recipient.position), recipient)

    def due(self, workspace_id: str, campaign_id: str, now: datetime, *, limit: int) -> Sequence[Recipient]:
        """Return pending recipients, and waiting ones due at or before now.

        Second calls of a double dial come first, because they expire within seconds; then other waiting ones, each by
        (due_at, position); then pending ones by position.
        """
        return self.due_for_campaigns([(workspace_id, campaign_id)], now, limit=limit)[0]

    def due_for_campaigns(
        self, campaigns: Sequence[tuple[str, str]], now: datetime, *, limit: int
    ) -> Sequence[Sequence[Recipient]]:
        """Return the due recipients of many campaigns, at most `limit` of each."""
        numbers = [self._rows.number(workspace_id, campaign_id) for workspace_id, campaign_id in campaigns]
        found: dict[str, list[Recipient]] = {campaign_id: [] for _, campaign_id in campaigns}
        terms: dict[str, Value] = {"wanted": json_text(numbers), "limit": limit}
        waiting: dict[str, Value] = {"reason": DOUBLE_DIAL, "now": format_timestamp(now)}
        for name, more in (("due_waiting_for", waiting), ("due_waiting_else", waiting), ("due_pending", {})):
            for recipient in self._list(RECIPIENTS, f"recipients.{name}", **terms, **more):
                found[recipient.campaign_id].append(recipient)
        return [found[campaign_id][:limit] for _, campaign_id in campaigns]

    def next_due(self, workspace_id: str, campaign_id: str) -> datetime | None:
        """Return the earliest due time of waiting and in-progress recipients, or None."""
        return self.next_due_of_campaigns([(workspace_id, campaign_id)]).get(campaign_id)

    def next_due_of_campaigns(self, campaigns: Iterable[tuple[str, str]]) -> Mapping[str, datetime]:
        """Return the earliest due time of waiting and in-progress recipients of many campaigns that have one."""
        known = self._numbers(campaigns)
        if not known:
            return {}
        rows = self._rows.query("recipients.next_due", RECIPIENTS, wanted=json_text(list(known)))
        earliest = ((number, [due_at for due_at in due_times if due_at is not None]) for number, *due_times in rows)
        return {known[number]: parse_timestamp(min(due_times)) for number, due_times in earliest if due_times}

    def waiting_beyond(self, waits: Iterable[tuple[str, str, str, datetime]]) -> Collection[str]:
        """Return the campaigns in which somebody waits beyond a moment for a reason.

        Args:
            waits: Workspaces and campaigns, each with a reason and a moment.
        """
        waits = list(waits)
        known = self._numbers((workspace_id, campaign_id) for workspace_id, campaign_id, _, _ in waits)
        numbers = {campaign_id: number for number, campaign_id in known.items()}
        wanted = [
            [numbers[campaign_id], reason, format_timestamp(after)]
            for _, campaign_id, reason, after in waits
            if campaign_id in numbers
        ]
        if not wanted:
            return ()
        rows = self._rows.query("recipients.waiting_beyond", RECIPIENTS, wanted=json_text(wanted))
        return {known[number] for (number,) in rows}

    def in_progress_beyond(self, campaigns: Iterable[tuple[str, str]], after: datetime) -> Collection[str]:
        """Return the campaigns in which a recipient in progress is due after a moment."""
        known = self._numbers(campaigns)
        if not known:
            return ()
        rows = self._rows.query(
            "recipients.in_progress_beyond",
            RECIPIENTS,
            wanted=json_text(list(known)),
            after=format_timestamp(after),
        )
        return {known[number] for (number,) in rows}

    def overdue_in_progress(
        self, workspace_id: str, campaign_id: str, now: datetime, *, limit: int
    ) -> Sequence[Recipient]:
        """Return in-progress recipients due at or before now, by (due_at, position)."""
        return self._of("overdue_in_progress", workspace_id, campaign_id, now=format_timestamp(now), limit=limit)

    def in_progress_after(
        self, workspace_id: str, campaign_id: str, after: datetime, *, limit: int
    ) -> Sequence[Recipient]:
        """Return in-progress recipients due after a moment, by (due_at, position)."""
        return self._of("in_progress_after", workspace_id, campaign_id, after=format_timestamp(after), limit=limit)

    def postponed(
        self, workspace_id: str, campaign_id: str, reason: str, now: datetime, *, limit: int
    ) -> Sequence[Recipient]:
        """Return recipients that wait for this reason and are due after now, by (due_at, position)."""
        return self._of("postponed", workspace_id, campaign_id, reason=reason, now=format_timestamp(now), limit=limit)

    def count_postponed(
        self,
        workspace_id: str,
        campaign_id: str,
        reasons: Collection[str],
        now: datetime,
        *,
        until: datetime | None,
        limit: int,
    ) -> int:
        """Return how many recipients wait for one of these reasons and are due after now, at most `limit`.

        Up to and including a moment; None for any.
        """
        [[count]] = self._rows.query(
            "recipients.count_postponed",
            RECIPIENTS,
            number=self._rows.number(workspace_id, campaign_id),
            reasons=json_list(reasons),
            now=format_timestamp(now),
            until=None if until is None else format_timestamp(until),
            limit=limit,
        )
        return int(count)

    def first_postponed(self, workspace_id: str, campaign_id: str, now: datetime) -> Recipient | None:
        """Return the first waiting recipient that is due after now, by (due_at, position)."""
        return next(iter(self._of("first_postponed", workspace_id, campaign_id, now=format_timestamp(now))), None)

    def count_due(self, workspace_id: str, campaign_id: str, now: datetime, *, limit: int) -> int:
        """Return how many recipients `due` has, at most `limit`."""
        [[count]] = self._rows.query(
            "recipients.count_due",
            RECIPIENTS,
            number=self._rows.number(workspace_id, campaign_id),
            now=format_timestamp(now),
            limit=limit,
        )
        return int(count)

    def waiting_for_phone(self, workspace_id: str, phone: str) -> Sequence[Recipient]:
        """Return the waiting recipients at this number in all campaigns of a workspace, by (campaign, position)."""
        rows = self._query_forms("recipients.waiting_for_phone", RECIPIENTS, workspace_id, phone)
        return sorted(self._rows.cache_rows(RECIPIENTS, rows), key=lambda one: (one.campaign_id, one.position))

    def in_flight(self, workspace_id: str, campaign_id: str) -> int:
        """Return how many are dispatching, in progress or unknown."""
        [[count]] = self._campaign_rows("recipients.in_flight", workspace_id, campaign_id, RECIPIENTS)
        return int(count)

    def closable(self, workspace_id: str, campaign_id: str, *, limit: int) -> Sequence[Recipient]:
        """Return pending recipients by position, then waiting ones by (due_at, position), at most `limit`."""
        return self._of("closable", workspace_id, campaign_id, limit=limit)

    def page(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        status: RecipientStatus | None = None,
        reason: str | None = None,
        after: int = -1,
        limit: int = 1000,
    ) -> Sequence[Recipient]:
        """Return recipients by position from `after` on, at most `limit`; of one status or reason, or of any."""
        wanted = None if status is None else status.value
        return self._of("page", workspace_id, campaign_id, status=wanted, reason=reason, after=after, limit=limit)

    def page_of_few(
        self,
        workspace_id: str,
        campaign_id: str,
        status: RecipientStatus,
        *,
        reason: str | None = None,
        after: int = -1,
        limit: int = 1000,
    ) -> Sequence[Recipient]:
        """Return what `page` does, of a state in which few have ended, never `COMPLETED`: all of them are looked at."""
        return self._of(
            "page_of_few", workspace_id, campaign_id, status=status.value, reason=reason, after=after, limit=limit
        )

    def contacts(
        self, workspace_id: str, campaign_id: str, *, after: int = -1, limit: int = 1000
    ) -> Sequence[StoredContact]:
        """Return what a look at all of them needs, by position from `after` on, at most `limit`; nothing is cached."""
        number = self._rows.number(workspace_id, campaign_id)
        rows = self._rows.query("recipients.contacts", RECIPIENTS, number=number, after=after, limit=limit)
        return [StoredContact._make(row) for row in rows]

    def by_phone(self, workspace_id: str, campaign_id: str, phone: str) -> Sequence[Recipient]:
        """Return the recipients at this number, by position."""
        found = [
            one
            for form in self._forms(workspace_id, phone)
            for one in self._of("by_phone", workspace_id, campaign_id, phone=form)
        ]
        return sorted(found, key=lambda one: one.position)

    def without_phone(self, workspace_id: str, campaign_id: str, phone_number: str) -> Sequence[Recipient]:
        """Return the recipients that were supplied with this invalid number, by position."""
        return self._of("without_phone", workspace_id, campaign_id, phone_number=phone_number)

    def count_waiting(self, *, limit: int) -> Mapping[str, int]:
        """Return the recipients of active campaigns that wait, by reason, among `limit` of them."""
        rows = self._rows.query("recipients.count_waiting", RECIPIENTS, CAMPAIGNS, limit=limit)
        return {reason or "": count for reason, count in rows}

    def with_external_id(
        self, workspace_id: str, external_id: str, *, campaign_id: str, limit: int
    ) -> Sequence[Recipient]:
        """Return a campaign's recipients with an id of the application's, by position, at most `limit`."""
        return self._of("with_external_id_in", workspace_id, campaign_id, external_id=external_id, limit=limit)

    def with_external_id_anywhere(
        self, workspace_id: str, external_id: str, *, after: tuple[datetime, str, int] | None = None, limit: int
    ) -> Sequence[Recipient]:
        """Return the recipients with an id of the application's in all published campaigns of a workspace.

        The newest campaign comes first, by its (created_at descending, id), and its recipients by position; they begin
        behind `after`, which is these three.
        """
        rows = self._rows.query(
            "recipients.with_external_id",
            RECIPIENTS,
            CAMPAIGNS,
            workspace_id=workspace_id,
            external_id=external_id,
            **page_begin(after, after_at=LAST, after_id="", after_position=-1),
            limit=limit,
        )
        return self._rows.cache_rows(RECIPIENTS, rows)

    def of_person(
        self, workspace_id: str, phone: str, *, after: Place | None = None, limit: int
    ) -> Sequence[Recipient]:
        """Return the newest places of the person at a number in all published campaigns of a workspace.

        The order is that of the campaign's (created_at, id) and of the position, all descending; `limit` is for each
        form of the number, one form after the other.
        """
        rows = self._rows_of_person("recipients.of_person", RECIPIENTS, workspace_id, phone, after=after, limit=limit)
        return self._rows.cache_rows(RECIPIENTS, rows)

    def external_ids(self, recipients: Collection[tuple[str, str, int]]) -> Mapping[tuple[str, int], str]:
        """Return the application's ids of many (workspace, campaign, position) that have one, by the latter two."""
        campaigns = self._numbers((workspace_id, campaign_id) for workspace_id, campaign_id, _ in recipients)
        numbers = {campaign_id: number for number, campaign_id in campaigns.items()}
        wanted = [[numbers[id_], position] for _, id_, position in recipients if id_ in numbers]
        if not wanted:
            return {}
        rows = self._rows.query("recipients.external_ids", RECIPIENTS, wanted=json_text(wanted))
        return {(campaigns[number], position): external_id for number, position, external_id in rows}

    def at_steps(self, workspace_id: str, campaign_id: str) -> Sequence[StepCount]:
        """Return how many open recipients are at each step of their flow after the first, in no order."""
        rows = self._campaign_rows("recipients.at_steps", workspace_id, campaign_id, RECIPIENTS)
        return [StepCount(step=step - 1 if in_wait else step, contacts=count) for step, in_wait, count in rows]

    def recount(self, workspace_id: str, campaign_id: str) -> Counters:
        """Return the counters, computed from every recipient (`models.campaign.contribution`)."""
        [row] = self._campaign_rows("recipients.recount", workspace_id, campaign_id, RECIPIENTS)
        total, pending, completed, successful, failed, still_open = row
        return Counters(
            total=total, pending=pending, completed=completed, successful=successful, failed=failed, open=still_open
        )

    def _numbers(self, campaigns: Iterable[tuple[str, str]]) -> Mapping[int, str]:
        """Return the campaigns that there are, by their numbers."""
        wanted = list(campaigns)
        self._rows.prefetch_refs(campaign_id for _, campaign_id in wanted)
        refs = (self._rows.ref(workspace_id, campaign_id) for workspace_id, campaign_id in wanted)
        return {ref.number: ref.id for ref in refs if ref is not None}

    def _of(self, name: str, workspace_id: str, campaign_id: str, **values: Value) -> list[Recipient]:
        number = self._rows.number(workspace_id, campaign_id)
        return self._list(RECIPIENTS, f"recipients.{name}", number=number, **values)


_SHORT: Final = len(PreparedRecipient._fields) - len(PreparedRecipient._field_defaults)
_NOTHING: Final = (None,) * len(PreparedRecipient._field_defaults)


def _new_rows(
    number: int, rows: Iterable[NewRow], now: str
) -> tuple[Sequence[tuple[Value, ...]], Sequence[tuple[Value, ...]]]:
    """Return the rows of pending contacts without optional fields, without the columns for these, and whole ones.

    sqlite3 takes 0.2 µs for each None that it binds.
    """
    short: list[tuple[Value, ...]] = []
    whole: list[tuple[Value, ...]] = []
    # Looked up once, not for each of a million rows.
    states = {status: (status.value, None if status in OPEN_RECIPIENT_STATUSES else now) for status in RecipientStatus}
    for position, contact, status, reason in rows:
        state, ended_at = states[status]
        if reason is None and ended_at is None and contact[_SHORT:] == _NOTHING:
            short.append((number, position, *contact[:_SHORT], state))
        else:
            whole.append((number, position, *contact, state, reason, ended_at))
    return short, whole
