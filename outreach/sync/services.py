"""The engine and its services for synchronous code, written by tests/sync/generate.py: do not edit.

`make sync` writes this file anew after a change of an asynchronous service.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Self, overload

from outreach.clock import Clock
from outreach.config import EngineConfig, SimulatorConfig
from outreach.engine import Outreach as AsyncOutreach
from outreach.errors import ErrorDetail
from outreach.models.account import Account, AdapterProblem, CallbackRecord, Misdirection, Provider, RekeyResult
from outreach.models.archive import PurgeResult, RetentionResult
from outreach.models.base import CarrierName, Channel, JsonPage, Page
from outreach.models.call import Call, NewCall
from outreach.models.campaign import (
    Campaign,
    CampaignCreated,
    CampaignUpdate,
    Counters,
    FollowUpCreated,
    NewCallCampaign,
    NewFollowUp,
    NewSmsCampaign,
)
from outreach.models.campaign_report import CampaignReport, ExportedContact, ExportFormat
from outreach.models.database import EngineFigures
from outreach.models.diagnosis import Diagnosis
from outreach.models.dispatch import Dispatch, DispatchCount, OperatorDecision
from outreach.models.events import Event, EventPage
from outreach.models.forecast import Forecast, ForecastAssumptions
from outreach.models.message import InboundMessage, Message, NewMessage, NewTestMessage
from outreach.models.preflight import Preflight
from outreach.models.prices import PriceTable
from outreach.models.recipient import PreparedRecipient, Recipient, RecipientCount
from outreach.models.reports import ProviderFailure, RecipientOutcome
from outreach.models.resources import (
    Agent,
    AgentUpdate,
    Flow,
    FlowUpdate,
    NewAgent,
    NewFlow,
    NewNumber,
    NewTrunk,
    Number,
    NumberUpdate,
    Trunk,
    TrunkUpdate,
)
from outreach.models.settings import (
    CallSettings,
    CallSettingsUpdate,
    ReplySettings,
    ReplySettingsUpdate,
    ReplyText,
    SmsSettings,
    SmsSettingsUpdate,
)
from outreach.models.states import CampaignStatus, RecipientStatus
from outreach.models.status import CampaignBlocker, DispatcherHealth, EngineStatus, Readiness, StartCheck
from outreach.models.subscription import Subscription
from outreach.models.trail import ContactHistory
from outreach.models.unsubscribe import Unsubscribe, UnsubscribeImport, UnsubscribeScope, UnsubscribeUndo
from outreach.models.work import AuditEntry, IdempotencyKey, RateLimitState
from outreach.models.workspace import (
    DEFAULT_SCOPES,
    ApiAccess,
    ApiKey,
    ApiScope,
    CreatedApiKey,
    NewWorkspace,
    Workspace,
    WorkspaceUpdate,
)
from outreach.protocols.adapter import AccountCheck, AnyAdapter, CredentialField
from outreach.protocols.carrier import Carrier
from outreach.protocols.dispatcher import DispatcherFactory
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.storage import Storage
from outreach.protocols.voice import Analyser, VoiceProvider
from outreach.services.accounts import Accounts as AsyncAccounts
from outreach.services.agents import Agents as AsyncAgents
from outreach.services.api_keys import ApiKeys as AsyncApiKeys
from outreach.services.audit import Audit as AsyncAudit
from outreach.services.callbacks import Callbacks as AsyncCallbacks
from outreach.services.calls import Calls as AsyncCalls
from outreach.services.campaigns import Campaigns as AsyncCampaigns
from outreach.services.contacts import Contact
from outreach.services.diagnosis.query import DiagnosisQuery as AsyncDiagnosisQuery
from outreach.services.dispatches import Dispatches as AsyncDispatches
from outreach.services.erasure import Erasure as AsyncErasure
from outreach.services.events import A, B, C
from outreach.services.events import Events as AsyncEvents
from outreach.services.flows import Flows as AsyncFlows
from outreach.services.http_operations import HttpOperations as AsyncHttpOperations
from outreach.services.messages import Messages as AsyncMessages
from outreach.services.numbers import Numbers as AsyncNumbers
from outreach.services.prices import Prices as AsyncPrices
from outreach.services.readiness import ReadinessProbe as AsyncReadinessProbe
from outreach.services.settings import CallingSettings as AsyncCallingSettings
from outreach.services.settings import Replies as AsyncReplies
from outreach.services.settings import Settings as AsyncSettings
from outreach.services.status import FiguresQuery as AsyncFiguresQuery
from outreach.services.status import StatusQuery as AsyncStatusQuery
from outreach.services.trunks import Trunks as AsyncTrunks
from outreach.services.unsubscribes import Unsubscribes as AsyncUnsubscribes
from outreach.services.workspaces import Workspaces as AsyncWorkspaces
from outreach.sync.service import Engine, Service
from outreach.sync.streams import EventStream, NamedStream
from outreach.vault import Vault

RecipientSource = Iterable[Contact | PreparedRecipient | Sequence[PreparedRecipient]]


class ReadinessProbe(Service[AsyncReadinessProbe]):
    """Finds out whether this process is ready; concurrent calls share one write."""

    def __call__(self) -> Readiness:
        """Write a little, and return the readiness; takes little more than `WRITE_SECONDS`.

        Where the write is not done by then, a server of the database is probed for some seconds.

        Raises:
            ConfigError: The engine was opened elsewhere.
        """
        return self._call(lambda service: service())


class StatusQuery(Service[AsyncStatusQuery]):
    """Reads the status of one workspace or all; costs the same however much was sent before."""

    def __call__(self, workspace_id: str | None = None) -> EngineStatus:
        """Return the current status of a workspace, or of all, with what needs a person.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service(workspace_id))


class DiagnosisQuery(Service[AsyncDiagnosisQuery]):
    """Examines the database, the key, accounts, addresses and the work; changes nothing."""

    def __call__(self, *, network: bool = True) -> Diagnosis:
        """Return what is wrong; takes under two minutes, and may run while others use the database.

        A check that fails is a finding itself (`check_failed`). With the network, some harmless requests are made
        for each account of a live workspace.

        Args:
            network: Whether providers may be asked, and names resolved.

        Raises:
            ConfigError: The engine was opened elsewhere.
        """
        return self._call(lambda service: service(network=network))


class FiguresQuery(Service[AsyncFiguresQuery]):
    """Counts what is open."""

    def __call__(self, since: int | None = None) -> EngineFigures:
        """Return the present figures of the whole database.

        Args:
            since: Count opt-outs after this position; None counts none. `EngineFigures.until` is the next one.
        """
        return self._call(lambda service: service(since))


class Workspaces(Service[AsyncWorkspaces]):
    """The tenants of the engine."""

    def create(self, new: NewWorkspace, *, actor: str = "library") -> Workspace:
        """Create a workspace.

        Args:
            new: The workspace.
            actor: Recorded in the audit trail.

        Raises:
            InvalidRequest: The region is unknown.
        """
        return self._call(lambda service: service.create(new, actor=actor))

    def update(self, workspace_id: str, change: WorkspaceUpdate, *, actor: str = "library") -> Workspace:
        """Change a workspace; a running server applies it within a second.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The region is unknown.
        """
        return self._call(lambda service: service.update(workspace_id, change, actor=actor))

    def get(self, workspace_id: str) -> Workspace:
        """Return a workspace.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.get(workspace_id))

    def list(self, *, after: str | None = None, limit: int = 100) -> Page[Workspace]:
        """Return a page of the workspaces, oldest first.

        Raises:
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list(after=after, limit=limit))

    def iter_all(self) -> Iterator[Workspace]:
        """Iterate over all workspaces, oldest first; see `list`."""
        return self._items(lambda service: service.iter_all())


class ApiKeys(Service[AsyncApiKeys]):
    """The API keys of workspaces."""

    def create(
        self, workspace_id: str, *, name: str = "", scopes: Sequence[ApiScope] = DEFAULT_SCOPES, actor: str = "library"
    ) -> CreatedApiKey:
        """Create an API key; only its SHA-256 is stored, so the result is the only place with the key.

        Args:
            workspace_id: The workspace.
            name: What it is for, up to 255 characters.
            scopes: What it may do, at least one of `send`, `manage` and `read` (docs/managing.md#scopes).
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The name is too long, or the scopes are none.
        """
        return self._call(lambda service: service.create(workspace_id, name=name, scopes=scopes, actor=actor))

    def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[ApiKey]:
        """Return a page of a workspace's keys, revoked ones included, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list(workspace_id, after=after, limit=limit))

    def iter_all(self, workspace_id: str) -> Iterator[ApiKey]:
        """Iterate over a workspace's keys, revoked ones included, oldest first; see `list`."""
        return self._items(lambda service: service.iter_all(workspace_id))

    def get(self, workspace_id: str, key_id: str) -> ApiKey:
        """Return a key, revoked or not.

        Raises:
            NotFound: The workspace has no such key.
        """
        return self._call(lambda service: service.get(workspace_id, key_id))

    def get_anywhere(self, key_id: str) -> ApiKey:
        """Return a key of any workspace, for operator commands that name a key alone.

        Raises:
            NotFound: No key has this id.
        """
        return self._call(lambda service: service.get_anywhere(key_id))

    def revoke(self, workspace_id: str, key_id: str, *, actor: str = "library") -> ApiKey:
        """Revoke a key: in this process at once, in others within a second.

        Raises:
            NotFound: The workspace has no such key.
        """
        return self._call(lambda service: service.revoke(workspace_id, key_id, actor=actor))

    def authenticate(self, api_key: str) -> ApiAccess:
        """Return the workspace of a key, whatever its status, and what the key may do there.

        A result is cached for half a second; a key revoked in this process stops working at once. The lookup by digest
        leaks nothing through timing: an attacker could learn only about the digest of what he sent.

        Raises:
            Unauthorized: The key is malformed, unknown or revoked.
        """
        return self._call(lambda service: service.authenticate(api_key))


