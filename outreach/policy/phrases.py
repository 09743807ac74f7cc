"""Sentences by which people ask to be left alone, however long the message is that they stand in.

They are looked for where a sentence, or a part of it, begins: `stop texting me` is none in `my ex won't stop texting
me`. Each names whom not to contact, or what not to send, so that `stop by the shop` is none either. What turns a
sentence round or limits it (`instead`, `unless`, `until`, `except`) leaves it to a person.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from outreach.policy.politeness import skipped, without_courtesies, without_politeness
from outreach.policy.words import LONGEST, Words, phrases, words_of

_ENDS_OF_PARTS: Final = re.compile(r"[.!?;:,\n\r|()\[\]\u2026\u2013\u2014\u3002\u3001]+|\s-+\s")
"""After a compatibility form has become the plain one."""

_REACTION: Final = re.compile(
    r"\s*(?:liked|loved|disliked|laughed at|emphasi[sz]ed|questioned|reacted .{1,20} to|removed an? .{1,20} from)"
    r"\s*[\"'\u201c\u00ab]",
    re.IGNORECASE,
)
"""How a telephone writes a thumb under a message: what follows is our own text, `Reply STOP` with it."""

_BEGINNINGS: Final = frozenset(
    {"please", "pls", "plz", "so", "just", "and", "kindly", "then", "or", "again", "now", "no", "yes", "omg", "dude"}
)
"""Words after which another part of a sentence may begin, where nothing is written between."""

_LIMITS: Final = frozenset({"instead", "unless", "until", "except"})

_ALONE: Final = phrases(
    "stop", "stop all", "stopall", "stop it", "stop now", "unsubscribe", "unsub", "opt out", "optout"
)
"""Parts of a longer message that say it by themselves: `STOP. I have told you twice.`"""

_ME: Final = (
    r"(?:me|us|this (?:phone )?number|this phone|this line|my (?:\w+ )?(?:phone|number|cell|mobile|line|wife|husband|"
    r"mom|mother|dad|father|parents|kids?|son|daughter|family))"
)
_REACHING: Final = (
    r"(?:texting|messaging|msging|calling|contacting|spamming|bothering|harassing|emailing|writing|ringing|phoning|"
    r"pestering|annoying)"
)
_REACH: Final = r"(?:text|message|msg|call|contact|sms|spam|bother|harass|email|write|ring|phone|pester)"
_MESSAGES: Final = (
    r"(?:texts|text messages|messages|msgs|sms|calls|phone calls|spam|ads|advertisements|promos|promotions|offers|"
    r"notifications|alerts|communications?|marketing)"
)
_WHICH: Final = (
    r"(?:(?:all|any|more|these|those|this|the|your|of|such|unwanted|annoying|stupid|damn|fucking|so many) )*"
)
_NO_WISH: Final = r"(?:i|we) (?:really )?(?:no longer|do not|dont|never)"
_NOT: Final = r"(?:do not|dont|never|do not ever|dont ever|dont you ever|never ever)"
_MINE: Final = (
    r"(?:me|us|my (?:\w+ )?(?:name|number|phone|cell|mobile|info|information|contact|details|data)|this number)"
)
_LIST: Final = (
    r"(?:lists?|database|systems?|records?|contacts|mailings?|subscriptions?|texts|messages|calls|notifications|alerts|"
    r"campaigns?|marketing|everything|directory)"
)

_SENTENCES: Final = re.compile(
    "|".join(
        (
            rf"(?:stop|quit|cease) (?:the |all )?{_REACHING}(?: (?:and|or|n) {_REACHING})*(?: to)? {_ME}\b",
            rf"(?:stop|quit|cease) sending (?:me |us |out )?{_WHICH}"
            rf"(?:{_MESSAGES}\b|(?:this|these|those|anything|stuff)$)",
            rf"(?:stop|end|cease) (?:with )?(?:all|these|those|this|the|your)(?: the| these| your| of)?"
            rf"(?: \w+)? (?:{_MESSAGES}|{_REACHING}|harassment|contact)\b",
            rf"{_NOT} {_REACH}(?: (?:and|or) {_REACH})*(?: to)? {_ME}"
            rf"(?:$| (?:again|anymore|any more|ever|please|at all|at this|about|with|or|and|no|from|for any|under)\b)",
            rf"{_NOT} send (?:me |us )?(?:any|more|these|those|your|such) {_WHICH}(?:\w+ )?{_MESSAGES}\b",
            rf"{_NOT} send (?:me|us) anything\b",
            rf"(?:take|remove|delete|drop|get|erase) {_MINE} (?:off|from|out)(?: of)?"
            rf"(?: (?!wait|guest)\w+){{0,3}}? {_LIST}\b",
            rf"(?:take|get) {_MINE} off(?: of)?(?: this| it| here)?$",
            r"(?:unsubscribe|unsub) (?:me|us|my|this number|from)\b",
            r"opt (?:(?:me|us|my number|this number) )?out\b",
            r"(?:i am |im |we are )?opting out\b",
            r"(?:i|we|ive|weve) (?:have )?(?:already )?(?:opted out|unsubscribed)\b",
            rf"{_NO_WISH} (?:want|wish|care|need|consent|agree)(?: you)?(?: to)?"
            rf"(?: (?:get|getting|receive|receiving|have|see))? {_WHICH}(?:\w+ )?{_MESSAGES}\b",
            rf"{_NO_WISH} (?:want|wish|consent|agree) (?:to be|being|to being) "
            r"(?:contacted|texted|called|messaged|spammed|bothered)\b",
            rf"{_NO_WISH} (?:want|wish) to hear from (?:you|this)\b",
            rf"no more (?:of )?(?:these |those |your )?{_MESSAGES}\b",
            r"leave (?:me|us) (?:the \w+ )?alone\b",
            r"lose (?:my|this) (?:phone )?number\b",
            r"(?:i |we )?(?:hereby )?(?:revoke|withdraw|rescind) (?:my |our |all |any |prior |express |written )*"
            r"(?:consent|permission|authorization)\b",
        )
    )
)


def is_reaction(text: str) -> bool:
    """Return whether a message is a telephone's account of a reaction to a message of ours, which it quotes."""
    return _REACTION.match(text) is not None


def sentence_asks_to_stop(text: str) -> bool:
    """Return whether a part of a message says, in plain words, that no more messages or calls are wanted."""
    return any(_says_so(part) for part in _parts(text))


def _parts(text: str) -> Iterator[Words]:
    for part in _ENDS_OF_PARTS.split(unicodedata.normalize("NFKC", text[:LONGEST])):
        words = words_of(part)
        if words:
            yield words


def _says_so(part: Words) -> bool:
    if without_courtesies(part) in _ALONE:
        return True
    if not _LIMITS.isdisjoint(part):
        return False
    words = without_politeness(part)
    line = " ".join(words)
    starts = [0, *(at + 1 for at, word in enumerate(words) if word in _BEGINNINGS)]
    return any(_SENTENCES.match(line, _offset(words, skipped(words, start))) for start in starts)


def _offset(words: Words, index: int) -> int:
    return sum(len(word) + 1 for word in words[:index])
