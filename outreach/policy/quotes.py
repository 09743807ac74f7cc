"""What of a message is somebody's own: not what a telephone or a person quotes of ours, `Reply STOP` with it."""

from __future__ import annotations

import re
from typing import Final

from outreach.policy.words import LONGEST, words_of

LONGEST_SAYING: Final = 5
"""Words. What is quoted beyond that is taken for a message of ours; `I said “stop texting me”` is somebody's own."""

_OPENING: Final = re.compile(r"[\"\u201c\u201d\u201e\u00ab\u00bb\u2039\u300c\u300e]|\s['\u2018\u2019]")

_QUOTED: Final = re.compile(
    r"[\"\u201c\u201d\u201e\u00ab\u00bb\u300c][^\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]*"
    r"[\"\u201c\u201d\u00ab\u00bb\u300d]"
)
"""No mark stands within, so that every character is looked at a fixed number of times."""

_SIGN: Final = re.compile(r"\s*[^\w\s]\W*(?:to|a|\u00e0|zu|auf|su|sur|em|op|p\u00e5|til)\W*", re.IGNORECASE)
"""An emoji alone and the word that leads to the quotation: `👍 to “…”`."""

_REACTION: Final = re.compile(
    "|".join(
        (
            r"liked|loved|disliked|laughed at|emphasi[sz]ed|questioned",
            r"reacted (?:\w+ ){0,4}to|removed an? (?:\w+ ){0,4}from|removed from",
            r"gefallt(?: mir)?(?: nicht)?|liebt|lacht uber|betont|hinterfragt|reagierte mit auf",  # German
            r"a (?:aime|adore|ri de|souligne|reagi avec a)|na pas aime|a mis laccent sur|a mis en doute",  # French
            r"(?:no )?le gusto|le encanto|se rio de|enfatizo|cuestiono|reacciono con a",  # Spanish
            r"(?:nao )?gostou de|amou|adorou|riu de|enfatizou|questionou|reagiu com a",  # Portuguese
            r"ha (?:messo mi piace a|adorato|riso (?:a|di|per)|enfatizzato|reagito con a)|(?:non )?piace",  # Italian
        )
    )
)
"""How a telephone writes a thumb under a message, before the quotation marks and without accents and emoji."""


def is_reaction(text: str) -> bool:
    """Return whether a message is a telephone's account of a reaction to a message of ours, which it quotes."""
    text = text[:LONGEST]
    opening = _OPENING.search(text)
    if opening is None:
        return False
    lead = text[: opening.start()]
    return _SIGN.fullmatch(lead) is not None or _REACTION.fullmatch(" ".join(words_of(lead))) is not None


def own_text(text: str) -> str:
    """Return a message without quoted lines (`> …`) and without longer passages in quotation marks.

    A message that is nothing but one such passage is somebody's own.
    """
    lines = "\n".join(line for line in text[:LONGEST].splitlines() if not line.lstrip().startswith(">"))
    rest = _QUOTED.sub(lambda quoted: quoted[0] if len(words_of(quoted[0])) <= LONGEST_SAYING else " ", lines)
    return rest if rest.strip(" .,!?\n") else lines
