"""Ledger archives, and the erasure of personal data.

A ledger archive is a file that contacts and requests of ended campaigns were moved into. It has nothing to do with
`Campaign.archived_at`, which hides a campaign from lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import attrs

ArchivingState = Literal["copying", "moving", "archived"]
"""`copying`: the database counts. `moving`: the archive counts, and the rows of the database go. `archived`: they are
gone."""


@attrs.frozen(kw_only=True)
class Archive:
    """A file with contacts and requests of campaigns.

    Attributes:
        id: The identity of the file, wherever it is.
        file: Where it was when it was last written.
        created_at: When the first campaign was moved into it.
        campaigns: How many campaigns it holds, unfinished moves included.
    """

    id: str
    file: str
    created_at: datetime
    campaigns: int


@attrs.frozen(kw_only=True)
class ArchivedLedger:
    """Where the contacts and requests of a campaign are.

    Attributes:
        archive_id: The identity of the file.
        file: Where it was when it was last written.
        state: How far the move has come.
        figures: The report of the moment of the move, as JSON.
    """

    archive_id: str
    file: str
    state: ArchivingState
    figures: str = attrs.field(repr=False)

    @property
    def is_read_there(self) -> bool:
        """Whether the archive counts, and not the database."""
        return self.state != "copying"


@attrs.frozen(kw_only=True)
class ArchivedErasure:
    """A campaign that was erased, and that its archive still has to erase.

    Attributes:
        number: Its number in the database and in the archive.
    """

    workspace_id: str
    campaign_id: str
    number: int
    archive_id: str
    file: str


@attrs.frozen(kw_only=True)
class ArchiveResult:
    """The result of one archive run.

    Attributes:
        file: The archive.
        campaigns: How many campaigns were moved into it, those that an earlier run had begun included.
        rows: How many rows of each table.
        kept_back: Why campaigns that are old enough were not moved, by campaign id.
    """

    file: str
    campaigns: int
    rows: Mapping[str, int]
    kept_back: Mapping[str, str]


@attrs.frozen(kw_only=True)
class ListedArchive:
    """An archive, and whether it is there.

    Attributes:
        archive: The archive.
        problem: Why it cannot be read here, and what to do; None if it can.
        command: The command that fixes it, which the problem names too; None if none does.
    """

    archive: Archive
    problem: str | None
    command: str | None = None


@attrs.frozen(kw_only=True)
class PurgeResult:
    """The number of erased items of one person, by kind.

    Attributes:
        contacts: Places in campaigns.
        messages: Single messages.
        calls: Calls, those of campaigns included.
        replies: Inbound messages.
        callbacks: Providers' events that held the number.
        still_opted_out: Whether the number stays on the unsubscribe register, as a hash.
    """

    contacts: int = 0
    messages: int = 0
    calls: int = 0
    replies: int = 0
    callbacks: int = 0
    still_opted_out: bool = False


@attrs.frozen(kw_only=True)
class RetentionResult:
    """The result of one run of the retention.

    Attributes:
        campaigns: Campaigns whose erasure began.
        slices: Slices of rows that were erased.
        more: Whether something is left for another run.
        unreachable: The faults of archives that still have to erase campaigns, a sentence each.
    """

    campaigns: int
    slices: int
    more: bool
    unreachable: Sequence[str] = ()
