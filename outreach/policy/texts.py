"""Texts that come from outside and have to be kept whatever they hold."""

from __future__ import annotations

import json
import re
from typing import Final

_UNSTORABLE: Final = re.compile("[\\x00\\ud800-\\udfff]")


def storable(text: str) -> str:
    """Return a text that can be stored everywhere: NUL and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def quoted(text: str, longest: int) -> str:
    """Return a text on one line, in quotes, cut after so many characters."""
    cut = text if len(text) <= longest else text[:longest] + "\N{HORIZONTAL ELLIPSIS}"
    return json.dumps(cut, ensure_ascii=False)


def text_problem(text: object) -> str | None:
    """Return why something is no text that can be stored everywhere; None when it is one."""
    if not isinstance(text, str):
        return f"must be a text, not {type(text).__name__}"
    if "\x00" in text:
        return "must not contain NUL (U+0000)"
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        return "must not contain lone surrogates"
    return None
