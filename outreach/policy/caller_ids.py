"""Caller-ID rotation of a calling campaign (interface, section 2.2, `cli_group_config`)."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.models.campaign import CliGroupEntry


def caller_id(group: Sequence[CliGroupEntry], assigned: int) -> str:
    """Return the number for the next recipient.

    Each entry allocates `count` recipients to its number in turn; after the last the first comes again.

    Args:
        group: At least one entry; counts are at least 1.
        assigned: How many recipients have got a number so far.
    """
    place = assigned % sum(entry.count for entry in group)
    for entry in group:
        if place < entry.count:
            return entry.phone_e164
        place -= entry.count
    raise ValueError("A caller-ID group needs at least one entry with a count of at least 1.")
