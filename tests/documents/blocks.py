"""The code blocks of the pages, in the root and in docs: found, named, and how each is checked.

A block is fenced and names its language. Python and shell are run as a reader would, from the top of a page to its end
(`session.py`); two things in a page change that:

    <!-- not run: needs an account at Twilio -->    before a block: it is only read (`test_blocks.py`), for this reason
    ```json title="twilio.json"                     the block is a file, which later blocks of the page find
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
from markdown_it import MarkdownIt

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

PYTHON: Final = frozenset({"python"})
SHELL: Final = frozenset({"sh", "bash"})

_MARK: Final = re.compile(r"<!--\s*not run:\s*(?P<reason>.*?)\s*-->", re.DOTALL)
_TITLE: Final = re.compile(r"""\btitle=(["'])(?P<name>[\w./-]+)\1""")


@attrs.frozen(kw_only=True)
class Block:
    """A code block of a page.

    Attributes:
        page: The page, from the root of the repository.
        line: Where it begins, counted from 1.
        language: What the fence says, in lower case; empty where it says nothing, None where there is no fence.
        title: The name of the file that it is, or None.
        text: What is in it.
        not_run: Why it is not run, or None.
    """

    page: str
    line: int
    language: str | None
    title: str | None
    text: str
    not_run: str | None

    @property
    def place(self) -> str:
        """Where it is, as editors take it."""
        return f"{self.page}:{self.line}"


def blocks_of(text: str, page: str) -> Iterator[Block]:
    """Yield the code blocks of a page's text, in their order."""
    reason: str | None = None
    for token in MarkdownIt("commonmark").parse(text):
        if token.type in {"fence", "code_block"}:
            assert token.map is not None
            language, _, rest = token.info.strip().partition(" ")
            title = _TITLE.search(rest)
            yield Block(
                page=page,
                line=token.map[0] + 1,
                language=language.lower() if token.type == "fence" else None,
                title=title["name"] if title else None,
                text=token.content,
                not_run=reason,
            )
        # A mark counts for the block that follows it, and for nothing after that.
        marked = _MARK.search(token.content) if token.type == "html_block" else None
        reason = marked["reason"] if marked else None


def blocks(page: Path) -> list[Block]:
    """Return the code blocks of a page of the repository."""
    return list(blocks_of(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))))


ALL: Final = [block for page in PAGES for block in blocks(page)]
