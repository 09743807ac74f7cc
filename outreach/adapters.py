"""Finding a provider's adapter by its name: it is imported here, when it is asked for, and not before."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Final, cast

from outreach.errors import ConfigError
from outreach.models.account import PROVIDERS
from outreach.protocols.adapter import Adapter, CarrierAdapter, VoiceAdapter

_EVERY_CARRIERS: Final = frozenset({"start"})
"""What all carriers that answer keywords take for START (Twilio, Telnyx, Vonage; CTIA messaging principles, 5.1.3)."""


def adapter(name: str) -> Adapter:
    """Return the adapter of a provider, of either kind.

    Raises:
        ConfigError: There is no such provider.
    """
    return carrier_adapter(name) if PROVIDERS.get(name) == "carrier" else voice_adapter(name)


def carrier_adapter(name: str) -> CarrierAdapter:
    """Return the adapter of an SMS carrier.

    Raises:
        ConfigError: There is no such carrier.
    """
    _require(name, "carrier")
    return cast("CarrierAdapter", import_module(f"outreach.carriers.{name}").ADAPTER)


def voice_adapter(name: str) -> VoiceAdapter:
    """Return the adapter of a voice provider.

    Raises:
        ConfigError: There is no such voice provider.
    """
    _require(name, "voice")
    return cast("VoiceAdapter", import_module(f"outreach.voice.{name}").ADAPTER)


def own_starts(provider: str | None, to: str) -> Collection[str] | None:
    """Return what a carrier that answers keywords by itself takes for START, as `CarrierAdapter.own_starts` does.

    Args:
        provider: The carrier; of one that is not known, only what every carrier takes for it.
        to: Our number that is written to.
    """
    if provider is None or PROVIDERS.get(provider) != "carrier":
        return _EVERY_CARRIERS
    return carrier_adapter(provider).own_starts(to)


def _require(name: str, kind: str) -> None:
    if PROVIDERS.get(name) != kind:
        known = ", ".join(sorted(provider for provider, its in PROVIDERS.items() if its == kind))
        raise ConfigError(f"{name!r} is no {kind} that an account can be at. There are: {known}.")
