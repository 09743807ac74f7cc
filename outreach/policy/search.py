"""Case-insensitive search for every script: fold both texts, then look for one in the other."""

from __future__ import annotations

import unicodedata
from typing import Final

_I_WITH_DOT: Final = "i\u0307"


def fold(text: str) -> str:
    """Return a text without its differences of case and of spelling, for substring matching.

    Full case folding: `ß` and `SS` are `ss`, final and other sigmas are one, `İ`, `I` and `i` are one (the
    dotless i is not: without a language there is no telling). Canonically equal spellings, as of `é` in one or two code
    points, become the same.

    The result is composed (NFC), so that `cafe` does not find `Café`: an accent is not case. Compatibility
    forms (`①`, full-width letters) stay apart from the plain ones for the same reason.
    """
    # Decomposed first: folding sees through `ᾳ` only when its iota stands by itself.
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
    # The case folding of `İ` leaves a dot that nobody types.
    return unicodedata.normalize("NFC", folded.replace(_I_WITH_DOT, "i"))


MOST_IN_A_PHRASE: Final = 32
"""Characters of a text that an index is asked for; those that hold them are compared with all of it."""

_LEAST_IN_A_PHRASE: Final = 3


def phrase(folded: str) -> str | None:
    """Return what an index of the three characters that follow each other is asked for; None for a shorter text.

    Args:
        folded: What is searched for, folded.

    Returns:
        The beginning of the text, quoted, so that none of its characters means anything else.
    """
    if len(folded) < _LEAST_IN_A_PHRASE:
        return None
    return '"' + folded[:MOST_IN_A_PHRASE].replace('"', '""') + '"'
