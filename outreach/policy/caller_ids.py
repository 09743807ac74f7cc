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
    total = sum(entry.count for entry in group)
    if not total:
        raise ValueError("A caller-ID group needs at least one entry with a count of at least 1.")
    # Counted and not laid out: counts may be a million, and this is asked for every call inside a transaction.
    turn = assigned % total
    for entry in group[:-1]:
        if turn < entry.count:
            return entry.phone_e164
        turn -= entry.count
    return group[-1].phone_e164
