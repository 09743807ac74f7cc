"""The results of erasing people."""

from __future__ import annotations

from collections.abc import Sequence

import attrs


@attrs.frozen(kw_only=True)
class PurgeResult:
    """What was erased of one person.

    Attributes:
        contacts: Places in campaigns.
        messages: Single messages.
        calls: Calls, those of campaigns included.
        callbacks: Providers' events that held the number.
        still_opted_out: Whether the number stays on the unsubscribe register, as a hash.
    """

    contacts: int = 0
    messages: int = 0
    calls: int = 0
    callbacks: int = 0
    still_opted_out: bool = False


@attrs.frozen(kw_only=True)
class RetentionResult:
    """What one run of the retention did.

    Attributes:
        campaigns: Campaigns whose erasure began.
        slices: Slices of rows that were erased.
        more: Whether something is left for another run.
        unreachable: What is wrong with archives that still have to erase campaigns, a sentence each.
    """

    campaigns: int
    slices: int
    more: bool
    unreachable: Sequence[str] = ()
