"""The protocols of carriers, voice providers, analysers, dispatchers, storages and clocks. A public module."""

from __future__ import annotations

from outreach.core.clock import Clock, SystemClock
from outreach.models.dispatch import DispatchOutcome
from outreach.models.health import DispatcherHealth, DispatcherState
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.work import DatabaseHome, HighWaterMark, WorkItem, WorkUnit, WorkUnitKind
from outreach.protocols.adapter import (
    AccountCheck,
    Adapter,
    AnyAdapter,
    Callback,
    CallbackEvent,
    CallbackRefused,
    CarrierAdapter,
    CheckFault,
    Connection,
    CredentialField,
    InboundMessageEvent,
    VoiceAdapter,
)
from outreach.protocols.carrier import (
    Carrier,
    CarrierCapabilities,
    ListsSent,
    LookupRequest,
    LookupSupport,
    OutboundMessage,
    ReportSink,
)
from outreach.protocols.diagnosis import CallbackSetting, CallbackSettings, DiagnosableStorage
from outreach.protocols.dispatcher import (
    Dispatcher,
    DispatcherFactory,
    DispatcherParts,
    ReportSource,
    SliceRunner,
    WakeSignal,
    Worker,
)
from outreach.protocols.instrumentation import Instrumentation, ObservableStorage
from outreach.protocols.sent_list import SentListFailed, SentQuery, SentRequest
from outreach.protocols.storage import DispatchLock, NotifyingStorage, Operation, Storage, WakeUps
from outreach.protocols.voice import Analyser, CallRequest, VoiceCapabilities, VoiceProvider

__all__ = [
    "AccountCheck",
    "Adapter",
    "Analyser",
    "AnyAdapter",
    "CallReport",
    "CallRequest",
    "Callback",
    "CallbackEvent",
    "CallbackRefused",
    "CallbackSetting",
    "CallbackSettings",
    "Carrier",
    "CarrierAdapter",
    "CarrierCapabilities",
    "CheckFault",
    "Clock",
    "Connection",
    "CredentialField",
    "DatabaseHome",
    "DiagnosableStorage",
    "DispatchLock",
    "DispatchOutcome",
    "Dispatcher",
    "DispatcherFactory",
    "DispatcherHealth",
    "DispatcherParts",
    "DispatcherState",
    "HighWaterMark",
    "InboundMessageEvent",
    "Instrumentation",
    "ListsSent",
    "LookupRequest",
    "LookupSupport",
    "MessageReport",
    "NotifyingStorage",
    "ObservableStorage",
    "Operation",
    "OutboundMessage",
    "Report",
    "ReportSink",
    "ReportSource",
    "SentListFailed",
    "SentQuery",
    "SentRequest",
    "SliceRunner",
    "Storage",
    "SystemClock",
    "VoiceAdapter",
    "VoiceCapabilities",
    "VoiceProvider",
    "WakeSignal",
    "WakeUps",
    "WorkItem",
    "WorkUnit",
    "WorkUnitKind",
    "Worker",
]
