"""Contacts that earlier versions may have loaded under a wrong number."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from outreach.errors import Problem
from outreach.models.recipient import Recipient
from outreach.rules import numbering


def other_reading(written: str, phone: str) -> str | None:
    """Return the mobile number that a contact's digits are without the calling code that was put before them.

    529b10ce took `4915123456701` in Germany for the landline +494915123456701. This version does not.

    Args:
        written: The number as supplied.
        phone: The number that it was read as, in E.164.
    """
    if written[:1] == "+" or written == phone:
        return None
    digits = "".join(filter(str.isdigit, written))
    code = phone.removesuffix(digits)[1:]
    if not code or not digits.startswith(code) or code == "1" or f"+{code}{digits}" != phone:
        return None
    other = numbering.international(digits)
    is_mobile = other not in {None, phone} and numbering.number_kind(other or "") == "mobile"
    return other if is_mobile and numbering.number_kind(phone) != "mobile" else None


@attrs.define(kw_only=True)
class MisreadNumbers:
    """Counts the open contacts of a campaign whose number may be another one.

    Attributes:
        checked: How many were checked.
        count: How many of them may have another number.
        example: The first of these: its number, and the other one.
    """

    checked: int = 0
    count: int = 0
    example: tuple[str, str] | None = None

    def see(self, contacts: Iterable[Recipient]) -> None:
        """Count contacts; those that have ended are left out."""
        for one in contacts:
            if not one.is_open:
                continue
            self.checked += 1
            other = None if one.phone is None else other_reading(one.phone_number, one.phone)
            if one.phone is not None and other is not None:
                self.count += 1
                self.example = self.example or (one.phone, other)

    def warnings(self) -> tuple[Problem, ...]:
        """Return the warning of these contacts, if there are any."""
        if self.example is None:
            return ()
        phone, other = self.example
        message = (
            f"{self.count:,} of {self.checked:,} contacts may have been loaded under a wrong number by an earlier "
            f"version, such as {phone} in place of {other}. If the other number is meant, cancel the campaign "
            "(campaigns cancel) and import its list again (campaigns import)."
        )
        return (Problem(path="recipients", message=message),)
