"""The outcomes of a campaign's contacts, one by one and added up, by the rules of the planner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Final, Literal, NamedTuple

import attrs

from outreach.models.campaign import Recipient
from outreach.models.plans import Ending, Postponement, WavePlan
from outreach.models.preflight import (
    CharacterReplacement,
    ContactExample,
    ContactPreview,
    CostlyCharacter,
    Encodings,
    HeldBack,
    LeftOut,
    LeftOutRule,
    PlaceholderProblem,
    RenderedMessage,
    ReplacedText,
    SegmentShare,
)
from outreach.models.states import RecipientStatus
from outreach.rules.contact_hours import unreachable_reason
from outreach.rules.contact_places import place_of
from outreach.rules.deciding import (
    HOLDING_RULES,
    UNREACHABLE_BEFORE,
    LocalRules,
    RenderedText,
    Restriction,
    apply_register,
    check_holding_rules,
    render_message,
    send_steps,
)
from outreach.rules.number_zones import country_of_phone
from outreach.rules.opening import opening_state
from outreach.rules.readiness import exceeds_segments
from outreach.rules.rendering import PlaceholderTally, compose, expected_names, values_for, values_of
from outreach.rules.segments import character_name, characters_outside_gsm, count_segments, plain_form, substitute

MAX_EXAMPLES: Final = 5
MAX_SAMPLES: Final = 5
MAX_CHARACTERS: Final = 50
MAX_SHOWN: Final = 100

WHY_LEFT_OUT: Final[Mapping[LeftOutRule, str]] = {
    "opted_out": "They are on the unsubscribe register.",
    "duplicate": "Their number occurs earlier in the list.",
    "invalid_number": "Their number is no possible phone number.",
    "timezone_unknown": "The time zone of their number is unknown, and contact hours apply.",
    "no_common_hours": "Their time zones are never within the contact hours together.",
    "hours_never_fit": "For 7 days from their turn the campaign is not open within the contact hours where they are.",
    "expires_first": "The campaign expires before they may be contacted.",
    "empty_message": "Their text is empty: its placeholders have no values.",
    "over_segment_cap": "Their text, with the footer, is over the segment cap.",
    "in_other_campaign": "They are in a campaign whose contacts are left out.",
    "unreachable_before": "A provider has reported their number as unreachable.",
    "contacted_recently": "They were contacted within the days that are left out.",
}

_ENDED_BY: Final[Mapping[str, LeftOutRule]] = {
    "opted_out": "opted_out",
    "duplicate": "duplicate",
    "invalid_number": "invalid_number",
    "empty_message": "empty_message",
    "over_segment_cap": "over_segment_cap",
    "unreachable_before": "unreachable_before",
}


class Verdict(NamedTuple):
    """The outcome of one contact; a tuple, because each contact has one.

    Attributes:
        rule: The rule that leaves it out or holds it back, if any.
        until: Until when it is held back, if known.
        texts: The messages that it gets, in order.
        detail: Its particulars, if any.
        ends_early: Why a later message of its flow is not sent, if so.
    """

    outcome: Literal["contacted", "held_back", "left_out", "ended"]
    rule: str | None = None
    until: datetime | None = None
    texts: Sequence[RenderedText] = ()
    detail: str | None = None
    ends_early: str | None = None


def messages_of(plan: WavePlan) -> Sequence[tuple[int, str]]:
    """Return the messages of a campaign as step and template; none for a calling campaign."""
    if plan.campaign.channel == "call":
        return ()
    return send_steps(tuple(plan.steps) if plan.steps is not None else None, plan.campaign)


def judge(
    plan: WavePlan,
    local: LocalRules,
    messages: Sequence[tuple[int, str]],
    recipient: Recipient,
    restriction: Restriction | None,
    at: datetime,
) -> Verdict:
    """Return what happens to a contact if its turn comes at a time.

    Args:
        plan: The campaign with its rules, and `capped_until` of this contact.
        local: The rules by the contact's own time of its workspace.
        messages: Its messages (`messages_of`).
        recipient: The contact.
        restriction: The register's entry for its number.
        at: A time at which the campaign is open.
    """
    if recipient.status is not RecipientStatus.PENDING and recipient.status is not RecipientStatus.WAITING:
        return _of_ended(local, recipient, at)
    if recipient.phone is None:
        return Verdict("left_out", rule="invalid_number")
    if recipient.phone in plan.unreachable:
        return Verdict("left_out", rule=UNREACHABLE_BEFORE)
    expiry = plan.campaign.scheduled_expires_at
    if expiry is not None and at >= expiry:
        return Verdict("left_out", rule="expires_first")
    messages = _left_of(messages, recipient)
    if restriction == "stopped" and messages and messages[0][0] > recipient.step:
        # Before its first message it waits, and the register is read for every waiting contact.
        return Verdict("left_out", rule="opted_out")
    moment = at
    waits: Postponement | None = None
    decided = check_holding_rules(plan, local, recipient, moment)
    if isinstance(decided, Postponement) and HOLDING_RULES[decided.reason].local_hours is None:
        waits = decided
        # After such a wait the local hours are checked, while the campaign is open.
        moment = opening_state(plan.campaign, decided.due_at).reopens_at
        decided = check_holding_rules(plan, local, recipient, moment)
    if isinstance(decided, Postponement):
        waits = waits or decided
        moment = decided.due_at
    registered = apply_register(recipient, restriction, moment)
    if waits is not None and isinstance(registered, Ending):
        return Verdict("left_out", rule="opted_out")
    if isinstance(decided, Ending):
        return _unreachable(local, recipient, moment)
    if expiry is not None and moment >= expiry:
        return Verdict("left_out", rule="expires_first")
    texts: list[RenderedText] = []
    ends_early = None
    for _, template in messages:
        text = render_message(template, recipient, plan.campaign, plan.settings)
        if isinstance(text, Ending):
            if not texts:
                return _unsendable(plan, recipient, template, text.reason)
            ends_early = text.reason
            break
        texts.append(text)
    if isinstance(registered, Ending):
        return Verdict("left_out", rule="opted_out")
    if isinstance(registered, Postponement):
        return Verdict("held_back", rule=registered.reason, texts=texts, ends_early=ends_early)
    if waits is not None:
        return Verdict("held_back", rule=waits.reason, until=moment, texts=texts, ends_early=ends_early)
    return Verdict("contacted", texts=texts, ends_early=ends_early)


def _of_ended(local: LocalRules, recipient: Recipient, at: datetime) -> Verdict:
    """Return the verdict of a contact that is not open: left out by a rule, or ended in another way."""
    if not recipient.dispatched and recipient.status in {RecipientStatus.SKIPPED, RecipientStatus.FAILED}:
        if recipient.reason == "timezone_unknown" and recipient.phone is not None:
            return _unreachable(local, recipient, at)
        rule = _ENDED_BY.get(recipient.reason or "")
        if rule is not None:
            return Verdict("left_out", rule=rule)
    if recipient.status is RecipientStatus.EXPIRED and not recipient.dispatched:
        return Verdict("left_out", rule="expires_first")
    return Verdict("ended", rule=recipient.status.value)


def _unreachable(local: LocalRules, recipient: Recipient, at: datetime) -> Verdict:
    place = place_of(recipient)
    why = unreachable_reason(place.zones, local.of(place.regions).hours, at)
    return Verdict("left_out", rule=why, detail=", ".join(place.zones) or None)


def _left_of(messages: Sequence[tuple[int, str]], recipient: Recipient) -> Sequence[tuple[int, str]]:
    """Return the messages that a contact has before it."""
    return [one for one in messages if one[0] >= recipient.step] if recipient.step else messages


def _unsendable(plan: WavePlan, recipient: Recipient, template: str, reason: str) -> Verdict:
    text = _sent(plan, recipient, template)
    detail = f"{count_segments(text).segments} segments, of at most {plan.settings.max_segments}" if text else None
    return Verdict("left_out", rule=reason, detail=detail)


def _sent(plan: WavePlan, recipient: Recipient, template: str) -> str:
    """Return a contact's text as it is sent, though it may be empty or too long."""
    replaces = plan.campaign.replace_characters
    return compose(template, values_of(recipient), plan.settings.footer, replaces=replaces)


