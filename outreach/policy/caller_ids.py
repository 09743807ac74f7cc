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

    Raises:
        ValueError: The group has no place to give.
    """
    places = [entry.phone_e164 for entry in group for _ in range(entry.count)]
    if not places:
        raise ValueError("A caller-ID group needs at least one entry with a count of at least 1.")
    return places[assigned % len(places)]
