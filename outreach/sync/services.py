"""The engine and its services for synchronous code, written by tests/sync/generate.py: do not edit.

`make sync` writes this file anew after a change of an asynchronous service.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Self, overload

from outreach.clock import Clock
from outreach.config import EngineConfig, SimulatorConfig
from outreach.engine import Outreach as AsyncOutreach
from outreach.errors import ErrorDetail
from outreach.models.account import Account, AccountSummary, AdapterProblem, CallbackRecord, Provider, ProviderThrottle
from outreach.models.base import CarrierName, Channel, JsonPage, Page
from outreach.models.call import Call, NewCall
from outreach.models.campaign import (
    Campaign,
    CampaignCreated,
    CampaignUpdate,
    Counters,
    NewCallCampaign,
    NewSmsCampaign,
)
from outreach.models.dispatch import Dispatch, DispatchCount
from outreach.models.events import Event
from outreach.models.failures import ProviderFailure, RecipientOutcome
from outreach.models.http import IdempotentRequest, RateLimitState, StoredAnswer
from outreach.models.message import InboundMessage, Message, NewMessage
from outreach.models.recipient import PreparedRecipient, Recipient, RecipientCount
from outreach.models.resources import (
    Agent,
    AgentDirection,
    AgentUpdate,
    Flow,
    FlowStep,
    FlowUpdate,
    Number,
    NumberUpdate,
    Trunk,
    TrunkUpdate,
    VoicemailPolicy,
    VoiceProviderName,
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
from outreach.models.states import CampaignStatus, RecipientStatus, WorkspaceMode
from outreach.models.status import CampaignBlocker, DispatcherHealth, EngineStatus, Readiness, StartCheck
from outreach.models.subscription import Subscription
from outreach.models.trail import ContactHistory
from outreach.models.unsubscribe import RegisterImport, Unsubscribe, UnsubscribeScope
from outreach.models.work import AuditEntry
from outreach.models.workspace import DEFAULT_REQUEST_LIMIT, ApiKey, CreatedApiKey, Workspace, WorkspaceUpdate
from outreach.operations.settling.reconciling import OperatorDecision
from outreach.protocols.adapter import AccountCheck, CredentialField
from outreach.protocols.carrier import Carrier
from outreach.protocols.dispatcher import DispatcherFactory
from outreach.protocols.storage import Storage
from outreach.protocols.voice import Analyser, VoiceProvider
from outreach.providers.registry import AnyAdapter
from outreach.services.accounts import Accounts as AsyncAccounts
from outreach.services.agents import Agents as AsyncAgents
from outreach.services.api_keys import ApiKeys as AsyncApiKeys
from outreach.services.audit import Audit as AsyncAudit
from outreach.services.callbacks import Callbacks as AsyncCallbacks
from outreach.services.calls import Calls as AsyncCalls
from outreach.services.campaigns import Campaigns as AsyncCampaigns
from outreach.services.contacts import Contact
from outreach.services.dispatches import Dispatches as AsyncDispatches
from outreach.services.events import A, B, C
from outreach.services.events import Events as AsyncEvents
from outreach.services.flows import Flows as AsyncFlows
from outreach.services.messages import Messages as AsyncMessages
from outreach.services.numbers import Numbers as AsyncNumbers
from outreach.services.rate_limits import RateLimiter as AsyncRateLimiter
from outreach.services.readiness import ReadinessProbe as AsyncReadinessProbe
from outreach.services.settings import CallingSettings as AsyncCallingSettings
from outreach.services.settings import Replies as AsyncReplies
from outreach.services.settings import Settings as AsyncSettings
from outreach.services.status import StatusQuery as AsyncStatusQuery
from outreach.services.trunks import Trunks as AsyncTrunks
from outreach.services.unsubscribes import Unsubscribes as AsyncUnsubscribes
from outreach.services.workspaces import Workspaces as AsyncWorkspaces
from outreach.sync.engine import Engine
from outreach.sync.service import Service
from outreach.sync.streams import EventStream, NamedStream
from outreach.vault import Vault

RecipientSource = Iterable[Contact | PreparedRecipient | Sequence[PreparedRecipient]]


class ReadinessProbe(Service[AsyncReadinessProbe]):
    """Finds out whether this process is ready; many that ask at once share one write."""

    def __call__(self) -> Readiness:
        """Write a little, and return how it is; takes `WRITE_SECONDS` and a little more at the most.

        Raises:
            ConfigError: The engine was opened elsewhere: nothing here answers for it.
        """
        return self._call(lambda service: service())


class StatusQuery(Service[AsyncStatusQuery]):
    """Looks at one workspace or at all of them; costs the same however much was sent before."""

    def __call__(self, workspace_id: str | None = None) -> EngineStatus:
        """Return how a workspace is now, or all of them.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service(workspace_id))


