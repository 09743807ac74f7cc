"""A database as a whole: its open work, and the results of backups, checks, copies and restores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import attrs

from outreach.models.dispatch import UnknownDispatchCount
from outreach.models.status import DispatchOverview


@attrs.frozen(kw_only=True)
class Backup:
    """A finished backup.

    Attributes:
        file: Its path.
        size: In bytes.
        key_file: The file with the key of the accounts' credentials, which the backup does not contain; None if none.
    """

    file: Path
    size: int
    key_file: Path | None


@attrs.frozen(kw_only=True)
class Restore:
    """A finished restore.

    Attributes:
        replaced_database: The path of the previous database; of its log, where only that was left; None if there was
            neither.
        pending_migrations: The migrations that the restored database needs.
        key_file: The key file beside the database, which was not changed; None if there is none.
    """

    replaced_database: Path | None
    pending_migrations: Sequence[str]
    key_file: Path | None


@attrs.frozen(kw_only=True)
class Compaction:
    """A database that was replaced by a compact copy of itself.

    Attributes:
        size_before: Bytes of the file before.
        size: Bytes of it now.
        replaced_database: Where the old one was kept; None if it was deleted.
    """

    size_before: int
    size: int
    replaced_database: Path | None


@attrs.frozen(kw_only=True)
class DatabaseCopy:
    """A finished copy of a database.

    Attributes:
        rows: How many rows of each table both databases hold.
        key_file: The file with the key of the accounts' credentials, which the copy does not contain; None if none.
    """

    rows: Mapping[str, int]
    key_file: Path | None


@attrs.frozen(kw_only=True)
class DatabaseCheck:
    """The result of a database check.

    Attributes:
        problems: A sentence each; empty if all is well.
        size: Bytes of the database file.
        log_size: Bytes of the write-ahead log.
        pending_migrations: The migrations that it needs.
        is_archive: Whether it is a ledger archive (`archive_ledgers`).
    """

    problems: Sequence[str]
    size: int
    log_size: int
    pending_migrations: Sequence[str]
    is_archive: bool


class CampaignGroup(NamedTuple):
    """The campaigns in one status.

    Attributes:
        status: `active`, `scheduled` or `paused`.
        pause_reason: Why they were paused; else None.
        campaigns: How many there are.
        pending: Their recipients that were never attempted.
        open: Their recipients that have not ended, the pending ones included.
    """

    status: str
    pause_reason: str | None
    campaigns: int
    pending: int
    open: int


class WebhookLag(NamedTuple):
    """How far a webhook is behind.

    Attributes:
        events: Events that it has not taken, those that it refused included; beyond 1,500 numbers of the feed every
            number counts as one, and at most 1,000 that it refused are counted.
        seconds: How old the oldest of them is; 0 where there is none.
    """

    events: int
    seconds: float


@attrs.frozen(kw_only=True)
class EngineFigures:
    """The open work in the database, in numbers; reading them costs the same however much was sent before.

    Attributes:
        at: The time.
        dispatching: The processes that dispatch.
        campaigns: Campaigns that are active, scheduled or paused.
        waiting: Recipients of active campaigns that wait, by reason; at most `MAX_WAITING_COUNTED` are counted.
        unknown: Dispatches with an unknown outcome; at most `MAX_COUNTED` are counted.
        throttles: Accounts that their providers throttle now, by provider.
        silent: Accounts that get no receipts for longer than usual, by provider.
        schedules_paused: Schedules that the engine has paused; at most a hundred are counted.
        webhooks_disabled: Webhooks that the engine has disabled; at most a hundred are counted.
        webhook_lags: By workspace, of its active webhooks the most events and seconds that one is behind; a hundred
            webhooks are looked at.
        held: Numbers under review; at most a hundred are counted.
        opt_outs: Numbers that came onto the register after `since`, by the source of the entry.
        until: The position in the decision trail: `since` of the next call.
    """

    at: datetime
    dispatching: DispatchOverview
    campaigns: Sequence[CampaignGroup]
    waiting: Mapping[str, int]
    unknown: Sequence[UnknownDispatchCount]
    throttles: Mapping[str, int]
    silent: Mapping[str, int]
    schedules_paused: int
    webhooks_disabled: int
    webhook_lags: Mapping[str, WebhookLag]
    held: int
    opt_outs: Mapping[str, int]
    until: int
