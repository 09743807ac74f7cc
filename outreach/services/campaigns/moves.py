"""Moving campaigns from status to status, with the checks of contacts and caller IDs before a start."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, Unpack

import anyio.lowlevel
import attrs

from outreach.core.vault import Vault
from outreach.errors import ConfigError, Problem
from outreach.ledger.campaigns import transitions as moves
from outreach.ledger.campaigns.transitions import (
    find_text_warnings,
    not_installed,
    start_warnings,
    texts_of,
)
from outreach.ledger.common import (
    caller_of,
    campaign_of,
    campaign_unit,
    existing,
    provider_of,
    require_revision,
    workspace_of,
)
from outreach.ledger.provider_throttles import throttle_of_campaign
from outreach.models.account import StoredAccount
from outreach.models.approval import PricedRevision
from outreach.models.base import Page
from outreach.models.campaign import Campaign, CampaignFilters, Counters, Recipient
from outreach.models.resources import Agent
from outreach.models.states import CampaignAction, CampaignStatus, RecipientStatus, WorkspaceMode
from outreach.models.status import StartCheck
from outreach.models.work import IdempotencyKey
from outreach.providers.registry import Adapters
from outreach.rules.column_names import MisreadNumbers
from outreach.rules.readiness import CampaignTexts, is_person
from outreach.rules.rendering import PlaceholderTally, expected_names, values_for
from outreach.services.campaigns.pages import check_filters
from outreach.services.context import ServiceContext, run_concurrently
from outreach.services.idempotency import Idempotency, IdempotencyGuard, finished
from outreach.services.lists import PageRequest, iterate, moment_cursor
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.tables.campaigns import StoredCampaign

MAX_LOOKED_AT: Final = 10_000
"""Rows checked at most, about a second of work, in slices between which other work runs."""

_LEFT: Final = (RecipientStatus.PENDING, RecipientStatus.WAITING)
_SLICE: Final = 500
_FIRST_SLICE: Final = 20
"""Nearly always the first contact fits, which is all that a start needs."""


async def check_contacts(
    context: ServiceContext,
    workspace_id: str,
    campaign_id: str,
    *,
    changed: Campaign | None = None,
    until_one_fits: bool = False,
) -> StartCheck:
    """Return how many of a campaign's first waiting contacts will fail, or lack a value for a placeholder.

    A contact fails because its text is empty or too long.

    Args:
        context: The engine's.
        workspace_id: The workspace.
        campaign_id: The campaign.
        changed: The campaign as it would be; None for as it is.
        until_one_fits: Whether to stop at the first contact that will not fail.

    Raises:
        NotFound: The workspace has no such campaign.
    """
    # Before a start nobody waits.
    statuses = (RecipientStatus.PENDING,) if changed is None else _LEFT
    first_size = _FIRST_SLICE if until_one_fits else _SLICE

    def read(tx: Transaction) -> tuple[Campaign, CampaignTexts, Agent | None, StartCheck, Sequence[Recipient]]:
        campaign = changed or campaign_of(tx, workspace_id, campaign_id)
        unchecked = StartCheck(
            contacts=campaign.counters.open,
            checked=0,
            failures_by_reason={},
            text_warnings=find_text_warnings(tx, campaign),
            warnings=start_warnings(tx, campaign),
        )
        # Of the same snapshot, so that most checks take one.
        first = tx.recipients.page(workspace_id, campaign_id, status=statuses[0], after=-1, limit=first_size)
        return campaign, texts_of(tx, campaign), caller_of(tx, campaign), unchecked, first

    campaign, texts, agent, unchecked, first = await context.storage.read(read)
    failing: Counter[str] = Counter()
    expected = expected_names(agent)
    tally = PlaceholderTally(texts.templates, expected)
    checked = 0
    for status in statuses:
        after, size = -1, first_size
        while (texts.templates or expected) and checked < MAX_LOOKED_AT:
            is_read = after < 0 and status is statuses[0]
            rows = first if is_read else await _rows(context, workspace_id, campaign_id, status, after, size)
            for row in rows:
                checked += 1
                values = values_for(campaign, agent, row)
                tally.see(values, row.position, row.phone_number)
                unsendable_reason = texts.unsendable_reason(values)
                if unsendable_reason is not None:
                    failing[unsendable_reason] += 1
                elif until_one_fits:
                    return attrs.evolve(unchecked, checked=checked, failures_by_reason=dict(failing))
            if len(rows) < size:
                break
            after, size = rows[-1].position, _SLICE
            await anyio.lowlevel.checkpoint()
    return attrs.evolve(
        unchecked, checked=checked, failures_by_reason=dict(failing), placeholder_problems=tally.problems()
    )


async def find_misread_numbers(
    context: ServiceContext, workspace_id: str, campaign_id: str, *, limit: int = MAX_LOOKED_AT
) -> MisreadNumbers:
    """Return how many of a campaign's first open contacts may have been loaded under a wrong number."""
    found = MisreadNumbers()
    for status in _LEFT:
        after = -1
        while found.checked < limit:
            size = min(_SLICE, limit - found.checked)
            rows = await _rows(context, workspace_id, campaign_id, status, after, size)
            found.see(rows)
            if len(rows) < size:
                break
            after = rows[-1].position
            await anyio.lowlevel.checkpoint()
    return found