class Workspaces(Service[AsyncWorkspaces]):
    """The tenants of the engine."""

    def create(
        self,
        name: str,
        *,
        mode: WorkspaceMode = WorkspaceMode.SANDBOX,
        sms_campaigns_enabled: bool = True,
        request_limit: int | None = DEFAULT_REQUEST_LIMIT,
        default_region: str | None = None,
        contact_hours: bool | None = None,
        frequency_cap: int | None = None,
        actor: str = "library",
    ) -> Workspace:
        """Make a workspace.

        Args:
            name: 1 to 255 characters.
            mode: A sandbox sends everything to the simulators.
            sms_campaigns_enabled: Whether SMS campaigns may be created (docs/interface.md#4.3, rule 1).
            request_limit: Requests a minute over all its keys; None for no limit.
            default_region: Region in which local numbers are read, such as `US`; None reads international ones only.
            contact_hours: Whether people are contacted between 8 and 21 of their own clocks only; None for yes in a
                live workspace and no in a sandbox.
            frequency_cap: How many dispatches may go to one number in 24 hours, over all campaigns; None for any.
            actor: Who does it, for the audit trail.

        Raises:
            InvalidRequest: A value is out of its bounds.
        """
        return self._call(
            lambda service: service.create(
                name,
                mode=mode,
                sms_campaigns_enabled=sms_campaigns_enabled,
                request_limit=request_limit,
                default_region=default_region,
                contact_hours=contact_hours,
                frequency_cap=frequency_cap,
                actor=actor,
            )
        )

    def update(self, workspace_id: str, change: WorkspaceUpdate, *, actor: str = "library") -> Workspace:
        """Change a workspace; a running server heeds it within a second.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A value is out of its bounds.
        """
        return self._call(lambda service: service.update(workspace_id, change, actor=actor))

    def get(self, workspace_id: str) -> Workspace:
        """Return a workspace.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.get(workspace_id))

    def list(self) -> Sequence[Workspace]:
        """Return all workspaces, oldest first."""
        return self._call(lambda service: service.list())


class ApiKeys(Service[AsyncApiKeys]):
    """The API keys of workspaces."""

    def create(self, workspace_id: str, *, name: str = "", actor: str = "library") -> CreatedApiKey:
        """Make an API key. The key is in the answer and nowhere else: only its SHA-256 is stored.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.create(workspace_id, name=name, actor=actor))

    def list(self, workspace_id: str) -> Sequence[ApiKey]:
        """Return a workspace's keys, revoked ones included, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.list(workspace_id))

    def get_anywhere(self, key_id: str) -> ApiKey:
        """Return a key of whatever workspace: for operators, whose commands name keys alone.

        Raises:
            NotFound: There is no such key.
        """
        return self._call(lambda service: service.get_anywhere(key_id))

    def revoke(self, workspace_id: str, key_id: str, *, actor: str = "library") -> ApiKey:
        """Make a key worthless: in this process at once, in others within a second.

        Raises:
            NotFound: The workspace has no such key.
        """
        return self._call(lambda service: service.revoke(workspace_id, key_id, actor=actor))

    def authenticate(self, api_key: str) -> Workspace:
        """Return the workspace that a key belongs to, whatever its status.

        What was found is believed for half a second: a key that another process revokes is worthless within that, one
        that is revoked here at once. The key is looked up by its digest: what an attacker could learn from timing is
        about the digest of what he sent, which tells him nothing of any key.

        Raises:
            Unauthorized: The key is malformed, unknown or revoked.
        """
        return self._call(lambda service: service.authenticate(api_key))


class Audit(Service[AsyncAudit]):
    """The audit trail of workspaces, and of what belongs to none."""

    def list(self, workspace_id: str | None = None, *, limit: int = 1000) -> Sequence[AuditEntry]:
        """Return the newest entries of the audit trail, of a workspace or of all, newest first.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The limit is none.
        """
        return self._call(lambda service: service.list(workspace_id, limit=limit))

    def record(self, workspace_id: str | None, *, actor: str, action: str, subject: str) -> None:
        """Append to the audit trail what an embedding application did.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.record(workspace_id, actor=actor, action=action, subject=subject))


class Agents(Service[AsyncAgents]):
    """The voice agents of workspaces."""

    def create(
        self,
        workspace_id: str,
        name: str,
        *,
        provider: VoiceProviderName = "simulator",
        direction: AgentDirection = "outbound",
        allow_outbound: bool = False,
        is_active: bool = True,
        provider_agent_id: str | None = None,
        placeholders: Sequence[str] | None = None,
        from_number: str | None = None,
        voicemail: VoicemailPolicy | None = None,
        voicemail_message: str | None = None,
        max_call_seconds: int | None = None,
        idempotency_key: str | None = None,
        actor: str = "library",
    ) -> Agent:
        """Make an agent.

        Args:
            workspace_id: Whose agent it is.
            name: 1 to 255 characters.
            provider: Its voice provider.
            direction: `outbound`, or `inbound`, which calls out only with `allow_outbound`.
            allow_outbound: Whether an inbound agent may call out.
            is_active: Whether it may be used.
            provider_agent_id: Its identifier at the provider.
            placeholders: The template variables that it expects; None accepts any.
            from_number: Caller ID; normalised to E.164.
            voicemail: What its calls do when a machine answers; None leaves it to the agent as the provider has it.
            voicemail_message: What they leave there, 1 to 1,000 characters; goes with `leave_message`.
            max_call_seconds: How long a call may last, 10 to 43,200; None leaves it to the provider.
            idempotency_key: Names this one agent, such as `order-42`: within a day the same key makes no other one, and
                returns it.
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A value is out of its bounds, or the key was used with other content.
            RequestInProgress: The first call with this key still runs.
        """
        return self._call(
            lambda service: service.create(
                workspace_id,
                name,
                provider=provider,
                direction=direction,
                allow_outbound=allow_outbound,
                is_active=is_active,
                provider_agent_id=provider_agent_id,
                placeholders=placeholders,
                from_number=from_number,
                voicemail=voicemail,
                voicemail_message=voicemail_message,
                max_call_seconds=max_call_seconds,
                idempotency_key=idempotency_key,
                actor=actor,
            )
        )

    def update(self, workspace_id: str, agent_id: str, change: AgentUpdate, *, actor: str = "library") -> Agent:
        """Change an agent; campaigns that have not started become ready, or drafts, by whether it may call then.

        Raises:
            NotFound: The workspace has no such agent.
            InvalidRequest: A value is out of its bounds.
        """
        return self._call(lambda service: service.update(workspace_id, agent_id, change, actor=actor))

    def get(self, workspace_id: str, agent_id: str) -> Agent:
        """Return an agent.

        Raises:
            NotFound: The workspace has no such agent.
        """
        return self._call(lambda service: service.get(workspace_id, agent_id))

    def list(self, workspace_id: str) -> Sequence[Agent]:
        """Return a workspace's agents, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.list(workspace_id))


class Trunks(Service[AsyncTrunks]):
    """The SIP trunks of workspaces."""

    def create(
        self,
        workspace_id: str,
        name: str,
        *,
        address: str,
        provider_trunk_id: str | None = None,
        idempotency_key: str | None = None,
        actor: str = "library",
    ) -> Trunk:
        """Make a trunk.

        Args:
            workspace_id: Whose trunk it is.
            name: 1 to 255 characters.
            address: SIP host or URI at which it ends, 1 to 255 characters.
            provider_trunk_id: Its identifier at the voice provider, where it has one.
            idempotency_key: Names this one trunk, such as `order-42`: within a day the same key makes no other one, and
                returns it.
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A value is out of its bounds, or the key was used with other content.
            RequestInProgress: The first call with this key still runs.
        """
        return self._call(
            lambda service: service.create(
                workspace_id,
                name,
                address=address,
                provider_trunk_id=provider_trunk_id,
                idempotency_key=idempotency_key,
                actor=actor,
            )
        )

    def update(self, workspace_id: str, trunk_id: str, change: TrunkUpdate, *, actor: str = "library") -> Trunk:
        """Change a trunk; calls that are placed from then on go by it.

        Raises:
            NotFound: The workspace has no such trunk.
            InvalidRequest: A value is out of its bounds.
        """
        return self._call(lambda service: service.update(workspace_id, trunk_id, change, actor=actor))

    def remove(self, workspace_id: str, trunk_id: str, *, actor: str = "library") -> Trunk:
        """Remove a trunk; campaigns that are over keep its identifier.

        Raises:
            NotFound: The workspace has no such trunk.
            Conflict: A campaign that is not over, or a number, goes over it.
        """
        return self._call(lambda service: service.remove(workspace_id, trunk_id, actor=actor))

    def list(self, workspace_id: str) -> Sequence[Trunk]:
        """Return a workspace's trunks, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.list(workspace_id))


