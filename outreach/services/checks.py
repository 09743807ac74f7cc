"""Checks that several services share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from outreach.errors import ErrorDetail, InvalidRequest
from outreach.models.unset import given
from outreach.policy.phones import normalise
from outreach.policy.texts import text_problem


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


def changes_of(change: object, *, clearable: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a change that are to be changed, by name.

    Raises:
        InvalidRequest: One that cannot be empty is to be cleared.
    """
    changes = given(change)
    details = [
        ErrorDetail(name, "cannot be cleared: give a value, or leave it out (UNSET)")
        for name, value in changes.items()
        if value is None and name not in clearable
    ]
    if details:
        raise InvalidRequest(details=details)
    return changes


def choice_problem(value: object, choices: Sequence[str]) -> str | None:
    """Return why a value is none of a few words; None when it is one.

    What is stored but cannot be read again would make every list that holds it unreadable.
    """
    return None if value in choices else f"must be one of {', '.join(choices)}"


def check_choice(path: str, value: object, choices: Sequence[str]) -> None:
    """Check that a value is one of a few words.

    Raises:
        InvalidRequest: It is none of them.
    """
    problem = choice_problem(value, choices)
    if problem is not None:
        raise InvalidRequest.at(path, problem)


def check_phone(path: str, raw: str | None, region: str | None) -> str | None:
    """Return a number in E.164; None stays None.

    Raises:
        InvalidRequest: It is no possible phone number.
    """
    if raw is None:
        return None
    phone = normalise(raw, region)
    if phone is None:
        raise InvalidRequest.at(path, "is no possible phone number; write it like +14155550102")
    return phone
