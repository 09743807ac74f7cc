"""An engine for SMS campaigns and AI-voice calls, for many workspaces, over swappable storage and providers.

What most programs need is named here. The rest of what is public stands in `outreach.models`, `errors`, `events`,
`protocols`, `adapters`, `backends`, `http`, `reasons`, `database`, `metrics`, `tracing`, `sync` and `testing`;
everything else may change without notice (docs/embedding.md). A name is imported when it is first used.

Docstrings name pages of the documentation, as `docs/embedding.md`. An installed package has them in its directory
`docs`, a checkout at its root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach.core.lazy_names import imported_when_used

if TYPE_CHECKING:
    from outreach.core.clock import Clock
    from outreach.core.config import EngineConfig, SimulatorConfig
    from outreach.core.vault import Vault
    from outreach.engine import Outreach
    from outreach.errors import ConfigError, Conflict, InvalidRequest, NotFound, OutreachError
    from outreach.models.base import UNSET, Page
    from outreach.models.call import Call, NewCall
    from outreach.models.campaign import (
        Campaign,
        CampaignCreated,
        CampaignUpdate,
        NewCallCampaign,
        NewSmsCampaign,
    )
    from outreach.models.dispatch import Dispatch
    from outreach.models.hours import BusinessHours, TimeWindow
    from outreach.models.message import InboundMessage, Message, NewMessage
    from outreach.models.recipient import NewRecipient, Recipient
    from outreach.models.resources import (
        Agent,
        AgentUpdate,
        Flow,
        FlowStep,
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
        SmsSettings,
        SmsSettingsUpdate,
    )
    from outreach.models.states import (
        CallStatus,
        CampaignStatus,
        DispatchState,
        MessageStatus,
        RecipientStatus,
        WorkspaceMode,
        WorkspaceStatus,
    )
    from outreach.models.status import EngineStatus
    from outreach.models.unsubscribe import Unsubscribe
    from outreach.models.workspace import NewWorkspace, Workspace, WorkspaceUpdate
    from outreach.protocols.carrier import Carrier
    from outreach.protocols.dispatcher import Dispatcher
    from outreach.protocols.storage import Storage
    from outreach.protocols.voice import Analyser, VoiceProvider
    from outreach.services.campaigns.contacts import RecipientSource

__version__ = "0.1.0"

__all__ = [
    "UNSET",
    "Agent",
    "AgentUpdate",
    "Analyser",
    "BusinessHours",
    "Call",
    "CallSettings",
    "CallSettingsUpdate",
    "CallStatus",
    "Campaign",
    "CampaignCreated",
    "CampaignStatus",
    "CampaignUpdate",
    "Carrier",
    "Clock",
    "ConfigError",
    "Conflict",
    "Dispatch",
    "DispatchState",
    "Dispatcher",
    "EngineConfig",
    "EngineStatus",
    "Flow",
    "FlowStep",
    "FlowUpdate",
    "InboundMessage",
    "InvalidRequest",
    "Message",
    "MessageStatus",
    "NewAgent",
    "NewCall",
    "NewCallCampaign",
    "NewFlow",
    "NewMessage",
    "NewNumber",
    "NewRecipient",
    "NewSmsCampaign",
    "NewTrunk",
    "NewWorkspace",
    "NotFound",
    "Number",
    "NumberUpdate",
    "Outreach",
    "OutreachError",
    "Page",
    "Recipient",
    "RecipientSource",
    "RecipientStatus",
    "ReplySettings",
    "ReplySettingsUpdate",
    "SimulatorConfig",
    "SmsSettings",
    "SmsSettingsUpdate",
    "Storage",
    "TimeWindow",
    "Trunk",
    "TrunkUpdate",
    "Unsubscribe",
    "Vault",
    "VoiceProvider",
    "Workspace",
    "WorkspaceMode",
    "WorkspaceStatus",
    "WorkspaceUpdate",
    "__version__",
]

if not TYPE_CHECKING:  # which would accept any name otherwise
    __getattr__, __dir__ = imported_when_used(
        globals(),
        {
            "core.clock": "Clock",
            "core.config": "EngineConfig SimulatorConfig",
            "engine": "Outreach",
            "errors": "ConfigError Conflict InvalidRequest NotFound OutreachError",
            "models.base": "Page UNSET",
            "models.call": "Call NewCall",
            "models.campaign": "Campaign CampaignCreated CampaignUpdate NewCallCampaign NewSmsCampaign",
            "models.dispatch": "Dispatch",
            "models.hours": "BusinessHours TimeWindow",
            "models.message": "InboundMessage Message NewMessage",
            "models.recipient": "NewRecipient Recipient",
            "models.resources": (
                "Agent AgentUpdate Flow FlowStep FlowUpdate NewAgent NewFlow NewNumber NewTrunk Number NumberUpdate "
                "Trunk TrunkUpdate"
            ),
            "models.settings": (
                "CallSettings CallSettingsUpdate ReplySettings ReplySettingsUpdate SmsSettings SmsSettingsUpdate"
            ),
            "models.states": (
                "CallStatus CampaignStatus DispatchState MessageStatus RecipientStatus WorkspaceMode WorkspaceStatus"
            ),
            "models.status": "EngineStatus",
            "models.unsubscribe": "Unsubscribe",
            "models.workspace": "NewWorkspace Workspace WorkspaceUpdate",
            "protocols.carrier": "Carrier",
            "protocols.dispatcher": "Dispatcher",
            "protocols.storage": "Storage",
            "protocols.voice": "Analyser VoiceProvider",
            "services.campaigns.contacts": "RecipientSource",
            "core.vault": "Vault",
        },
    )
