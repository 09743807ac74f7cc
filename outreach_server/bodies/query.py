"""Query parameters: unknown ones are refused under /manage, and ignored by the interface's lists.

docs/interface.md#query has the latter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl

import attrs
from starlette.requests import Request

from outreach import CampaignStatus, InvalidRequest
from outreach.errors import Problem
from outreach.models import CampaignFilters
from outreach.server_support import UNSTORABLE, did_you_mean, nearest, read_timestamp

Rule = Callable[[str], Any]
"""Returns the value of a parameter; raises `ValueError` with what would be right."""

MAX_LIMIT: Final = 1000
DEFAULT_LIMIT: Final = 100

_DIGITS: Final = re.compile(r"[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?")
_MAX_TEXT_LENGTH: Final = 255
_MAX_PARAMETERS: Final = 100
_FAR_DIGITS: Final = 15
_FAR_PAGE: Final = 10**_FAR_DIGITS
_DEFAULT_PAGE_SIZE: Final = 20
_MAX_PAGE_SIZE: Final = 100
_SHORT: Final = 200


def read_query(request: Request, **rules: Rule) -> Mapping[str, Any]:
    """Return the parameters of a request by name; those that are not given are absent.

    Raises:
        InvalidRequest: One is unknown, repeated or invalid; the details name each.
    """
    return read_parameters(request.scope["query_string"], rules)


def read_parameters(raw: bytes, rules: Mapping[str, Rule], *, strict: bool = True) -> dict[str, Any]:
    """Return the parameters of a query by name; unknown ones are ignored unless it is `strict`.

    Raises:
        InvalidRequest: It is not UTF-8, has too many parameters, or one is unknown, repeated or invalid.
    """
    details: list[Problem] = []
    values: dict[str, Any] = {}
    for name, text in _pairs(raw):
        rule = rules.get(name)
        if rule is None and not strict:
            continue
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


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except UnicodeDecodeError:
        raise InvalidRequest.at("", "The query is not valid UTF-8.") from None
    except ValueError:
        raise InvalidRequest.at("", f"The query has more than {_MAX_PARAMETERS} parameters.") from None


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
    if not 1 <= len(text) <= _MAX_TEXT_LENGTH or UNSTORABLE.search(text):
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


@attrs.frozen(kw_only=True)
class ListQuery:
    """The query of a list.

    Attributes:
        page: The page to look up; one far past the end stands for all further ones.
        page_echo: The page in the response, which may be any number.
        filters: Which campaigns, in the form of `list_campaigns`.
    """

    page: int
    page_echo: bytes
    page_size: int
    filters: CampaignFilters


def read_list_query(raw: bytes) -> ListQuery:
    """Return a parsed query; unknown parameters are ignored.

    Raises:
        InvalidRequest: A parameter is invalid; the details name each.
    """
    return _read_short(raw) if len(raw) <= _SHORT else _parse_query(raw)


def _parse_query(raw: bytes) -> ListQuery:
    given = read_parameters(raw, _RULES, strict=False)
    page, size = given.pop("page", "1"), given.pop("page_size", str(_DEFAULT_PAGE_SIZE))
    filters: Any = {name: value for name, value in given.items() if value}
    is_far = len(page) > _FAR_DIGITS
    return ListQuery(
        page=_FAR_PAGE if is_far else int(page),
        page_echo=page.encode(),
        page_size=_MAX_PAGE_SIZE if len(size) > _FAR_DIGITS else min(int(size), _MAX_PAGE_SIZE),
        filters=filters,
    )


# Clients repeat the same few queries.
_read_short: Final = lru_cache(maxsize=1000)(_parse_query)


def _positive(text: str) -> str:
    """Return the digits of an integer of at least 1, without leading zeros."""
    digits = text.lstrip("0")
    if not re.fullmatch("[0-9]+", text) or not digits:
        raise ValueError("must be an integer of at least 1, in digits only")
    return digits


def _without_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain NUL")
    return text


_RULES: Final[Mapping[str, Rule]] = {
    "page": _positive,
    "page_size": _positive,
    "status": one_of(*CampaignStatus),
    "search": _without_nul,
}
