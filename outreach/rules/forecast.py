"""When a campaign will be done: its remaining requests, played through by the rules that the planner follows.

Nothing here is random: of a hundred messages with a failure rate of 0.02 every fiftieth fails. Times are seconds from
the forecast's own time on, because hundreds of thousands are computed.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import attrs

from outreach.models.campaign import Campaign
from outreach.models.forecast import BindingRule, ForecastAssumptions, ForecastHour, ForecastPhase
from outreach.models.resources import FlowStep
from outreach.models.states import TrailRule
from outreach.rules.contact_hours import LocalHours, earliest_closing, next_contact
from outreach.rules.contact_places import ContactPlace
from outreach.rules.deciding import FREQUENCY_CAP, FREQUENCY_WINDOW, HOLDING_RULES, LocalRules, spacing
from outreach.rules.opening import opening_state
from outreach.rules.phones import NUMBER_BUSY
from outreach.rules.settlement import DOUBLE_DIAL, RETRYABLE_OUTCOMES, TRANSIENT_FAILURES

HORIZON: Final = timedelta(days=400)
"""How far a forecast looks from the start on."""

_HOUR: Final = 3600.0
_NEVER: Final = float("inf")

_RULE_OF_REASON: Final[dict[str, BindingRule]] = {
    **{rule.name: rule.name for rule in HOLDING_RULES.values()},
    "flow_wait": "flow",
    "flow": "flow",
    NUMBER_BUSY: "sender_rate",
}


def rule_of_wait(reason: str) -> BindingRule:
    """Return what a contact waits for, by the reason of its wait."""
    return _RULE_OF_REASON.get(reason, "retry")


_RETRIES: Final = (
    *("retry", "deferred", "withdrawn", "operator_retry", DOUBLE_DIAL),
    *(f"retry_{why}" for why in sorted(RETRYABLE_OUTCOMES | TRANSIENT_FAILURES)),
)
"""The reasons of contacts that wait for another attempt."""


def reasons_of_wait(rule: str) -> Sequence[str]:
    """Return the reasons of the contacts that wait for the same."""
    return [one for one in (*_RULE_OF_REASON, *_RETRIES) if rule_of_wait(one) == rule]


class OpenContact(NamedTuple):
    """A contact that is left, or several alike.

    Attributes:
        place: Where it is; None where no local hours apply.
        due_at: When it is due; None for one that has not had its turn.
        reason: Why it waits, if it does.
        step: The next step of its flow.
        attempts: Attempts spent on this step.
    """

    place: ContactPlace | None
    due_at: datetime | None = None
    reason: str | None = None
    step: int = 0
    attempts: int = 0


@attrs.frozen(kw_only=True)
class OpenCampaign:
    """The open work of a campaign.

    Attributes:
        local: The workspace's rules by the contact's own time.
        contacts: Its contacts that wait for their turn or a time, in the order of the list.
        weight: How many contacts each of them stands for.
        in_flight: Contacts with a request on its way, or a call that has not ended.
        skipped_at: The latest turn of a contact that is left out, if any; an open campaign skips it then.
        held: Contacts that wait for a person's decision.
        starts_at: It sends nothing before this.
        next_slot_at: Its next slot, if it is taken already.
        steps: The steps of its flow, if any.
        max_attempts: Attempts for each contact and message, the first included.
        retry_delay: The time between attempts.
        senders: The keys of the numbers that it sends from; None for one without a rate. Empty for no limit.
        frequency_cap: Requests to one contact in 24 hours; None for no cap.
    """

    campaign: Campaign
    local: LocalRules
    contacts: Sequence[OpenContact]
    weight: int = 1
    in_flight: int = 0
    skipped_at: datetime | None = None
    held: int = 0
    starts_at: datetime
    next_slot_at: datetime | None = None
    steps: tuple[FlowStep, ...] | None = None
    max_attempts: int = 1
    retry_delay: timedelta = timedelta()
    senders: tuple[str | None, ...] = ()
    frequency_cap: int | None = None


@attrs.frozen(kw_only=True)
class SenderRate:
    """The rate of a sending number.

    Attributes:
        spacing: Time between two of its messages.
        next_slot_at: The earliest start of its next message; None for any.
    """

    spacing: timedelta
    next_slot_at: datetime | None


@attrs.frozen(kw_only=True)
class Course:
    """How a campaign goes on.

    Attributes:
        starts_at: Its first request; None if there is none.
        ends_at: When it is complete but for held contacts, or expires; None if neither happens within the horizon, or
            if only held contacts are left.
        requests: Its requests.
        unreached: Contacts that get none.
        expires: Whether it expires first.
        hours: Its requests hour by hour, with what binds.
        phases: Stretches in which one rule binds.
    """

    starts_at: datetime | None
    ends_at: datetime | None
    requests: int
    unreached: int
    expires: bool
    hours: tuple[ForecastHour, ...]
    phases: tuple[ForecastPhase, ...]


class _Share:
    """Draws a share of many evenly: of a hundred at 0.02 every fiftieth."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        # Begins in the middle, so that few at a small rate are as often too many as too few.
        self._carried: defaultdict[int, float] = defaultdict(lambda: 0.5)

    def draw(self, attempt: int) -> bool:
        """Return whether the next one of this attempt is one of them."""
        self._carried[attempt] += self._rate
        if self._carried[attempt] < 1:
            return False
        self._carried[attempt] -= 1
        return True