@attrs.define
class _Group:
    count: int = 0
    examples: list[ContactExample] = attrs.field(factory=list)
    first_at: datetime | None = None
    last_at: datetime | None = None

    def add(self, recipient: Recipient, detail: str | None, until: datetime | None = None) -> None:
        """Count a contact."""
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(
                ContactExample(position=recipient.position, phone_number=recipient.phone_number, detail=detail)
            )
        if until is not None:
            self.first_at = until if self.first_at is None else min(self.first_at, until)
            self.last_at = until if self.last_at is None else max(self.last_at, until)


class _Replacements:
    """Counts the texts with characters that the campaign's switch replaces, whether it is on or not."""

    def __init__(self) -> None:
        self._contacts = self._messages = self._saves = 0
        self._examples: list[ReplacedText] = []

    def see(self, recipient: Recipient, steps: Iterable[int], texts: Iterable[RenderedText]) -> None:
        """Count the texts of a contact."""
        before = self._messages
        for step, text in zip(steps, texts, strict=False):
            # A text that is in GSM-7 as it was written has nothing to replace.
            if text.encoding == "GSM-7" and text.written is text.body:
                continue
            plain = plain_form(text.written)
            if plain != text.written:
                self._messages += 1
                saves = count_segments(text.written).segments - count_segments(plain).segments
                self._saves += saves
                self._note(recipient, step, text.written, plain, saves)
        self._contacts += self._messages > before

    def _note(self, recipient: Recipient, step: int, before: str, after: str, saves: int) -> None:
        if len(self._examples) < MAX_EXAMPLES:
            self._examples.append(
                ReplacedText(
                    position=recipient.position,
                    phone_number=recipient.phone_number,
                    step=step,
                    before=before,
                    after=after,
                    saves=saves,
                )
            )

    def result(self, *, enabled: bool) -> CharacterReplacement:
        """Return the counts, and the first examples."""
        return CharacterReplacement(
            enabled=enabled,
            contacts=self._contacts,
            messages=self._messages,
            saves=self._saves,
            examples=tuple(self._examples),
        )