class Audit(Service[AsyncAudit]):
    """The audit trail of workspaces, and of operations without one."""

    def list(self, workspace_id: str | None = None, *, after: str | None = None, limit: int = 100) -> Page[AuditEntry]:
        """Return a page of the audit entries, newest first: of a workspace, or with None of all and of none.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list(workspace_id, after=after, limit=limit))

    def iter_all(self, workspace_id: str | None = None) -> Iterator[AuditEntry]:
        """Iterate over the audit entries of a workspace or of all, newest first; see `list`."""
        return self._items(lambda service: service.iter_all(workspace_id))

    def record(self, workspace_id: str | None, *, actor: str, action: str, subject: str) -> None:
        """Append an embedding application's action to the audit trail.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.record(workspace_id, actor=actor, action=action, subject=subject))


class Agents(Service[AsyncAgents]):
    """The voice agents of workspaces."""

    def create(
        self, workspace_id: str, new: NewAgent, *, idempotency_key: IdempotencyKey[Agent] = None, actor: str = "library"
    ) -> Agent:
        """Create an agent.

        Args:
            workspace_id: The workspace.
            new: The agent.
            idempotency_key: A name for this agent, such as `order-42`: for a day, the same key returns this agent.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A value is out of its bounds, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        return self._call(
            lambda service: service.create(workspace_id, new, idempotency_key=idempotency_key, actor=actor)
        )

    def update(self, workspace_id: str, agent_id: str, change: AgentUpdate, *, actor: str = "library") -> Agent:
        """Change an agent; campaigns that have not started become ready or draft by whether it can place calls.

        Raises:
            NotFound: The workspace has no such agent.
            InvalidRequest: A value is out of its bounds.
        """
        return self._call(lambda service: service.update(workspace_id, agent_id, change, actor=actor))

    def remove(self, workspace_id: str, agent_id: str, *, actor: str = "library") -> Agent:
        """Remove an agent; ended campaigns and calls keep its id.

        Raises:
            NotFound: The workspace has no such agent.
            Conflict: A campaign or a call that has not ended uses it.
        """
        return self._call(lambda service: service.remove(workspace_id, agent_id, actor=actor))

    def get(self, workspace_id: str, agent_id: str) -> Agent:
        """Return an agent.

        Raises:
            NotFound: The workspace has no such agent, or it was removed.
        """
        return self._call(lambda service: service.get(workspace_id, agent_id))

    def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Agent]:
        """Return a page of a workspace's agents, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list(workspace_id, after=after, limit=limit))

    def iter_all(self, workspace_id: str) -> Iterator[Agent]:
        """Iterate over a workspace's agents, oldest first; see `list`."""
        return self._items(lambda service: service.iter_all(workspace_id))


class Trunks(Service[AsyncTrunks]):
    """The SIP trunks of workspaces."""

    def create(
        self, workspace_id: str, new: NewTrunk, *, idempotency_key: str | None = None, actor: str = "library"
    ) -> Trunk:
        """Create a trunk.

        Args:
            workspace_id: The workspace.
            new: The trunk.
            idempotency_key: A name for this trunk, such as `order-42`: for a day, the same key returns this trunk.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        return self._call(
            lambda service: service.create(workspace_id, new, idempotency_key=idempotency_key, actor=actor)
        )

    def get(self, workspace_id: str, trunk_id: str) -> Trunk:
        """Return a trunk.

        Raises:
            NotFound: The workspace has no such trunk, or it was removed.
        """
        return self._call(lambda service: service.get(workspace_id, trunk_id))

    def update(self, workspace_id: str, trunk_id: str, change: TrunkUpdate, *, actor: str = "library") -> Trunk:
        """Change a trunk, for calls placed from then on.

        Raises:
            NotFound: The workspace has no such trunk.
        """
        return self._call(lambda service: service.update(workspace_id, trunk_id, change, actor=actor))

    def remove(self, workspace_id: str, trunk_id: str, *, actor: str = "library") -> Trunk:
        """Remove a trunk; ended campaigns keep its id.

        Raises:
            NotFound: The workspace has no such trunk.
            Conflict: A number, or a campaign that has not ended, uses it.
        """
        return self._call(lambda service: service.remove(workspace_id, trunk_id, actor=actor))

    def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Trunk]:
        """Return a page of a workspace's trunks, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list(workspace_id, after=after, limit=limit))

    def iter_all(self, workspace_id: str) -> Iterator[Trunk]:
        """Iterate over a workspace's trunks, oldest first; see `list`."""
        return self._items(lambda service: service.iter_all(workspace_id))


class Numbers(Service[AsyncNumbers]):
    """The numbers that workspaces send and call from."""

    def create(
        self,
        workspace_id: str,
        new: NewNumber,
        *,
        idempotency_key: IdempotencyKey[Number] = None,
        actor: str = "library",
    ) -> Number:
        """Add a number.

        Args:
            workspace_id: The workspace.
            new: The number.
            idempotency_key: A name for this number, such as `order-42`: for a day, the same key returns this number.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace or the trunk does not exist.
            InvalidRequest: The number is invalid, the carrier is unknown, or the key was used with other content.
            Conflict: The workspace has the number already.
            RequestInProgress: The first call with this key is still running.
        """
        return self._call(
            lambda service: service.create(workspace_id, new, idempotency_key=idempotency_key, actor=actor)
        )

    def get(self, workspace_id: str, number_id: str) -> Number:
        """Return a number.

        Raises:
            NotFound: The workspace has no such number.
        """
        return self._call(lambda service: service.get(workspace_id, number_id))

    def update(self, workspace_id: str, number_id: str, change: NumberUpdate, *, actor: str = "library") -> Number:
        """Change a number; running campaigns use its new rate at once.

        Raises:
            NotFound: The workspace has no such number or trunk.
            InvalidRequest: The carrier is unknown.
        """
        return self._call(lambda service: service.update(workspace_id, number_id, change, actor=actor))

    def remove(self, workspace_id: str, number_id: str, *, actor: str = "library") -> Number:
        """Remove a number; its dispatches stay in the ledger.

        Raises:
            NotFound: The workspace has no such number.
            Conflict: A campaign that has not ended, or an active agent, uses it.
        """
        return self._call(lambda service: service.remove(workspace_id, number_id, actor=actor))

    def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Number]:
        """Return a page of a workspace's numbers, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list(workspace_id, after=after, limit=limit))

    def iter_all(self, workspace_id: str) -> Iterator[Number]:
        """Iterate over a workspace's numbers, oldest first; see `list`."""
        return self._items(lambda service: service.iter_all(workspace_id))


class Flows(Service[AsyncFlows]):
    """The automation flows of workspaces."""

    def create(
        self, workspace_id: str, new: NewFlow, *, idempotency_key: IdempotencyKey[Flow] = None, actor: str = "library"
    ) -> Flow:
        """Create a flow.

        Args:
            workspace_id: The workspace.
            new: The flow.
            idempotency_key: A name for this flow, such as `order-42`: for a day, the same key returns this flow.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        return self._call(
            lambda service: service.create(workspace_id, new, idempotency_key=idempotency_key, actor=actor)
        )

    def get(self, workspace_id: str, flow_id: str) -> Flow:
        """Return a flow.

        Raises:
            NotFound: The workspace has no such flow, or it was removed.
        """
        return self._call(lambda service: service.get(workspace_id, flow_id))

    def update(self, workspace_id: str, flow_id: str, change: FlowUpdate, *, actor: str = "library") -> Flow:
        """Change a flow; its steps only while no running campaign uses it.

        Raises:
            NotFound: The workspace has no such flow.
            Conflict: Its steps are to change while a started campaign that has not ended uses it.
        """
        return self._call(lambda service: service.update(workspace_id, flow_id, change, actor=actor))

    def remove(self, workspace_id: str, flow_id: str, *, actor: str = "library") -> Flow:
        """Remove a flow; ended campaigns keep its id.

        Raises:
            NotFound: The workspace has no such flow.
            Conflict: A campaign that has not ended uses it.
        """
        return self._call(lambda service: service.remove(workspace_id, flow_id, actor=actor))

    def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Flow]:
        """Return a page of a workspace's flows, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list(workspace_id, after=after, limit=limit))

    def iter_all(self, workspace_id: str) -> Iterator[Flow]:
        """Iterate over a workspace's flows, oldest first; see `list`."""
        return self._items(lambda service: service.iter_all(workspace_id))


class Settings(Service[AsyncSettings]):
    """SMS settings of workspaces (docs/interface.md#2.4 and #4.4)."""

    def get(self, workspace_id: str) -> SmsSettings:
        """Return a workspace's SMS settings.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.get(workspace_id))

    def update(self, workspace_id: str, change: SmsSettingsUpdate, *, actor: str = "library") -> SmsSettings:
        """Change the given fields and return all; concurrent changes of other fields are kept.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.update(workspace_id, change, actor=actor))


class CallingSettings(Service[AsyncCallingSettings]):
    """Retry settings of workspaces' calling campaigns (docs/rules.md#retry)."""

    def get(self, workspace_id: str) -> CallSettings:
        """Return a workspace's settings for calling campaigns.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.get(workspace_id))

    def update(self, workspace_id: str, change: CallSettingsUpdate, *, actor: str = "library") -> CallSettings:
        """Change the given fields and return all; recipients that wait already keep their time.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.update(workspace_id, change, actor=actor))