@attrs.frozen
class _Waiting:
    """A contact in a campaign's queue.

    Attributes:
        requests: The times of its requests in the forecast, as far as the frequency cap may count them.
    """

    place: ContactPlace | None
    step: int
    attempts: int
    reason: BindingRule
    reached: bool = False
    requests: tuple[float, ...] = ()


_Local = tuple[tuple[str, ...], tuple[LocalHours, ...]]
"""The zones of contacts, and the hours that must be open in each."""


class _Hours:
    """When a campaign, and its contacts at each place, are open; asked in the order of time."""

    def __init__(self, campaign: Campaign, local: LocalRules, origin: datetime) -> None:
        self._campaign = campaign
        self._local = local
        self._origin = origin
        self._window = (0.0, -1.0)
        self._closed: tuple[float, float, BindingRule] = (0.0, -1.0, "business_hours")
        self._contacts: dict[_Local, tuple[float, float, float]] = {}

    def opening(self, at: float) -> tuple[float, BindingRule]:
        """Return when the campaign is open next, and the rule that closes it until then."""
        if self._window[0] <= at < self._window[1]:
            return at, "business_hours"
        if self._closed[0] <= at < self._closed[1]:
            return self._closed[1], self._closed[2]
        state = opening_state(self._campaign, self._moment(at))
        if state.rule is None:
            self._window = (at, self._seconds(state.until))
            return at, "business_hours"
        rule: BindingRule = "holidays" if state.rule is TrailRule.HOLIDAYS else "business_hours"
        reopens = max(self._seconds(state.reopens_at), at + 1e-6)
        self._closed = (at, reopens, rule)
        return reopens, rule

    def contact(self, place: ContactPlace, at: float) -> float:
        """Return when contacts at a place may be reached next; never is infinity."""
        local = zones, hours = place.zones, self._local.of(place.regions).hours
        asked, opens, closes = self._contacts.get(local, (0.0, 0.0, -1.0))
        if asked <= at < closes:
            return max(at, opens)
        moment = next_contact(self._campaign, zones, hours, self._moment(at))
        opens = self._seconds(moment)
        closes = self._seconds(earliest_closing(zones, hours, moment)) if moment is not None else _NEVER
        self._contacts[local] = (at, opens, closes)
        return max(at, opens)

    def holding(self, place: ContactPlace, at: float) -> BindingRule:
        """Return the rule that keeps contacts at a place from being reached at a time."""
        return self._local.of(place.regions).holding(place.zones, self._moment(at)).name

    def _moment(self, at: float) -> datetime:
        return self._origin + timedelta(seconds=round(at, 6))

    def _seconds(self, moment: datetime | None) -> float:
        return _NEVER if moment is None else (moment - self._origin).total_seconds()