class PreflightTally:
    """Adds up what happens to a campaign's contacts.

    Args:
        plan: The campaign with its rules.
        at: When its first contact has its turn.
        by_country: Whether to count segments, or calls, by country.
        shown: The number whose contacts to show, in E.164 and as supplied.
    """

    def __init__(self, plan: WavePlan, at: datetime, *, by_country: bool, shown: frozenset[str]) -> None:
        self._plan = plan
        self._local = LocalRules(plan.workspace)
        self._messages = messages_of(plan)
        self._placeholders = PlaceholderTally((template for _, template in self._messages), expected_names(plan.agent))
        self._at = at
        self._by_country = by_country
        self._shown = shown
        self._left_out: dict[str, _Group] = {}
        self._held_back: dict[str, _Group] = {}
        self._shares: Counter[int] = Counter()
        self._characters: dict[str, list[int]] = {}
        self._samples: list[ContactPreview] = []
        self._longest: tuple[tuple[int, int], ContactPreview] | None = None
        self.contacts = self.contacted = self.ended = 0
        self.messages = self.segments = 0
        self._ucs2 = self._saves = 0
        self._replacements = _Replacements()
        self.ends_early: Counter[str] = Counter()
        self.quantities: Counter[str | None] = Counter()
        self.previews: list[ContactPreview] = []

    def see(
        self,
        recipients: Iterable[Recipient],
        restrictions: Mapping[str, Restriction],
        capped_until: Mapping[int, datetime],
        unreachable: AbstractSet[str] = frozenset(),
    ) -> None:
        """Add some contacts.

        Args:
            recipients: The contacts.
            restrictions: The register's entries, by number.
            capped_until: Until when the frequency cap holds them back, by position.
            unreachable: Numbers that are left out as unreachable.
        """
        plan = attrs.evolve(self._plan, capped_until=capped_until, unreachable=unreachable)
        for recipient in recipients:
            restriction = restrictions.get(recipient.phone or "")
            verdict = judge(plan, self._local, self._messages, recipient, restriction, self._at)
            self._count(recipient, verdict)

    def leave_out(self, recipient: Recipient, rule: LeftOutRule) -> None:
        """Add a contact that a rule leaves out before the campaign has it."""
        self._count(recipient, Verdict("left_out", rule=rule))

    def _count(self, recipient: Recipient, verdict: Verdict) -> None:
        self.contacts += 1
        if verdict.outcome == "left_out":
            self._left_out.setdefault(verdict.rule or "", _Group()).add(recipient, verdict.detail)
        elif verdict.outcome == "ended":
            self.ended += 1
        else:
            self.contacted += 1
            if verdict.outcome == "held_back":
                group = self._held_back.setdefault(verdict.rule or "", _Group())
                group.add(recipient, None, verdict.until)
            if verdict.ends_early is not None:
                self.ends_early[verdict.ends_early] += 1
            self._count_texts(recipient, verdict)
            self._placeholders.see(
                values_for(self._plan.campaign, self._plan.agent, recipient), recipient.position, recipient.phone_number
            )
        if not self._shown or len(self.previews) >= MAX_SHOWN:
            return
        if not self._shown.isdisjoint((recipient.phone, recipient.phone_number)):
            self.previews.append(preview_of(self._plan, recipient, verdict))

    def _count_texts(self, recipient: Recipient, verdict: Verdict) -> None:
        segments, longest = 0, (0, 0)
        for text in verdict.texts:
            size = text.segments
            segments += size
            self._shares[size] += 1
            longest = max(longest, (size, len(text.body)))
            if text.encoding == "UCS-2":
                self._count_characters(text.body, size)
        if verdict.texts:
            steps = (step for step, _ in _left_of(self._messages, recipient))
            self._replacements.see(recipient, steps, verdict.texts)
        self.messages += len(verdict.texts)
        self.segments += segments
        country = country_of_phone(recipient.phone or "") if self._by_country else None
        self.quantities[country] += segments if self._plan.campaign.channel == "sms" else 1
        if len(self._samples) < MAX_SAMPLES:
            self._samples.append(preview_of(self._plan, recipient, verdict))
        if self._longest is None or longest > self._longest[0]:
            self._longest = (longest, preview_of(self._plan, recipient, verdict))

    def _count_characters(self, body: str, segments: int) -> None:
        outside = characters_outside_gsm(body)
        self._ucs2 += 1
        replacements = {one: substitute(one) for one in outside}
        saved = 0
        if None not in replacements.values():
            replaced = body.translate({ord(one): text for one, text in replacements.items()})
            saved = max(segments - count_segments(replaced).segments, 0)
        self._saves += saved
        for one in outside:
            counted = self._characters.setdefault(one, [0, 0])
            counted[0] += 1
            counted[1] += saved if len(outside) == 1 else 0

    def placeholder_problems(self) -> tuple[PlaceholderProblem, ...]:
        """Return how many contacts have no value for a placeholder, or no date where one is wanted."""
        return self._placeholders.problems()

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return who is left out by which rule, the most frequent first."""
        found = [
            LeftOut(rule=rule, why=why, count=group.count, examples=tuple(group.examples))
            for rule, why in WHY_LEFT_OUT.items()
            if (group := self._left_out.get(rule)) is not None
        ]
        return tuple(sorted(found, key=lambda one: -one.count))

    def held_back(self) -> tuple[HeldBack, ...]:
        """Return who has to wait by which rule."""
        return tuple(
            HeldBack(
                rule=rule.name,
                why=rule.why,
                count=group.count,
                first_at=group.first_at,
                last_at=group.last_at,
                examples=tuple(group.examples),
            )
            for name, rule in HOLDING_RULES.items()
            if (group := self._held_back.get(name)) is not None
        )

    def shares(self) -> tuple[SegmentShare, ...]:
        """Return how many messages take how many segments."""
        return tuple(SegmentShare(segments=size, messages=count) for size, count in sorted(self._shares.items()))

    def encodings(self) -> Encodings:
        """Return which messages need UCS-2, and why."""
        frequent = sorted(self._characters.items(), key=lambda item: (-item[1][0], item[0]))[:MAX_CHARACTERS]
        return Encodings(
            ucs2_messages=self._ucs2,
            characters=tuple(
                CostlyCharacter(
                    character=one,
                    name=character_name(one),
                    messages=messages,
                    replacement=substitute(one),
                    saves=saves,
                )
                for one, (messages, saves) in frequent
            ),
            saves=self._saves,
        )

    def replacement(self) -> CharacterReplacement:
        """Return which texts have characters that the campaign's switch replaces."""
        return self._replacements.result(enabled=bool(self._plan.campaign.replace_characters))

    def samples(self) -> tuple[ContactPreview, ...]:
        """Return up to five contacts with their texts, the longest text among them."""
        chosen = {one.position: one for one in self._samples}
        if self._longest is not None and self._longest[1].position not in chosen:
            kept = self._samples[: MAX_SAMPLES - 1]
            chosen = {one.position: one for one in (*kept, self._longest[1])}
        return tuple(chosen.values())


