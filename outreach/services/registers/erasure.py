"""Erasing people from a workspace, and what it keeps no longer."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

import attrs
from anyio import to_thread

from outreach.errors import ArchiveUnavailable
from outreach.ledger.campaigns.reporting import report_of
from outreach.ledger.common import campaign_of, workspace_of
from outreach.ledger.erasure.applying import apply_retention, erase_in_archives
from outreach.ledger.erasure.campaign_deletion import (
    begin_erasure,
    discard,
    erase_slice,
    has_never_started,
    require_deletable,
)
from outreach.ledger.erasure.people import purge_person, require_purgeable
from outreach.ledger.schedules import require_no_schedule
from outreach.models.archive import Archive, PurgeResult, RetentionResult
from outreach.models.campaign import Campaign
from outreach.models.fields import Integer, check_value
from outreach.protocols.ledger_archives import LedgerArchives
from outreach.rules.phones import PSEUDONYM_PREFIX, canonical_phone
from outreach.services.context import ServiceContext, require_phone, require_text
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.tables.erasures import PersonRows

SLICE: Final = 1000
"""Rows that one transaction erases."""

_MAX_PERSON_ROWS: Final = 10_000
_MAX_ROUNDS: Final = 100
_TOKEN_BYTES: Final = 20


class CampaignDeletion:
    """Deleting campaigns."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def delete(self, workspace_id: str, campaign_id: str, *, actor: str = "library") -> Campaign | None:
        """Delete a draft or ready campaign with its contacts, or erase the contacts and texts of an ended one.

        An erased campaign stays with its name, times and figures, archived: its requests are counted, and its report is
        that of the moment before. The unsubscribe register is not changed. What a crash interrupts is finished by the
        next dispatcher, or by `engine.erasure.apply_retention`.

        Returns:
            The erased campaign; None for one that is gone.

        Raises:
            NotFound: The workspace has no such campaign.
            Conflict: It is scheduled, active or paused, or has contacts that are still open, or a schedule repeats it
                or still leaves out whom it has reached.
            ArchiveUnavailable: Its contacts are in an archive that is not there: nothing was erased.
        """
        now = self._context.now()
        storage = self._context.storage

        def begin(tx: Transaction) -> bool:
            campaign = campaign_of(tx, workspace_id, campaign_id)
            require_deletable(campaign)
            require_no_schedule(tx, campaign, now)
            return has_never_started(campaign) and discard(tx, campaign, now=now, actor=actor)

        if await storage.write(begin):
            while not await storage.write(
                lambda tx: tx.campaigns.delete_loading(workspace_id, campaign_id, limit=SLICE), bulk=True
            ):
                pass
            return None
        # Read before, because it may take longer than a transaction that writes.
        await storage.read(lambda tx: _require_archive_of(tx, self._context.archives, workspace_id, campaign_id))
        report = await storage.read(lambda tx: report_of(tx, campaign_of(tx, workspace_id, campaign_id), now))
        erased = await storage.write(lambda tx: begin_erasure(tx, report, now=now, actor=actor))
        while await storage.write(lambda tx: erase_slice(tx, workspace_id, limit=SLICE), bulk=True):
            pass
        await erase_in_archives(storage, self._context.archives, workspace_id)
        return erased


