"""All that can be done with campaigns, as one service: `engine.campaigns`.

It is composed of parts, one class for each concern: a method that callers see is one line here, and stands in its part.
"""

from __future__ import annotations

from outreach.core.vault import Vault
from outreach.insight.approvals import CampaignApprovals
from outreach.insight.blockers import CampaignBlockers
from outreach.insight.clock import CampaignClock
from outreach.insight.forecast import CampaignForecast
from outreach.insight.live import LiveCampaigns
from outreach.insight.preflight import CampaignPreflight
from outreach.insight.reports import CampaignExports, CampaignReports
from outreach.services.campaigns.adding import CampaignAdditions
from outreach.services.campaigns.audience import AudienceCounting
from outreach.services.campaigns.changes import CampaignChanges
from outreach.services.campaigns.copies import CampaignCopies
from outreach.services.campaigns.loading import CampaignCreation
from outreach.services.campaigns.moves import CampaignMoves
from outreach.services.campaigns.recipients import CampaignRecipients
from outreach.services.campaigns.recovering import CampaignRecovery
from outreach.services.context import ServiceContext
from outreach.services.messaging.failures import CampaignResults
from outreach.services.parts import method_of
from outreach.services.registers.erasure import CampaignDeletion


class Campaigns:
    """The campaigns of workspaces."""

    def __init__(self, context: ServiceContext, vault: Vault, creation: CampaignCreation) -> None:
        self._creation = creation
        self._copies = CampaignCopies(context, creation)
        self._additions = CampaignAdditions(context, creation)
        self._audience = AudienceCounting(context)
        self._moves = CampaignMoves(context, vault, price=lambda *place: self._approvals.price(*place))
        self._changes = CampaignChanges(context)
        self._deletion = CampaignDeletion(context)
        self._recipients = CampaignRecipients(context)
        self._recovery = CampaignRecovery(context)
        self._blockers = CampaignBlockers(context)
        self._live = LiveCampaigns(context)
        self._forecast = CampaignForecast(context)
        self._clock = CampaignClock(self._forecast)
        self._preflight = CampaignPreflight(
            context,
            start_problems=self._moves.start_problems,
            draft_problems=self._moves.draft_problems,
            forecasting=self._forecast.begin_new,
            draft_of=creation.draft_of,
        )
        self._approvals = CampaignApprovals(
            context, preflight=self._preflight.preflight, forecast=self._forecast.forecast
        )
        self._results = CampaignResults(context)
        self._reports = CampaignReports(context)
        self._exports = CampaignExports(context)

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
