"""The list of a new campaign: how it overlaps with other campaigns, and who is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from outreach.errors import InvalidRequest
from outreach.ledger.common import workspace_of
from outreach.models.audience import AudienceCounts, CampaignOverlap, LeaveOut, LeaveOutCause
from outreach.models.campaign import Campaign, PreparedRecipient
from outreach.rules.phones import PersonSet
from outreach.services.campaigns.contacts import RecipientSource, chunks
from outreach.services.context import ServiceContext, check_kind
from outreach.storage.unit_of_work import Transaction

_BATCH: Final = 1000
_NEWEST: Final = 10


async def default_region_of(context: ServiceContext, workspace_id: str) -> str | None:
    """Return the region that a workspace's local numbers are read in."""
    return await context.storage.read(lambda tx: workspace_of(tx, workspace_id).default_region)


class Audience:
    """Looks a list up in other campaigns, chunk by chunk, and adds up what it finds.

    Args:
        context: What services share.
        workspace_id: The workspace.
        leave_out: Whom to leave out.
        source_id: The campaign whose contacts the list is or becomes, which is not looked at.
    """

    def __init__(
        self, context: ServiceContext, workspace_id: str, leave_out: LeaveOut, *, source_id: str | None = None
    ) -> None:
        check_kind("leave_out", leave_out, LeaveOut)
        self._context = context
        self._workspace_id = workspace_id
        self._leave_out = leave_out
        self._source_id = source_id
        days = leave_out.contacted_within_days
        self._since = None if days is None else context.now() - timedelta(days=days)
        self._newest: Sequence[Campaign] | None = None
        self._named: Sequence[Campaign] = ()
        self._seen = PersonSet()
        self._contacts = 0
        self._left_out: Counter[LeaveOutCause] = Counter()
        self._members: Counter[str] = Counter()
        self._contacted = 0

    async def remaining(
        self, recipients: RecipientSource, *, default_region: Callable[[], Awaitable[str | None]]
    ) -> AsyncIterator[Sequence[PreparedRecipient]]:
        """Iterate over the contacts who are not left out, in chunks."""
        async for chunk in chunks(recipients, default_region=default_region, size=_BATCH):
            causes = await self.look(chunk)
            rest = [contact for contact, cause in zip(chunk, causes, strict=True) if cause is None]
            if rest:
                yield rest

    async def look(self, chunk: Sequence[PreparedRecipient]) -> Sequence[LeaveOutCause | None]:
        """Return why each of some contacts is left out, if it is, and count them.

        Raises:
            InvalidRequest: A campaign to leave out does not exist, or its contacts cannot be looked up.
        """
        phones = {contact.phone for contact in chunk if contact.phone is not None}
        members, contacted = await self._context.storage.read(partial(self._read, phones=phones))
        named = {phone for campaign in self._named for phone in members[campaign.id]}
        causes: list[LeaveOutCause | None] = []
        for contact in chunk:
            phone = contact.phone
            if phone is None:
                causes.append(None)
                continue
            if self._seen.add(phone):
                self._members.update(id_ for id_, found in members.items() if phone in found)
                self._contacted += phone in contacted
            in_named: LeaveOutCause | None = "in_other_campaign" if phone in named else None
            causes.append(in_named or ("contacted_recently" if phone in contacted else None))
        self._contacts += len(chunk)
        self._left_out.update(cause for cause in causes if cause is not None)
        return causes

    async def counts(self) -> AudienceCounts:
        """Return the counts of the contacts that were looked at."""
        if self._newest is None:
            # An empty list was not looked at.
            await self.look(())
        return self.counted()

    def counted(self) -> AudienceCounts:
        """Return the same after at least one look."""
        named = {campaign.id for campaign in self._named}
        others = [campaign for campaign in self._newest or () if campaign.id not in named]
        return AudienceCounts(
            contacts=self._contacts,
            people=len(self._seen),
            left_out=self._left_out.total(),
            campaigns=tuple(
                CampaignOverlap(
                    campaign_id=campaign.id,
                    name=campaign.name,
                    people=self._members[campaign.id],
                    left_out=campaign.id in named,
                )
                for campaign in [*self._named, *others]
            ),
            contacted=None if self._since is None else self._contacted,
        )

    def nobody_left(self) -> InvalidRequest:
        """Return the error for a list in which everybody is left out."""
        causes = [
            *(f"{one.people:,} in {one.name!r}" for one in self.counted().campaigns if one.left_out and one.people),
            *([f"{self._contacted:,} contacted within the days"] if self._contacted else ()),
        ]
        return InvalidRequest.at(
            "leave_out", f"leaves out every contact: {', '.join(causes)}; leave out fewer, or take other contacts"
        )

    @property
    def leaves_out(self) -> bool:
        """Whether anybody was left out so far."""
        return bool(self._left_out)

    def _read(self, tx: Transaction, phones: Collection[str]) -> tuple[Mapping[str, Collection[str]], Collection[str]]:
        """Return which numbers each campaign has, and which were contacted lately."""
        workspace_id = workspace_of(tx, self._workspace_id).id
        # Each time, as one may have been removed meanwhile.
        named = [self._campaign(tx, index, id_) for index, id_ in enumerate(dict.fromkeys(self._leave_out.campaigns))]
        newest = self._newest
        if newest is None:
            page, _ = tx.campaign_lists.page(workspace_id, limit=_NEWEST + 1)
            others = [one.campaign() for one in page if one.id != self._source_id]
            newest = [one for one in others if self._is_here(tx, one)][:_NEWEST]
        self._named, self._newest = named, newest
        members = {
            campaign.id: tx.recipients.known_phones(workspace_id, campaign.id, phones) for campaign in [*named, *newest]
        }
        since = self._since
        return members, () if since is None else tx.dispatches.contacted(workspace_id, phones, since=since)

    def _campaign(self, tx: Transaction, index: int, campaign_id: str) -> Campaign:
        path = f"leave_out.campaigns[{index}]"
        campaign = tx.campaigns.get(self._workspace_id, campaign_id)
        if campaign is None:
            raise InvalidRequest.at(path, "the workspace has no such campaign")
        if campaign.id == self._source_id:
            raise InvalidRequest.at(path, "is the campaign itself; name other ones")
        if not self._is_here(tx, campaign):
            raise InvalidRequest.at(
                path, "its contacts were erased or moved to an archive, so nobody is recognised; do not name it"
            )
        return campaign

    def _is_here(self, tx: Transaction, campaign: Campaign) -> bool:
        """Return whether the contacts of a campaign are in the database."""
        return campaign.erased_at is None and tx.archives.of_campaign(self._workspace_id, campaign.id) is None


class AudienceCounting:
    """Counts how a list overlaps with other campaigns, before its campaign exists."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def count_audience(
        self, workspace_id: str, recipients: RecipientSource, *, leave_out: LeaveOut | None = None
    ) -> AudienceCounts:
        """Return how many people of a list are in which other campaigns, and how many a creation would leave out.

        Nothing is created. The list is streamed: 1,000,000 contacts take some 30 MB.

        Args:
            workspace_id: The workspace.
            recipients: The contacts, as `create_sms` and `create_call` take them.
            leave_out: Whom the campaign would leave out; the campaigns that it names are counted too.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A contact breaks a rule, or a campaign to leave out does not exist.
        """
        context = self._context
        audience = Audience(context, workspace_id, LeaveOut() if leave_out is None else leave_out)
        async for _ in audience.remaining(recipients, default_region=partial(default_region_of, context, workspace_id)):
            pass
        return await audience.counts()