class Numbers(Service[AsyncNumbers]):
    """The numbers that workspaces send and call from."""

    def create(
        self,
        workspace_id: str,
        phone: str,
        *,
        carrier: CarrierName | None = None,
        trunk_id: str | None = None,
        rate_per_minute: int | None = None,
        idempotency_key: str | None = None,
        actor: str = "library",
    ) -> Number:
        """Add a number.

        Args:
            workspace_id: Whose number it is.
            phone: Normalised to E.164; a workspace has a number once.
            carrier: The SMS carrier that it belongs to.
            trunk_id: The trunk that it is reached over.
            rate_per_minute: Messages a minute that it may send, over all campaigns; 1 to 600, None for no such rate.
            idempotency_key: Names this one number, such as `order-42`: within a day the same key makes no other one,
                and returns it.
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: There is no such workspace, or it has no such trunk.
            InvalidRequest: It is no number, the workspace has it already, or the key was used with other content.
            RequestInProgress: The first call with this key still runs.
        """
        return self._call(
            lambda service: service.create(
                workspace_id,
                phone,
                carrier=carrier,
                trunk_id=trunk_id,
                rate_per_minute=rate_per_minute,
                idempotency_key=idempotency_key,
                actor=actor,
            )
        )

    def update(self, workspace_id: str, number_id: str, change: NumberUpdate, *, actor: str = "library") -> Number:
        """Change what a number is for; campaigns that send from it heed its new rate at once.

        Raises:
            NotFound: The workspace has no such number or trunk.
            InvalidRequest: A value is out of its bounds.
        """
        return self._call(lambda service: service.update(workspace_id, number_id, change, actor=actor))

    def remove(self, workspace_id: str, number_id: str, *, actor: str = "library") -> Number:
        """Remove a number; what was sent from it stays in the ledger.

        Raises:
            NotFound: The workspace has no such number.
            Conflict: A campaign that is not over, or an active agent, sends or calls from it.
        """
        return self._call(lambda service: service.remove(workspace_id, number_id, actor=actor))

    def list(self, workspace_id: str) -> Sequence[Number]:
        """Return a workspace's numbers, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.list(workspace_id))


class Flows(Service[AsyncFlows]):
    """The automation flows of workspaces."""

    def create(
        self,
        workspace_id: str,
        name: str,
        *,
        steps: Sequence[FlowStep],
        idempotency_key: str | None = None,
        actor: str = "library",
    ) -> Flow:
        """Make a flow.

        Args:
            workspace_id: Whose flow it is.
            name: 1 to 255 characters.
            steps: What it does, in order.
            idempotency_key: Names this one flow, such as `order-42`: within a day the same key makes no other one, and
                returns it.
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A step is not valid, no step sends anything, or the key was used with other content.
            RequestInProgress: The first call with this key still runs.
        """
        return self._call(
            lambda service: service.create(
                workspace_id, name, steps=steps, idempotency_key=idempotency_key, actor=actor
            )
        )

    def update(self, workspace_id: str, flow_id: str, change: FlowUpdate, *, actor: str = "library") -> Flow:
        """Change a flow; its steps only while no campaign that has been started goes through them.

        Raises:
            NotFound: The workspace has no such flow.
            InvalidRequest: A step is not valid, or no step sends anything.
            Conflict: Its steps are to change, and a campaign that has been started and is not over is driven by it.
        """
        return self._call(lambda service: service.update(workspace_id, flow_id, change, actor=actor))

    def remove(self, workspace_id: str, flow_id: str, *, actor: str = "library") -> Flow:
        """Remove a flow; campaigns that are over keep its identifier.

        Raises:
            NotFound: The workspace has no such flow.
            Conflict: A campaign that is not over is driven by it.
        """
        return self._call(lambda service: service.remove(workspace_id, flow_id, actor=actor))

    def list(self, workspace_id: str) -> Sequence[Flow]:
        """Return a workspace's flows, oldest first.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.list(workspace_id))