class Erasure:
    """Erasing people."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def purge(self, workspace_id: str, phone: str, *, actor: str = "library") -> PurgeResult:
        """Erase one person from a workspace: names, number, variables, texts, replies, summaries and providers' events.

        Contacts that wait for their turn end as `skipped: erased`. All figures stay as they are. An opt-out stays on
        the register as a hash of the number, so that the person is not contacted again. A stored HTTP response with the
        number is erased: its request is refused when it is repeated, and not carried out again. It reads all single
        messages, calls, events and stored responses of the workspace, and erases in archives too.

        Args:
            workspace_id: The workspace.
            phone: The number in any notation; a local one is read in the workspace's default region.
            actor: Recorded in the audit trail, without the number.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: It is no phone number.
            Conflict: A request to it is on its way, or contacts are being loaded: purge again. Only where that began
                meanwhile, a part was erased.
            ArchiveUnavailable: An archive with contacts of the workspace is not there, or is being written. A part
                may be erased: purge again.
        """
        raw = require_text("phone", phone)
        token = PSEUDONYM_PREFIX + secrets.token_hex(_TOKEN_BYTES)
        salt = secrets.token_hex(_TOKEN_BYTES)
        storage = self._context.storage

        def find(tx: Transaction) -> tuple[str, PersonRows]:
            number = require_phone("phone", canonical_phone(raw, workspace_of(tx, workspace_id).default_region))
            return number, tx.erasures.rows_of_person(workspace_id, number, limit=_MAX_PERSON_ROWS)

        def erase(tx: Transaction) -> PurgeResult:
            now = self._context.now()
            return purge_person(tx, workspace_id, number, found, salt=salt, token=token, now=now, actor=actor)

        async def erase_archived(archives: Sequence[Archive]) -> None:
            if not archives:
                return
            name = await storage.read(lambda tx: tx.register.hashed_name(workspace_id, number, salt=salt)) or token
            try:
                archived.update(
                    await to_thread.run_sync(
                        partial(self._context.archives.erase_person, archives, workspace_id, number, name=name)
                    )
                )
            except ArchiveUnavailable as error:
                raise ArchiveUnavailable(
                    f"{error.message} The person is not erased everywhere: purge again afterwards.",
                    command=error.command,
                ) from error

        archives = await storage.read(lambda tx: _require_archives(tx, self._context.archives, workspace_id))
        number, found = await storage.read(find)
        await storage.read(lambda tx: require_purgeable(tx, workspace_id, found, now=self._context.now()))
        # Before the database, whose audit trail has the purge: one that is cut off between both is not in it.
        archived: Counter[str] = Counter()
        await erase_archived(archives)
        result = await storage.write(erase)
        for _ in range(_MAX_ROUNDS):
            # What came in between.
            number, found = await storage.read(find)
            if not any((found.recipients, found.messages, found.calls, found.callbacks, found.answers)):
                break
            more = await storage.write(erase)
            result = PurgeResult(
                contacts=result.contacts + more.contacts,
                messages=result.messages + more.messages,
                calls=result.calls + more.calls,
                replies=result.replies + more.replies,
                callbacks=result.callbacks + more.callbacks,
                still_opted_out=result.still_opted_out or more.still_opted_out,
            )
        # Again: campaigns may have been moved meanwhile, also into a new archive.
        await erase_archived(await storage.read(lambda tx: tx.archives.list(workspace_id)))
        return attrs.evolve(
            result, contacts=result.contacts + archived["contacts"], calls=result.calls + archived["calls"]
        )

    async def apply_retention(
        self, workspace_id: str | None = None, *, max_slices: int = 100_000, actor: str = "library"
    ) -> RetentionResult:
        """Erase what workspaces with `retention_days` keep no longer; a dispatching engine does so by itself.

        These are contacts and texts of campaigns that ended so many days ago, single messages and calls, inbound
        messages and providers' events; numbers on the register become hashes. Every slice is a transaction of its own.

        Args:
            workspace_id: One workspace; None for all.
            max_slices: The most to do now, at least 1.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `max_slices` is out of its bounds.
        """
        check_value("max_slices", max_slices, Integer(1, 1_000_000))
        storage = self._context.storage
        if workspace_id is not None:
            await storage.read(lambda tx: workspace_of(tx, workspace_id))
        return await apply_retention(
            storage,
            self._context.clock,
            self._context.archives,
            workspace_id=workspace_id,
            actor=actor,
            limit=SLICE,
            max_slices=max_slices,
        )


def _require_archives(tx: Transaction, files: LedgerArchives, workspace_id: str) -> Sequence[Archive]:
    """Return the archives that hold contacts of a workspace, or raise `ArchiveUnavailable` if one cannot be read."""
    found = files.list_archives(tx, workspace_id)
    for one in found:
        if one.problem is not None:
            raise ArchiveUnavailable(
                f"Contacts of this workspace are in an archive too. {one.problem} Nothing was erased."
            )
    return [one.archive for one in found]


def _require_archive_of(tx: Transaction, files: LedgerArchives, workspace_id: str, campaign_id: str) -> None:
    place = tx.archives.of_campaign(workspace_id, campaign_id)
    for one in files.list_archives(tx, workspace_id) if place is not None else ():
        if place is not None and one.archive.id == place.archive_id and one.problem is not None:
            raise ArchiveUnavailable(f"Contacts of this campaign are in an archive. {one.problem} Nothing was erased.")