class Replies(Service[AsyncReplies]):
    """Replies to STOP, START and HELP; unused where the carrier replies itself."""

    def get(self, workspace_id: str) -> ReplySettings:
        """Return a workspace's reply settings.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.get(workspace_id))

    def effective_texts(self, workspace_id: str) -> Sequence[ReplyText]:
        """Return the three replies as they would be sent now: to STOP, START and HELP.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.effective_texts(workspace_id))

    def update(self, workspace_id: str, change: ReplySettingsUpdate, *, actor: str = "library") -> ReplySettings:
        """Change the given fields and return all; an empty text or None restores the default.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.update(workspace_id, change, actor=actor))


class Prices(Service[AsyncPrices]):
    """The prices of SMS segments and minutes of calls, a table a workspace."""

    def get(self, workspace_id: str) -> PriceTable | None:
        """Return a workspace's prices; None if it has none.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.get(workspace_id))

    def update(self, workspace_id: str, table: PriceTable, *, actor: str = "library") -> PriceTable:
        """Replace a workspace's prices and return them.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A currency, provider, country or amount is invalid, or two prices are for the same; nothing
                was changed.
        """
        return self._call(lambda service: service.update(workspace_id, table, actor=actor))

    def remove(self, workspace_id: str, *, actor: str = "library") -> None:
        """Remove a workspace's prices; nothing happens if it has none.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.remove(workspace_id, actor=actor))


class Unsubscribes(Service[AsyncUnsubscribes]):
    """The unsubscribe registers of workspaces."""

    def add(
        self,
        workspace_id: str,
        *phone_numbers: str,
        scope: UnsubscribeScope = "all",
        source: str = "operator",
        evidence: str | None = None,
        idempotency_key: IdempotencyKey[Sequence[Unsubscribe]] = None,
        actor: str = "library",
    ) -> Sequence[Unsubscribe]:
        """Unsubscribe numbers, with immediate effect in every campaign; return the entries.

        Each number is read as the number of a single message is, so that every number that can be reached can opt out,
        or as the address of a message that came in, such as `whatsapp:+14155550102`.
        A number that is registered with another scope is stopped on all channels. Waiting recipients are skipped for
        good, also if the number is removed again. Only an entry with the `source` `keyword` (the person wrote it) is
        lifted by START.

        Args:
            workspace_id: The workspace.
            phone_numbers: The numbers.
            scope: The channels that are stopped.
            source: Who entered it: `operator`, or `keyword` for the person's own message.
            evidence: What shows that the person wants it, at most 1,000 characters.
            idempotency_key: A name for this request: for a day, the same key only returns the entries that are left.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A number, the scope or the evidence is invalid, a number is the workspace's own, or the key
                was used with other content; nothing was written.
            RequestInProgress: The first call with this key is still running.
        """
        return self._call(
            lambda service: service.add(
                workspace_id,
                *phone_numbers,
                scope=scope,
                source=source,
                evidence=evidence,
                idempotency_key=idempotency_key,
                actor=actor,
            )
        )

    def remove(self, workspace_id: str, *phone_numbers: str, actor: str = "library") -> int:
        """Remove numbers from the register; return how many were on it.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: A number is invalid; nothing was removed.
        """
        return self._call(lambda service: service.remove(workspace_id, *phone_numbers, actor=actor))

    def list_held(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Unsubscribe]:
        """Return a page of the held numbers, whose message may have been an opt-out, latest first.

        Each needs a decision (`resolve`); its `evidence` has the message.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list_held(workspace_id, after=after, limit=limit))

    def iter_held(self, workspace_id: str) -> Iterator[Unsubscribe]:
        """Iterate over the held numbers, latest first; see `list_held`."""
        return self._items(lambda service: service.iter_held(workspace_id))

    def resolve(
        self,
        workspace_id: str,
        phone: str,
        *,
        opted_out: bool,
        idempotency_key: IdempotencyKey[Unsubscribe] = None,
        actor: str = "library",
    ) -> Unsubscribe:
        """Decide whether the unclear message of a held number was an opt-out; return the entry.

        Args:
            workspace_id: The workspace.
            phone: The number.
            opted_out: True unsubscribes the number from everything until the person writes START; False takes it off
                the register, so that campaigns continue with it.
            idempotency_key: A name for this decision: for a day, the same key only returns the entry.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist, or the number is not on its register, or not any more.
            InvalidRequest: The number is not a string, `opted_out` is not a bool, or the key was used with other
                content.
            Conflict: The number is not held.
            RequestInProgress: The first call with this key is still running.
        """
        return self._call(
            lambda service: service.resolve(
                workspace_id, phone, opted_out=opted_out, idempotency_key=idempotency_key, actor=actor
            )
        )

    def get(self, workspace_id: str, phone: str) -> Unsubscribe:
        """Return the entry of a number, in any notation.

        Raises:
            NotFound: The workspace does not exist, or the number is not on its register.
        """
        return self._call(lambda service: service.get(workspace_id, phone))

    def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Unsubscribe]:
        """Return a page of the register in the order of the numbers, held ones included.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list(workspace_id, after=after, limit=limit))

    def iter_all(self, workspace_id: str) -> Iterator[Unsubscribe]:
        """Iterate over the register in the order of the numbers; see `list`."""
        return self._items(lambda service: service.iter_all(workspace_id))

    def filter_unsubscribed(self, workspace_id: str, channel: Channel, phones: Sequence[str]) -> frozenset[str]:
        """Return which of the E.164 numbers must not be contacted by a channel.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The channel is unknown.
        """
        return self._call(lambda service: service.filter_unsubscribed(workspace_id, channel, phones))

    def import_numbers(
        self,
        workspace_id: str,
        rows: Iterable[str | tuple[int, str]],
        *,
        scope: UnsubscribeScope = "all",
        file_name: str | None = None,
        actor: str = "library",
    ) -> UnsubscribeImport:
        """Unsubscribe many numbers; invalid rows and the workspace's own numbers are reported, the others are written.

        The evidence of each entry has the import's id, the file's name and the row.

        Args:
            workspace_id: The workspace.
            rows: Numbers in any notation, each alone or as (row, number); without it, rows count from 1.
            scope: The channels that are stopped.
            file_name: Where the numbers are from, for the evidence.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The scope or the file's name is invalid.
        """
        return self._supply(
            lambda service, each: service.import_numbers(
                workspace_id, each(rows), scope=scope, file_name=file_name, actor=actor
            )
        )

    def undo_import(self, workspace_id: str, import_id: str, *, actor: str = "library") -> UnsubscribeUndo:
        """Take the numbers of an import off the register again.

        A number stays if something else says too that its person opted out: an entry from before the import, a message,
        a call, a provider's refusal, an operator or another import. Contacts that were skipped meanwhile stay skipped.

        Raises:
            NotFound: The workspace does not exist, or its register has no number of this import.
        """
        return self._call(lambda service: service.undo_import(workspace_id, import_id, actor=actor))


class Erasure(Service[AsyncErasure]):
    """Erasing people."""

    def purge(self, workspace_id: str, phone: str, *, actor: str = "library") -> PurgeResult:
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
            Conflict: A request to it is on its way, or contacts are being loaded: nothing was erased.
            ArchiveUnavailable: An archive with contacts of the workspace is not there, or is being written: nothing was
                erased, or not in the archives, as the message says.
        """
        return self._call(lambda service: service.purge(workspace_id, phone, actor=actor))

    def apply_retention(
        self, workspace_id: str | None = None, *, max_slices: int = 100000, actor: str = "library"
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
        return self._call(lambda service: service.apply_retention(workspace_id, max_slices=max_slices, actor=actor))


class Campaigns(Service[AsyncCampaigns]):
    """The campaigns of workspaces."""

    def get(self, workspace_id: str, campaign_id: str) -> Campaign:
        """Return a campaign.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.get(workspace_id, campaign_id))

    def get_anywhere(self, campaign_id: str) -> Campaign:
        """Return a campaign of any workspace, for operator commands that name a campaign alone.

        Raises:
            NotFound: No campaign has this id.
        """
        return self._call(lambda service: service.get_anywhere(campaign_id))

    def start_problems(self, workspace_id: str, campaign_id: str) -> Sequence[ErrorDetail]:
        """Return all problems that prevent a start now, each with its field.

        `start` raises `CannotStart` with the same. Fields that a draft lacks have the names of `CampaignUpdate`.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.start_problems(workspace_id, campaign_id))

    def throttled_until(self, workspace_id: str, campaign_id: str) -> datetime | None:
        """Return until when the provider's throttle stops an active campaign; None without one.

        The throttle holds for the whole workspace at that provider, single messages and calls included.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.throttled_until(workspace_id, campaign_id))

    def list(
        self,
        workspace_id: str,
        *,
        channel: Channel | None = None,
        status: CampaignStatus | None = None,
        search: str | None = None,
        archived: bool | None = False,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[Campaign]:
        """Return a page of campaigns, newest first, and how many there are (`total`).

        Args:
            workspace_id: The workspace.
            channel: Only campaigns of this channel; None for both.
            status: Only campaigns with this raw status.
            search: Part of the name, case-insensitive; None or empty for all.
            archived: False leaves archived campaigns out, True returns only them, None all.
            after: The `next` of the page before; None for the first page.
            limit: The most items, up to 1,000.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: An argument is invalid.
        """
        return self._call(
            lambda service: service.list(
                workspace_id, channel=channel, status=status, search=search, archived=archived, after=after, limit=limit
            )
        )

    def iter_all(
        self,
        workspace_id: str,
        *,
        channel: Channel | None = None,
        status: CampaignStatus | None = None,
        search: str | None = None,
        archived: bool | None = False,
    ) -> Iterator[Campaign]:
        """Iterate over campaigns, newest first; see `list`."""
        return self._items(
            lambda service: service.iter_all(
                workspace_id, channel=channel, status=status, search=search, archived=archived
            )
        )

    def start(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        allow_unknown_placeholders: bool = False,
        idempotency_key: IdempotencyKey[Campaign] = None,
        actor: str = "library",
    ) -> Campaign:
        """Start a ready campaign: it becomes active, or scheduled when its start is still ahead.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            allow_unknown_placeholders: Start although the text has placeholders without a value or a fallback
                (`CampaignCreated.unknown_placeholders`).
            idempotency_key: A name for this request: for a day, the same key only returns the campaign.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign.
            WorkspaceUnavailable: The workspace is suspended or closed.
            IllegalTransition: The campaign was started before, or has ended.
            CannotStart: The details name every reason, such as a text that is empty or too long for every contact;
                `start_warnings` names what does not prevent it.
            InvalidRequest: The key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        return self._call(
            lambda service: service.start(
                workspace_id,
                campaign_id,
                allow_unknown_placeholders=allow_unknown_placeholders,
                idempotency_key=idempotency_key,
                actor=actor,
            )
        )

    def check_start(self, workspace_id: str, campaign_id: str) -> StartCheck:
        """Return how many of a campaign's contacts would fail because their text is empty or too long.

        Too long is over `SmsSettings.max_segments`, footer included. At most 10,000 contacts are checked.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.check_start(workspace_id, campaign_id))

    def start_warnings(self, workspace_id: str, campaign_id: str) -> Sequence[ErrorDetail]:
        """Return what does not prevent a start or a resume, but is most likely a mistake (`StartCheck.warnings`).

        The first 10,000 open contacts are checked.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.start_warnings(workspace_id, campaign_id))

    def pause(
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
        return self._call(
            lambda service: service.pause(workspace_id, campaign_id, idempotency_key=idempotency_key, actor=actor)
        )

    def resume(
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
        return self._call(
            lambda service: service.resume(workspace_id, campaign_id, idempotency_key=idempotency_key, actor=actor)
        )

    def cancel(
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
        return self._call(
            lambda service: service.cancel(workspace_id, campaign_id, idempotency_key=idempotency_key, actor=actor)
        )

    def unschedule(
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
        return self._call(
            lambda service: service.unschedule(workspace_id, campaign_id, idempotency_key=idempotency_key, actor=actor)
        )

    def pause_all(self, workspace_id: str | None = None, *, actor: str = "library") -> Sequence[Campaign]:
        """Pause all active and scheduled campaigns of one workspace, or of all; return the paused ones.

        A campaign that has completed is not reopened afterwards (docs/states.md#campaigns).

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.pause_all(workspace_id, actor=actor))

    def recount(self, workspace_id: str, campaign_id: str) -> Counters:
        """Count all recipients again and return the counters; they equal the campaign's own.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.recount(workspace_id, campaign_id))

    def clone(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        name: str | None = None,
        idempotency_key: IdempotencyKey[CampaignCreated] = None,
        actor: str = "library",
    ) -> CampaignCreated:
        """Create a campaign like an earlier one, with all its contacts, without starting it.

        Its start and expiry are not copied. Contacts unsubscribed since are left out, as in every new campaign.

        Args:
            workspace_id: The workspace.
            campaign_id: The earlier campaign, in any state.
            name: 1 to 100 characters; None for the earlier name with "(copy)".
            idempotency_key: A name for this copy, such as `order-42`: for a day, the same key returns this campaign
                instead of a new one.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign, or its agent or trunk is gone.
            Conflict: Its contacts were erased.
            InvalidRequest: The name is invalid, its flow is gone, every contact is opted out, or the key was used with
                other content.
            RequestInProgress: The first call with this key is still running.
        """
        return self._call(
            lambda service: service.clone(
                workspace_id, campaign_id, name=name, idempotency_key=idempotency_key, actor=actor
            )
        )

    def follow_up(
        self,
        workspace_id: str,
        campaign_id: str,
        new: NewFollowUp,
        *,
        idempotency_key: IdempotencyKey[FollowUpCreated] = None,
        actor: str = "library",
    ) -> FollowUpCreated:
        """Create a campaign of those contacts of an earlier one who had given results, without starting it.

        Who opted out, replied or was reached is left out. Reached is who got a message that did not fail, or spoke in a
        call. Numbers on the unsubscribe register are never loaded, whatever is included.

        Args:
            workspace_id: The workspace.
            campaign_id: The earlier campaign; it may be running.
            new: Which contacts to take, and the new campaign's name and text.
            idempotency_key: A name for this follow-up, such as `order-42`: for a day, the same key returns this
                campaign instead of a new one.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign, or its agent or trunk is gone.
            Conflict: Its contacts were erased, or nobody with these results is left.
            InvalidRequest: A result or name is unknown, the flow is gone, a calling campaign got a
                text, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        return self._call(
            lambda service: service.follow_up(
                workspace_id, campaign_id, new, idempotency_key=idempotency_key, actor=actor
            )
        )

    def create_sms(
        self,
        workspace_id: str,
        campaign: NewSmsCampaign,
        recipients: RecipientSource,
        *,
        idempotency_key: IdempotencyKey[CampaignCreated] = None,
        actor: str = "library",
    ) -> CampaignCreated:
        """Create an SMS campaign with its contacts (docs/interface.md#4.3), without starting it.

        Args:
            workspace_id: The workspace.
            campaign: Everything but the contacts.
            recipients: At least one `NewRecipient`, or mapping with its fields; streamed, so the number is unlimited.
            idempotency_key: A name for this campaign, such as `order-42`: for a day, the same key with the same
                contacts in the same order returns this campaign instead of a new one.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            SmsCampaignsDisabled: The workspace does not have SMS campaigns enabled.
            InvalidRequest: A rule is broken, the flow does not exist, every contact is opted out, or the key was used
                with other content.
            RequestInProgress: The first call with this key is still running.
        """
        return self._supply(
            lambda service, each: service.create_sms(
                workspace_id, campaign, each(recipients), idempotency_key=idempotency_key, actor=actor
            )
        )

    def create_call(
        self,
        workspace_id: str,
        campaign: NewCallCampaign,
        recipients: RecipientSource,
        *,
        idempotency_key: IdempotencyKey[CampaignCreated] = None,
        actor: str = "library",
    ) -> CampaignCreated:
        """Create a calling campaign with its contacts; see `create_sms` for the arguments.

        Raises:
            NotFound: The workspace, agent or trunk does not exist.
            InvalidRequest: A rule is broken, every contact is opted out, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        return self._supply(
            lambda service, each: service.create_call(
                workspace_id, campaign, each(recipients), idempotency_key=idempotency_key, actor=actor
            )
        )

    def recipient_failures(self, workspace_id: str, campaign_id: str, position: int) -> dict[str, ProviderFailure]:
        """Return the failures of a recipient's requests, by dispatch id.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.recipient_failures(workspace_id, campaign_id, position))

    def provider_failures(self, workspace_id: str, campaign_id: str) -> Sequence[tuple[ProviderFailure, int]]:
        """Return what went wrong in a campaign with the number of requests, most frequent first.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.provider_failures(workspace_id, campaign_id))

    def count_dispatches(self, workspace_id: str, campaign_id: str) -> Sequence[DispatchCount]:
        """Return how many requests of a campaign had each outcome, most frequent first.

        This reads every request: with millions it takes seconds.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.count_dispatches(workspace_id, campaign_id))

    def iter_outcomes(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        status: RecipientStatus | None = None,
        external_id: str | None = None,
    ) -> Iterator[RecipientOutcome]:
        """Iterate over a campaign's recipients by position, each with its provider failure, if any.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            status: Only recipients in this state; None for all.
            external_id: Only recipients that the application knows by this id (at most 500); None for all.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: The id is no text of 1 to 255 characters.
        """
        return self._items(
            lambda service: service.iter_outcomes(workspace_id, campaign_id, status=status, external_id=external_id)
        )

    def blockers(self, workspace_id: str, campaign_id: str) -> Sequence[CampaignBlocker]:
        """Return everything that blocks an active or scheduled campaign, most urgent first.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.blockers(workspace_id, campaign_id))

    def next_due_times(self, workspace_id: str, campaign_id: str) -> Mapping[tuple[str, str | None], datetime]:
        """Return when the first waiting recipient is due, for each state and reason with a known time.

        An unknown request is closed then, unless evidence arrives before; this looks at the workspace's oldest 1,000.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.next_due_times(workspace_id, campaign_id))

    def list_recipients(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        status: RecipientStatus | None = None,
        reason: str | None = None,
        phone: str | None = None,
        external_id: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[Recipient]:
        """Return a page of a campaign's recipients, by position.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            status: Only those in this state; None for any.
            reason: Only those that wait or have ended for this reason; None for any.
            phone: Only those with this number, in any notation, or as supplied if it is none; None for any.
            external_id: Only those that the application knows by this id, of the first 1,000; None for any.
            after: The `next` of the page before; None for the first page.
            limit: The most items, up to 1,000.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: An argument is invalid.
        """
        return self._call(
            lambda service: service.list_recipients(
                workspace_id,
                campaign_id,
                status=status,
                reason=reason,
                phone=phone,
                external_id=external_id,
                after=after,
                limit=limit,
            )
        )

    def iter_recipients(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        status: RecipientStatus | None = None,
        reason: str | None = None,
        phone: str | None = None,
        external_id: str | None = None,
    ) -> Iterator[Recipient]:
        """Iterate over a campaign's recipients, by position; see `list_recipients`."""
        return self._items(
            lambda service: service.iter_recipients(
                workspace_id, campaign_id, status=status, reason=reason, phone=phone, external_id=external_id
            )
        )

    def get_recipient(self, workspace_id: str, campaign_id: str, position: int) -> Recipient:
        """Return the recipient at a position of a campaign's list, from 0.

        Raises:
            NotFound: The workspace has no such campaign, or the campaign no such recipient.
        """
        return self._call(lambda service: service.get_recipient(workspace_id, campaign_id, position))

    def list_appearances(
        self, workspace_id: str, external_id: str, *, after: str | None = None, limit: int = 100
    ) -> Page[Recipient]:
        """Return a page of the recipients that the application knows by an id, in all campaigns but archived ones.

        The newest campaign comes first, its recipients by position.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The id is no text of 1 to 255 characters, or `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list_appearances(workspace_id, external_id, after=after, limit=limit))

    def iter_appearances(self, workspace_id: str, external_id: str) -> Iterator[Recipient]:
        """Iterate over the recipients that the application knows by an id; see `list_appearances`."""
        return self._items(lambda service: service.iter_appearances(workspace_id, external_id))

    def count_recipients(self, workspace_id: str, campaign_id: str) -> Sequence[RecipientCount]:
        """Return how many recipients are in each state for each reason.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.count_recipients(workspace_id, campaign_id))

    def list_dispatches(
        self, workspace_id: str, campaign_id: str, position: int, *, after: str | None = None, limit: int = 100
    ) -> Page[Dispatch]:
        """Return a page of the dispatches of one recipient, oldest first.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: `position`, `after` or `limit` is invalid.
        """
        return self._call(
            lambda service: service.list_dispatches(workspace_id, campaign_id, position, after=after, limit=limit)
        )

    def iter_dispatches(self, workspace_id: str, campaign_id: str, position: int) -> Iterator[Dispatch]:
        """Iterate over the dispatches of one recipient, oldest first; see `list_dispatches`."""
        return self._items(lambda service: service.iter_dispatches(workspace_id, campaign_id, position))

    def recipient_history(self, workspace_id: str, campaign_id: str, position: int) -> ContactHistory:
        """Return what happened to the recipient at a position, step by step, with reasons and rules.

        Raises:
            NotFound: The workspace has no such campaign, or the campaign no such recipient.
        """
        return self._call(lambda service: service.recipient_history(workspace_id, campaign_id, position))

    def contact_history(
        self, workspace_id: str, campaign_id: str, phone: str | None = None, *, external_id: str | None = None
    ) -> Sequence[ContactHistory]:
        """Return what happened to a contact in a campaign, step by step, with reasons and rules.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            phone: The number in any notation; a local one is read in the workspace's default region, an invalid one is
                searched as supplied.
            external_id: The application's own name of the contact, instead of its number.

        Returns:
            A history for each position of the number or id: it can occur twice. A number excluded at creation because
            it was unsubscribed has one history without a `position`.

        Raises:
            NotFound: The workspace has no such campaign, or the number is neither in it nor unsubscribed, or the id is
                not in it.
            InvalidRequest: Not exactly one of both is given, or it is not a string.
        """
        return self._call(
            lambda service: service.contact_history(workspace_id, campaign_id, phone, external_id=external_id)
        )

    def preflight(self, workspace_id: str, campaign_id: str, *, contact: str | None = None) -> Preflight:
        """Return what a campaign will do to its contacts, by the rules that the run will follow.

        It holds if nothing changes meanwhile. Contacts on the register when the campaign was created were not loaded,
        and are not counted. It reads every contact: 100,000 take a second or two.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign, in any state; of one that has started, what is left.
            contact: A phone number, in any notation, to explain in full (`Preflight.asked`).

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: The number is not a string.
        """
        return self._call(lambda service: service.preflight(workspace_id, campaign_id, contact=contact))

    def preflight_new(
        self,
        workspace_id: str,
        campaign: NewSmsCampaign | NewCallCampaign,
        recipients: RecipientSource,
        *,
        contact: str | None = None,
    ) -> Preflight:
        """Return what a campaign would do to its contacts, without creating it.

        Numbers on the register are counted as left out, though a creation would not load them.

        Args:
            workspace_id: The workspace.
            campaign: Everything but the contacts.
            recipients: The contacts, as `create_sms` and `create_call` take them.
            contact: A phone number, in any notation, to explain in full (`Preflight.asked`).

        Raises:
            NotFound: The workspace, agent or trunk does not exist.
            SmsCampaignsDisabled: The workspace does not have SMS campaigns enabled.
            InvalidRequest: A rule is broken, or the flow does not exist.
        """
        return self._supply(
            lambda service, each: service.preflight_new(workspace_id, campaign, each(recipients), contact=contact)
        )

    def forecast(
        self, workspace_id: str, campaign_id: str, *, assumptions: ForecastAssumptions | None = None
    ) -> Forecast:
        """Return when a campaign will be done, hour by hour, and what limits it.

        It holds if nothing changes, and for a campaign that is paused, if it is resumed now. A campaign with more than
        10,000 contacts is judged by so many of them.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign; of one that has started, what is left.
            assumptions: What to assume of calls and messages; what a running campaign has measured in its last 500
                requests takes their place. None for the defaults.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: An assumption is out of its bounds.
        """
        return self._call(lambda service: service.forecast(workspace_id, campaign_id, assumptions=assumptions))

    def report(self, workspace_id: str, campaign_id: str) -> CampaignReport:
        """Return what became of a campaign's contacts, and what was sent for it, from one snapshot of the ledger.

        It reads every request of the campaign once: a million take half a second of computing, and with prices by
        country a second. An erased or archived campaign has the report of
        the moment before.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.report(workspace_id, campaign_id))

    def iter_export(self, workspace_id: str, campaign_id: str) -> Iterator[ExportedContact]:
        """Iterate over a campaign's contacts by position, each with its requests, calls and replies.

        They are read in batches: while a campaign runs, later ones may be further than earlier ones.

        Raises:
            NotFound: The workspace has no such campaign.
            ArchiveUnavailable: Its contacts are in an archive that cannot be read.
        """
        return self._items(lambda service: service.iter_export(workspace_id, campaign_id))

    def export(self, workspace_id: str, campaign_id: str, kind: ExportFormat) -> Iterator[bytes]:
        """Iterate over a campaign's contacts as the parts of a file; see `iter_export`.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            kind: `csv` (UTF-8 with a byte order mark), `jsonl` (a JSON object a line) or `xlsx`.

        Raises:
            NotFound: The workspace has no such campaign.
            InvalidRequest: The format is unknown.
            ConfigError: A library for XLSX is not installed.
        """
        return self._items(lambda service: service.export(workspace_id, campaign_id, kind))

    def update(
        self, workspace_id: str, campaign_id: str, change: CampaignUpdate, *, actor: str = "library"
    ) -> Campaign:
        """Change a campaign; what has not been sent goes out as the campaign then says.

        A campaign that has not started becomes ready or draft by what it then has. One that is scheduled, active or
        paused stays so, and keeps all that a start needs. Requests that are on their way are not changed.

        Raises:
            NotFound: The workspace has no such campaign, flow or agent.
            InvalidRequest: The carrier is unknown, or a campaign under way would lack what it needs.
            Conflict: The campaign has ended, or has begun to send and keeps this field.
        """
        return self._call(lambda service: service.update(workspace_id, campaign_id, change, actor=actor))

    def archive(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        idempotency_key: IdempotencyKey[Campaign] = None,
        actor: str = "library",
    ) -> Campaign:
        """Put a campaign away, so that lists hide it unless they are asked; an archived one stays.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            idempotency_key: A name for this request: for a day, the same key only returns the campaign.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign.
            Conflict: It is scheduled, active or paused.
            InvalidRequest: The key was used with other content.
            RequestInProgress: The first call with this key is still running.
        """
        return self._call(
            lambda service: service.archive(workspace_id, campaign_id, idempotency_key=idempotency_key, actor=actor)
        )

    def unarchive(
        self,
        workspace_id: str,
        campaign_id: str,
        *,
        idempotency_key: IdempotencyKey[Campaign] = None,
        actor: str = "library",
    ) -> Campaign:
        """Bring an archived campaign back into the lists; one that is not archived stays; see `archive`.

        Raises:
            OutreachError: See `archive`.
        """
        return self._call(
            lambda service: service.unarchive(workspace_id, campaign_id, idempotency_key=idempotency_key, actor=actor)
        )

    def delete(self, workspace_id: str, campaign_id: str, *, actor: str = "library") -> Campaign | None:
        """Delete a draft or ready campaign with its contacts, or erase the contacts and texts of an ended one.

        An erased campaign stays with its name, times and figures, archived: its requests are counted, and its report is
        that of the moment before. The unsubscribe register is not changed. What a crash interrupts is finished by the
        next dispatcher, or by `engine.erasure.apply_retention`.

        Returns:
            The erased campaign; None for one that is gone.

        Raises:
            NotFound: The workspace has no such campaign.
            Conflict: It is scheduled, active or paused, or has contacts that are still open.
            ArchiveUnavailable: Its contacts are in an archive that is not there: nothing was erased.
        """
        return self._call(lambda service: service.delete(workspace_id, campaign_id, actor=actor))


class Calls(Service[AsyncCalls]):
    """Single calls of workspaces (docs/interface.md#4.1)."""

    def create(self, workspace_id: str, new: NewCall, *, idempotency_key: IdempotencyKey[Call] = None) -> Call:
        """Queue a call and wait briefly for the provider to accept it.

        The returned call has a `provider_call_id` if the provider accepted it in time.

        Args:
            workspace_id: The workspace.
            new: The call.
            idempotency_key: A name for this call, such as `order-42`: for a day, the same key returns this call instead
                of placing another.

        Raises:
            NotFound: The workspace has no such agent.
            InvalidRequest: A variable is unknown to the agent, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
            Conflict: The agent is inactive or may not place calls, a live workspace has no account at its provider, the
                number is unsubscribed, or the agent is already calling it.
        """
        return self._call(lambda service: service.create(workspace_id, new, idempotency_key=idempotency_key))

    def get(self, workspace_id: str, identifier: str) -> Call:
        """Return a call by our id or by the provider's.

        Raises:
            NotFound: The workspace has no such call.
        """
        return self._call(lambda service: service.get(workspace_id, identifier))

    def list(
        self, workspace_id: str, *, campaign_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> Page[Call]:
        """Return a page of calls, newest first.

        Args:
            workspace_id: The workspace.
            campaign_id: Only those of this campaign; None for all, single calls included.
            after: The `next` of the page before; None for the first page.
            limit: The most items, up to 1,000.

        Raises:
            NotFound: The workspace does not exist, or has no such campaign.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list(workspace_id, campaign_id=campaign_id, after=after, limit=limit))

    def iter_all(self, workspace_id: str, *, campaign_id: str | None = None) -> Iterator[Call]:
        """Iterate over calls, newest first; see `list`."""
        return self._items(lambda service: service.iter_all(workspace_id, campaign_id=campaign_id))

    def get_anywhere(self, identifier: str) -> Call:
        """Return a call of any workspace, for operator commands that name a call alone.

        Raises:
            NotFound: No call has this id.
        """
        return self._call(lambda service: service.get_anywhere(identifier))

    def failure(self, call: Call) -> ProviderFailure | None:
        """Return the provider's account of what went wrong with a call; None if nothing did."""
        return self._call(lambda service: service.failure(call))


class Messages(Service[AsyncMessages]):
    """Single messages of workspaces: POST /sms. They carry no footer (docs/interface.md#4.4)."""

    def send(self, workspace_id: str, new: NewMessage, *, idempotency_key: IdempotencyKey[Message] = None) -> Message:
        """Queue a message.

        Args:
            workspace_id: The workspace.
            new: The message.
            idempotency_key: A name for this message, such as `order-42`: for a day, the same key returns this message
                instead of queueing another.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The number or the text is invalid, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
            RecipientUnsubscribed: The number is unsubscribed from SMS.
            Conflict: The sending number or carrier is unclear, or a live workspace has no account at the carrier.
        """
        return self._call(lambda service: service.send(workspace_id, new, idempotency_key=idempotency_key))

    def send_test(
        self,
        workspace_id: str,
        campaign_id: str,
        new: NewTestMessage,
        *,
        idempotency_key: IdempotencyKey[Message] = None,
        actor: str = "library",
    ) -> Message:
        """Send what a contact of a campaign would get to a number of one's own.

        It is a single message with the purpose `test`, from the campaign's number: it counts in no campaign, in no
        frequency cap and in no report. The campaign may be in any state.

        Args:
            workspace_id: The workspace.
            campaign_id: The campaign.
            new: Whose text to send, and where.
            idempotency_key: A name for this message, such as `order-42`: for a day, the same key returns this message
                instead of queueing another.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace has no such campaign, or the campaign no such contact.
            InvalidRequest: The number is invalid, the campaign has no such message, its text is empty or over the
                segment cap for this contact, or the key was used with other content.
            RequestInProgress: The first call with this key is still running.
            RecipientUnsubscribed: `to` is unsubscribed from SMS.
            Conflict: It is a calling campaign, it is outside the hours, the sending number or carrier is unclear, or a
                live workspace has no account at the carrier.
        """
        return self._call(
            lambda service: service.send_test(
                workspace_id, campaign_id, new, idempotency_key=idempotency_key, actor=actor
            )
        )

    def receive(
        self,
        workspace_id: str,
        *,
        from_number: str,
        to: str,
        body: str,
        provider: CarrierName | None = None,
        provider_id: str | None = None,
        written_at: datetime | None = None,
        replies_to_keywords: bool = False,
    ) -> InboundMessage | None:
        """Record an inbound message once; return None for one that is known.

        It ends flows at their `stop_if_replied` step. STOP, START and HELP take effect at once and are answered from
        the number that was written to; the rules are in `operations.register.inbound.receive`.

        Args:
            workspace_id: The workspace that owns the number.
            from_number: The sender; normalised to E.164. A channel may precede it: `whatsapp:+14155550102`.
            to: Our number.
            body: The text; empty for a message with media alone.
            provider: The carrier that delivered it, and sends the answer; None to take the number's.
            provider_id: The carrier's id of the message, which makes it unique.
            written_at: When it was written, by the carrier's clock; None for now.
            replies_to_keywords: Whether the carrier answers keywords itself. Then the engine answers only a STOP that
                the carrier does not know, such as `please stop`, and ignores a START that the carrier does not know.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The sender or the carrier is invalid, the text cannot be stored, or the time has no zone.
        """
        return self._call(
            lambda service: service.receive(
                workspace_id,
                from_number=from_number,
                to=to,
                body=body,
                provider=provider,
                provider_id=provider_id,
                written_at=written_at,
                replies_to_keywords=replies_to_keywords,
            )
        )

    def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Message]:
        """Return a page of single messages, newest first; those of campaigns are `campaigns.list_dispatches`.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list(workspace_id, after=after, limit=limit))

    def iter_all(self, workspace_id: str) -> Iterator[Message]:
        """Iterate over single messages, newest first; see `list`."""
        return self._items(lambda service: service.iter_all(workspace_id))

    def list_inbound(
        self, workspace_id: str, *, unclear: bool = False, after: str | None = None, limit: int = 100
    ) -> Page[InboundMessage]:
        """Return a page of inbound messages, newest first.

        Args:
            workspace_id: The workspace.
            unclear: Only those that a person has to read (`InboundMessage.unclear`).
            after: The `next` of the page before; None for the first page.
            limit: The most items, up to 1,000.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list_inbound(workspace_id, unclear=unclear, after=after, limit=limit))

    def iter_inbound(self, workspace_id: str, *, unclear: bool = False) -> Iterator[InboundMessage]:
        """Iterate over inbound messages, newest first; see `list_inbound`."""
        return self._items(lambda service: service.iter_inbound(workspace_id, unclear=unclear))

    def get_inbound(self, workspace_id: str, message_id: str) -> InboundMessage:
        """Return an inbound message.

        Raises:
            NotFound: The workspace has no such message.
        """
        return self._call(lambda service: service.get_inbound(workspace_id, message_id))

    def get(self, workspace_id: str, message_id: str) -> Message:
        """Return a message.

        Raises:
            NotFound: The workspace has no such message.
        """
        return self._call(lambda service: service.get(workspace_id, message_id))

    def failure(self, message: Message) -> ProviderFailure | None:
        """Return the provider's account of what went wrong with a message; None if nothing did."""
        return self._call(lambda service: service.failure(message))


class Dispatches(Service[AsyncDispatches]):
    """The dispatch ledger, for operators."""

    def list_unknown(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Dispatch]:
        """Return a page of a workspace's unknown dispatches, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list_unknown(workspace_id, after=after, limit=limit))

    def iter_unknown(self, workspace_id: str) -> Iterator[Dispatch]:
        """Iterate over a workspace's unknown dispatches, oldest first; see `list_unknown`."""
        return self._items(lambda service: service.iter_unknown(workspace_id))

    def get(self, workspace_id: str, dispatch_id: str) -> Dispatch:
        """Return a dispatch.

        Raises:
            NotFound: The workspace has no such dispatch.
        """
        return self._call(lambda service: service.get(workspace_id, dispatch_id))

    def get_anywhere(self, dispatch_id: str) -> Dispatch:
        """Return a dispatch of any workspace, for operator commands that name a dispatch alone.

        Raises:
            NotFound: No dispatch has this id.
        """
        return self._call(lambda service: service.get_anywhere(dispatch_id))

    def resolve(
        self, workspace_id: str, dispatch_id: str, decision: OperatorDecision, *, actor: str = "library"
    ) -> Dispatch:
        """Resolve an unknown dispatch by `assume_sent` or `retry`.

        Raises:
            NotFound: The workspace has no such dispatch.
            Conflict: It is not unknown, or its request may still be running.
            InvalidRequest: The decision is another one.
        """
        return self._call(lambda service: service.resolve(workspace_id, dispatch_id, decision, actor=actor))


class Accounts(Service[AsyncAccounts]):
    """The provider accounts of workspaces."""

    def providers(self) -> Sequence[Provider]:
        """Return what an account can be at: what the engine brings, then adapters of one's own and of packages."""
        return self._plain(lambda service: service.providers())

    def adapter_problems(self) -> Sequence[AdapterProblem]:
        """Return which adapters of installed packages cannot be used, and why."""
        return self._plain(lambda service: service.adapter_problems())

    def credential_fields(self, provider: str) -> Sequence[CredentialField]:
        """Return the credentials that an account at a provider needs.

        Raises:
            InvalidRequest: The provider is unknown.
        """
        return self._plain(lambda service: service.credential_fields(provider))

    def connect(
        self,
        workspace_id: str,
        provider: str,
        credentials: Mapping[str, str],
        *,
        replies_to_keywords: bool | None = None,
        refuse_previous: bool = False,
        actor: str = "library",
    ) -> Account:
        """Create a workspace's account at a provider, or replace its credentials.

        An existing account keeps its id and callback URL. Connecting always ends a throttle of the provider. Callbacks
        that are signed with the replaced credentials are accepted for 24 hours, because some are on their way
        (docs/secret-key.md#changing-secrets-at-a-provider).

        Args:
            workspace_id: The workspace.
            provider: One of those that `providers` returns.
            credentials: All values, by the names of `credential_fields`.
            replies_to_keywords: Whether the provider itself replies to STOP, START and HELP, so that the engine does
                not; None for as it is, in a new account for the provider's default.
            refuse_previous: Whether callbacks that are signed with earlier credentials are refused at once, because
                others know these.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: The provider is unknown, or credentials are missing, unknown or malformed; the secret that
                verifies callbacks is required. Nothing was written.
            ConfigError: No usable encryption key, or the extra `providers` is not installed.
        """
        return self._call(
            lambda service: service.connect(
                workspace_id,
                provider,
                credentials,
                replies_to_keywords=replies_to_keywords,
                refuse_previous=refuse_previous,
                actor=actor,
            )
        )

    def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[Account]:
        """Return a page of a workspace's accounts without secrets, oldest first.

        Returns:
            The accounts; `problem` says why one cannot be decrypted.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list(workspace_id, after=after, limit=limit))

    def iter_all(self, workspace_id: str) -> Iterator[Account]:
        """Iterate over a workspace's accounts without secrets, oldest first; see `list`."""
        return self._items(lambda service: service.iter_all(workspace_id))

    def check(self, workspace_id: str, account_id: str) -> AccountCheck:
        """Test an account's credentials with a harmless request, and return the result in words.

        A throttle (`throttled_until`) neither stops this request nor ends by it; `connect` ends one.

        Raises:
            NotFound: The workspace has no such account.
            ConfigError: The key that encrypted it is missing, or its adapter is not installed here.
        """
        return self._call(lambda service: service.check(workspace_id, account_id))

    def throttled_until(self, workspace_id: str, provider: str) -> datetime | None:
        """Return until when the provider's throttle stops a workspace's messages and calls; None without one.

        Raises:
            NotFound: The workspace does not exist.
        """
        return self._call(lambda service: service.throttled_until(workspace_id, provider))

    def get(self, workspace_id: str, account_id: str) -> Account:
        """Return an account.

        Raises:
            NotFound: The workspace has no such account.
        """
        return self._call(lambda service: service.get(workspace_id, account_id))

    def get_anywhere(self, account_id: str) -> Account:
        """Return an account of any workspace, for operator commands that name an account alone.

        Raises:
            NotFound: No account has this id.
        """
        return self._call(lambda service: service.get_anywhere(account_id))

    def remove(self, workspace_id: str, account_id: str, *, actor: str = "library") -> Account:
        """Delete an account with its credentials, and return it.

        Campaigns that need it pause at their next request. Its callback URL answers 404 from then on; a new account
        gets another.

        Raises:
            NotFound: The workspace has no such account.
        """
        return self._call(lambda service: service.remove(workspace_id, account_id, actor=actor))

    def rekey(self, *, max_slices: int = 100000, actor: str = "library") -> RekeyResult:
        """Encrypt the credentials of all accounts with the newest key, also while servers run that know it.

        At every moment each account's credentials are encrypted with one key or the other, so that what is interrupted
        goes on when it is called again. Accounts keep their ids, callback URLs and revisions.

        Args:
            max_slices: The most slices of 100 accounts to encrypt now, at least 1.
            actor: Recorded in the audit trail of each account's workspace.

        Raises:
            ConfigError: No usable key, or none of the keys opens the credentials of some account: nothing was changed.
            InvalidRequest: `max_slices` is out of its bounds.
        """
        return self._call(lambda service: service.rekey(max_slices=max_slices, actor=actor))


class Callbacks(Service[AsyncCallbacks]):
    """Receives and lists the callbacks of providers."""

    def max_body_bytes(self, account_id: str) -> int:
        """Return how many bytes the account's provider may send in a callback.

        Raises:
            NotFound: The account does not exist.
            ConfigError: Its provider's adapter is not installed here.
        """
        return self._call(lambda service: service.max_body_bytes(account_id))

    def receive(
        self, account_id: str, *, url: str, headers: Mapping[str, str], body: bytes
    ) -> Sequence[CallbackRecord]:
        """Store the events of a callback, committed when this returns; concurrent callbacks share a transaction.

        Args:
            account_id: The account that the URL names.
            url: The URL as requested; if a public URL is configured, that one is verified instead, because the provider
                signs what it knows, and a proxy may stand between.
            headers: By name, in any case.
            body: The raw bytes.

        Returns:
            The new events; none for a repeated callback.

        Raises:
            NotFound: The account does not exist.
            CallbackRejected: It is not from the provider, too old, too large or unreadable, or its adapter read it into
                what is no event: nothing was changed.
            ConfigError: The account's credentials cannot be decrypted, or its adapter is not installed here.
        """
        return self._call(lambda service: service.receive(account_id, url=url, headers=headers, body=body))

    def misdirected(self, account_id: str, how: Misdirection) -> None:
        """Log and record that something came to an account's address by a wrong method or with a wrong path.

        It was not read, because nothing shows who sent it; if it was the provider, a STOP may have been in it.

        Raises:
            NotFound: The account does not exist.
        """
        return self._call(lambda service: service.misdirected(account_id, how))

    def get(self, workspace_id: str, account_id: str, event_id: str) -> CallbackRecord:
        """Return an event by its account and the id that the provider gave it.

        Raises:
            NotFound: The workspace has no such event, or it was deleted since (docs/operations.md).
        """
        return self._call(lambda service: service.get(workspace_id, account_id, event_id))

    def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[CallbackRecord]:
        """Return a page of a workspace's events, newest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list(workspace_id, after=after, limit=limit))

    def iter_all(self, workspace_id: str) -> Iterator[CallbackRecord]:
        """Iterate over a workspace's events, newest first; see `list`."""
        return self._items(lambda service: service.iter_all(workspace_id))


class Events(Service[AsyncEvents]):
    """What has happened, for an embedding application."""

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

    def subscribe(
        self, *kinds: type[Event], name: str | None = None, workspace_id: str | None = None, since: int | None = None
    ) -> EventStream[Any] | NamedStream[Any]:
        """Return a stream of events; enter it to begin to listen.

            with engine.events.subscribe(RecipientEnded, since=last_seen) as stream:
                for event in stream:
                    ...

        Args:
            kinds: Classes of events, such as `RecipientEnded`; none for all. Up to three of them are known to type
                checkers as the events of the stream.
            workspace_id: Of one workspace only; None for all.
            since: Go on after this number, which a stream's `position` or an event's `number` was; None for
                what is committed from now on. 0 begins with the first event of all. With a name it says where the
                subscription begins that is not there yet; one that is goes on where it was.
            name: Has the position stored under this name, 1 to 100 characters: of all streams of that name, in
                whatever process, one gets each event, until it acknowledges it (`NamedStream.ack`).

        Raises:
            InvalidRequest: A kind is no class of events, `since` is no number from 0 on, or the name is none.
        """
        return self._stream(
            lambda service: service.subscribe(*kinds, name=name, workspace_id=workspace_id, since=since)
        )

    def page(
        self, *kinds: type[Event], workspace_id: str | None = None, since: int | None = None, limit: int = 500
    ) -> EventPage:
        """Return the events after a number, without waiting for more.

        Args:
            kinds: Classes of events, such as `RecipientEnded`; none for all.
            workspace_id: Of one workspace only; None for all.
            since: Go on after this number, which the `position` of the page before or an event's `number` was. None
                returns no event, and the position from which a later page goes on. 0 begins with the first event.
            limit: The most events, up to 1,000. A page may have fewer, also none, although there are `more`.

        Raises:
            NotFound: There is no such workspace.
            Conflict: The database has not come as far as `since`: it is another one, or an older copy; or events
                after `since` were purged.
            InvalidRequest: A kind is no class of events, `since` is no number from 0 on, or the limit is invalid.
        """
        return self._call(lambda service: service.page(*kinds, workspace_id=workspace_id, since=since, limit=limit))

    def get_subscription(self, name: str) -> Subscription:
        """Return a named subscription: how far it has come, and whether anybody reads it now.

        Raises:
            NotFound: There is none of that name.
        """
        return self._call(lambda service: service.get_subscription(name))

    def list_subscriptions(self, *, after: str | None = None, limit: int = 100) -> Page[Subscription]:
        """Return a page of all named subscriptions, by name; see `get_subscription`.

        Raises:
            InvalidRequest: `after` or `limit` is invalid.
        """
        return self._call(lambda service: service.list_subscriptions(after=after, limit=limit))

    def iter_subscriptions(self) -> Iterator[Subscription]:
        """Iterate over all named subscriptions, by name; see `list_subscriptions`."""
        return self._items(lambda service: service.iter_subscriptions())

    def remove_subscription(self, name: str) -> None:
        """Remove a named subscription and its position; a stream that reads it now gets `NotFound`.

        Raises:
            NotFound: There is none of that name.
        """
        return self._call(lambda service: service.remove_subscription(name))


class HttpOperations(Service[AsyncHttpOperations]):
    """What only an HTTP interface needs: `Outreach.http`."""

    def count_request(self, workspace: Workspace) -> RateLimitState | None:
        """Count a request against its workspace's limit; return what is left, None without a limit.

        Raises:
            RateLimited: The limit is reached.
            StorageBusy: The database takes no writes, and the allowance for that is used up.
        """
        return self._call(lambda service: service.count_request(workspace))

    def list_campaigns(
        self,
        workspace_id: str,
        *,
        channel: Channel | None = None,
        status: CampaignStatus | None = None,
        search: str | None = None,
        page: int = 1,
        page_size: int = 20,
    ) -> JsonPage:
        """Return a page of campaigns as JSON with the interface's fields, newest first, archived ones among them.

        A rendered page is reused until any process changes what it shows.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: An argument is invalid.
        """
        return self._call(
            lambda service: service.list_campaigns(
                workspace_id, channel=channel, status=status, search=search, page=page, page_size=page_size
            )
        )


class Outreach(Engine):
    """The engine for synchronous code: Django, Flask, scripts.

    It runs on an event loop in a thread of its own, and any thread may call it. Make one for each process, as a global
    of your program or as a context manager:

        engine = Outreach.open("sqlite:///app.db", dispatch=True)
        workspace = engine.workspaces.create(NewWorkspace(name="Acme"))

    The first call opens it, or `start`; the exit of the interpreter closes it, or `close`. A process that is forked
    before the first call opens it anew; one that is forked while it is open gets a `ConfigError`. Calls wait for as
    long as they take, or as `fail_after` gives them.

    Args:
        storage: Where everything is kept.
        dispatch: Whether this process sends. Without it the engine only reads and writes.
        clock: Where the time comes from.
        rng: Where randomness comes from.
        config: How it behaves.
        simulator: How the simulators behave.
        analyser: Decides what came of a call that has ended; or the name under which an installed package brings one
            (entry points of the group `outreach.analysers`).
        adapters: Carriers and voice providers of one's own, beside those that the engine brings and those of installed
            packages (entry points of the group `outreach.adapters`).
        dispatcher: Makes the dispatcher, where this process dispatches; by default one that lives in this process
            (`outreach.protocols.Dispatcher`).
        sandbox_carrier: Takes the messages of sandboxes; the simulated carrier by default.
        sandbox_voice: Takes the calls of sandboxes; the simulated voice provider by default.
        vault: Encrypts the credentials of accounts; by default with a key that ends with this engine.
        instrumentation: Observes what the engine does, such as `outreach.metrics.EngineMetrics` and
            `outreach.tracing.Tracing`.

    Attributes:
        workspaces: The tenants.
        api_keys: Their API keys.
        audit: Who has changed what.
        agents: Voice agents.
        trunks: SIP trunks.
        numbers: Numbers to send and call from.
        flows: Automation flows.
        sms_settings: Settings of SMS campaigns.
        call_settings: Settings of calling campaigns.
        reply_settings: What is answered to STOP, START and HELP.
        prices: What messages and calls cost, for the estimates of a preflight.
        unsubscribes: The unsubscribe register.
        erasure: Erasing people, and what workspaces keep no longer.
        campaigns: Campaigns: creating, reading, starting and stopping them, and what they came to.
        calls: Single calls.
        messages: Single messages, and those that people write back.
        dispatches: Requests whose outcome is unknown.
        accounts: Accounts at carriers and voice providers.
        callbacks: What providers call back.
        events: What has happened, delivered after its commit.
        http: The same for applications that serve it over HTTP themselves: stored responses, request limits.
        status: `engine.status(workspace_id)` returns who dispatches, what runs and what needs a person: in one
            workspace or, without an argument, in all.
        diagnose: `engine.diagnose()` returns what is wrong with the set-up and the data, and what fixes it.
        readiness: `engine.readiness()` returns whether this process can do its work now.
        figures: `engine.figures()` counts what is open in the whole database, for metrics.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        dispatch: bool = False,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        config: EngineConfig | None = None,
        simulator: SimulatorConfig | None = None,
        analyser: Analyser | str | None = None,
        adapters: Sequence[AnyAdapter] = (),
        dispatcher: DispatcherFactory | None = None,
        sandbox_carrier: Carrier | None = None,
        sandbox_voice: VoiceProvider | None = None,
        vault: Vault | None = None,
        instrumentation: Sequence[Instrumentation] = (),
    ) -> None:
        super().__init__(
            AsyncOutreach(
                storage,
                dispatch=dispatch,
                clock=clock,
                rng=rng,
                config=config,
                simulator=simulator,
                analyser=analyser,
                adapters=adapters,
                dispatcher=dispatcher,
                sandbox_carrier=sandbox_carrier,
                sandbox_voice=sandbox_voice,
                vault=vault,
                instrumentation=instrumentation,
            )
        )

    @classmethod
    def open(
        cls,
        url: str,
        *,
        dispatch: bool = False,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        config: EngineConfig | None = None,
        simulator: SimulatorConfig | None = None,
        analyser: Analyser | str | None = None,
        adapters: Sequence[AnyAdapter] = (),
        dispatcher: DispatcherFactory | None = None,
        sandbox_carrier: Carrier | None = None,
        sandbox_voice: VoiceProvider | None = None,
        vault: Vault | None = None,
        instrumentation: Sequence[Instrumentation] = (),
        create: bool = True,
        migrate: bool | None = None,
    ) -> Self:
        """Return an engine over the database that a URL names; the first call, or `start`, opens it.

        `OUTREACH_HOST_ID` names this machine where its own identity changes from start to start, as in a
        container: a database that finds itself on another machine does not start sending. `OUTREACH_STATE_DIR` names
        the directory in which a worker notes how far a PostgreSQL database has come; by default it is the one that
        systemd names (`STATE_DIRECTORY`), if any: a database that was set back does not start sending.
        `OUTREACH_SECRET_KEY` holds
        the key that accounts' credentials are encrypted with, or `OUTREACH_SECRET_KEY_FILE` names a file that does;
        without them it is the systemd credential `outreach-secret-key`, else a file beside the database.

        Args:
            url: `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://host/database` or `memory://`.
            dispatch: Whether this process sends. The server asks for it, the command line does not.
            clock: Where the time comes from; the system by default.
            rng: Where randomness comes from; the system by default.
            config: How it behaves; by default as the environment says (`EngineConfig.load(os.environ)`).
            simulator: How the simulators behave; by default as the environment says, too.
            analyser: Decides what came of a call that has ended, or the name of an installed one; by default that of
                `OUTREACH_ANALYSER`, else the provider's own verdict.
            adapters: Carriers and voice providers of one's own; see the class.
            dispatcher: Makes the dispatcher; see the class.
            sandbox_carrier: Takes the messages of sandboxes; the simulated carrier by default.
            sandbox_voice: Takes the calls of sandboxes; the simulated voice provider by default.
            vault: Encrypts the credentials of accounts; by default with the key above.
            instrumentation: Observes what the engine does; see the class.
            create: Whether opening it makes the database where there is none; otherwise that is `DatabaseMissing`.
            migrate: Whether opening it brings a database of an older version up to date; otherwise that is
                `DatabaseOlder`. By default the process that dispatches does so: it is the one that owns the database,
                and what merely looks into it must not change it under another one that runs.

        Raises:
            ConfigError: The URL or a variable is not valid.
        """
        return cls._over(
            AsyncOutreach.open(
                url,
                dispatch=dispatch,
                clock=clock,
                rng=rng,
                config=config,
                simulator=simulator,
                analyser=analyser,
                adapters=adapters,
                dispatcher=dispatcher,
                sandbox_carrier=sandbox_carrier,
                sandbox_voice=sandbox_voice,
                vault=vault,
                instrumentation=instrumentation,
                create=create,
                migrate=migrate,
            )
        )

    def now(self) -> datetime:
        """Return the present moment by the engine's clock."""
        return self._plain(lambda service: service.now())

    def health(self) -> DispatcherHealth:
        """Return how dispatching is in this process."""
        return self._plain(lambda service: service.health())

    def _serve(self) -> None:
        self.readiness = ReadinessProbe(self._lifetime, lambda engine: engine.readiness)
        self.status = StatusQuery(self._lifetime, lambda engine: engine.status)
        self.diagnose = DiagnosisQuery(self._lifetime, lambda engine: engine.diagnose)
        self.figures = FiguresQuery(self._lifetime, lambda engine: engine.figures)
        self.workspaces = Workspaces(self._lifetime, lambda engine: engine.workspaces)
        self.api_keys = ApiKeys(self._lifetime, lambda engine: engine.api_keys)
        self.audit = Audit(self._lifetime, lambda engine: engine.audit)
        self.agents = Agents(self._lifetime, lambda engine: engine.agents)
        self.trunks = Trunks(self._lifetime, lambda engine: engine.trunks)
        self.numbers = Numbers(self._lifetime, lambda engine: engine.numbers)
        self.flows = Flows(self._lifetime, lambda engine: engine.flows)
        self.sms_settings = Settings(self._lifetime, lambda engine: engine.sms_settings)
        self.call_settings = CallingSettings(self._lifetime, lambda engine: engine.call_settings)
        self.reply_settings = Replies(self._lifetime, lambda engine: engine.reply_settings)
        self.prices = Prices(self._lifetime, lambda engine: engine.prices)
        self.unsubscribes = Unsubscribes(self._lifetime, lambda engine: engine.unsubscribes)
        self.erasure = Erasure(self._lifetime, lambda engine: engine.erasure)
        self.campaigns = Campaigns(self._lifetime, lambda engine: engine.campaigns)
        self.calls = Calls(self._lifetime, lambda engine: engine.calls)
        self.messages = Messages(self._lifetime, lambda engine: engine.messages)
        self.dispatches = Dispatches(self._lifetime, lambda engine: engine.dispatches)
        self.accounts = Accounts(self._lifetime, lambda engine: engine.accounts)
        self.callbacks = Callbacks(self._lifetime, lambda engine: engine.callbacks)
        self.events = Events(self._lifetime, lambda engine: engine.events)
        self.http = HttpOperations(self._lifetime, lambda engine: engine.http)
