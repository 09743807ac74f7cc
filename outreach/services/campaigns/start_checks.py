"""Checks of a campaign's contacts before its start: how many can be sent its text, and how many lack a value in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import anyio.lowlevel
import attrs

from outreach.errors import Problem
from outreach.ledger.campaigns.setup import caller_of, find_text_warnings, start_warnings, templates_of
from outreach.ledger.common import campaign_of, settings_of
from outreach.models.campaign import Campaign
from outreach.models.recipient import Recipient
from outreach.models.resources import Agent
from outreach.models.states import RecipientStatus
from outreach.models.status import StartCheck
from outreach.rules.misread_numbers import MisreadNumbers
from outreach.rules.placeholders import PlaceholderTally, expected_names, values_for
from outreach.rules.readiness import CampaignTexts
from outreach.services.context import ServiceContext
from outreach.storage.unit_of_work import Transaction

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


async def find_start_warnings(
    context: ServiceContext, workspace_id: str, campaign_id: str, *, limit: int = MAX_LOOKED_AT
) -> Sequence[Problem]:
    """Return what does not prevent a start or a resume, but is most likely a mistake.

    Raises:
        NotFound: The workspace has no such campaign.
    """
    of_setup = await context.storage.read(lambda tx: start_warnings(tx, campaign_of(tx, workspace_id, campaign_id)))
    return (*of_setup, *(await find_misread_numbers(context, workspace_id, campaign_id, limit=limit)).warnings())


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


def texts_of(tx: Transaction, campaign: Campaign) -> CampaignTexts:
    """Return what a campaign sends, with the settings that decide whether it can be sent."""
    settings = settings_of(tx, campaign.workspace_id)
    return CampaignTexts(
        templates=templates_of(tx, campaign),
        footer=settings.footer,
        max_segments=settings.max_segments,
        replaces=campaign.replace_characters,
    )