class _Stream:
    """One campaign of those that are played through."""

    def __init__(self, left: OpenCampaign, origin: datetime, assumed: ForecastAssumptions) -> None:
        campaign = left.campaign
        self.left = left
        self.is_sms = campaign.channel == "sms"
        self.weight = left.weight
        self.origin = origin
        self.hours = _Hours(campaign, left.local, origin)
        self.apart = spacing(campaign.rate_per_minute or 1).total_seconds() * left.weight if self.is_sms else 0.0
        self.free_at = _seconds(left.next_slot_at, origin) if left.next_slot_at is not None else 0.0
        self.starts = max(_seconds(left.starts_at, origin), 0.0)
        self.expires = (
            _NEVER if campaign.scheduled_expires_at is None else _seconds(campaign.scheduled_expires_at, origin)
        )
        self._assumed = assumed
        self._failures = _Share(assumed.failure_rate)
        self._answers = _Share(assumed.answer_rate)
        self._retries = left.max_attempts > 1
        self._order = itertools.count()
        self._queue: list[tuple[float, int, _Waiting]] = []
        self._turn: list[_Waiting] = []
        for one in left.contacts:
            rule = rule_of_wait(one.reason or "")
            waiting = _Waiting(one.place, one.step, one.attempts, rule, reached=one.attempts > 0 or one.step > 0)
            if one.due_at is None:
                self._turn.append(waiting)
            else:
                self._wait(_seconds(one.due_at, origin), waiting)
        self._turn.reverse()
        self._places: list[float] = []
        self.last_end = 0.0
        self.first: float | None = None
        self.requests = 0
        self.unreached = 0
        self.now = self.starts
        self.horizon = self.starts + HORIZON.total_seconds()
        self.by_hour: defaultdict[int, int] = defaultdict(int)
        self.waited: defaultdict[int, defaultdict[BindingRule, float]] = defaultdict(lambda: defaultdict(float))
        if left.skipped_at is not None:
            self.last_end = self.hours.opening(max(self.starts, _seconds(left.skipped_at, origin)))[0]
        if not self.is_sms:
            self._seed_calls()
        elif left.in_flight and self._retries:
            self.last_end = max(self.last_end, assumed.receipt_seconds)

    def _seed_calls(self) -> None:
        """Take places for the calls that have not ended: on average they are halfway."""
        places = max(self.left.campaign.batch_concurrency, 1)
        flying = min(self.left.in_flight, places)
        for number in range(places):
            ends = self._end_of_call(0.0, 0.5, None, 1) if number < flying else 0.0
            heapq.heappush(self._places, ends)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to send."""
        return not self._turn and not self._queue

    def candidate(self) -> tuple[float, BindingRule]:
        """Return the earliest time of its next request, not counting the number's rate, and what it waits for."""
        at: float = self.now
        rule: BindingRule = "pace" if self.is_sms else "batch_concurrency"
        free = self.free_at if self.is_sms else self._places[0]
        if free > at:
            at = free
        if not self._turn and self._queue and self._queue[0][0] > at:
            at, rule = self._queue[0][0], self._queue[0][2].reason
        opens, closed_by = self.hours.opening(at)
        return (opens, closed_by) if opens > at else (at, rule)

    def take(self, at: float) -> _Waiting | None:
        """Return the contact whose turn it is at a time; None if none may be reached then."""
        while True:
            if self._queue and self._queue[0][0] <= at:
                contact = heapq.heappop(self._queue)[2]
            elif self._turn:
                contact = self._turn.pop()
            else:
                return None
            if contact.place is None or not self._sends(contact):
                return contact
            opens = self.hours.contact(contact.place, at)
            if opens <= at:
                return contact
            if opens == _NEVER:
                self.last_end = max(self.last_end, at)
                continue
            self._wait(opens, attrs.evolve(contact, reason=self.hours.holding(contact.place, at)))

    def send(self, contact: _Waiting, at: float) -> None:
        """Make a request, and what follows from it."""
        if self.is_sms:
            if not self._sends(contact):
                self._enter(contact, contact.step, at)
                return
            contact = attrs.evolve(contact, reached=True, requests=self._with_request(contact.requests, at))
            self._note_request(at, self.weight)
            self.free_at = at + self.apart
            self._after_message(contact, at)
        else:
            self._note_request(at, self.weight)
            heapq.heapreplace(self._places, self._end_of_call(at, 1.0, contact, contact.attempts + 1))

    def _sends(self, contact: _Waiting) -> bool:
        """Return whether a contact's turn is one for a request, and not for another step of its flow."""
        steps = self.left.steps
        return steps is None or (contact.step < len(steps) and steps[contact.step].kind == "send")

    def _note_request(self, at: float, count: int) -> None:
        self.first = at if self.first is None else self.first
        self.requests += count
        self.by_hour[_hour_of(self.origin, at)] += count

    def _after_message(self, contact: _Waiting, at: float) -> None:
        attempt = contact.attempts + 1
        if self._retries and self._failures.draw(attempt):
            if attempt < self.left.max_attempts:
                again = attrs.evolve(contact, attempts=attempt, reason="retry")
                self._wait(at + self.left.retry_delay.total_seconds(), again)
            self.last_end = max(self.last_end, at)
            return
        if self.left.steps is not None:
            self._enter(contact, contact.step + 1, at)
            return
        self.last_end = max(self.last_end, at + (self._assumed.receipt_seconds if self._retries else 0.0))

    def _enter(self, contact: _Waiting, index: int, at: float) -> None:
        """Enter a flow's step; a forecast cannot know who will have replied."""
        steps = self.left.steps or ()
        due = at
        for position in range(index, len(steps)):
            step = steps[position]
            if step.kind == "wait":
                due += 60.0 * (step.wait_minutes or 0)
            elif step.kind == "send":
                self._wait(due, attrs.evolve(contact, step=position, attempts=0, reason="flow"))
                return
        self.last_end = max(self.last_end, at + (self._assumed.receipt_seconds if self._retries else 0.0))

    def _end_of_call(self, at: float, part: float, contact: _Waiting | None, attempt: int) -> float:
        """Return when a call ends, and put back a contact that nobody answered for."""
        assumed = self._assumed
        answered = self._answers.draw(attempt)
        requests = self._with_request(contact.requests if contact is not None else (), at)
        seconds = assumed.call_seconds if answered else assumed.ring_seconds
        dials_twice = self.left.campaign.double_dial and contact is not None
        if not answered and dials_twice and self._capped_until(requests) <= at + seconds:
            # Nobody answered: the second call follows at once, in the same place.
            self._note_request(at, self.weight)
            requests = self._with_request(requests, at + seconds)
            answered = self._answers.draw(-attempt)
            seconds += assumed.call_seconds if answered else assumed.ring_seconds
        ends = at + seconds * part * self.weight
        if not answered and attempt < self.left.max_attempts:
            place = contact.place if contact is not None else None
            again = _Waiting(place, 0, attempt, "retry", reached=True, requests=requests)
            self._wait(ends + self.left.retry_delay.total_seconds(), again)
        self.last_end = max(self.last_end, ends)
        return ends

    def _with_request(self, requests: tuple[float, ...], at: float) -> tuple[float, ...]:
        """Return the times of a contact's requests with one more, as many as the frequency cap counts."""
        cap = self.left.frequency_cap
        return () if cap is None else (*requests, at)[-cap:]

    def _capped_until(self, requests: tuple[float, ...]) -> float:
        """Return when the frequency cap allows the next request to a contact."""
        cap = self.left.frequency_cap
        return 0.0 if cap is None or len(requests) < cap else requests[-cap] + FREQUENCY_WINDOW.total_seconds()

    def _wait(self, due: float, contact: _Waiting) -> None:
        allowed = self._capped_until(contact.requests)
        if allowed > due:
            due, contact = allowed, attrs.evolve(contact, reason=FREQUENCY_CAP.name)
        heapq.heappush(self._queue, (due, next(self._order), contact))

    def pass_until(self, at: float, rule: BindingRule) -> None:
        """Let time pass, and note what the campaign waits for meanwhile."""
        begins, ends = self.now, min(at, self.horizon)
        while begins < ends:
            hour = _hour_of(self.origin, begins)
            until = min(ends, (hour + 1) * _HOUR - self.origin.timestamp() % _HOUR)
            self.waited[hour][rule] += until - begins
            begins = until
        self.now = max(self.now, at)

    def leave_unreached(self) -> None:
        """Count the contacts that have had no request."""
        left = itertools.chain(self._turn, (one for _, _, one in self._queue))
        self.unreached = sum(not one.reached for one in left) * self.weight


