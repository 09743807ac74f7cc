"""Characters outside GSM-7, and what that alphabet has in their place."""

from __future__ import annotations

import functools
import unicodedata
from typing import Final

from outreach.policy.segments import is_gsm

_SUBSTITUTES: Final = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u0060\u00b4\u02bc\u2039\u203a", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u2022\u2023\u25cf\u25aa\u00b7\u2219", "-"),
    # Spaces of every width, which word processors and web pages bring.
    **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000\t", " "),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0f", ""),
    "\u2026": "...",
    "\u2028": "\n",
    "\u2029": "\n",
    "\u00d7": "x",
    "\u00f7": "/",
    "\u2122": "(TM)",
    "\u00ae": "(R)",
    "\u00a9": "(C)",
    "\u2116": "No.",
    "\u00b0": " deg",
    "\u0153": "oe",
    "\u0152": "OE",
    "\u0142": "l",
    "\u0141": "L",
    "\u0111": "d",
    "\u0110": "D",
    "\u0131": "i",
}


@functools.lru_cache(maxsize=4096)
def substitute(character: str) -> str | None:
    """Return the text of GSM-7 for a character, possibly empty; None if nothing there is like it.

    A letter with an accent that GSM-7 lacks has the letter without it.
    """
    if (known := _SUBSTITUTES.get(character)) is not None:
        return known
    plain = "".join(one for one in unicodedata.normalize("NFKD", character) if not unicodedata.combining(one))
    if plain and is_gsm(plain):
        return plain
    # An accent by itself follows its letter.
    return "" if not plain else None


def character_name(character: str) -> str:
    """Return a character's name in Unicode, in small letters, or its code."""
    return unicodedata.name(character, f"U+{ord(character):04X}").lower()