class Settings(Service[AsyncSettings]):
    """SMS settings of workspaces (docs/interface.md#2.4 and #4.4)."""

    def get(self, workspace_id: str) -> SmsSettings:
        """Return a workspace's SMS settings.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.get(workspace_id))

    def update(self, workspace_id: str, change: SmsSettingsUpdate, *, actor: str = "library") -> SmsSettings:
        """Change the fields that are given and return all.

        Changes of different fields at the same time are all kept.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A value is out of its bounds; nothing was changed.
        """
        return self._call(lambda service: service.update(workspace_id, change, actor=actor))


class CallingSettings(Service[AsyncCallingSettings]):
    """Settings of workspaces' calling campaigns (docs/rules.md#retry)."""

    def get(self, workspace_id: str) -> CallSettings:
        """Return how a workspace's calling campaigns try again.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.get(workspace_id))

    def update(self, workspace_id: str, change: CallSettingsUpdate, *, actor: str = "library") -> CallSettings:
        """Change the fields that are given and return all; what waits already keeps its time.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A value is out of its bounds; nothing was changed.
        """
        return self._call(lambda service: service.update(workspace_id, change, actor=actor))


class Replies(Service[AsyncReplies]):
    """How workspaces answer keywords; where a carrier answers by itself nothing of it is used."""

    def get(self, workspace_id: str) -> ReplySettings:
        """Return a workspace's settings.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.get(workspace_id))

    def effective_texts(self, workspace_id: str) -> Sequence[ReplyText]:
        """Return the three answers as they would be sent now: after STOP, after START, to HELP.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.effective_texts(workspace_id))

    def update(self, workspace_id: str, change: ReplySettingsUpdate, *, actor: str = "library") -> ReplySettings:
        """Change the fields that are given and return all; a text that is empty or None takes the default again.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: A text is too long, blank or cannot be stored everywhere; nothing was changed.
        """
        return self._call(lambda service: service.update(workspace_id, change, actor=actor))


class Unsubscribes(Service[AsyncUnsubscribes]):
    """Who must not be contacted."""

    def add(
        self,
        workspace_id: str,
        *phones: str,
        scope: UnsubscribeScope = "all",
        source: str = "operator",
        evidence: str | None = None,
        actor: str = "library",
    ) -> Sequence[Unsubscribe]:
        """Put numbers on the register, at once and for every campaign; return the entries.

        A number that is there with another scope is stopped on all channels from then on. Recipients that wait with
        one of them end as skipped, and stay so when it is taken off the register again. A `source` of `keyword` says
        that the person wrote it: a START takes such an entry back, and no other.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: One is no phone number, or the scope is none; none was written.
        """
        return self._call(
            lambda service: service.add(
                workspace_id, *phones, scope=scope, source=source, evidence=evidence, actor=actor
            )
        )

    def import_numbers(
        self, workspace_id: str, rows: Iterable[str], *, scope: UnsubscribeScope = "all", actor: str = "library"
    ) -> RegisterImport:
        """Put many numbers on the register; rows that are no number are named, the others are written.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The scope is none.
        """
        return self._supply(
            lambda service, each: service.import_numbers(workspace_id, each(rows), scope=scope, actor=actor)
        )

    def remove(self, workspace_id: str, *phones: str, actor: str = "library") -> int:
        """Take numbers off the register; return how many were there.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: One is no phone number; none was removed.
        """
        return self._call(lambda service: service.remove(workspace_id, *phones, actor=actor))

    def list_pending(self, workspace_id: str, *, limit: int = 1000) -> Sequence[Unsubscribe]:
        """Return who is held back from campaigns because of a message that may be an opt-out, the latest first.

        Each waits for somebody to `decide`; its `evidence` has what was written.

        Args:
            workspace_id: Whose register.
            limit: How many at the most.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.list_pending(workspace_id, limit=limit))

    def resolve(self, workspace_id: str, phone: str, *, opted_out: bool, actor: str = "library") -> None:
        """Decide what the unclear message of somebody who is held back meant.

        Args:
            workspace_id: Whose register.
            phone: The number.
            opted_out: Whether it was an opt-out: then the number is on the register for everything, until the person
                writes START. Otherwise campaigns go on with it.
            actor: Who decides, for the audit trail.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: It is no phone number, or the decision is neither True nor False.
            Conflict: The number is not held back: there is nothing to decide.
        """
        return self._call(lambda service: service.resolve(workspace_id, phone, opted_out=opted_out, actor=actor))

    def iter_entries(self, workspace_id: str) -> Iterator[Unsubscribe]:
        """Go through the register in the order of the numbers.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._items(lambda service: service.iter_entries(workspace_id))

    def filter_unsubscribed(self, workspace_id: str, channel: Channel, phones: Sequence[str]) -> frozenset[str]:
        """Return those of the E.164 numbers that must not be reached by a channel.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: There is no such channel.
        """
        return self._call(lambda service: service.filter_unsubscribed(workspace_id, channel, phones))


class Campaigns(Service[AsyncCampaigns]):
    """The campaigns of workspaces."""

    def get(self, workspace_id: str, campaign_id: str) -> Campaign:
        """Return a campaign.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.get(workspace_id, campaign_id))

    def get_anywhere(self, campaign_id: str) -> Campaign:
        """Return a campaign of whatever workspace: for operators, whose commands name campaigns alone.

        Raises:
            NotFound: There is no such campaign.
        """
        return self._call(lambda service: service.get_anywhere(campaign_id))

    def start_problems(self, workspace_id: str, campaign_id: str) -> Sequence[ErrorDetail]:
        """Return everything that is in the way of a campaign's start now: the field that says it, and a sentence.

        `start` raises `CannotStart` with the same. The fields that a draft lacks have the names of `CampaignUpdate`.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.start_problems(workspace_id, campaign_id))

    def throttled_until(self, workspace_id: str, campaign_id: str) -> datetime | None:
        """Return until when an active campaign sends nothing because its provider told us to come again later.

        None when it is not so. The hold is the workspace's at that provider: all its campaigns there, and its single
        messages and calls, wait with it.

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
        page: int = 1,
        page_size: int = 20,
    ) -> Page[Campaign]:
        """Return a page of campaigns, newest first.

        Args:
            workspace_id: Whose campaigns.
            channel: Of one channel only; None for both.
            status: Compared with the raw status.
            search: Part of the name, case-insensitively; None or empty for all.
            page: From 1; past the end the page is empty.
            page_size: At least 1; more than 100 is served as 100.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The page, its size, the status, the channel or the search is none.
        """
        return self._call(
            lambda service: service.list(
                workspace_id, channel=channel, status=status, search=search, page=page, page_size=page_size
            )
        )

    def list_json(
        self,
        workspace_id: str,
        *,
        channel: Channel | None = None,
        status: CampaignStatus | None = None,
        search: str | None = None,
        page: int = 1,
        page_size: int = 20,
    ) -> JsonPage:
        """Return the same page as `list` does, as JSON with the fields of the interface.

        What was made before is given again while it is true; whoever has changed anything, here or in another process,
        sees that at once.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The page, its size, the status, the channel or the search is none.
        """
        return self._call(
            lambda service: service.list_json(
                workspace_id, channel=channel, status=status, search=search, page=page, page_size=page_size
            )
        )

    def start(
        self, workspace_id: str, campaign_id: str, *, allow_unknown_placeholders: bool = False, actor: str = "library"
    ) -> Campaign:
        """Start a ready campaign: it becomes active, or scheduled when its start is still ahead.

        Args:
            workspace_id: Whose campaign.
            campaign_id: Which one.
            allow_unknown_placeholders: Whether it starts although its text has placeholders that nothing fills, and
                that have no fallback (`CampaignCreated.unknown_placeholders`).
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: The workspace has no such campaign.
            WorkspaceUnavailable: The workspace may not work now.
            IllegalTransition: The campaign has been started before, or is over.
            CannotStart: Something is in the way; every reason is named. That its text suits none of its contacts is
                one: it is over the cap of segments for each, or empty.
        """
        return self._call(
            lambda service: service.start(
                workspace_id, campaign_id, allow_unknown_placeholders=allow_unknown_placeholders, actor=actor
            )
        )

    def check_start(self, workspace_id: str, campaign_id: str) -> StartCheck:
        """Return how many of a campaign's contacts will fail because what they would be sent cannot be sent.

        That is a text over the cap of segments (`SmsSettings.max_segments`), footer included, or an empty one. The
        first 10,000 contacts are looked at, in slices.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.check_start(workspace_id, campaign_id))

    def pause(self, workspace_id: str, campaign_id: str, *, actor: str = "library") -> Campaign:
        """Pause a campaign: once this returns, no message of it goes out that was not on its way."""
        return self._call(lambda service: service.pause(workspace_id, campaign_id, actor=actor))

    def resume(self, workspace_id: str, campaign_id: str, *, actor: str = "library") -> Campaign:
        """Let a paused campaign go on."""
        return self._call(lambda service: service.resume(workspace_id, campaign_id, actor=actor))

    def cancel(self, workspace_id: str, campaign_id: str, *, actor: str = "library") -> Campaign:
        """Cancel a campaign for good."""
        return self._call(lambda service: service.cancel(workspace_id, campaign_id, actor=actor))

    def unschedule(self, workspace_id: str, campaign_id: str, *, actor: str = "library") -> Campaign:
        """Take a scheduled campaign back to ready."""
        return self._call(lambda service: service.unschedule(workspace_id, campaign_id, actor=actor))

    def pause_all(self, workspace_id: str | None = None, *, actor: str = "library") -> Sequence[Campaign]:
        """Pause everything that is active or scheduled, in one workspace or in all; return what was paused.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.pause_all(workspace_id, actor=actor))

    def update(
        self, workspace_id: str, campaign_id: str, change: CampaignUpdate, *, actor: str = "library"
    ) -> Campaign:
        """Change a campaign that has not started; it becomes ready or draft by what it holds then.

        Raises:
            NotFound: The workspace has no such campaign, flow or agent.
            InvalidRequest: A value is out of its bounds.
            Conflict: The campaign has started.
        """
        return self._call(lambda service: service.update(workspace_id, campaign_id, change, actor=actor))

    def iter_recipients(self, workspace_id: str, campaign_id: str) -> Iterator[Recipient]:
        """Go through a campaign's recipients by position.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._items(lambda service: service.iter_recipients(workspace_id, campaign_id))

    def count_recipients(self, workspace_id: str, campaign_id: str) -> Sequence[RecipientCount]:
        """Return how many recipients are in each state for each reason.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.count_recipients(workspace_id, campaign_id))

    def recount(self, workspace_id: str, campaign_id: str) -> Counters:
        """Return the counters by looking at every recipient; they equal the campaign's own.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.recount(workspace_id, campaign_id))

    def dispatches(self, workspace_id: str, campaign_id: str, position: int) -> Sequence[Dispatch]:
        """Return what the ledger holds of one recipient, oldest first.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.dispatches(workspace_id, campaign_id, position))

    def contact_history(self, workspace_id: str, campaign_id: str, phone: str) -> Sequence[ContactHistory]:
        """Return what happened to a number in a campaign, step by step, each with its reason and its rule.

        Who was left out because of the register has no place in the campaign; such a number has one history, whose
        `position` is None.

        Args:
            workspace_id: Whose campaign.
            campaign_id: Which one.
            phone: The number, in any notation; a local one is read in the workspace's default region. What is no
                possible number is found as it was supplied.

        Returns:
            A history for each place of the number, by position: a number can come twice.

        Raises:
            NotFound: The workspace has no such campaign, or the number is neither in it nor on the register.
            InvalidRequest: The number is no text.
        """
        return self._call(lambda service: service.contact_history(workspace_id, campaign_id, phone))

    def create_sms(
        self,
        workspace_id: str,
        campaign: NewSmsCampaign,
        recipients: RecipientSource,
        *,
        idempotency_key: str | None = None,
        actor: str = "library",
    ) -> CampaignCreated:
        """Create an SMS campaign with its contacts (docs/interface.md#4.3). Nothing is sent by this.

        Args:
            workspace_id: Whose campaign it is.
            campaign: Everything but the contacts.
            recipients: At least one contact, each a `NewRecipient` or a mapping with its fields; any number of them,
                they are never all in memory.
            idempotency_key: Names this one campaign, such as `order-42`: within a day the same key makes no other one,
                and returns it as it is then. The same contacts have to come with it, in the same order.
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: There is no such workspace.
            SmsCampaignsDisabled: SMS campaigns are not turned on for it.
            InvalidRequest: A rule is broken, a flow is not the workspace's, every contact is opted out, or the key was
                used with other content.
            RequestInProgress: The first call with this key still runs.
        """
        return self._supply(
            lambda service, each: service.create_sms(
                workspace_id, campaign, each(recipients), idempotency_key=idempotency_key, actor=actor
            )
        )

    def create_sms_response(
        self,
        workspace_id: str,
        campaign: NewSmsCampaign,
        recipients: RecipientSource,
        *,
        request: IdempotentRequest | None,
        render: Callable[[CampaignCreated], StoredAnswer],
        actor: str,
    ) -> StoredAnswer:
        """Create an SMS campaign for an HTTP server, and return what it answers; a key replays the first answer.

        Raises:
            OutreachError: See `create_sms`.
        """
        return self._supply(
            lambda service, each: service.create_sms_response(
                workspace_id, campaign, each(recipients), request=request, render=render, actor=actor
            )
        )

    def create_call(
        self,
        workspace_id: str,
        campaign: NewCallCampaign,
        recipients: RecipientSource,
        *,
        idempotency_key: str | None = None,
        actor: str = "library",
    ) -> CampaignCreated:
        """Create a calling campaign with its contacts; see `create_sms` for the arguments.

        Raises:
            NotFound: There is no such workspace, or it has no such agent or trunk.
            InvalidRequest: A rule is broken, every contact is opted out, or the key was used with other content.
            RequestInProgress: The first call with this key still runs.
        """
        return self._supply(
            lambda service, each: service.create_call(
                workspace_id, campaign, each(recipients), idempotency_key=idempotency_key, actor=actor
            )
        )

    def create_call_response(
        self,
        workspace_id: str,
        campaign: NewCallCampaign,
        recipients: RecipientSource,
        *,
        request: IdempotentRequest | None,
        render: Callable[[CampaignCreated], StoredAnswer],
        actor: str,
    ) -> StoredAnswer:
        """Create a calling campaign for an HTTP server, and return what it answers; a key replays the first answer.

        Raises:
            OutreachError: See `create_call`.
        """
        return self._supply(
            lambda service, each: service.create_call_response(
                workspace_id, campaign, each(recipients), request=request, render=render, actor=actor
            )
        )

    def check_sms_enabled(self, workspace_id: str) -> None:
        """Check that SMS campaigns are turned on, before a body is even looked at.

        Raises:
            SmsCampaignsDisabled: They are not.
        """
        return self._call(lambda service: service.check_sms_enabled(workspace_id))

    def recipient_failures(self, workspace_id: str, campaign_id: str, position: int) -> dict[str, ProviderFailure]:
        """Return what providers said of each request for a recipient that went wrong, by the dispatch's identifier.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.recipient_failures(workspace_id, campaign_id, position))

    def provider_failures(self, workspace_id: str, campaign_id: str) -> Sequence[tuple[ProviderFailure, int]]:
        """Return what went wrong in a campaign and how often, the most frequent first: requests, not contacts.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.provider_failures(workspace_id, campaign_id))

    def count_dispatches(self, workspace_id: str, campaign_id: str) -> Sequence[DispatchCount]:
        """Return what the requests of a campaign came to, and how many each, the most frequent first.

        Every request is looked at: seconds, where there are millions.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.count_dispatches(workspace_id, campaign_id))

    def iter_outcomes(
        self, workspace_id: str, campaign_id: str, *, status: RecipientStatus | None = None
    ) -> Iterator[RecipientOutcome]:
        """Go through a campaign's recipients by position, each with what its provider said, where something went wrong.

        Args:
            workspace_id: Whose campaign.
            campaign_id: Which one.
            status: Only those in this state; None for all.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._items(lambda service: service.iter_outcomes(workspace_id, campaign_id, status=status))

    def blockers(self, workspace_id: str, campaign_id: str) -> Sequence[CampaignBlocker]:
        """Return all that keeps an active or scheduled campaign from going on, what has to be done first of all first.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.blockers(workspace_id, campaign_id))

    def next_due_times(self, workspace_id: str, campaign_id: str) -> Mapping[tuple[str, str | None], datetime]:
        """Return until when the first recipient of a campaign waits, for each state and reason where that is known.

        Those that wait go on then. An unknown request is given up then, unless there is evidence before: of the oldest
        1,000 of the workspace.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        return self._call(lambda service: service.next_due_times(workspace_id, campaign_id))


