"""Words for people that the commands and the readers of lists share."""

from __future__ import annotations


def amount(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 row` or `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def visible(text: str) -> str:
    """Return a text with its control characters made visible."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{SYMBOL FOR ESCAPE}" for c in text)