async def find_unsendable_text(context: ServiceContext, workspace_id: str, campaign_id: str) -> StartCheck | None:
    """Return the check if the text can be sent to none of the contacts; None if it may suit some.

    If there are more contacts than are checked, only a text that is too long without any variables counts.

    Raises:
        NotFound: The workspace has no such campaign.
    """
    found = await check_contacts(context, workspace_id, campaign_id, until_one_fits=True)
    if found.failing < found.checked or not found.checked:
        return None
    if found.checked >= found.contacts:
        return found
    texts = await context.storage.read(lambda tx: texts_of(tx, campaign_of(tx, workspace_id, campaign_id)))
    return found if texts.fits_no_contact() else None


async def _rows(
    context: ServiceContext, workspace_id: str, campaign_id: str, status: RecipientStatus, after: int, limit: int
) -> Sequence[Recipient]:
    return await context.storage.read(
        lambda tx: tx.recipients.page(workspace_id, campaign_id, status=status, after=after, limit=limit)
    )


_Callers = Sequence[tuple[str, str]]
"""The path of each caller ID in problems, and the number."""


async def find_caller_id_problems(
    context: ServiceContext, vault: Vault, find: Callable[[Transaction], Campaign]
) -> Sequence[Problem]:
    """Return why the provider of the campaign that `find` returns cannot be asked, or calls placed as recorded.

    In a sandbox there is no such problem.

    The provider's adapter may not be installed here. A trunk may lack its identifier, at a provider that knows trunks
    by nothing else. Some providers know numbers by ids that the account lists. If any are listed, and for every call
    over a trunk, a caller ID without an id is refused; if none are, a rotation would show the account's one number.
    Credentials that cannot be decrypted give no problem here: the dispatcher reports them.

    Raises:
        NotFound: The workspace has no such campaign.
    """
    adapters = context.adapters

    def operation(tx: Transaction) -> tuple[Sequence[Problem], tuple[Campaign, _Callers, StoredAccount] | None]:
        campaign = find(tx)
        workspace = workspace_of(tx, campaign.workspace_id)
        provider = provider_of(tx, campaign)
        if provider is None or workspace.mode is not WorkspaceMode.LIVE:
            return (), None
        missing = not_installed(workspace, provider, adapters)
        if missing is not None or campaign.channel != "call":
            return () if missing is None else (missing,), None
        account = tx.accounts.of_provider(workspace.id, provider)
        call_check = None if account is None else (campaign, _callers(tx, campaign), account)
        return _unknown_trunk(tx, campaign, provider, adapters), call_check

    found, call_check = await context.storage.read(operation)
    return found if call_check is None else (*found, *_caller_id_problems(*call_check, vault, adapters))


def _unknown_trunk(tx: Transaction, campaign: Campaign, provider: str, adapters: Adapters) -> Sequence[Problem]:
    trunk = tx.trunks.get(campaign.workspace_id, campaign.trunk_id) if campaign.trunk_id else None
    if trunk is None or trunk.provider_trunk_id is not None or not adapters.trunks_by_identifier(provider):
        return ()
    words = f"Its trunk {trunk.name!r} needs its identifier at {provider}."
    return (Problem(path="trunk_id", message=words),)


def _callers(tx: Transaction, campaign: Campaign) -> _Callers:
    if campaign.cli_mode == "group":
        return [(f"cli_group_config[{n}]", entry.phone) for n, entry in enumerate(campaign.cli_group or ())]
    agent = caller_of(tx, campaign)
    return [("agent.from_number", agent.from_number)] if agent is not None and agent.from_number is not None else []