class Calls(Service[AsyncCalls]):
    """Single calls of workspaces (docs/interface.md#4.1)."""

    def create(self, workspace_id: str, new: NewCall, *, idempotency_key: str | None = None) -> Call:
        """Queue a call and wait a moment for the provider's acceptance.

        The call that is returned has a `provider_call_id` when the acceptance came in time; whatever happened
        else stands in the call record.

        Args:
            workspace_id: Whose call it is.
            new: What is asked for.
            idempotency_key: Names this one call, such as `order-42`: within a day the same key places no other one,
                and returns it.

        Raises:
            NotFound: The workspace has no such agent.
            InvalidRequest: The number breaks the interface's pattern, a variable is not one of the agent's, or the key
                was used with other content.
            RequestInProgress: The first call with this key still runs.
            Conflict: The agent is inactive or may not call out, a live workspace has no account at its provider, the
                number is on the register, or a call of the same agent to the same number is open.
        """
        return self._call(lambda service: service.create(workspace_id, new, idempotency_key=idempotency_key))

    def create_response(
        self,
        workspace_id: str,
        new: NewCall,
        *,
        request: IdempotentRequest | None,
        render: Callable[[Call], StoredAnswer],
    ) -> StoredAnswer:
        """Queue a call for an HTTP server, and return what it answers; a key replays the first answer.

        Raises:
            OutreachError: See `create`.
        """
        return self._call(lambda service: service.create_response(workspace_id, new, request=request, render=render))

    def get(self, workspace_id: str, identifier: str) -> Call:
        """Return a call by our identifier or by the provider's.

        Raises:
            NotFound: The workspace has no such call.
        """
        return self._call(lambda service: service.get(workspace_id, identifier))

    def get_anywhere(self, identifier: str) -> Call:
        """Return a call of whatever workspace: for operators, whose commands name calls alone.

        Raises:
            NotFound: There is no such call.
        """
        return self._call(lambda service: service.get_anywhere(identifier))

    def failure(self, call: Call) -> ProviderFailure | None:
        """Return what went wrong with a call, a campaign's too, as its provider said it; None where nothing did."""
        return self._call(lambda service: service.failure(call))


