"""The registry of provider adapters, which are imported when needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any, Final, cast

from outreach.errors import ConfigError
from outreach.models.account import PROVIDERS
from outreach.models.failures import Explanation
from outreach.policy.explanations import FAILURE_TEXTS, OWN_CODES
from outreach.protocols.adapter import Adapter, CarrierAdapter, VoiceAdapter

_COMMON_START_WORDS: Final = frozenset({"start"})
"""The START words of all carriers that answer keywords (Twilio, Telnyx, Vonage; CTIA messaging principles, 5.1.3)."""


def adapter(name: str) -> Adapter:
    """Return the adapter of a provider of either kind, or raise `ConfigError`."""
    return carrier_adapter(name) if PROVIDERS.get(name) == "carrier" else voice_adapter(name)


def carrier_adapter(name: str) -> CarrierAdapter:
    """Return the adapter of an SMS carrier, or raise `ConfigError`."""
    _require(name, "carrier")
    return cast("CarrierAdapter", import_module(f"outreach.carriers.{name}").ADAPTER)


def voice_adapter(name: str) -> VoiceAdapter:
    """Return the adapter of a voice provider, or raise `ConfigError`."""
    _require(name, "voice")
    return cast("VoiceAdapter", import_module(f"outreach.voice.{name}").ADAPTER)


def carrier_start_words(provider: str | None, to: str) -> Collection[str] | None:
    """Return the START words of a carrier that answers keywords itself; see `CarrierAdapter.carrier_start_words`.

    For an unknown carrier only the words of all carriers are returned. `to` is the number that was written to.
    """
    if provider is None or PROVIDERS.get(provider) != "carrier":
        return _COMMON_START_WORDS
    return carrier_adapter(provider).carrier_start_words(to)


def _require(name: str, kind: str) -> None:
    if PROVIDERS.get(name) != kind:
        known = ", ".join(sorted(provider for provider, its in PROVIDERS.items() if its == kind))
        raise ConfigError(f"{name!r} is no {kind} that an account can be at. There are: {known}.")


_PACKAGES: Final = {"carrier": "carriers", "voice": "voice"}


def explain(*, provider: str, code: str | None, reason: str | None) -> Explanation | None:
    """Return the meaning of an error and advice, or None if it is unknown.

    Args:
        provider: The carrier or voice provider.
        code: The dispatch's `error_code`, or the `error` of a call record.
        reason: The dispatch's failure class (`reason`).
    """
    general = FAILURE_TEXTS.get(reason or "")
    if code is not None:
        if code in OWN_CODES:
            meaning, advice = OWN_CODES[code]
            return Explanation(meaning=meaning, advice=advice)
        known = _of_provider(provider, code, general[1] if general else _LOOK_IT_UP)
        if known is not None:
            return known
        general = general or FAILURE_TEXTS.get(code)
    return None if general is None else Explanation(meaning=general[0], advice=general[1])


_LOOK_IT_UP: Final = "Look the code up at the provider."


def _of_provider(provider: str, code: str, advice: str) -> Explanation | None:
    table = _table(provider)
    if table is None:
        return None
    source = table.PAGE.format(code=code)
    meanings: Mapping[str, str] = table.MEANINGS
    if code in meanings:
        return Explanation(meaning=meanings[code], advice=table.ADVICE.get(code, advice), source=source)
    for part, meaning, its_advice in getattr(table, "PARTS", ()):
        if part in code.lower():
            return Explanation(meaning=meaning, advice=its_advice, source=source)
    return None


def _table(provider: str) -> Any:
    """Return a provider's explanations; None for a simulator, or if its extra is not installed."""
    kind = PROVIDERS.get(provider)
    if kind is None:
        return None
    try:
        return import_module(f"outreach.{_PACKAGES[kind]}.{provider}.explanations")
    except ModuleNotFoundError:
        return None
