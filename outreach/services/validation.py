"""Checks shared by several services."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from outreach.errors import ErrorDetail, InvalidRequest
from outreach.meant import did_you_mean, nearest
from outreach.models.account import ProviderKind
from outreach.models.base import set_fields
from outreach.policy.phones import read_number
from outreach.policy.texts import text_problem
from outreach.providers.registry import Adapters

_SHOWN: Final = 40
"""How many characters of a text that is no number are quoted."""


def check_text(path: str, text: object) -> None:
    """Check that a value is a text that every storage accepts.

    Raises:
        InvalidRequest: It is not a text, or holds NUL or a lone surrogate.
    """
    problem = text_problem(text)
    if problem is not None:
        raise InvalidRequest.at(path, problem)


def check_name(path: str, name: str, maximum: int, *, minimum: int = 1) -> None:
    """Check a text's length in code points and its characters.

    Raises:
        InvalidRequest: It is too short or too long, or holds NUL or a lone surrogate.
    """
    problem = text_problem(name)
    if problem is None and not minimum <= len(name) <= maximum:
        problem = f"must have {minimum} to {maximum} characters, not {len(name)}"
    if problem is not None:
        raise InvalidRequest.at(path, problem)


def changed_fields(change: object, kind: type) -> dict[str, Any]:
    """Return the changed fields of an `*Update` object, by name.

    Raises:
        InvalidRequest: It is an object of another class.
    """
    check_kind("change", change, kind)
    return set_fields(change)


def choice_problem(value: object, choices: Sequence[str]) -> str | None:
    """Return why a value is not one of `choices`; None if it is."""
    return None if value in choices else f"must be one of {', '.join(choices)}{did_you_mean(nearest(value, choices))}"


def check_choice(path: str, value: object, choices: Sequence[str]) -> None:
    """Check that a value is one of `choices`.

    Raises:
        InvalidRequest: It is not.
    """
    problem = choice_problem(value, choices)
    if problem is not None:
        raise InvalidRequest.at(path, problem)


def check_provider(path: str, value: object, kind: ProviderKind, adapters: Adapters) -> None:
    """Check that a value is the name of a provider of a kind.

    Raises:
        InvalidRequest: It is none; the message names those that there are.
    """
    problem = provider_problem(value, kind, adapters)
    if problem is not None:
        raise InvalidRequest.at(path, problem)


def provider_problem(value: object, kind: ProviderKind, adapters: Adapters) -> str | None:
    """Return why a value is not the name of a provider of a kind; None when it is."""
    if isinstance(value, str) and adapters.kind(value) == kind:
        return None
    return choice_problem(value, adapters.names(kind))


def check_kind(path: str, value: object, kind: type) -> None:
    """Check that an argument is an instance of a class.

    Raises:
        InvalidRequest: It is not.
    """
    if not isinstance(value, kind):
        raise InvalidRequest.at(path, f"must be an outreach.{kind.__name__}, not {type(value).__name__}")


def check_integer(path: str, value: object, least: int, most: int) -> None:
    """Check that a value is an integer within bounds.

    Raises:
        InvalidRequest: It is not.
    """
    # bool is a subclass of int.
    if type(value) is not int or not least <= value <= most:
        raise InvalidRequest.at(path, f"must be an integer from {least} to {most}")


def check_flags(values: Mapping[str, object], *names: str) -> None:
    """Check that the given ones of these values are booleans.

    Raises:
        InvalidRequest: One is not.
    """
    details = [
        ErrorDetail(name, f"must be True or False, not {values[name]!r}")
        for name in names
        if name in values and not isinstance(values[name], bool)
    ]
    if details:
        raise InvalidRequest(details=details)


def check_texts(path: str, values: object) -> tuple[str, ...]:
    """Return a sequence of strings as a tuple.

    Raises:
        InvalidRequest: It is a single string, or not a sequence of strings.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidRequest.at(path, f"must be a list of strings, not {type(values).__name__}")
    texts = tuple(values)
    for index, text in enumerate(texts):
        check_text(f"{path}[{index}]", text)
    return texts


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
