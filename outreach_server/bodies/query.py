"""Query parameters of lists (docs/interface.md#query)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl

import attrs

from outreach import CampaignStatus, InvalidRequest
from outreach.errors import Problem
from outreach.models import CampaignFilters
from outreach.server_support import did_you_mean, nearest

_DIGITS: Final = re.compile(r"[0-9]+")
_MAX_PARAMETERS: Final = 100
_MAX_DIGITS: Final = 15
_FAR_PAGE: Final = 10**_MAX_DIGITS
_DEFAULT_PAGE_SIZE: Final = 20
_MAX_PAGE_SIZE: Final = 100
_SHORT: Final = 200
_FILTERS: Final = ("status", "search")
"""The filters of `CampaignFilters` that requests may have."""


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
    return _read_short(raw) if len(raw) <= _SHORT else _read(raw)


def _read(raw: bytes) -> ListQuery:
    values, details = _parameters(raw)
    page = _integer(values, "page", "1", details)
    size = _integer(values, "page_size", str(_DEFAULT_PAGE_SIZE), details)
    filters: Any = {name: values[name] for name in _FILTERS if values.get(name)}
    if "status" in values:
        filters["status"] = _status(values["status"], details)
    for name, value in filters.items():
        if "\x00" in (value or ""):
            details.append(Problem(path=name, message="must not contain NUL"))
    if details:
        raise InvalidRequest(details=details)
    is_far = len(page) > _MAX_DIGITS
    return ListQuery(
        page=_FAR_PAGE if is_far else int(page),
        page_echo=page.encode(),
        page_size=_MAX_PAGE_SIZE if len(size) > _MAX_DIGITS else min(int(size), _MAX_PAGE_SIZE),
        filters=filters,
    )


# Clients repeat the same few queries.
_read_short: Final = lru_cache(maxsize=1000)(_read)


def query_pairs(raw: bytes) -> list[tuple[str, str]]:
    """Return the parameters of a query, as they come.

    Raises:
        InvalidRequest: It is not UTF-8, or has too many parameters.
    """
    try:
        return parse_qsl(raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except UnicodeDecodeError:
        raise InvalidRequest.at("", "The query is not valid UTF-8.") from None
    except ValueError:
        raise InvalidRequest.at("", f"The query has more than {_MAX_PARAMETERS} parameters.") from None


def _parameters(raw: bytes) -> tuple[dict[str, str], list[Problem]]:
    values: dict[str, str] = {}
    details: list[Problem] = []
    for name, value in query_pairs(raw):
        if name in values and name in {"page", "page_size", *_FILTERS}:
            details.append(Problem(path=name, message="must be given once"))
        values[name] = value
    return values, details


def _integer(values: dict[str, str], name: str, default: str, details: list[Problem]) -> str:
    """Return the digits of an integer of at least 1, without leading zeros."""
    text = values.get(name, default)
    digits = text.lstrip("0")
    if not _DIGITS.fullmatch(text) or not digits:
        details.append(Problem(path=name, message="must be an integer of at least 1, in digits only"))
        return default
    return digits


def _status(text: str, details: list[Problem]) -> CampaignStatus | None:
    try:
        return CampaignStatus(text)
    except ValueError:
        meant = did_you_mean(nearest(text, CampaignStatus))
        details.append(Problem(path="status", message=f"must be one of {', '.join(CampaignStatus)}{meant}"))
        return None
