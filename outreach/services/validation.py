"""Checks shared by several services."""

from __future__ import annotations

from typing import Any, Final

from outreach.errors import InvalidRequest
from outreach.models.account import ProviderKind
from outreach.models.base import set_fields
from outreach.models.fields import OneOf, check_value
from outreach.providers.registry import Adapters
from outreach.rules.phones import read_number

_SHOWN: Final = 40
"""How many characters of a text that is no number are quoted."""


def changed_fields(change: object, kind: type) -> dict[str, Any]:
    """Return the changed fields of an `*Update` object, by name.

    Raises:
        InvalidRequest: It is an object of another class.
    """
    check_kind("change", change, kind)
    return set_fields(change)


def check_provider(path: str, value: object, kind: ProviderKind, adapters: Adapters) -> None:
    """Check that a value is the name of a provider of a kind.

    Raises:
        InvalidRequest: It is none; the message names those that there are.
    """
    if not isinstance(value, str) or adapters.kind(value) != kind:
        check_value(path, value, OneOf(adapters.names(kind)))


def check_kind(path: str, value: object, kind: type) -> None:
    """Check that an argument is an instance of a class.

    Raises:
        InvalidRequest: It is not.
    """
    if not isinstance(value, kind):
        raise InvalidRequest.at(path, f"must be an outreach.{kind.__name__}, not {type(value).__name__}")


def require_text(path: str, raw: object) -> str:
    """Return a phone number if it is a string: an integer has lost its plus sign and leading zeros.

    Raises:
        InvalidRequest: It is not a string.
    """
    if not isinstance(raw, str):
        raise InvalidRequest.at(path, f"must be a text such as '+14155550102', not {type(raw).__name__}")
    return raw


def check_phone(path: str, raw: object, region: str | None) -> str | None:
    """Return a number in E.164; None stays None.

    Raises:
        InvalidRequest: It is not a phone number.
    """
    if raw is None:
        return None
    text = require_text(path, raw)
    phone = read_number(text, region).phone
    if phone is None:
        raise InvalidRequest.at(path, phone_problem(text, region))
    return phone


def phone_problem(raw: str, region: str | None) -> str:
    """Return why a text is refused as a phone number, with the text, and how to write one."""
    shown = f"{raw[:_SHOWN]!r} " if raw.strip() else ""
    return f"{shown}{read_number(raw, region).problem}; write it like +14155550102"
