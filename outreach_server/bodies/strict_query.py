"""Query parameters of the operations under /manage: unknown ones are refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from starlette.requests import Request

from outreach import InvalidRequest
from outreach.errors import Problem
from outreach.server_support import did_you_mean, nearest, read_timestamp
from outreach_server.bodies.query import query_pairs

Rule = Callable[[str], Any]
"""Returns the value of a parameter; raises `ValueError` with what would be right."""

MAX_LIMIT: Final = 1000
DEFAULT_LIMIT: Final = 100

_DIGITS: Final = re.compile(r"[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?")
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")
_MAX_TEXT_LENGTH: Final = 255


def read_query(request: Request, **rules: Rule) -> Mapping[str, Any]:
    """Return the parameters of a request by name; those that are not given are absent.

    Raises:
        InvalidRequest: One is unknown, repeated or invalid; the details name each.
    """
    details: list[Problem] = []
    values: dict[str, Any] = {}
    for name, text in query_pairs(request.scope["query_string"]):
        rule = rules.get(name)
        if rule is None:
            known = ", ".join(rules) or "none"
            message = f"is not a parameter of this operation, which has: {known}{did_you_mean(nearest(name, rules))}"
            details.append(Problem(path=name[:_MAX_TEXT_LENGTH], message=message))
        elif name in values:
            details.append(Problem(path=name, message="must be given once"))
        else:
            try:
                values[name] = rule(text)
            except ValueError as error:
                values[name] = None
                details.append(Problem(path=name, message=str(error)))
    if details:
        raise InvalidRequest(details=details)
    return values


def whole(least: int, most: int) -> Rule:
    """Return the rule of an integer within bounds, in digits only."""

    def rule(text: str) -> int:
        if not _DIGITS.fullmatch(text) or not least <= int(text) <= most:
            raise ValueError(f"must be an integer from {least} to {most}, in digits only")
        return int(text)

    return rule


def number(least: float, most: float) -> Rule:
    """Return the rule of a number within bounds, as JSON writes it."""

    def rule(text: str) -> float:
        if not _NUMBER.fullmatch(text) or not least <= float(text) <= most:
            raise ValueError(f"must be a number from {least:g} to {most:g}, such as 0.5")
        return float(text)

    return rule


def one_of(*words: str) -> Rule:
    """Return the rule of one of several words; the value is the word itself, such as the member of an enum."""

    def rule(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be one of {', '.join(words)}{did_you_mean(nearest(text, words))}")
        return words[words.index(text)]

    return rule


def flag(text: str) -> bool:
    """Return true or false."""
    if text not in {"true", "false"}:
        raise ValueError("must be true or false")
    return text == "true"


def words(text: str) -> str:
    """Return a text of 1 to 255 characters."""
    if not 1 <= len(text) <= _MAX_TEXT_LENGTH or _UNSTORABLE.search(text):
        raise ValueError(f"must have 1 to {_MAX_TEXT_LENGTH} characters, without NUL")
    return text


def identifier(text: str) -> str:
    """Return an identifier: a UUID is case-insensitive."""
    return words(text).lower()


def phone(text: str) -> str:
    """Return a phone number; a plus sign that was not encoded has become a space."""
    return words("+" + text[1:] if text.startswith(" ") else text)


def moment(text: str) -> datetime:
    """Return a time in UTC; a plus sign that was not encoded has become a space."""
    found = read_timestamp(text.replace(" ", "+"))
    if found is None:
        raise ValueError("must be a time such as 2026-11-20T16:00:00Z")
    return found


limit: Final = whole(1, MAX_LIMIT)
"""The rule of the largest number of items of a page."""
