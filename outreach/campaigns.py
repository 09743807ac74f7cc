"""All that can be done with campaigns, as one service: `engine.campaigns`.

It is composed of parts, one class for each concern: a method that callers see is one line here, and stands in its part.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from outreach.services.context import Later, method_of, part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from outreach.core.vault import Vault
    from outreach.insight.approvals import CampaignApprovals
    from outreach.insight.blockers import CampaignBlockers
    from outreach.insight.clock import CampaignClock
    from outreach.insight.forecast import CampaignForecast
    from outreach.insight.live import LiveCampaigns
    from outreach.insight.preflight import CampaignPreflight
    from outreach.insight.reports import CampaignExports, CampaignReports
    from outreach.insight.schedule_runs import ScheduleRuns
    from outreach.models.workspace import Workspace
    from outreach.protocols.voice import Analyser
    from outreach.providers.pool import ProviderPool
    from outreach.services.campaigns.adding import CampaignAdditions
    from outreach.services.campaigns.audience import AudienceCounting
    from outreach.services.campaigns.changes import CampaignChanges
    from outreach.services.campaigns.copies import CampaignCopies
    from outreach.services.campaigns.listing_sent import CampaignSentLists
    from outreach.services.campaigns.loading import CampaignCreation
    from outreach.services.campaigns.moves import CampaignMoves
    from outreach.services.campaigns.recipients import CampaignRecipients
    from outreach.services.campaigns.recovering import CampaignRecovery
    from outreach.services.context import ServiceContext
    from outreach.services.messaging.failures import CampaignResults
    from outreach.services.registers.erasure import CampaignDeletion
else:
    CampaignApprovals = Later("outreach.insight.approvals", "CampaignApprovals")
    CampaignBlockers = Later("outreach.insight.blockers", "CampaignBlockers")
    CampaignClock = Later("outreach.insight.clock", "CampaignClock")
    CampaignForecast = Later("outreach.insight.forecast", "CampaignForecast")
    LiveCampaigns = Later("outreach.insight.live", "LiveCampaigns")
    CampaignPreflight = Later("outreach.insight.preflight", "CampaignPreflight")
    CampaignExports = Later("outreach.insight.reports", "CampaignExports")
    CampaignReports = Later("outreach.insight.reports", "CampaignReports")
    ScheduleRuns = Later("outreach.insight.schedule_runs", "ScheduleRuns")
    CampaignAdditions = Later("outreach.services.campaigns.adding", "CampaignAdditions")
    AudienceCounting = Later("outreach.services.campaigns.audience", "AudienceCounting")
    CampaignChanges = Later("outreach.services.campaigns.changes", "CampaignChanges")
    CampaignCopies = Later("outreach.services.campaigns.copies", "CampaignCopies")
    CampaignCreation = Later("outreach.services.campaigns.loading", "CampaignCreation")
    CampaignMoves = Later("outreach.services.campaigns.moves", "CampaignMoves")
    CampaignRecipients = Later("outreach.services.campaigns.recipients", "CampaignRecipients")
    CampaignSentLists = Later("outreach.services.campaigns.listing_sent", "CampaignSentLists")
    CampaignRecovery = Later("outreach.services.campaigns.recovering", "CampaignRecovery")
    CampaignResults = Later("outreach.services.messaging.failures", "CampaignResults")
    CampaignDeletion = Later("outreach.services.registers.erasure", "CampaignDeletion")


class Campaigns:
    """The campaigns of workspaces."""

    def __init__(
        self,
        context: ServiceContext,
        vault: Vault,
        *,
        creation: Callable[[], CampaignCreation],
        pool_of: Callable[[Workspace], ProviderPool],
        analyser: Analyser,
    ) -> None:
        self._context = context
        self._vault = vault
        self._find_creation = creation
        self._pool_of = pool_of
        self._analyser = analyser

    _audience = part_of(AudienceCounting)
    _changes = part_of(CampaignChanges)
    _deletion = part_of(CampaignDeletion)
    _recipients = part_of(CampaignRecipients)
    _blockers = part_of(CampaignBlockers)
    _live = part_of(LiveCampaigns)
    _forecast = part_of(CampaignForecast)
    _results = part_of(CampaignResults)
    _reports = part_of(CampaignReports)
    _exports = part_of(CampaignExports)

    @cached_property
    def _creation(self) -> CampaignCreation:
        return self._find_creation()

    @cached_property
    def _copies(self) -> CampaignCopies:
        return CampaignCopies(self._context, self._creation)

    @cached_property
    def _additions(self) -> CampaignAdditions:
        return CampaignAdditions(self._context, self._creation)

    @cached_property
    def _moves(self) -> CampaignMoves:
        return CampaignMoves(self._context, self._vault, price=lambda *place: self._approvals.price(*place))

    @cached_property
    def _recovery(self) -> CampaignRecovery:
        return CampaignRecovery(self._context, self._analyser)

    @cached_property
    def _sent_lists(self) -> CampaignSentLists:
        return CampaignSentLists(self._context, self._pool_of)

    @cached_property
    def _clock(self) -> CampaignClock:
        return CampaignClock(self._forecast)

    @cached_property
    def _preflight(self) -> CampaignPreflight:
        return CampaignPreflight(
            self._context,
            start_problems=self._moves.start_problems,
            draft_problems=self._moves.draft_problems,
            forecasting=self._forecast.begin_new,
            draft_of=self._creation.draft_of,
        )

    @cached_property
    def _approvals(self) -> CampaignApprovals:
        return CampaignApprovals(self._context, preflight=self._preflight.preflight, forecast=self._forecast.forecast)

    @cached_property
    def _schedule_runs(self) -> ScheduleRuns:
        return ScheduleRuns(
            self._context, copies=self._copies, preflight=self._preflight.preflight, start=self._moves.start
        )

    def _import_parts(self) -> Iterator[None]:
        """Make all parts, one before each step."""
        for name, member in vars(Campaigns).items():
            if isinstance(member, cached_property):
                getattr(self, name)
                yield

    create_sms = method_of("_creation", CampaignCreation.create_sms)
    create_call = method_of("_creation", CampaignCreation.create_call)

    add_recipients = method_of("_additions", CampaignAdditions.add_recipients)

    count_audience = method_of("_audience", AudienceCounting.count_audience)

    clone = method_of("_copies", CampaignCopies.clone)
    follow_up = method_of("_copies", CampaignCopies.follow_up)

    get = method_of("_moves", CampaignMoves.get)
    get_anywhere = method_of("_moves", CampaignMoves.get_anywhere)
    start_problems = method_of("_moves", CampaignMoves.start_problems)
    throttled_until = method_of("_moves", CampaignMoves.throttled_until)
    list = method_of("_moves", CampaignMoves.list)
    iter_all = method_of("_moves", CampaignMoves.iter_all)
    start = method_of("_moves", CampaignMoves.start)
    check_start = method_of("_moves", CampaignMoves.check_start)
    start_warnings = method_of("_moves", CampaignMoves.start_warnings)
    pause = method_of("_moves", CampaignMoves.pause)
    resume = method_of("_moves", CampaignMoves.resume)
    cancel = method_of("_moves", CampaignMoves.cancel)
    unschedule = method_of("_moves", CampaignMoves.unschedule)
    pause_all = method_of("_moves", CampaignMoves.pause_all)
    recount = method_of("_moves", CampaignMoves.recount)

    update = method_of("_changes", CampaignChanges.update)
    archive = method_of("_changes", CampaignChanges.archive)
    unarchive = method_of("_changes", CampaignChanges.unarchive)
    close = method_of("_changes", CampaignChanges.close)

    delete = method_of("_deletion", CampaignDeletion.delete)

    list_recipients = method_of("_recipients", CampaignRecipients.list_recipients)
    iter_recipients = method_of("_recipients", CampaignRecipients.iter_recipients)
    get_recipient = method_of("_recipients", CampaignRecipients.get_recipient)
    list_appearances = method_of("_recipients", CampaignRecipients.list_appearances)
    iter_appearances = method_of("_recipients", CampaignRecipients.iter_appearances)
    count_recipients = method_of("_recipients", CampaignRecipients.count_recipients)
    skip_recipient = method_of("_recipients", CampaignRecipients.skip_recipient)
    list_dispatches = method_of("_recipients", CampaignRecipients.list_dispatches)
    iter_dispatches = method_of("_recipients", CampaignRecipients.iter_dispatches)
    recipient_history = method_of("_recipients", CampaignRecipients.recipient_history)
    contact_history = method_of("_recipients", CampaignRecipients.contact_history)

    blockers = method_of("_blockers", CampaignBlockers.blockers)
    next_due_times = method_of("_blockers", CampaignBlockers.next_due_times)

    now = method_of("_live", LiveCampaigns.now)
    progress = method_of("_live", LiveCampaigns.progress)

    preflight = method_of("_preflight", CampaignPreflight.preflight)
    preflight_new = method_of("_preflight", CampaignPreflight.preflight_new)
    preview_recipient = method_of("_preflight", CampaignPreflight.preview_recipient)

    forecast = method_of("_forecast", CampaignForecast.forecast)
    forecasts = method_of("_forecast", CampaignForecast.forecasts)
    clock = method_of("_clock", CampaignClock.clock)

    approval = method_of("_approvals", CampaignApprovals.approval)
    approve = method_of("_approvals", CampaignApprovals.approve)

    recipient_failures = method_of("_results", CampaignResults.recipient_failures)
    provider_failures = method_of("_results", CampaignResults.provider_failures)
    count_dispatches = method_of("_results", CampaignResults.count_dispatches)
    iter_outcomes = method_of("_results", CampaignResults.iter_outcomes)

    report = method_of("_reports", CampaignReports.report)

    iter_export = method_of("_exports", CampaignExports.iter_export)
    export = method_of("_exports", CampaignExports.export)

    async def _run_schedule(self, workspace_id: str, schedule_id: str) -> datetime | None:
        """Do what is due for a schedule; see `ScheduleRuns.run`."""
        return await self._schedule_runs.run(workspace_id, schedule_id)
