"""The forms under which the database may have a person's number."""

from __future__ import annotations

from functools import lru_cache

from outreach.rules.numbering import former_readings
from outreach.rules.spellings import spellings


@lru_cache(maxsize=4096)
def stored_forms(phone: str, default_region: str | None) -> tuple[str, ...]:
    """Return all forms in which a workspace may have stored the number of the person at `phone`, itself first.

    These are the spellings of the line, and what they were read as before readings were compared: 529b10ce took
    `4915123456701` in Germany for `+494915123456701`. An entry under such a form was made for this person.

    Args:
        phone: The number in E.164, or what stands for an erased one.
        default_region: The region of the workspace.
    """
    found = spellings(phone)
    if default_region is None or phone[:1] != "+":
        return found
    former = [form for each in found for form in former_readings(each, default_region)]
    return tuple(dict.fromkeys((*found, *former))) if former else found