class Messages(Service[AsyncMessages]):
    """Single messages of workspaces: POST /sms. They carry no footer (docs/interface.md#4.4)."""

    def send(self, workspace_id: str, new: NewMessage, *, idempotency_key: str | None = None) -> Message:
        """Queue a message.

        Args:
            workspace_id: Whose message it is.
            new: What is asked for.
            idempotency_key: Names this one message, such as `order-42`: within a day the same key queues no other one,
                and returns it.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The number or the text is not valid, or the key was used with other content.
            RequestInProgress: The first call with this key still runs.
            RecipientUnsubscribed: The number is on the register for SMS.
            Conflict: No sending number or carrier can be told, or a live workspace has no account at it.
        """
        return self._call(lambda service: service.send(workspace_id, new, idempotency_key=idempotency_key))

    def send_response(
        self,
        workspace_id: str,
        new: NewMessage,
        *,
        request: IdempotentRequest | None,
        render: Callable[[Message], StoredAnswer],
    ) -> StoredAnswer:
        """Queue a message for an HTTP server, and return what it answers; a key replays the first answer.

        Raises:
            OutreachError: See `send`.
        """
        return self._call(lambda service: service.send_response(workspace_id, new, request=request, render=render))

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
        """Take in a message that somebody wrote back, once; return None for one that is there already.

        It stops flows at their `stop_if_replied` step. STOP, START and HELP are obeyed at once, and answered from the
        number that was written to; what this means is in `operations.register.inbound.receive`.

        Args:
            workspace_id: Whose number was written to.
            from_number: Who wrote; normalised to E.164. A channel may stand before it: `whatsapp:+14155550102`.
            to: Our number.
            body: What was written; empty for a message of media alone.
            provider: The carrier that brought it, and that answers go by; None leaves that to the number.
            provider_id: The carrier's identifier of the message: it is taken in once.
            written_at: When it was written, by the carrier's clock; None for now.
            replies_to_keywords: Whether the carrier answers keywords by itself: then nothing is answered here, but a
                STOP that is none of the carriers' words, such as `please stop`; and a START that is none of this
                carrier's lifts nothing.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The sender is no possible number, the text cannot be stored everywhere, the carrier is
                none, or the time has no zone.
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

    def list_inbound(self, workspace_id: str, *, unclear: bool = False, limit: int = 1000) -> Sequence[InboundMessage]:
        """Return the newest messages that people wrote back, newest first.

        Args:
            workspace_id: Whose messages.
            unclear: Only those that a person has to read (`InboundMessage.unclear`).
            limit: How many at the most.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The limit is none.
        """
        return self._call(lambda service: service.list_inbound(workspace_id, unclear=unclear, limit=limit))

    def get(self, workspace_id: str, message_id: str) -> Message:
        """Return a message.

        Raises:
            NotFound: The workspace has no such message.
        """
        return self._call(lambda service: service.get(workspace_id, message_id))

    def failure(self, message: Message) -> ProviderFailure | None:
        """Return what went wrong with a message, as its provider said it; None where nothing did."""
        return self._call(lambda service: service.failure(message))


class Dispatches(Service[AsyncDispatches]):
    """The ledger's rows, for operators."""

    def list_unknown(self, workspace_id: str, *, limit: int = 1000) -> Sequence[Dispatch]:
        """Return a workspace's unknown dispatches, oldest first.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The limit is none.
        """
        return self._call(lambda service: service.list_unknown(workspace_id, limit=limit))

    def get_anywhere(self, dispatch_id: str) -> Dispatch:
        """Return a dispatch of whatever workspace: for operators, whose commands name dispatches alone.

        Raises:
            NotFound: There is no such dispatch.
        """
        return self._call(lambda service: service.get_anywhere(dispatch_id))

    def resolve(
        self, workspace_id: str, dispatch_id: str, decision: OperatorDecision, *, actor: str = "library"
    ) -> Dispatch:
        """Decide about an unknown dispatch: `assume_sent`, or `retry`.

        Raises:
            NotFound: The workspace has no such dispatch.
            Conflict: It is not unknown, or its request may still be on its way.
            InvalidRequest: There is no such decision.
        """
        return self._call(lambda service: service.resolve(workspace_id, dispatch_id, decision, actor=actor))


