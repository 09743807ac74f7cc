"""The services of an engine. Each is imported and made when it is first used, so that a program loads what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from outreach.models.resources import RESOURCES

if TYPE_CHECKING:
    from outreach.campaigns import Campaigns
    from outreach.core.vault import Vault
    from outreach.insight.diagnosis.query import DiagnosisQuery
    from outreach.insight.readiness import ReadinessProbe
    from outreach.insight.status import FiguresQuery, StatusQuery
    from outreach.models.health import DispatcherHealth
    from outreach.models.workspace import Workspace
    from outreach.protocols.storage import Storage
    from outreach.protocols.voice import Analyser
    from outreach.providers.pool import AccountConnections, ProviderPool
    from outreach.services.campaigns.loading import CampaignCreation
    from outreach.services.context import ServiceContext
    from outreach.services.messaging.callbacks import Callbacks
    from outreach.services.messaging.calls import Calls
    from outreach.services.messaging.dispatches import Dispatches
    from outreach.services.messaging.events import Events
    from outreach.services.messaging.messages import Messages
    from outreach.services.messaging.simulating import Simulating
    from outreach.services.registers.contacts import Contacts
    from outreach.services.registers.erasure import Erasure
    from outreach.services.registers.unreachable import UnreachableNumbers
    from outreach.services.registers.unsubscribes import Unsubscribes
    from outreach.services.registers.uploads import Uploads
    from outreach.services.tenants.accounts import Accounts
    from outreach.services.tenants.api_keys import ApiKeyCache, ApiKeys
    from outreach.services.tenants.audit import Audit
    from outreach.services.tenants.prices import Prices
    from outreach.services.tenants.request_limits import HttpOperations, RateLimiter
    from outreach.services.tenants.resources import ResourceServices
    from outreach.services.tenants.settings import CallingSettings, Replies, Settings
    from outreach.services.tenants.workspaces import Workspaces
    from outreach.services.users.context import UserContext
    from outreach.services.users.sessions import Sessions
    from outreach.services.users.users import Users
else:
    ResourceServices = object

K = TypeVar("K", bound="EngineServices")


def _with_resources(kind: type[K]) -> type[K]:
    """Add the services of what a workspace's owner sets up, which follow from the definitions."""
    for noun in RESOURCES:
        service = cached_property(_maker(noun))
        service.__set_name__(kind, f"{noun}s")
        setattr(kind, f"{noun}s", service)
    return kind


def _maker(noun: str) -> Callable[[EngineServices], Any]:
    name = f"{noun}s"

    def make(services: EngineServices) -> Any:
        from outreach.services.tenants.resources import RESOURCE_SERVICES

        return RESOURCE_SERVICES[name](services._context, services._vault)

    make.__doc__ = f"The {name} of workspaces."
    return make


