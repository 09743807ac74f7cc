"""The effect of a campaign on its contacts, worked out before it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import attrs

from outreach.errors import Problem
from outreach.models.audience import AudienceCounts
from outreach.models.base import Channel
from outreach.models.forecast import Forecast
from outreach.models.prices import Cost
from outreach.models.states import HeldBackRule
from outreach.models.text_warning import TextWarning

LeftOutRule = Literal[
    "opted_out",
    "duplicate",
    "invalid_number",
    "timezone_unknown",
    "no_common_hours",
    "hours_never_fit",
    "expires_first",
    "empty_message",
    "over_segment_cap",
    "in_other_campaign",
    "contacted_recently",
    "unreachable_before",
]
"""Why a contact is never contacted.

`timezone_unknown`: the number's time zone is unknown. `no_common_hours`: its possible zones are never open together.
`hours_never_fit`: they are, but never while the campaign is open. These three end as `skipped: timezone_unknown`.
`expires_first`: the campaign expires before they may be contacted. `in_other_campaign` and `contacted_recently`: the
creation leaves them out (`LeaveOut`). `unreachable_before`: a provider has reported the number as unreachable.
"""


@attrs.frozen(kw_only=True)
class ContactExample:
    """One contact that a rule applies to.

    Attributes:
        position: Its place in the campaign's list, or among the supplied contacts, from 0.
        phone_number: As supplied.
        detail: Its particulars, if any.
    """

    position: int
    phone_number: str
    detail: str | None = None


@attrs.frozen(kw_only=True)
class LeftOut:
    """The contacts that a rule leaves out.

    Attributes:
        why: The rule in words.
        examples: The first few.
    """

    rule: LeftOutRule
    why: str
    count: int
    examples: tuple[ContactExample, ...]


@attrs.frozen(kw_only=True)
class HeldBack:
    """The contacts that a rule holds back; they are contacted later.

    Attributes:
        first_at: When the first may be contacted; None if a person has to decide.
        last_at: When the last may be.
        examples: The first few.
    """

    rule: HeldBackRule
    why: str
    count: int
    first_at: datetime | None
    last_at: datetime | None
    examples: tuple[ContactExample, ...]


@attrs.frozen(kw_only=True)
class SegmentShare:
    """How many messages take a number of segments."""

    segments: int
    messages: int


@attrs.frozen(kw_only=True)
class CostlyCharacter:
    """A character outside GSM-7, which makes its whole message UCS-2.

    Attributes:
        name: Its Unicode name.
        messages: Messages that have it.
        replacement: The text of GSM-7 in its place, possibly empty; None if GSM-7 has nothing like it.
        saves: Segments saved by replacing it where it is the only such character.
    """

    character: str
    name: str
    messages: int
    replacement: str | None
    saves: int


@attrs.frozen(kw_only=True)
class Encodings:
    """The alphabets of a campaign's messages.

    Attributes:
        ucs2_messages: Messages that need UCS-2, with 70 instead of 160 characters to a segment.
        characters: The characters that need it, the most frequent first, at most 50.
        saves: Segments saved by all replacements together.
    """

    ucs2_messages: int
    characters: tuple[CostlyCharacter, ...]
    saves: int


@attrs.frozen(kw_only=True)
class ReplacedText:
    """A text before and after its typographic characters are replaced.

    Attributes:
        position: The contact's place in the campaign's list, or among the supplied contacts, from 0.
        phone_number: As supplied.
        step: Index of the flow's step; 0 outside flows.
        saves: Segments saved.
    """

    position: int
    phone_number: str
    step: int
    before: str
    after: str
    saves: int


@attrs.frozen(kw_only=True)
class CharacterReplacement:
    """The effect of the campaign's switch `replace_characters` on its texts, also while it is off.

    Attributes:
        enabled: Whether the switch is on, so that the texts are sent as replaced.
        contacts: Contacts with a text that has characters to replace.
        messages: These texts.
        saves: Segments saved.
        examples: The first few.
    """

    enabled: bool
    contacts: int
    messages: int
    saves: int
    examples: tuple[ReplacedText, ...]


@attrs.frozen(kw_only=True)
class PlaceholderProblem:
    """The contacts to whom a placeholder shows nothing, or not what it should.

    Attributes:
        name: The placeholder's name.
        problem: `no_value`: they have no value for it, and it has no fallback. `no_date`: their value is not read as a
            date, and is sent as it is. `no_time`: their date has no time of day, which the format shows, and is sent as
            it is.
        date: The date format of the placeholder, the first one of several; None without one.
        examples: The first few.
    """

    name: str
    problem: Literal["no_value", "no_date", "no_time"]
    date: str | None
    count: int
    examples: tuple[ContactExample, ...]


@attrs.frozen(kw_only=True)
class RenderedMessage:
    """A text as a contact would get it.

    Attributes:
        step: Index of the flow's step; 0 outside flows.
        problem: Why it is not sent: `empty_message` or `over_segment_cap`; else None.
    """

    step: int
    text: str
    encoding: Literal["GSM-7", "UCS-2"]
    units: int
    segments: int
    problem: Literal["empty_message", "over_segment_cap"] | None = None


@attrs.frozen(kw_only=True)
class ContactPreview:
    """The outcome of one contact.

    Attributes:
        position: Its place in the campaign's list, or among the supplied contacts.
        outcome: `contacted`, `held_back` (contacted later), `left_out`, or `ended` in an earlier part of the run.
        rule: The rule that leaves it out or holds it back; the state of one that has ended; else None.
        until: Until when it is held back, if known.
        messages: Its texts; empty for calls and numbers that are none.
        variables: The values that fill its placeholders.
    """

    position: int
    phone_number: str
    phone: str | None
    outcome: Literal["contacted", "held_back", "left_out", "ended"]
    rule: str | None
    until: datetime | None
    messages: tuple[RenderedMessage, ...]
    variables: Mapping[str, str]


@attrs.frozen(kw_only=True)
class Preflight:
    """The effect that a campaign will have on its contacts if nothing changes until then.

    Attributes:
        campaign_id: None for a campaign that was not created.
        at: The time that it was worked out for: the start, or the first opening after it.
        contacts: All contacts; `contacted` + `ended` + the counts of `left_out`.
        contacted: Those that will be contacted, later ones included.
        ended: Those that have ended, or are being contacted, already.
        left_out: The others by rule, the most frequent first.
        held_back: Which of those contacted have to wait after their turn, by rule.
        ends_early: Contacts that get the first messages of a flow but not all, by the reason; mind replies too.
        problems: The problems that prevent the start.
        warnings: Likely mistakes that do not prevent it (`StartCheck.warnings`).
        unknown_placeholders: Names in the text without a value; a blank is sent for them.
        placeholder_problems: How many of the contacts to be contacted have no value for a placeholder without a
            fallback, or no date where one is wanted, the most frequent first.
        text_warnings: Parts of the text that may be meant as placeholders, and are sent as they are.
        messages: Texts to be sent, each message of a flow counted; 0 for calls.
        segments: Their segments.
        segment_shares: How many messages take how many segments.
        encodings: Which need UCS-2, and why.
        replacement: Which have characters that the campaign's switch replaces, and what that saves.
        samples: Up to five contacts with their texts, the longest text among them.
        asked: The contacts with the number that was asked for.
        cost: Its cost by the workspace's prices; None without a price table.
        cost_note: The assumptions of the cost, or why there is none.
        audience: How the list overlaps with other campaigns, where `preflight_new` was given `leave_out`; else None.
        forecast: When it would be done, where `preflight_new` was given `assumptions`; else None.
    """

    campaign_id: str | None
    channel: Channel
    at: datetime
    contacts: int
    contacted: int
    ended: int
    left_out: tuple[LeftOut, ...]
    held_back: tuple[HeldBack, ...]
    ends_early: Mapping[str, int]
    problems: Sequence[Problem]
    warnings: Sequence[Problem]
    unknown_placeholders: tuple[str, ...]
    placeholder_problems: tuple[PlaceholderProblem, ...]
    text_warnings: tuple[TextWarning, ...]
    messages: int
    segments: int
    segment_shares: tuple[SegmentShare, ...]
    encodings: Encodings
    replacement: CharacterReplacement
    samples: tuple[ContactPreview, ...]
    asked: tuple[ContactPreview, ...]
    cost: Cost | None
    cost_note: str
    audience: AudienceCounts | None = None
    forecast: Forecast | None = None