class Accounts(Service[AsyncAccounts]):
    """What live workspaces send and call with."""

    def providers(self) -> Sequence[Provider]:
        """Return what an account can be at: what the engine brings, then adapters of one's own and of packages."""
        return self._plain(lambda service: service.providers())

    def adapter_problems(self) -> Sequence[AdapterProblem]:
        """Return which adapters of installed packages cannot be used, and why."""
        return self._plain(lambda service: service.adapter_problems())

    def credential_fields(self, provider: str) -> Sequence[CredentialField]:
        """Return what an account at a provider needs.

        Raises:
            InvalidRequest: There is no such provider.
        """
        return self._plain(lambda service: service.credential_fields(provider))

    def connect(
        self,
        workspace_id: str,
        provider: str,
        credentials: Mapping[str, str],
        *,
        replies_to_keywords: bool | None = None,
        actor: str = "library",
    ) -> Account:
        """Make a workspace's account at a provider, or give the one that it has other credentials.

        An account that is there keeps its id, and so its address for callbacks. However it is connected, with the same
        credentials too, a provider that asked to be left alone may be asked again at once, and what waited for it goes.

        Args:
            workspace_id: Whose account it is.
            provider: One of those that `providers` returns.
            credentials: All of them, by the names of `fields`.
            replies_to_keywords: Whether the provider answers STOP, START and HELP by itself, so that we do not; None
                takes what the provider does as it comes.
            actor: Who does it, for the audit trail.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: There is no such provider, or credentials are missing, unknown or of the wrong form; what
                verifies the provider's callbacks is never optional. Nothing was written.
            ConfigError: There is no usable key to encrypt them with.
        """
        return self._call(
            lambda service: service.connect(
                workspace_id, provider, credentials, replies_to_keywords=replies_to_keywords, actor=actor
            )
        )

    def list(self, workspace_id: str) -> Sequence[AccountSummary]:
        """Return a workspace's accounts, oldest first, without any secret; `problem` tells which cannot be opened.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.list(workspace_id))

    def summarize(self, account: Account, hold: ProviderThrottle | None = None) -> AccountSummary:
        """Return an account as it may be shown.

        Args:
            account: The account.
            hold: What keeps its provider from being asked; one that has just been connected has none.
        """
        return self._plain(lambda service: service.summarize(account, hold))

    def check(self, workspace_id: str, account_id: str) -> AccountCheck:
        """Ask the provider something harmless with an account's credentials, and say in words what is the case.

        A provider that is left alone because it asked for that (`throttled_until`) is asked this all the same, and is
        left alone from then on as before: `connect` ends that.

        Raises:
            NotFound: The workspace has no such account.
            ConfigError: The key that it was encrypted with is not at hand, or its adapter is not installed here.
        """
        return self._call(lambda service: service.check(workspace_id, account_id))

    def throttled_until(self, workspace_id: str, provider: str) -> datetime | None:
        """Return until when nothing is asked of a provider for a workspace because it told us to come again later.

        None when it is not so. Campaigns, single messages and calls wait for it alike.

        Raises:
            NotFound: There is no such workspace.
        """
        return self._call(lambda service: service.throttled_until(workspace_id, provider))

    def get(self, workspace_id: str, account_id: str) -> Account:
        """Return an account.

        Raises:
            NotFound: The workspace has no such account.
        """
        return self._call(lambda service: service.get(workspace_id, account_id))

    def get_anywhere(self, account_id: str) -> Account:
        """Return an account of whatever workspace: for operators, whose commands name accounts alone.

        Raises:
            NotFound: There is no such account.
        """
        return self._call(lambda service: service.get_anywhere(account_id))

    def remove(self, workspace_id: str, account_id: str, *, actor: str = "library") -> Account:
        """Remove an account with its credentials, and return what it was.

        Campaigns that need it are paused at their next request. Its address for callbacks is gone with it: what the
        provider sends there is refused (404). One that is connected anew has another id, and another address.

        Raises:
            NotFound: The workspace has no such account.
        """
        return self._call(lambda service: service.remove(workspace_id, account_id, actor=actor))


class Callbacks(Service[AsyncCallbacks]):
    """Takes in what providers call back, and shows it."""

    def max_body_bytes(self, account_id: str) -> int:
        """Return how large a callback's body may be, which is the provider's to say; a larger one need not be read.

        Raises:
            NotFound: There is no such account.
            ConfigError: Its provider's adapter is not installed here.
        """
        return self._call(lambda service: service.max_body_bytes(account_id))

    def receive(
        self, account_id: str, *, url: str, headers: Mapping[str, str], body: bytes
    ) -> Sequence[CallbackRecord]:
        """Take in one callback, with others that come at the same time; when this returns, what it tells is committed.

        Args:
            account_id: The account that its address names.
            url: Its address as it was asked for: while a public address is set, that address is put in its place,
                because the provider signs what it knows, and a proxy may stand between.
            headers: Its headers, by names in lower case.
            body: Its bytes, as they came.

        Returns:
            The events that were new; none for one that has come before.

        Raises:
            NotFound: There is no such account.
            CallbackRejected: It is not the provider's, or too old or too large, or cannot be read: nothing was changed.
            ConfigError: The account's credentials cannot be opened, or its provider's adapter is not installed here.
        """
        return self._call(lambda service: service.receive(account_id, url=url, headers=headers, body=body))

    def list(self, workspace_id: str, *, limit: int = 1000) -> Sequence[CallbackRecord]:
        """Return the newest events, newest first.

        Raises:
            NotFound: There is no such workspace.
            InvalidRequest: The limit is none.
        """
        return self._call(lambda service: service.list(workspace_id, limit=limit))


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
            since: Go on after this number, which a stream's `position` or an event's `number` was; None to hear of
                what is committed from now on. 0 begins with the first event of all. With a name it says where the
                subscription begins that is not there yet; one that is goes on where it was.
            name: Has the position stored under this name, 1 to 100 characters: of all streams of that name, in
                whatever process, one is told each event, until it acknowledges it (`NamedStream.ack`).

        Raises:
            InvalidRequest: A kind is no class of events, `since` is no number from 0 on, or the name is none.
        """
        return self._stream(
            lambda service: service.subscribe(*kinds, name=name, workspace_id=workspace_id, since=since)
        )

    def subscriptions(self) -> Sequence[Subscription]:
        """Return all named subscriptions, by name: how far each has come, and whether anybody reads it now."""
        return self._call(lambda service: service.subscriptions())

    def remove_subscription(self, name: str) -> None:
        """Forget a named subscription and how far it had come; whoever reads it now gets `NotFound`.

        Raises:
            NotFound: There is none of that name.
        """
        return self._call(lambda service: service.remove_subscription(name))


