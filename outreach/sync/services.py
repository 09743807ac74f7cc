"""The engine and its services for synchronous code.

Each method is that of the asynchronous service, without `await`: a new one needs a line here, a changed one nothing.
Resources with the common methods alone need none (`SyncResourceServices`).
tests/sync/test_methods.py says which is missing.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, overload

from outreach.campaigns import Campaigns as AsyncCampaigns
from outreach.engine import Outreach as AsyncOutreach
from outreach.insight.diagnosis.query import DiagnosisQuery as AsyncDiagnosisQuery
from outreach.insight.readiness import ReadinessProbe as AsyncReadinessProbe
from outreach.insight.status import FiguresQuery as AsyncFiguresQuery
from outreach.insight.status import StatusQuery as AsyncStatusQuery
from outreach.models.events import Event
from outreach.services.messaging.callbacks import Callbacks as AsyncCallbacks
from outreach.services.messaging.calls import Calls as AsyncCalls
from outreach.services.messaging.dispatches import Dispatches as AsyncDispatches
from outreach.services.messaging.events import A, B, C
from outreach.services.messaging.events import Events as AsyncEvents
from outreach.services.messaging.events import EventStream as AsyncEventStream
from outreach.services.messaging.messages import Messages as AsyncMessages
from outreach.services.messaging.named_streams import NamedStream as AsyncNamedStream
from outreach.services.messaging.simulating import Simulating as AsyncSimulating
from outreach.services.registers.contacts import Contacts as AsyncContacts
from outreach.services.registers.erasure import Erasure as AsyncErasure
from outreach.services.registers.unreachable import UnreachableNumbers as AsyncUnreachableNumbers
from outreach.services.registers.unsubscribes import Unsubscribes as AsyncUnsubscribes
from outreach.services.registers.uploads import Uploads as AsyncUploads
from outreach.services.tenants.accounts import Accounts as AsyncAccounts
from outreach.services.tenants.api_keys import ApiKeys as AsyncApiKeys
from outreach.services.tenants.audit import Audit as AsyncAudit
from outreach.services.tenants.prices import Prices as AsyncPrices
from outreach.services.tenants.request_limits import HttpOperations as AsyncHttpOperations
from outreach.services.tenants.resources import RESOURCE_SERVICES, SyncResourceServices
from outreach.services.tenants.resources import Flows as AsyncFlows
from outreach.services.tenants.schedules import Schedules as AsyncSchedules
from outreach.services.tenants.settings import CallingSettings as AsyncCallingSettings
from outreach.services.tenants.settings import Replies as AsyncReplies
from outreach.services.tenants.settings import Settings as AsyncSettings
from outreach.services.tenants.webhooks import Webhooks as AsyncWebhooks
from outreach.services.tenants.workspaces import Workspaces as AsyncWorkspaces
from outreach.services.users.sessions import Sessions as AsyncSessions
from outreach.services.users.users import Users as AsyncUsers
from outreach.sync.lifetime import Lifetime
from outreach.sync.service import Service, awaited, iterated, like, plain, same_parameters, sync_resource
from outreach.sync.streams import EventStream, NamedStream


class ReadinessProbe(Service[AsyncReadinessProbe]):
    """Finds out whether this process is ready; concurrent calls share one write."""

    __call__ = awaited(AsyncReadinessProbe.__call__)


class StatusQuery(Service[AsyncStatusQuery]):
    """Reads the status of one workspace or all; costs the same however much was sent before."""

    __call__ = awaited(AsyncStatusQuery.__call__)


class DiagnosisQuery(Service[AsyncDiagnosisQuery]):
    """Examines the database, the key, accounts, addresses and the work; changes nothing."""

    __call__ = awaited(AsyncDiagnosisQuery.__call__)


class FiguresQuery(Service[AsyncFiguresQuery]):
    """Counts what is open."""

    __call__ = awaited(AsyncFiguresQuery.__call__)


class Simulating(Service[AsyncSimulating]):
    """Simulates replies, receipts and the ends of calls in sandboxes."""

    __call__ = awaited(AsyncSimulating.__call__)


class Workspaces(Service[AsyncWorkspaces]):
    """The tenants of the engine."""

    create = awaited(AsyncWorkspaces.create)
    update = awaited(AsyncWorkspaces.update)
    get = awaited(AsyncWorkspaces.get)
    list = awaited(AsyncWorkspaces.list)
    iter_all = iterated(AsyncWorkspaces.iter_all)


class ApiKeys(Service[AsyncApiKeys]):
    """The API keys of workspaces."""

    create = awaited(AsyncApiKeys.create)
    list = awaited(AsyncApiKeys.list)
    iter_all = iterated(AsyncApiKeys.iter_all)
    get = awaited(AsyncApiKeys.get)
    get_anywhere = awaited(AsyncApiKeys.get_anywhere)
    revoke = awaited(AsyncApiKeys.revoke)
    authenticate = awaited(AsyncApiKeys.authenticate)


class Audit(Service[AsyncAudit]):
    """The audit trail of workspaces, and of operations without one."""

    list = awaited(AsyncAudit.list)
    iter_all = iterated(AsyncAudit.iter_all)
    record = awaited(AsyncAudit.record)


class Users(Service[AsyncUsers]):
    """The users of the console."""

    create = awaited(AsyncUsers.create)
    get = awaited(AsyncUsers.get)
    find = awaited(AsyncUsers.find)
    list = awaited(AsyncUsers.list)
    iter_all = iterated(AsyncUsers.iter_all)
    list_members = awaited(AsyncUsers.list_members)
    iter_members = iterated(AsyncUsers.iter_members)
    get_roles = awaited(AsyncUsers.get_roles)
    update = awaited(AsyncUsers.update)
    set_role = awaited(AsyncUsers.set_role)
    set_operator = awaited(AsyncUsers.set_operator)
    disable = awaited(AsyncUsers.disable)
    enable = awaited(AsyncUsers.enable)
    invite = awaited(AsyncUsers.invite)
    reset = awaited(AsyncUsers.reset)
    open_setup = awaited(AsyncUsers.open_setup)
    get_invitation = awaited(AsyncUsers.get_invitation)
    accept = awaited(AsyncUsers.accept)
    join = awaited(AsyncUsers.join)
    set_up = awaited(AsyncUsers.set_up)
    list_invitations = awaited(AsyncUsers.list_invitations)
    iter_invitations = iterated(AsyncUsers.iter_invitations)
    withdraw_invitation = awaited(AsyncUsers.withdraw_invitation)
    begin_second_factor = awaited(AsyncUsers.begin_second_factor)
    confirm_second_factor = awaited(AsyncUsers.confirm_second_factor)
    remove_second_factor = awaited(AsyncUsers.remove_second_factor)
    renew_recovery_codes = awaited(AsyncUsers.renew_recovery_codes)
    count_recovery_codes = awaited(AsyncUsers.count_recovery_codes)


class Sessions(Service[AsyncSessions]):
    """The sessions of users."""

    sign_in = awaited(AsyncSessions.sign_in)
    begin = awaited(AsyncSessions.begin)
    confirm = awaited(AsyncSessions.confirm)
    find = awaited(AsyncSessions.find)
    verify = awaited(AsyncSessions.verify)
    change_password = awaited(AsyncSessions.change_password)
    renew = awaited(AsyncSessions.renew)
    list = awaited(AsyncSessions.list)
    iter_all = iterated(AsyncSessions.iter_all)
    count_open = awaited(AsyncSessions.count_open)
    end = awaited(AsyncSessions.end)
    end_all = awaited(AsyncSessions.end_all)


class Flows(Service[AsyncFlows]):
    """The automation flows of workspaces."""

    create = awaited(AsyncFlows.create)
    get = awaited(AsyncFlows.get)
    update = awaited(AsyncFlows.update)
    remove = awaited(AsyncFlows.remove)
    list = awaited(AsyncFlows.list)
    iter_all = iterated(AsyncFlows.iter_all)
    count_contacts = awaited(AsyncFlows.count_contacts)


class Schedules(Service[AsyncSchedules]):
    """The schedules of workspaces."""

    create = awaited(AsyncSchedules.create)
    get = awaited(AsyncSchedules.get)
    update = awaited(AsyncSchedules.update)
    remove = awaited(AsyncSchedules.remove)
    list = awaited(AsyncSchedules.list)
    iter_all = iterated(AsyncSchedules.iter_all)
    preview = awaited(AsyncSchedules.preview)
    next_runs = awaited(AsyncSchedules.next_runs)
    pause = awaited(AsyncSchedules.pause)
    resume = awaited(AsyncSchedules.resume)
    run_now = awaited(AsyncSchedules.run_now)
    skip_next = awaited(AsyncSchedules.skip_next)
    approve = awaited(AsyncSchedules.approve)
    list_occurrences = awaited(AsyncSchedules.list_occurrences)
    iter_occurrences = iterated(AsyncSchedules.iter_occurrences)


class Webhooks(Service[AsyncWebhooks]):
    """The webhooks of workspaces."""

    create = awaited(AsyncWebhooks.create)
    get = awaited(AsyncWebhooks.get)
    update = awaited(AsyncWebhooks.update)
    remove = awaited(AsyncWebhooks.remove)
    list = awaited(AsyncWebhooks.list)
    iter_all = iterated(AsyncWebhooks.iter_all)
    pause = awaited(AsyncWebhooks.pause)
    enable = awaited(AsyncWebhooks.enable)
    test = awaited(AsyncWebhooks.test)
    rotate = awaited(AsyncWebhooks.rotate)
    replay = awaited(AsyncWebhooks.replay)
    cursor = awaited(AsyncWebhooks.cursor)
    progress = awaited(AsyncWebhooks.progress)
    list_attempts = awaited(AsyncWebhooks.list_attempts)
    iter_attempts = iterated(AsyncWebhooks.iter_attempts)


class Settings(Service[AsyncSettings]):
    """SMS settings of workspaces (docs/interface.md#2.4 and #4.4)."""

    get = awaited(AsyncSettings.get)
    update = awaited(AsyncSettings.update)


class CallingSettings(Service[AsyncCallingSettings]):
    """Retry settings of workspaces' calling campaigns (docs/rules.md#retry)."""

    get = awaited(AsyncCallingSettings.get)
    update = awaited(AsyncCallingSettings.update)


class Replies(Service[AsyncReplies]):
    """Replies to STOP, START and HELP; unused where the carrier replies itself."""

    get = awaited(AsyncReplies.get)
    effective_texts = awaited(AsyncReplies.effective_texts)
    update = awaited(AsyncReplies.update)


class Prices(Service[AsyncPrices]):
    """The prices of SMS segments and minutes of calls, a table a workspace."""

    get = awaited(AsyncPrices.get)
    update = awaited(AsyncPrices.update)
    remove = awaited(AsyncPrices.remove)


class Uploads(Service[AsyncUploads]):
    """The uploads of workspaces: files that arrive in chunks, and are deleted after a day."""

    create = awaited(AsyncUploads.create)
    add_chunk = awaited(AsyncUploads.add_chunk)
    get = awaited(AsyncUploads.get)
    list = awaited(AsyncUploads.list)
    iter_all = iterated(AsyncUploads.iter_all)
    iter_content = iterated(AsyncUploads.iter_content)
    remove = awaited(AsyncUploads.remove)


class Unsubscribes(Service[AsyncUnsubscribes]):
    """The unsubscribe registers of workspaces."""

    add = awaited(AsyncUnsubscribes.add)
    remove = awaited(AsyncUnsubscribes.remove)
    list_held = awaited(AsyncUnsubscribes.list_held)
    iter_held = iterated(AsyncUnsubscribes.iter_held)
    resolve = awaited(AsyncUnsubscribes.resolve)
    get = awaited(AsyncUnsubscribes.get)
    list = awaited(AsyncUnsubscribes.list)
    iter_all = iterated(AsyncUnsubscribes.iter_all)
    filter_unsubscribed = awaited(AsyncUnsubscribes.filter_unsubscribed)
    import_numbers = awaited(AsyncUnsubscribes.import_numbers, drawn="rows")
    undo_import = awaited(AsyncUnsubscribes.undo_import)


class Contacts(Service[AsyncContacts]):
    """Everything with one number."""

    list_history = awaited(AsyncContacts.list_history)
    iter_history = iterated(AsyncContacts.iter_history)


class Erasure(Service[AsyncErasure]):
    """Erasing people."""

    purge = awaited(AsyncErasure.purge)
    apply_retention = awaited(AsyncErasure.apply_retention)


class Campaigns(Service[AsyncCampaigns]):
    """The campaigns of workspaces."""

    get = awaited(AsyncCampaigns.get)
    get_anywhere = awaited(AsyncCampaigns.get_anywhere)
    start_problems = awaited(AsyncCampaigns.start_problems)
    throttled_until = awaited(AsyncCampaigns.throttled_until)
    list = awaited(AsyncCampaigns.list)
    iter_all = iterated(AsyncCampaigns.iter_all)
    start = awaited(AsyncCampaigns.start)
    check_start = awaited(AsyncCampaigns.check_start)
    clock = awaited(AsyncCampaigns.clock)
    approval = awaited(AsyncCampaigns.approval)
    approve = awaited(AsyncCampaigns.approve)
    start_warnings = awaited(AsyncCampaigns.start_warnings)
    pause = awaited(AsyncCampaigns.pause)
    resume = awaited(AsyncCampaigns.resume)
    cancel = awaited(AsyncCampaigns.cancel)
    unschedule = awaited(AsyncCampaigns.unschedule)
    pause_all = awaited(AsyncCampaigns.pause_all)
    recount = awaited(AsyncCampaigns.recount)
    clone = awaited(AsyncCampaigns.clone)
    follow_up = awaited(AsyncCampaigns.follow_up)
    create_sms = awaited(AsyncCampaigns.create_sms, drawn="recipients")
    create_call = awaited(AsyncCampaigns.create_call, drawn="recipients")
    add_recipients = awaited(AsyncCampaigns.add_recipients, drawn="recipients")
    count_audience = awaited(AsyncCampaigns.count_audience, drawn="recipients")
    recipient_failures = awaited(AsyncCampaigns.recipient_failures)
    provider_failures = awaited(AsyncCampaigns.provider_failures)
    count_dispatches = awaited(AsyncCampaigns.count_dispatches)
    iter_outcomes = iterated(AsyncCampaigns.iter_outcomes)
    blockers = awaited(AsyncCampaigns.blockers)
    next_due_times = awaited(AsyncCampaigns.next_due_times)
    list_recipients = awaited(AsyncCampaigns.list_recipients)
    iter_recipients = iterated(AsyncCampaigns.iter_recipients)
    get_recipient = awaited(AsyncCampaigns.get_recipient)
    list_appearances = awaited(AsyncCampaigns.list_appearances)
    iter_appearances = iterated(AsyncCampaigns.iter_appearances)
    count_recipients = awaited(AsyncCampaigns.count_recipients)
    now = awaited(AsyncCampaigns.now)
    progress = awaited(AsyncCampaigns.progress)
    skip_recipient = awaited(AsyncCampaigns.skip_recipient)
    list_dispatches = awaited(AsyncCampaigns.list_dispatches)
    iter_dispatches = iterated(AsyncCampaigns.iter_dispatches)
    recipient_history = awaited(AsyncCampaigns.recipient_history)
    contact_history = awaited(AsyncCampaigns.contact_history)
    preflight = awaited(AsyncCampaigns.preflight)
    preview_recipient = awaited(AsyncCampaigns.preview_recipient)
    preflight_new = awaited(AsyncCampaigns.preflight_new, drawn="recipients")
    forecast = awaited(AsyncCampaigns.forecast)
    forecasts = awaited(AsyncCampaigns.forecasts)
    report = awaited(AsyncCampaigns.report)
    iter_export = iterated(AsyncCampaigns.iter_export)
    export = iterated(AsyncCampaigns.export)
    update = awaited(AsyncCampaigns.update)
    archive = awaited(AsyncCampaigns.archive)
    unarchive = awaited(AsyncCampaigns.unarchive)
    close = awaited(AsyncCampaigns.close)
    delete = awaited(AsyncCampaigns.delete)


class Calls(Service[AsyncCalls]):
    """Single calls of workspaces (docs/interface.md#4.1)."""

    create = awaited(AsyncCalls.create)
    get = awaited(AsyncCalls.get)
    list = awaited(AsyncCalls.list)
    iter_all = iterated(AsyncCalls.iter_all)
    get_anywhere = awaited(AsyncCalls.get_anywhere)
    transcript = awaited(AsyncCalls.transcript)
    set_outcome = awaited(AsyncCalls.set_outcome)
    failure = awaited(AsyncCalls.failure)


class Messages(Service[AsyncMessages]):
    """Single messages of workspaces: POST /sms. They carry no footer (docs/interface.md#4.4)."""

    send = awaited(AsyncMessages.send)
    send_test = awaited(AsyncMessages.send_test)
    receive = awaited(AsyncMessages.receive)
    list = awaited(AsyncMessages.list)
    iter_all = iterated(AsyncMessages.iter_all)
    list_inbound = awaited(AsyncMessages.list_inbound)
    iter_inbound = iterated(AsyncMessages.iter_inbound)
    get_inbound = awaited(AsyncMessages.get_inbound)
    get = awaited(AsyncMessages.get)
    failure = awaited(AsyncMessages.failure)


class UnreachableNumbers(Service[AsyncUnreachableNumbers]):
    """The numbers that take no messages or no calls, as carriers and voice providers reported."""

    list = awaited(AsyncUnreachableNumbers.list)
    iter_all = iterated(AsyncUnreachableNumbers.iter_all)
    remove = awaited(AsyncUnreachableNumbers.remove)


class Dispatches(Service[AsyncDispatches]):
    """The dispatch ledger, for operators."""

    list_unknown = awaited(AsyncDispatches.list_unknown)
    iter_unknown = iterated(AsyncDispatches.iter_unknown)
    get = awaited(AsyncDispatches.get)
    get_anywhere = awaited(AsyncDispatches.get_anywhere)
    look_up = awaited(AsyncDispatches.look_up)
    resolve = awaited(AsyncDispatches.resolve)
    resolve_many = awaited(AsyncDispatches.resolve_many)
    undo_many = awaited(AsyncDispatches.undo_many)


class Accounts(Service[AsyncAccounts]):
    """The provider accounts of workspaces."""

    providers = plain(AsyncAccounts.providers)
    adapter_problems = plain(AsyncAccounts.adapter_problems)
    credential_fields = plain(AsyncAccounts.credential_fields)
    connect = awaited(AsyncAccounts.connect)
    list = awaited(AsyncAccounts.list)
    iter_all = iterated(AsyncAccounts.iter_all)
    check = awaited(AsyncAccounts.check)
    check_callback = awaited(AsyncAccounts.check_callback)
    throttled_until = awaited(AsyncAccounts.throttled_until)
    get = awaited(AsyncAccounts.get)
    get_anywhere = awaited(AsyncAccounts.get_anywhere)
    remove = awaited(AsyncAccounts.remove)
    rekey = awaited(AsyncAccounts.rekey)


class Callbacks(Service[AsyncCallbacks]):
    """Receives and lists the callbacks of providers."""

    max_body_bytes = awaited(AsyncCallbacks.max_body_bytes)
    receive = awaited(AsyncCallbacks.receive)
    misdirected = awaited(AsyncCallbacks.misdirected)
    get = awaited(AsyncCallbacks.get)
    list = awaited(AsyncCallbacks.list)
    iter_all = iterated(AsyncCallbacks.iter_all)


class Events(Service[AsyncEvents]):
    """The events of the engine, for an embedding application."""

    @overload
    def subscribe(
        self, *, workspace_id: str | None = None, since: int | None = None, name: None = None
    ) -> EventStream[Event]: ...

    @overload
    def subscribe(
        self, kind: type[A], /, *, workspace_id: str | None = None, since: int | None = None, name: None = None
    ) -> EventStream[A]: ...

    @overload
    def subscribe(
        self,
        kind: type[A],
        other: type[B],
        /,
        *,
        workspace_id: str | None = None,
        since: int | None = None,
        name: None = None,
    ) -> EventStream[A | B]: ...

    @overload
    def subscribe(
        self,
        kind: type[A],
        other: type[B],
        third: type[C],
        /,
        *,
        workspace_id: str | None = None,
        since: int | None = None,
        name: None = None,
    ) -> EventStream[A | B | C]: ...

    @overload
    def subscribe(
        self, *kinds: type[Event], workspace_id: str | None = None, since: int | None = None, name: None = None
    ) -> EventStream[Event]: ...

    @overload
    def subscribe(
        self, *, name: str, workspace_id: str | None = None, since: int | None = None
    ) -> NamedStream[Event]: ...

    @overload
    def subscribe(
        self, kind: type[A], /, *, name: str, workspace_id: str | None = None, since: int | None = None
    ) -> NamedStream[A]: ...

    @overload
    def subscribe(
        self, kind: type[A], other: type[B], /, *, name: str, workspace_id: str | None = None, since: int | None = None
    ) -> NamedStream[A | B]: ...

    @overload
    def subscribe(
        self,
        kind: type[A],
        other: type[B],
        third: type[C],
        /,
        *,
        name: str,
        workspace_id: str | None = None,
        since: int | None = None,
    ) -> NamedStream[A | B | C]: ...

    @overload
    def subscribe(
        self, *kinds: type[Event], name: str, workspace_id: str | None = None, since: int | None = None
    ) -> NamedStream[Event]: ...

    @like(AsyncEvents.subscribe)
    def subscribe(  # noqa: D102 - `like` adds it
        self, *kinds: type[Event], name: str | None = None, workspace_id: str | None = None, since: int | None = None
    ) -> EventStream[Any] | NamedStream[Any]:
        running = self._lifetime.running()

        async def function(_: Any) -> AsyncEventStream[Any] | AsyncNamedStream[Any]:
            return self._service.subscribe(*kinds, name=name, workspace_id=workspace_id, since=since)

        stream = running.run(function)
        if isinstance(stream, AsyncNamedStream):
            return NamedStream(running, stream)
        return EventStream(running, stream)

    page = awaited(AsyncEvents.page)
    get_subscription = awaited(AsyncEvents.get_subscription)
    list_subscriptions = awaited(AsyncEvents.list_subscriptions)
    iter_subscriptions = iterated(AsyncEvents.iter_subscriptions)
    remove_subscription = awaited(AsyncEvents.remove_subscription)


class HttpOperations(Service[AsyncHttpOperations]):
    """Operations that only an HTTP interface needs: `Outreach.http`."""

    count_request = awaited(AsyncHttpOperations.count_request)
    list_campaigns = awaited(AsyncHttpOperations.list_campaigns)


class Outreach(SyncResourceServices, Service[AsyncOutreach]):
    """The engine for synchronous code: Django, Flask, scripts.

    It runs on an event loop in a thread of its own, and any thread may call it. Make one for each process, as a global
    of your program or as a context manager:

        engine = Outreach.open("sqlite:///app.db", dispatch=True)
        workspace = engine.workspaces.create(NewWorkspace(name="Acme"))

    The first call opens it, or `start`; the exit of the interpreter closes it, or `close`. A process that is forked
    before the first call opens it anew; one that is forked while it is open gets a `ConfigError`. Calls wait for as
    long as they take, or as `fail_after` gives them.

    Its arguments and its services are those of `outreach.Outreach`.
    """

    @same_parameters(AsyncOutreach)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._serve(AsyncOutreach(*args, **kwargs))

    @classmethod
    @same_parameters(AsyncOutreach.open)
    def open(cls, *args: Any, **kwargs: Any) -> Outreach:
        """Return an engine over the database that a URL names; the first call, or `start`, opens it.

        Its arguments and what it raises are those of `outreach.Outreach.open`.
        """
        found = cls.__new__(cls)
        found._serve(AsyncOutreach.open(*args, **kwargs))
        return found

    now = plain(AsyncOutreach.now)
    health = plain(AsyncOutreach.health)

    def start(self) -> Self:
        """Open the engine in this process now, instead of with the first call; return it.

        Raises:
            ConfigError: It is open already, or was open as this process was forked.
            DatabaseOlder: An older version has written it, and this engine was not to bring it up to date.
            StorageError: The database cannot be used.
        """
        self._lifetime.start()
        return self

    def close(self) -> None:
        """Stop dispatching, letting what is in flight end within the grace, and close the database.

        Calls and streams of other threads end. Any later call is a `ConfigError`, until `start`.
        """
        self._lifetime.close()

    def __enter__(self) -> Self:
        """Open the engine; see `start`."""
        return self.start()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close the engine; see `close`."""
        self.close()

    def _serve(self, engine: AsyncOutreach) -> None:
        lifetime = Lifetime(engine, grace_seconds=engine._config.stop_grace_seconds)
        super().__init__(lifetime, engine)
        for name in SyncResourceServices.__annotations__:
            setattr(self, name, sync_resource(RESOURCE_SERVICES[name])(lifetime, getattr(engine, name)))
        self.readiness = ReadinessProbe(lifetime, engine.readiness)
        self.status = StatusQuery(lifetime, engine.status)
        self.diagnose = DiagnosisQuery(lifetime, engine.diagnose)
        self.figures = FiguresQuery(lifetime, engine.figures)
        self.workspaces = Workspaces(lifetime, engine.workspaces)
        self.api_keys = ApiKeys(lifetime, engine.api_keys)
        self.audit = Audit(lifetime, engine.audit)
        self.users = Users(lifetime, engine.users)
        self.sessions = Sessions(lifetime, engine.sessions)
        self.flows = Flows(lifetime, engine.flows)
        self.schedules = Schedules(lifetime, engine.schedules)
        self.webhooks = Webhooks(lifetime, engine.webhooks)
        self.sms_settings = Settings(lifetime, engine.sms_settings)
        self.call_settings = CallingSettings(lifetime, engine.call_settings)
        self.reply_settings = Replies(lifetime, engine.reply_settings)
        self.prices = Prices(lifetime, engine.prices)
        self.unsubscribes = Unsubscribes(lifetime, engine.unsubscribes)
        self.unreachable_numbers = UnreachableNumbers(lifetime, engine.unreachable_numbers)
        self.contacts = Contacts(lifetime, engine.contacts)
        self.erasure = Erasure(lifetime, engine.erasure)
        self.uploads = Uploads(lifetime, engine.uploads)
        self.campaigns = Campaigns(lifetime, engine.campaigns)
        self.calls = Calls(lifetime, engine.calls)
        self.messages = Messages(lifetime, engine.messages)
        self.simulate = Simulating(lifetime, engine.simulate)
        self.dispatches = Dispatches(lifetime, engine.dispatches)
        self.accounts = Accounts(lifetime, engine.accounts)
        self.callbacks = Callbacks(lifetime, engine.callbacks)
        self.events = Events(lifetime, engine.events)
        self.http = HttpOperations(lifetime, engine.http)
