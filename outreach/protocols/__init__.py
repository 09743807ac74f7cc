"""The protocols of carriers, voice providers, analysers, dispatchers, storages and clocks. A public module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach.core.lazy_names import imported_when_used

if TYPE_CHECKING:
    from outreach.core.clock import (
        Clock as Clock,
        SystemClock as SystemClock,
    )
    from outreach.models.dispatch import (
        DispatchOutcome as DispatchOutcome,
    )
    from outreach.models.health import (
        DispatcherHealth as DispatcherHealth,
        DispatcherState as DispatcherState,
    )
    from outreach.models.reports import (
        CallReport as CallReport,
        MessageReport as MessageReport,
        Report as Report,
    )
    from outreach.models.work import (
        DatabaseHome as DatabaseHome,
        HighWaterMark as HighWaterMark,
        WorkItem as WorkItem,
        WorkUnit as WorkUnit,
        WorkUnitKind as WorkUnitKind,
    )
    from outreach.protocols.adapter import (
        AccountCheck as AccountCheck,
        Adapter as Adapter,
        AnyAdapter as AnyAdapter,
        Callback as Callback,
        CallbackEvent as CallbackEvent,
        CallbackRefused as CallbackRefused,
        CarrierAdapter as CarrierAdapter,
        CheckFault as CheckFault,
        Connection as Connection,
        CredentialField as CredentialField,
        InboundMessageEvent as InboundMessageEvent,
        VoiceAdapter as VoiceAdapter,
    )
    from outreach.protocols.carrier import (
        Carrier as Carrier,
        CarrierCapabilities as CarrierCapabilities,
        ListsSent as ListsSent,
        LookupRequest as LookupRequest,
        LookupSupport as LookupSupport,
        OutboundMessage as OutboundMessage,
        ReportSink as ReportSink,
    )
    from outreach.protocols.diagnosis import (
        CallbackSetting as CallbackSetting,
        CallbackSettings as CallbackSettings,
        DiagnosableStorage as DiagnosableStorage,
    )
    from outreach.protocols.dispatcher import (
        Dispatcher as Dispatcher,
        DispatcherFactory as DispatcherFactory,
        DispatcherParts as DispatcherParts,
        ReportSource as ReportSource,
        SliceRunner as SliceRunner,
        WakeSignal as WakeSignal,
        Worker as Worker,
    )
    from outreach.protocols.instrumentation import (
        Instrumentation as Instrumentation,
        ObservableStorage as ObservableStorage,
    )
    from outreach.protocols.sent_list import (
        SentListFailed as SentListFailed,
        SentQuery as SentQuery,
        SentRequest as SentRequest,
    )
    from outreach.protocols.storage import (
        DispatchLock as DispatchLock,
        NotifyingStorage as NotifyingStorage,
        Operation as Operation,
        Storage as Storage,
        WakeUps as WakeUps,
    )
    from outreach.protocols.voice import (
        Analyser as Analyser,
        CallRequest as CallRequest,
        VoiceCapabilities as VoiceCapabilities,
        VoiceProvider as VoiceProvider,
    )

if not TYPE_CHECKING:  # which would accept any name otherwise
    __getattr__, __dir__, __all__ = imported_when_used(
        globals(),
        {
            "core.clock": "Clock SystemClock",
            "models.dispatch": "DispatchOutcome",
            "models.health": "DispatcherHealth DispatcherState",
            "models.reports": "CallReport MessageReport Report",
            "models.work": "DatabaseHome HighWaterMark WorkItem WorkUnit WorkUnitKind",
            "protocols.adapter": (
                "AccountCheck Adapter AnyAdapter Callback CallbackEvent CallbackRefused CarrierAdapter CheckFault "
                "Connection CredentialField InboundMessageEvent VoiceAdapter"
            ),
            "protocols.carrier": (
                "Carrier CarrierCapabilities ListsSent LookupRequest LookupSupport OutboundMessage ReportSink"
            ),
            "protocols.diagnosis": "CallbackSetting CallbackSettings DiagnosableStorage",
            "protocols.dispatcher": (
                "Dispatcher DispatcherFactory DispatcherParts ReportSource SliceRunner WakeSignal Worker"
            ),
            "protocols.instrumentation": "Instrumentation ObservableStorage",
            "protocols.sent_list": "SentListFailed SentQuery SentRequest",
            "protocols.storage": "DispatchLock NotifyingStorage Operation Storage WakeUps",
            "protocols.voice": "Analyser CallRequest VoiceCapabilities VoiceProvider",
        },
    )