def _caller_id_problems(
    campaign: Campaign, callers: _Callers, account: StoredAccount, vault: Vault, adapters: Adapters
) -> Sequence[Problem]:
    # Imported here, so that a program without calls loads neither it nor httpx.
    from outreach.providers.voice.base import PHONE_NUMBERS, phone_number_ids

    if PHONE_NUMBERS not in adapters.voice(account.provider).fields:
        return ()
    try:
        numbers = phone_number_ids(vault.open(account.id, account.sealed, provider=account.provider))
    except ConfigError:
        return ()
    if not (numbers or campaign.trunk_id is not None or campaign.cli_mode == "group"):
        return ()
    return [
        Problem(
            path=path,
            message=f"The account at {account.provider} has no id for caller ID {phone} ({PHONE_NUMBERS.name}), "
            "so calls cannot be placed from it.",
        )
        for path, phone in callers
        if phone not in numbers
    ]


_MOVES: Final[Mapping[CampaignAction, Callable[..., Campaign]]] = {
    CampaignAction.START: moves.start,
    CampaignAction.UNSCHEDULE: moves.unschedule,
    CampaignAction.PAUSE: moves.pause,
    CampaignAction.RESUME: moves.resume,
    CampaignAction.CANCEL: moves.cancel,
}
"""The function of each move that people make."""