@_with_resources
class EngineServices(ResourceServices):
    """The services of an engine, with those of `ResourceServices`, for the resources of a workspace's owner."""

    _context: ServiceContext

    _storage: Storage
    _vault: Vault
    _connections: AccountConnections
    _analyser: Analyser
    _database_url: str | None

    if TYPE_CHECKING:

        def health(self) -> DispatcherHealth:
            """Return how dispatching is in this process."""

        def _pool_of(self, workspace: Workspace) -> ProviderPool: ...

    @cached_property
    def workspaces(self) -> Workspaces:
        """The tenants."""
        from outreach.services.tenants.workspaces import Workspaces

        return Workspaces(self._context, self._known_keys)

    @cached_property
    def api_keys(self) -> ApiKeys:
        """Their API keys."""
        from outreach.services.tenants.api_keys import ApiKeys

        return ApiKeys(self._context, self._known_keys)

    @cached_property
    def audit(self) -> Audit:
        """The audit trail."""
        from outreach.services.tenants.audit import Audit

        return Audit(self._context)

    @cached_property
    def users(self) -> Users:
        """The users of the console, with their rights."""
        from outreach.services.users.users import Users

        return Users(self._user_context)

    @cached_property
    def sessions(self) -> Sessions:
        """Their logins."""
        from outreach.services.users.sessions import Sessions

        return Sessions(self._user_context)

    @cached_property
    def sms_settings(self) -> Settings:
        """Settings of SMS campaigns."""
        from outreach.services.tenants.settings import Settings

        return Settings(self._context)

    @cached_property
    def call_settings(self) -> CallingSettings:
        """Settings of calling campaigns."""
        from outreach.services.tenants.settings import CallingSettings

        return CallingSettings(self._context)

    @cached_property
    def reply_settings(self) -> Replies:
        """The answers to STOP, START and HELP."""
        from outreach.services.tenants.settings import Replies

        return Replies(self._context)

    @cached_property
    def prices(self) -> Prices:
        """The prices of messages and calls, for the estimates of a preflight."""
        from outreach.services.tenants.prices import Prices

        return Prices(self._context)

    @cached_property
    def unsubscribes(self) -> Unsubscribes:
        """The unsubscribe register."""
        from outreach.services.registers.unsubscribes import Unsubscribes

        return Unsubscribes(self._context)

    @cached_property
    def unreachable_numbers(self) -> UnreachableNumbers:
        """Numbers that providers have reported as unreachable."""
        from outreach.services.registers.unreachable import UnreachableNumbers

        return UnreachableNumbers(self._context)

    @cached_property
    def contacts(self) -> Contacts:
        """Everything with one number."""
        from outreach.services.registers.contacts import Contacts

        return Contacts(self._context)

    @cached_property
    def erasure(self) -> Erasure:
        """Erasing people, and what workspaces keep no longer."""
        from outreach.services.registers.erasure import Erasure

        return Erasure(self._context)

    @cached_property
    def uploads(self) -> Uploads:
        """Files that arrive in chunks, and are deleted after a day."""
        from outreach.services.registers.uploads import Uploads

        return Uploads(self._context)

    @cached_property
    def campaigns(self) -> Campaigns:
        """Campaigns: creating, reading, starting and stopping them, and what they came to."""
        from outreach.campaigns import Campaigns

        return Campaigns(
            self._context,
            self._vault,
            creation=lambda: self._creation,
            pool_of=self._pool_of,
            analyser=self._analyser,
        )

    @cached_property
    def calls(self) -> Calls:
        """Single calls."""
        from outreach.services.messaging.calls import Calls

        return Calls(self._context)

    @cached_property
    def messages(self) -> Messages:
        """Single messages, and those that people write back."""
        from outreach.services.messaging.messages import Messages

        return Messages(self._context)

    @cached_property
    def simulate(self) -> Simulating:
        """Simulates a reply, a receipt or the end of a call in a sandbox.

        `await engine.simulate(workspace_id, NewSimulation(...))`
        """
        from outreach.services.messaging.simulating import Simulating

        return Simulating(self._context, self.messages, self._analyser)

    @cached_property
    def dispatches(self) -> Dispatches:
        """Requests whose outcome is unknown."""
        from outreach.services.messaging.dispatches import Dispatches

        return Dispatches(self._context, self._pool_of, self._analyser)

    @cached_property
    def accounts(self) -> Accounts:
        """Accounts at carriers and voice providers."""
        from outreach.services.tenants.accounts import Accounts

        return Accounts(self._context, self._vault, self._connections)

    @cached_property
    def callbacks(self) -> Callbacks:
        """The callbacks of providers."""
        from outreach.services.messaging.callbacks import Callbacks

        return Callbacks(self._context, self._connections, self._analyser)

    @cached_property
    def events(self) -> Events:
        """The events of the engine, delivered after their commit."""
        from outreach.services.messaging.events import Events

        return Events(self._context)

    @cached_property
    def http(self) -> HttpOperations:
        """The same for applications that serve it over HTTP themselves: stored responses, request limits."""
        from outreach.services.campaigns.pages import CampaignPageCache
        from outreach.services.tenants.request_limits import HttpOperations

        return HttpOperations(pages=CampaignPageCache(self._context), rate_limits=self._rate_limits)

    @cached_property
    def status(self) -> StatusQuery:
        """Returns who dispatches, what runs and what needs a person.

        `await engine.status(workspace_id)` does so for one workspace; without an argument, for all.
        """
        from outreach.insight.status import StatusQuery

        return StatusQuery(self._context, self._vault)

    @cached_property
    def diagnose(self) -> DiagnosisQuery:
        """`await engine.diagnose()` returns what is wrong with the set-up and the data, and what fixes it."""
        from outreach.insight.diagnosis.query import DiagnosisQuery

        return DiagnosisQuery(
            self._context,
            storage=self._storage,
            vault=self._vault,
            connections=self._connections,
            status=self.status,
            database_url=self._database_url,
        )

    @cached_property
    def readiness(self) -> ReadinessProbe:
        """`await engine.readiness()` returns whether this process can do its work now."""
        from outreach.insight.readiness import ReadinessProbe

        return ReadinessProbe(
            loop_guard=self._context.loop_guard,
            storage=self._storage,
            clock=self._context.clock,
            health=self.health,
            log_throttle=self._context.log_throttle,
            adapters=self._context.adapters,
        )

    @cached_property
    def figures(self) -> FiguresQuery:
        """`await engine.figures()` counts what is open in the whole database, for metrics."""
        from outreach.insight.status import FiguresQuery

        return FiguresQuery(self._context)

    @cached_property
    def _known_keys(self) -> ApiKeyCache:
        from outreach.services.tenants.api_keys import ApiKeyCache

        return ApiKeyCache(self._context.clock)

    @cached_property
    def _user_context(self) -> UserContext:
        from outreach.core.passwords import PasswordHasher
        from outreach.services.users.context import UserContext

        return UserContext(services=self._context, vault=self._vault, hasher=PasswordHasher())

    @cached_property
    def _creation(self) -> CampaignCreation:
        from outreach.services.campaigns.loading import CampaignCreation

        return CampaignCreation(self._context)

    @cached_property
    def _rate_limits(self) -> RateLimiter:
        from outreach.services.tenants.request_limits import RateLimiter

        return RateLimiter(self._context)

    def _import_services(self) -> Iterator[None]:
        """Make all services, one before each step: an import at the first use would hold the event loop up."""
        for name, member in vars(EngineServices).items():
            if isinstance(member, cached_property):
                getattr(self, name)
                yield
        for _ in self.campaigns._import_parts():
            yield
        # The pool of providers imports it when the first account is connected.
        from outreach.providers import redaction  # noqa: F401
