"""What an error of a provider means, by the table of its adapter and else by its failure class."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from outreach.models.account import PROVIDERS
from outreach.models.explanation import Explanation
from outreach.policy.failures import CLASSES, OWN_CODES

_PACKAGES: Final = {"carrier": "carriers", "voice": "voice"}


def explain(*, provider: str, code: str | None, reason: str | None) -> Explanation | None:
    """Return what an error means and what to do about it; None where nothing is known of it.

    Args:
        provider: The carrier or voice provider whose error it is.
        code: Its code, as a dispatch keeps it (`error_code`), or the reason that a call's record has (`error`).
        reason: The failure class, as a dispatch keeps it (`reason`).
    """
    general = CLASSES.get(reason or "")
    if code is not None:
        if code in OWN_CODES:
            meaning, advice = OWN_CODES[code]
            return Explanation(meaning=meaning, advice=advice)
        known = _of_provider(provider, code, general[1] if general else _LOOK_IT_UP)
        if known is not None:
            return known
        general = general or CLASSES.get(code)
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
    """Return the module with a provider's explanations; None for a simulator, and where its extra is not installed."""
    kind = PROVIDERS.get(provider)
    if kind is None:
        return None
    try:
        return import_module(f"outreach.{_PACKAGES[kind]}.{provider}.explanations")
    except ModuleNotFoundError:
        return None