class CampaignMoves:
    """Reads campaigns, and moves them from state to state.

    Args:
        context: The collaborators that services share.
        vault: Reads the credentials of accounts.
        price: Returns what a campaign costs, by workspace and campaign, if its start needs approval by that.
    """

    def __init__(
        self, context: ServiceContext, vault: Vault, *, price: Callable[[str, str], Awaitable[PricedRevision | None]]
    ) -> None:
        self._context = context
        self._vault = vault
        self._price = price
        self._keys = Idempotency(context)

    async def get(self, workspace_id: str, campaign_id: str) -> Campaign:
        """Return a campaign.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await self._context.storage.read(lambda tx: campaign_of(tx, workspace_id, campaign_id))

    async def get_anywhere(self, campaign_id: str) -> Campaign:
        """Return a campaign of any workspace, for operator commands that name a campaign alone.

        Raises:
            NotFound: No campaign has this id.
        """
        return await self._context.storage.read(
            lambda tx: existing(tx.campaigns.find(campaign_id), "campaign", campaign_id)
        )

    async def start_problems(self, workspace_id: str, campaign_id: str) -> Sequence[Problem]:
        """Return all problems that prevent a start now, each with its field.

        `start` raises `CannotStart` with the same. Fields that a draft lacks have the names of `CampaignUpdate`.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        now = self._context.now()
        text_problem, caller_id_problems = await run_concurrently(
            partial(self._unsendable_text, workspace_id, campaign_id),
            partial(self._caller_id_problems, workspace_id, campaign_id),
        )
        return await self._context.storage.read(
            lambda tx: moves.start_obstacles(
                tx,
                campaign_of(tx, workspace_id, campaign_id),
                now,
                unsendable_text=text_problem,
                caller_id_problems=caller_id_problems,
            )
        )

    async def draft_problems(self, draft: Callable[[Transaction], Campaign]) -> Sequence[Problem]:
        """Return all problems that would prevent the start of a campaign that is not created, but for its texts."""
        callers = await find_caller_id_problems(self._context, self._vault, draft)
        now = self._context.now()
        return await self._context.storage.read(
            lambda tx: moves.start_obstacles(tx, draft(tx), now, caller_id_problems=callers)
        )

    async def throttled_until(self, workspace_id: str, campaign_id: str) -> datetime | None:
        """Return until when the provider's throttle stops an active campaign; None without one.

        The throttle holds for the whole workspace at that provider, single messages and calls included.

        Raises:
            NotFound: The workspace has no such campaign.
        """

        def operation(tx: Transaction) -> datetime | None:
            campaign = campaign_of(tx, workspace_id, campaign_id)
            if campaign.status is not CampaignStatus.ACTIVE:
                return None
            throttle = throttle_of_campaign(tx, campaign, self._context.now())
            return throttle.until if throttle is not None else None

        return await self._context.storage.read(operation)

    async def list(
        self,
        workspace_id: str,
        *,
        after: str | None = None,
        limit: int = 100,
        **filters: Unpack[CampaignFilters],
    ) -> Page[Campaign]:
        """Return a page of campaigns, newest first, and how many there are (`total`).

        Args:
            workspace_id: The workspace.
            after: The `next` of the page before; None for the first page.
            limit: The most items, up to 1,000.
            filters: Which campaigns (`CampaignFilters`); archived ones are left out unless `archived` is given.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: An argument is invalid.
        """
        page_request = PageRequest("campaigns", workspace_id, after=after, limit=limit)
        wanted = check_filters({"archived": False, **filters})
        begin = page_request.moment()

        def operation(tx: Transaction) -> tuple[Sequence[StoredCampaign], int]:
            workspace_of(tx, workspace_id)
            return tx.campaign_lists.page(workspace_id, after=begin, limit=limit + 1, **wanted)

        found, total = await self._context.storage.read(operation)
        campaigns = [stored.campaign() for stored in found]
        return page_request.page(campaigns, lambda one: moment_cursor(one.created_at, one.id), total=total)

    def iter_all(self, workspace_id: str, **filters: Unpack[CampaignFilters]) -> AsyncIterator[Campaign]:
        """Iterate over campaigns, newest first; see `list`."""
        return iterate(partial(self.list, workspace_id, **filters))

    async def start(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        allow_unknown_placeholders: bool = False,
        revision: int | None = None,
        idempotency_key: IdempotencyKey[Campaign] = None,
        actor: str = "library",
    ) -> Campaign:
        """Start a ready campaign: it becomes active, or scheduled when its start is still ahead.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            allow_unknown_placeholders: Start although the text has placeholders without a value or a fallback
                (`CampaignCreated.unknown_placeholders`).
            revision: The revision that is to be started; None for whichever it has.
            idempotency_key: A name for this request: for a day, the same key only returns the campaign.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign.
            WorkspaceUnavailable: The workspace is suspended or closed.
            IllegalTransition: The campaign was started before, or has ended.
            Conflict: The campaign has another revision.
            CannotStart: The details name every reason, such as a text that is empty or too long for every contact;
                `start_warnings` names what does not prevent it.
            AwaitsApproval: `actor` is a person, and the start needs the approval of another one (`approval`).
            InvalidRequest: The key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        options = {"allow_unknown_placeholders": allow_unknown_placeholders}
        return await self._move(
            CampaignAction.START, workspace_id, campaign_id, idempotency_key, actor, revision=revision, **options
        )

    async def check_start(self, workspace_id: str, campaign_id: str) -> StartCheck:
        """Return how many of a campaign's contacts would fail because their text is empty or too long.

        Too long is over `SmsSettings.max_segments`, footer included. At most 10,000 contacts are checked.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        found = await check_contacts(self._context, workspace_id, campaign_id)
        misread = await find_misread_numbers(self._context, workspace_id, campaign_id)
        return attrs.evolve(found, warnings=(*found.warnings, *misread.warnings()))

    async def start_warnings(self, workspace_id: str, campaign_id: str) -> Sequence[Problem]:
        """Return what does not prevent a start or a resume, but is most likely a mistake (`StartCheck.warnings`).

        The first 10,000 open contacts are checked.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        found = await self._context.storage.read(
            lambda tx: start_warnings(tx, campaign_of(tx, workspace_id, campaign_id))
        )
        misread = await find_misread_numbers(self._context, workspace_id, campaign_id)
        return (*found, *misread.warnings())

    async def pause(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        idempotency_key: IdempotencyKey[Campaign] = None,
        actor: str = "library",
    ) -> Campaign:
        """Pause a campaign; after this returns, no new message of it is sent.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            idempotency_key: A name for this request: for a day, the same key only returns the campaign.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign.
            IllegalTransition: The campaign's state does not allow it.
            InvalidRequest: The key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        return await self._move(CampaignAction.PAUSE, workspace_id, campaign_id, idempotency_key, actor)

    async def resume(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        idempotency_key: IdempotencyKey[Campaign] = None,
        actor: str = "library",
    ) -> Campaign:
        """Resume a paused campaign; see `pause`.

        Raises:
            OutreachError: See `pause`.
            CannotStart: Its caller ids can no longer be used.
        """
        return await self._move(CampaignAction.RESUME, workspace_id, campaign_id, idempotency_key, actor)

    async def cancel(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        idempotency_key: IdempotencyKey[Campaign] = None,
        actor: str = "library",
    ) -> Campaign:
        """Cancel a campaign for good; see `pause`.

        Raises:
            OutreachError: See `pause`.
        """
        return await self._move(CampaignAction.CANCEL, workspace_id, campaign_id, idempotency_key, actor)

    async def unschedule(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        idempotency_key: IdempotencyKey[Campaign] = None,
        actor: str = "library",
    ) -> Campaign:
        """Take a scheduled campaign back to ready; see `pause`.

        Raises:
            OutreachError: See `pause`.
        """
        return await self._move(CampaignAction.UNSCHEDULE, workspace_id, campaign_id, idempotency_key, actor)

    async def pause_all(self, workspace_id: str | None = None, *, actor: str = "library") -> Sequence[Campaign]:
        """Pause all active and scheduled campaigns of one workspace, or of all; return the paused ones.

        A campaign that has completed is not reopened afterwards (docs/states.md#campaigns).

        Raises:
            NotFound: The workspace does not exist.
        """
        clock = self._context.clock

        def operation(tx: Transaction) -> Sequence[Campaign]:
            return moves.pause_all(tx, workspace_id, now=clock.now(), actor=actor)

        storage = self._context.storage
        paused = await (storage.write(operation) if workspace_id is None else storage.write_in(workspace_id, operation))
        for campaign in paused:
            self._context.wake(campaign_unit(campaign))
        return paused

    async def recount(self, workspace_id: str, campaign_id: str) -> Counters:
        """Count all recipients again and return the counters; they equal the campaign's own.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return await self._context.storage.read_ledger(
            workspace_id,
            campaign_id,
            lambda tx: tx.recipients.recount(workspace_id, campaign_of(tx, workspace_id, campaign_id).id),
        )

    async def _unsendable_text(self, workspace_id: str, campaign_id: str) -> Problem | None:
        """Return why the text can be sent to none of the contacts; None if it can, or if the setup is incomplete."""
        lacks, found = await run_concurrently(
            partial(
                self._context.storage.read,
                lambda tx: moves.missing_setup(tx, campaign_of(tx, workspace_id, campaign_id)),
            ),
            partial(find_unsendable_text, self._context, workspace_id, campaign_id),
        )
        return None if lacks else _reason(found)

    async def _caller_id_problems(self, workspace_id: str, campaign_id: str) -> Sequence[Problem]:
        return await find_caller_id_problems(
            self._context, self._vault, lambda tx: campaign_of(tx, workspace_id, campaign_id)
        )

    async def _move(
        self,
        action: CampaignAction,
        workspace_id: str,
        campaign_id: str,
        idempotency_key: IdempotencyKey[Campaign],
        actor: str,
        *,
        revision: int | None = None,
        **options: bool,
    ) -> Campaign:
        async def make(once: IdempotencyGuard[Campaign]) -> Campaign:
            found: dict[str, Any] = dict(options)
            if action is CampaignAction.START:
                found["unsendable_text"] = await self._unsendable_text(workspace_id, campaign_id)
                found["priced"] = await self._price(workspace_id, campaign_id) if is_person(actor) else None
            if action in {CampaignAction.START, CampaignAction.RESUME}:
                found["caller_id_problems"] = await self._caller_id_problems(workspace_id, campaign_id)

            def operation(tx: Transaction) -> Campaign:
                now = self._context.now()
                if revision is not None:
                    require_revision(campaign_of(tx, workspace_id, campaign_id), revision)
                moved = _MOVES[action](tx, workspace_id, campaign_id, now=now, actor=actor, **found)
                return finished(tx, moved, once)

            campaign = await self._context.storage.write_in(workspace_id, operation)
            self._context.wake(campaign_unit(campaign))
            return campaign

        return await self._keys.model(
            workspace_id,
            f"campaigns.{action.value}",
            idempotency_key,
            content=[campaign_id, options],
            make=make,
            find=lambda tx, found: campaign_of(tx, workspace_id, found),
        )


def _reason(found: StartCheck | None) -> Problem | None:
    if found is None:
        return None
    if found.failures_by_reason.get("over_segment_cap"):
        message = "Its text, with the footer, is over the segment cap (max_segments) for every contact."
        return Problem(path="max_segments", message=message)
    return Problem(path="body", message="Its text is empty for every contact: its placeholders have no values.")
