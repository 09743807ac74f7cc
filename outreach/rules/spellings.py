"""The spellings in E.164 that reach one telephone line, and the key by which a person is recognised.

What is dialled stays as it was written; the register, duplicates, the frequency cap and look-ups compare lines.
"""

from __future__ import annotations

import re
from typing import Final

_OLD_AND_NEW: Final = (
    # Mexico dropped the 1 of mobile numbers in 2019. Messaging channels still write it.
    (re.compile(r"\+52(?:1(?=[0-9]{10}$))?([0-9]{10})"), ("+52", "+521")),
    # Argentina writes a 9 before the area code of mobile numbers that are called from abroad.
    (re.compile(r"\+54(?:9(?=[0-9]{10}$))?([0-9]{10})"), ("+54", "+549")),
)
"""The group of a pattern is the same in all spellings; then what stands before it in each, that of the key first."""

_BRAZILIAN_MOBILE: Final = re.compile(r"\+55([1-9][0-9])(?:9(?=[0-9]{8}$))?([6-9][0-9]{7})")
"""Brazil put a 9 before the eight digits of mobile numbers, which began with 6 to 9. Landlines begin with 2 to 5."""


def spellings(phone: str) -> tuple[str, ...]:
    """Return all spellings of a number in E.164, itself first."""
    if phone[:3] not in {"+52", "+54", "+55"}:
        return (phone,)
    known = _all_spellings(phone)
    return (phone, *(each for each in known if each != phone))


def person_key(phone: str) -> str:
    """Return the key of the person at a number in E.164: the same for all spellings, itself one of them."""
    return phone if phone[:3] not in {"+52", "+54", "+55"} else _all_spellings(phone)[0]


def _all_spellings(phone: str) -> tuple[str, ...]:
    if (match := _BRAZILIAN_MOBILE.fullmatch(phone)) is not None:
        area, subscriber = match.groups()
        return (f"+55{area}9{subscriber}", f"+55{area}{subscriber}")
    for pattern, prefixes in _OLD_AND_NEW:
        if (match := pattern.fullmatch(phone)) is not None:
            return tuple(prefix + match[1] for prefix in prefixes)
    return (phone,)