def _seconds(moment: datetime, origin: datetime) -> float:
    return (moment - origin).total_seconds()


def _hour_of(origin: datetime, at: float) -> int:
    """Return the number of the hour, counted from the one of the origin."""
    # An event on the hour belongs to the hour that begins, whatever the rounding.
    return int((origin.timestamp() % _HOUR + at + 1e-6) // _HOUR)


def play(
    target: OpenCampaign,
    others: Sequence[OpenCampaign],
    rates: Mapping[str, SenderRate],
    assumed: ForecastAssumptions,
    now: datetime,
) -> Course:
    """Play a campaign through until nothing is left.

    Args:
        target: The campaign.
        others: Campaigns that send from the same numbers, with whom it takes turns.
        rates: The rates of these numbers, by their keys. Those of a pool add up: each message is taken to go from the
            number that is free first.
        assumed: The assumptions about its calls and messages.
        now: The forecast's time.
    """
    stream = _Stream(target, now, assumed)
    streams = [stream, *(_Stream(one, now, assumed) for one in others if rates)]
    numbers = _Numbers(rates, now)
    served = dict.fromkeys(range(len(streams)), 0)
    for turn in itertools.count(1):
        if stream.is_done:
            break
        asked = [(one.candidate(), index) for index, one in enumerate(streams) if not one.is_done]
        starts = {index: max(numbers.free_at(streams[index].left), found[0]) for found, index in asked}
        at = min(starts.values())
        # The first one asked is the campaign itself.
        if max(at, asked[0][0][0]) >= min(stream.expires, stream.horizon):
            break
        _, index = min((served[index], index) for index, start in starts.items() if start <= at)
        chosen = streams[index]
        earliest, rule = next(found for found, one in asked if one == index)
        chosen.pass_until(at, rule if at <= earliest else "sender_rate")
        if chosen.now >= min(chosen.expires, chosen.horizon):
            if chosen is stream:
                break
            streams[index] = _over(chosen)
            continue
        contact = chosen.take(at)
        if contact is None:
            continue
        before = chosen.requests
        chosen.send(contact, at)
        if chosen.requests > before:
            served[index] = turn
            numbers.take(chosen.left, at)
    return _course(stream, now)


class _Numbers:
    """When the sending numbers are free, in seconds from the forecast's time."""

    def __init__(self, rates: Mapping[str, SenderRate], now: datetime) -> None:
        self._apart = {key: rate.spacing.total_seconds() for key, rate in rates.items()}
        slots = {key: rate.next_slot_at for key, rate in rates.items()}
        self._free = {key: 0.0 if at is None else max(_seconds(at, now), 0.0) for key, at in slots.items()}

    def free_at(self, campaign: OpenCampaign) -> float:
        """Return when the first of a campaign's numbers is free."""
        return min((self._free.get(key or "", 0.0) for key in campaign.senders), default=0.0)

    def take(self, campaign: OpenCampaign, at: float) -> None:
        """Take a slot of the first of a campaign's numbers."""
        key = min(campaign.senders, key=lambda one: self._free.get(one or "", 0.0), default=None)
        if key in self._apart:
            self._free[key] = at + self._apart[key] * campaign.weight


def _over(stream: _Stream) -> _Stream:
    """Return a campaign without contacts, in place of one that has expired."""
    return _Stream(attrs.evolve(stream.left, contacts=(), in_flight=0), stream.origin, ForecastAssumptions())


def _course(stream: _Stream, now: datetime) -> Course:
    left = stream.left
    # Nobody knows when a person decides.
    only_held = left.held > 0 and not left.contacts and not left.in_flight
    done = stream.is_done and stream.last_end < stream.horizon and not only_held
    expires = (not done or stream.last_end > stream.expires) and stream.expires <= stream.horizon
    if not done:
        stream.leave_unreached()
    if expires:
        ends_at = left.campaign.scheduled_expires_at
    else:
        ends_at = now + timedelta(seconds=round(stream.last_end, 6)) if done else None
    hours = _curve(stream, now)
    return Course(
        starts_at=None if stream.first is None else now + timedelta(seconds=round(stream.first, 6)),
        ends_at=ends_at,
        requests=stream.requests,
        unreached=stream.unreached,
        expires=expires,
        hours=hours,
        phases=tuple(_phases(hours)),
    )


def _curve(stream: _Stream, now: datetime) -> tuple[ForecastHour, ...]:
    begin = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    numbers = set(stream.by_hour) | set(stream.waited)
    if not numbers:
        return ()
    usual: BindingRule = "pace" if stream.is_sms else "batch_concurrency"

    def bound_by(number: int) -> BindingRule:
        waited = stream.waited.get(number)
        return max(waited.items(), key=lambda item: item[1])[0] if waited else usual

    return tuple(
        ForecastHour(
            at=begin + timedelta(hours=number), requests=stream.by_hour.get(number, 0), bound_by=bound_by(number)
        )
        for number in range(min(numbers), max(numbers) + 1)
    )


def _phases(hours: Sequence[ForecastHour]) -> list[ForecastPhase]:
    found: list[ForecastPhase] = []
    for hour in hours:
        ends = hour.at + timedelta(hours=1)
        if found and found[-1].bound_by == hour.bound_by:
            last = found[-1]
            found[-1] = attrs.evolve(last, ends_at=ends, requests=last.requests + hour.requests)
        else:
            found.append(ForecastPhase(begins_at=hour.at, ends_at=ends, bound_by=hour.bound_by, requests=hour.requests))
    return found
