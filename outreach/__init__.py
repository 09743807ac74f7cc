"""An engine for SMS campaigns and AI-voice calls, for many workspaces, over swappable storage and providers.

What most programs need is named here. The rest of what is public stands in `outreach.models`, `errors`, `events`,
`protocols`, `adapters`, `backends`, `http`, `reasons`, `database`, `sync`, `testing`, `integrations.archives`,
`integrations.prometheus`, `integrations.opentelemetry` and `integrations.report_page`; everything else may change
without notice (docs/embedding.md). A name is imported when it is first used.

Docstrings name pages of the documentation, as `docs/embedding.md`. An installed package has them in its directory
`docs`, a checkout at its root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach.core.lazy_names import imported_when_used
from outreach.core.version import __version__ as __version__

if TYPE_CHECKING:
    from outreach.core.clock import Clock as Clock
    from outreach.core.config import (
        EngineConfig as EngineConfig,
        SimulatorConfig as SimulatorConfig,
    )
    from outreach.core.vault import Vault as Vault
    from outreach.engine import Outreach as Outreach
    from outreach.errors import (
        ConfigError as ConfigError,
        Conflict as Conflict,
        InvalidRequest as InvalidRequest,
        NotFound as NotFound,
        OutreachError as OutreachError,
    )
    from outreach.models.base import (
        UNSET as UNSET,
        Page as Page,
    )
    from outreach.models.call import (
        Call as Call,
        NewCall as NewCall,
    )
    from outreach.models.campaign import (
        Campaign as Campaign,
        CampaignCreated as CampaignCreated,
        CampaignUpdate as CampaignUpdate,
        NewCallCampaign as NewCallCampaign,
        NewRecipient as NewRecipient,
        NewSmsCampaign as NewSmsCampaign,
        Recipient as Recipient,
    )
    from outreach.models.dispatch import Dispatch as Dispatch
    from outreach.models.message import (
        InboundMessage as InboundMessage,
        Message as Message,
        NewMessage as NewMessage,
    )
    from outreach.models.resources import (
        Agent as Agent,
        AgentUpdate as AgentUpdate,
        Flow as Flow,
        FlowStep as FlowStep,
        FlowUpdate as FlowUpdate,
        NewAgent as NewAgent,
        NewFlow as NewFlow,
        NewNumber as NewNumber,
        NewTrunk as NewTrunk,
        Number as Number,
        NumberUpdate as NumberUpdate,
        Trunk as Trunk,
        TrunkUpdate as TrunkUpdate,
    )
    from outreach.models.settings import (
        BusinessHours as BusinessHours,
        CallSettings as CallSettings,
        CallSettingsUpdate as CallSettingsUpdate,
        ReplySettings as ReplySettings,
        ReplySettingsUpdate as ReplySettingsUpdate,
        SmsSettings as SmsSettings,
        SmsSettingsUpdate as SmsSettingsUpdate,
        TimeWindow as TimeWindow,
    )
    from outreach.models.states import (
        CallStatus as CallStatus,
        CampaignStatus as CampaignStatus,
        DispatchState as DispatchState,
        MessageStatus as MessageStatus,
        RecipientStatus as RecipientStatus,
        WorkspaceMode as WorkspaceMode,
        WorkspaceStatus as WorkspaceStatus,
    )
    from outreach.models.status import EngineStatus as EngineStatus
    from outreach.models.unsubscribe import Unsubscribe as Unsubscribe
    from outreach.models.workspace import (
        NewWorkspace as NewWorkspace,
        Workspace as Workspace,
        WorkspaceUpdate as WorkspaceUpdate,
    )
    from outreach.protocols.carrier import Carrier as Carrier
    from outreach.protocols.dispatcher import Dispatcher as Dispatcher
    from outreach.protocols.storage import Storage as Storage
    from outreach.protocols.voice import (
        Analyser as Analyser,
        VoiceProvider as VoiceProvider,
    )
    from outreach.services.campaigns.contacts import RecipientSource as RecipientSource

if not TYPE_CHECKING:  # which would accept any name otherwise
    __getattr__, __dir__, __all__ = imported_when_used(
        globals(),
        {
            "core.clock": "Clock",
            "core.config": "EngineConfig SimulatorConfig",
            "core.vault": "Vault",
            "engine": "Outreach",
            "errors": "ConfigError Conflict InvalidRequest NotFound OutreachError",
            "models.base": "UNSET Page",
            "models.call": "Call NewCall",
            "models.campaign": (
                "Campaign CampaignCreated CampaignUpdate NewCallCampaign NewRecipient NewSmsCampaign Recipient"
            ),
            "models.dispatch": "Dispatch",
            "models.message": "InboundMessage Message NewMessage",
            "models.resources": (
                "Agent AgentUpdate Flow FlowStep FlowUpdate NewAgent NewFlow NewNumber NewTrunk Number NumberUpdate "
                "Trunk TrunkUpdate"
            ),
            "models.settings": (
                "BusinessHours CallSettings CallSettingsUpdate ReplySettings ReplySettingsUpdate SmsSettings "
                "SmsSettingsUpdate TimeWindow"
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
        },
    )
    __all__.append("__version__")
