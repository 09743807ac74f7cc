"""Sentences that ask for no more messages, in messages of any length.

They are matched only where a sentence or a part of it begins: `my ex won't stop texting me` is no opt-out. Each names
whom not to contact or what not to send: neither is `stop by the shop`. A sentence that is reversed or limited
(`instead`, `unless`, `until`, `except`) is left to a person.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Final

from outreach.rules.opt_out.words import MAX_CHARACTERS, Words, phrases, skip_courtesies, without_politeness, words_of

_ENDS_OF_PARTS: Final = re.compile(r"(?:[.!?;:,\n\r|\[\]\u2026\u2013\u2014\u3002\u3001]|\((?!\d)|(?<!\d)\))+|\s-+\s")
"""The separators of parts, in NFKC form; the brackets of `(415) 555-0100` do not separate."""

_BEGINNINGS: Final = phrases(
    *("please", "pls", "plz", "so", "just", "and", "kindly", "then", "or", "again", "now", "no", "yes", "omg", "dude"),
    *("who is this", "who's this", "who are you", "who dis", "wrong number", "wrong person", "wrong guy"),
    *("not interested", "no longer interested", "no thanks", "no thank you", "I said", "go away", "I don't know you"),
)
"""Phrases after which a part may begin without punctuation."""

_MAX_BEGINNING_WORDS: Final = max(len(phrase) for phrase in _BEGINNINGS)

_NEGATING: Final = frozenset({"dont", "not", "never"})
"""Negations that also reach across `or`: `do not cancel or stop these texts`."""

_LIMITS: Final = frozenset({"instead", "unless", "until", "except"})

_ALONE: Final = phrases(
    "stop", "stop all", "stopall", "stop it", "stop now", "unsubscribe", "unsub", "opt out", "optout", "remove me"
)
"""Parts of a longer message that opt out by themselves: `STOP. I have told you twice.`"""

_ON_A_WAY: Final = frozenset({"turn", "walk", "drive", "cross", "park"})
"""At the beginning of the next part they make it a direction: `go to 5th, stop, turn left`."""

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
_TEXTS: Final = r"(?:texts|text messages|messages|msgs|sms|text alerts|promos|spam)"
"""Messages only: calls that are cancelled may be appointments."""

_WHICH: Final = (
    r"(?:(?:all|any|more|these|those|this|the|your|of|such|unwanted|annoying|future|further|stupid|"
    r"damn|fucking|so many) )*"
)
_REMOVED: Final = r"(?:removed|deleted|erased|unsubscribed|opted out|taken off)"
_ASKED: Final = r"(?:(?<=please )|(?<=pls )|(?<=plz )|(?<=kindly ))"
_NO_WISH: Final = r"(?:i|we) (?:really )?(?:no longer|do not|dont|never)"
_NOT: Final = r"(?:do not|dont|never|do not ever|dont ever|dont you ever|never ever)"
_MINE: Final = (
    r"(?:me|us|my (?:\w+ )?(?:name|number|phone|cell|mobile|info|information|contact|details|data)|this number)"
)
_NUMBER: Final = r"\d[\d ]{5,15}\d"
"""A phone number as words."""
_LIST: Final = (
    r"(?:(?!wait|guest)\w+ ){0,3}?"
    r"(?:lists?|database|systems?|records?|contacts|mailings?|subscriptions?|texts|messages|calls|notifications|alerts|"
    r"campaigns?|marketing|everything|directory)"
)

_TO_SENDER: Final = (
    r"you (?:have|are|got|guys|people|keep|idiots?|morons?)|youre|youve|wrong (?:number|person)|"
    r"(?:i am|im|we are) not (?:interested|buying|the (?:person|one|right)|your|who)|"
    r"(?:i|we) (?:do not|dont) (?:want|need|care|know you)|(?:i|we) (?:said|told)|"
    r"(?:i|we) never (?:asked|signed|wanted|agreed|subscribed|gave|opted)|"
    r"(?:why|how) (?:do|did|are) (?:you|u)|who (?:is this|are you)|"
    r"(?:asking|pushing|begging|pressuring) (?:me|us) to|trying to (?:sell|make (?:me|us) buy)|"
    r"selling (?:my|our) (?:data|info|information|details|number|phone)|solicit(?:ing|ation|ations)|reaching out|"
    rf"contact (?:with )?(?:me|us)|{_MESSAGES} to {_ME}|or im"
)
"""Phrases after STOP at the beginning that address the sender."""

_SENTENCES: Final = "|".join(
    (
        rf"(?:stop|quit|cease) (?:the |all )?{_REACHING}(?: (?:and|or|n) {_REACHING})*(?: to)? {_ME}\b",
        rf"(?:stop|quit|cease) sending (?:me |us |out )?{_WHICH}"
        rf"(?:{_MESSAGES}\b|(?:this|these|those|anything|stuff)$)",
        r"(?:stop|quit|cease) (?:sending|texting|messaging|spamming|bothering|harassing) (?:me|us)\b"
        r"(?! (?:the wrong|a wrong|wrong|it|them|that|him|her|my)\b)",
        r"(?:stop|quit|cease) (?:bugging|hounding|disturbing|stalking|interrupting|blasting|flooding|scamming|"
        r"bombarding|hassling|irritating|trolling|troubling) (?:me|us)\b",
        r"(?:stop|quit|cease) wasting (?:my|our) (?:\w+ )?(?:time|data|money|battery|phone)\b",
        r"(?:stop|quit|cease) blowing up (?:my|our) (?:\w+ )?(?:phone|cell)\b",
        rf"stop(?: (?:it|this|now|please|pls|already))* (?:{_TO_SENDER})\b",
        r"stop (?:please|pls|plz) (?:i|we)\b",
        r"(?:stop|quit|cease) (?:it |already )?with (?:all )?(?:this|these|the|your|those)(?: \w+)? "
        rf"(?:{_MESSAGES}|nonsense|crap|shit|bs|garbage|junk|bullshit)\b",
        rf"(?:stop|quit|cease) (?:receiving|getting) {_WHICH}(?:\w+ )?(?:{_MESSAGES}\b|(?:this|these|those|them)$)",
        rf"(?:(?:i|we) (?:want|need|would like) |make |have ){_WHICH}(?:\w+ )?{_MESSAGES}"
        r" (?:to )?(?:stop|end|cease)\b",
        rf"(?:cancel|discontinue|terminate) (?:receiving )?(?:my |our )?(?:subscription to )?{_WHICH}"
        rf"(?:\w+ )?{_TEXTS}\b",
        rf"(?:stop|end|cease) (?:with )?(?:all|these|those|this|the|your)(?: the| these| your| of)?"
        rf"(?: \w+)? (?:{_MESSAGES}|{_REACHING}|harassment|contact)\b",
        rf"{_NOT} {_REACH}(?: (?:and|or) {_REACH})*(?: to)? {_ME}"
        rf"(?:$| (?:again|anymore|any more|ever|please|at all|at this|about|with|or|and|no|from|for any|under)\b)",
        rf"{_NOT} send (?:me |us )?(?:any|more|these|those|your|such) {_WHICH}(?:\w+ )?{_MESSAGES}\b",
        rf"{_NOT} send (?:me|us) anything\b",
        rf"(?:take|remove|delete|drop|get|erase) {_MINE}(?: {_NUMBER})? (?:off|from|out)(?: of)? {_LIST}\b",
        rf"(?:take|get) {_MINE} off(?: of)?(?: this| it| here)?$",
        rf"(?:remove|delete|unsubscribe|take off|stop texting|stop calling)(?: my number)? {_NUMBER}(?: from\b|$)",
        rf"(?:(?:i|we) (?:want|need) |have |get ){_MINE} {_REMOVED}(?:$|(?: of| from)? {_LIST}\b)",
        rf"be {_REMOVED}(?:$|(?: of| from)? {_LIST}\b)",
        r"be left alone\b",
        rf"(?:i|we) want (?:off|out)(?:$|(?: of)? {_LIST}\b)",
        rf"{_ASKED}(?:stop|remove|remove me|delete me|unsubscribe|unsub|discontinue|opt me out)$",
        r"stop(?: it| this| now| right now| immediately| already)* or (?:i|we|ill|else)\b",
        rf"stop (?:the|this|all|your|these|that) (?:\w+ ){{1,4}}(?:{_TEXTS}|texting|ads|calls)\b",
        r"(?:put|add) (?:me|us|my number|this number) (?:on|to) (?:\w+ ){0,2}do not (?:call|contact|text)\b",
        r"(?:my )?consent (?:is |has been )?(?:revoked|withdrawn)\b",
        r"cease (?:all )?contact\b",
        r"(?:unsubscribe|unsub) (?:me|us|my|this number|from)\b",
        r"opt (?:(?:me|us|my number|this number) )?out\b",
        r"(?:i am |im |we are )?opting out\b",
        r"(?:i|we|ive|weve) (?:have )?(?:already )?(?:opted out|unsubscribed)\b",
        rf"{_NO_WISH} (?:want|wish|care|need|consent|agree)(?: you)?(?: to)?"
        rf"(?: (?:get|getting|receive|receiving|have|see))? {_WHICH}"
        rf"(?:(?!(?:stop|end|quit|cancel|miss|lose|block)\b)\w+ )?{_MESSAGES}\b",
        rf"{_NO_WISH} (?:want|wish|consent|agree) (?:to be|being|to being) "
        r"(?:contacted|texted|called|messaged|spammed|bothered)\b",
        rf"{_NO_WISH} (?:want|wish) to hear from (?:you|this)\b",
        rf"no more (?:of )?(?:these |those |your )?{_MESSAGES}\b(?! (?:\w+ )?(?:needed|necessary|required)\b)",
        r"leave (?:me|us) (?:the \w+ )?alone\b",
        r"lose (?:my|this) (?:phone )?number\b",
        r"(?:i |we )?(?:hereby )?(?:revoke|withdraw|rescind) (?:my |our |all |any |prior |express |written )*"
        r"(?:consent|permission|authorization)\b",
    )
)


@cache
def _sentences() -> re.Pattern[str]:
    # Compiled when the first message arrives: it takes 16 ms, and most processes read none.
    return re.compile(_SENTENCES)


def sentence_asks_to_stop(text: str) -> bool:
    """Return whether a part of a message plainly asks for no more messages or calls."""
    return any(_says_so(part, after) for part, after in pairwise([*_parts(text), ()]))


def _parts(text: str) -> Iterator[Words]:
    for part in _ENDS_OF_PARTS.split(unicodedata.normalize("NFKC", text[:MAX_CHARACTERS])):
        words = words_of(part)
        if words:
            yield words


def _says_so(part: Words, after: Words) -> bool:
    words = without_politeness(part)
    if words in _ALONE:
        return _ON_A_WAY.isdisjoint(after[:2])
    if not _LIMITS.isdisjoint(part):
        return False
    line = " ".join(words)
    return any(_sentences().match(line, _offset(words, skip_courtesies(words, start))) for start in _starts(words))


def _starts(words: Words) -> Iterator[int]:
    yield 0
    for at in range(1, len(words)):
        before = (words[max(at - length, 0) : at] for length in range(1, _MAX_BEGINNING_WORDS + 1))
        if not _BEGINNINGS.isdisjoint(before) and (words[at - 1] != "or" or _NEGATING.isdisjoint(words[:at])):
            yield at


def _offset(words: Words, index: int) -> int:
    return sum(len(word) + 1 for word in words[:index])