def preview_contact(
    plan: WavePlan, recipient: Recipient, restriction: Restriction | None, at: datetime
) -> ContactPreview:
    """Return what happens to one contact whose turn is at a time; see `PreflightTally.see`."""
    verdict = judge(plan, LocalRules(plan.workspace), messages_of(plan), recipient, restriction, at)
    return preview_of(plan, recipient, verdict)


def preview_of(plan: WavePlan, recipient: Recipient, verdict: Verdict) -> ContactPreview:
    """Return what is shown of one contact; its texts also where it does not get them."""
    texts = [] if recipient.phone is None else [_rendered(plan, recipient, *one) for one in messages_of(plan)]
    return ContactPreview(
        position=recipient.position,
        phone_number=recipient.phone_number,
        phone=recipient.phone,
        outcome=verdict.outcome,
        rule=verdict.rule,
        until=verdict.until,
        messages=tuple(texts),
        variables=values_for(plan.campaign, plan.agent, recipient),
    )


def _rendered(plan: WavePlan, recipient: Recipient, step: int, template: str) -> RenderedMessage:
    text = _sent(plan, recipient, template)
    counted = count_segments(text)
    problem: Literal["empty_message", "over_segment_cap"] | None = None
    if not text:
        problem = "empty_message"
    elif exceeds_segments(text, plan.settings.max_segments):
        problem = "over_segment_cap"
    return RenderedMessage(
        step=step,
        text=text,
        encoding=counted.encoding,
        units=counted.units,
        segments=counted.segments if text else 0,
        problem=problem,
    )
