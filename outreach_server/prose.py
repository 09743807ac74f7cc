"""The little of Markdown that the contract's descriptions use, as HTML."""

from __future__ import annotations

import re
from html import escape
from typing import Final

_CODE: Final = re.compile(r"`([^`]+)`")
_STRONG: Final = re.compile(r"\*\*([^*]+)\*\*")


def prose(text: str) -> str:
    """Return paragraphs."""
    paragraphs = (part.strip() for part in text.split("\n\n"))
    return "".join(f"<p>{inline(part)}</p>" for part in paragraphs if part)


def inline(text: str) -> str:
    """Return one paragraph's text, with its code and what it stresses."""
    marked = _CODE.sub(r"<code>\1</code>", escape(text, quote=False))
    return _STRONG.sub(r"<strong>\1</strong>", marked)