class RateLimiter(Service[AsyncRateLimiter]):
    """Counts requests against the limits of their workspaces.

    Storage counts a block before its requests come, so that all processes together never let in more than the limit;
    what a process has been granted it spends without writing. While nothing can be written, each process lets in an
    eighth of what the minute has left, and counts that afterwards.
    """

    def acquire(self, workspace: Workspace) -> RateLimitState | None:
        """Count one request against the workspace's limit; None where there is no limit.

        Raises:
            RateLimited: The limit is used up.
            StorageBusy: Nothing could be written for a while, and what may be let in meanwhile has been.
        """
        return self._call(lambda service: service.acquire(workspace))


class Outreach(Engine):
    """The engine for synchronous code: Django, Flask, scripts.

    It runs on an event loop in a thread of its own, and any thread may call it. Make one for each process, as a global
    of your program or as a context manager:

        engine = Outreach.open("sqlite:///app.db", dispatch=True)
        workspace = engine.workspaces.create("Acme")

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
            (`outreach.protocols.dispatcher`).
        sandbox_carrier: Takes the messages of sandboxes; the simulated carrier by default.
        sandbox_voice: Takes the calls of sandboxes; the simulated voice provider by default.
        vault: Encrypts the credentials of accounts; by default with a key that ends with this engine.

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
        unsubscribes: The unsubscribe register.
        campaigns: Campaigns: creating, reading, starting and stopping them, and what they came to.
        calls: Single calls.
        messages: Single messages, and those that people write back.
        dispatches: Requests whose outcome nobody knows.
        accounts: Accounts at carriers and voice providers.
        callbacks: What providers call back.
        events: What has happened, told after its commit.
        rate_limits: The request limits of workspaces.
        status: `engine.status(workspace_id)` tells who dispatches, what runs and what needs a person: in one
            workspace or, without an argument, in all.
        readiness: `engine.readiness()` tells whether this process can do its work now.
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
        create: bool = True,
        migrate: bool | None = None,
    ) -> Self:
        """Return an engine over the database that a URL names; the first call, or `start`, opens it.

        `OUTREACH_HOST_ID` names this machine where its own identity changes from start to start, as in a
        container: a database that finds itself on another machine does not start sending. `OUTREACH_SECRET_KEY` holds
        the key that accounts' credentials are encrypted with; without it there is a file for it beside the database.

        Args:
            url: `sqlite:///relative.db`, `sqlite:////absolute.db` or `memory://`.
            dispatch: Whether this process sends. The server asks for it, the command line does not.
            clock: Where the time comes from; the system by default.
            rng: Where randomness comes from; the system by default.
            config: How it behaves; by default `EngineConfig()`, with `OUTREACH_PUBLIC_URL`.
            simulator: How the simulators behave; the `OUTREACH_SIMULATOR_*` variables by default.
            analyser: Decides what came of a call that has ended, or the name of an installed one; by default that of
                `OUTREACH_ANALYSER`, else the provider's own verdict.
            adapters: Carriers and voice providers of one's own; see the class.
            dispatcher: Makes the dispatcher; see the class.
            sandbox_carrier: Takes the messages of sandboxes; the simulated carrier by default.
            sandbox_voice: Takes the calls of sandboxes; the simulated voice provider by default.
            vault: Encrypts the credentials of accounts; by default with the key above.
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
        self.unsubscribes = Unsubscribes(self._lifetime, lambda engine: engine.unsubscribes)
        self.campaigns = Campaigns(self._lifetime, lambda engine: engine.campaigns)
        self.calls = Calls(self._lifetime, lambda engine: engine.calls)
        self.messages = Messages(self._lifetime, lambda engine: engine.messages)
        self.dispatches = Dispatches(self._lifetime, lambda engine: engine.dispatches)
        self.accounts = Accounts(self._lifetime, lambda engine: engine.accounts)
        self.callbacks = Callbacks(self._lifetime, lambda engine: engine.callbacks)
        self.events = Events(self._lifetime, lambda engine: engine.events)
        self.rate_limits = RateLimiter(self._lifetime, lambda engine: engine.rate_limits)
