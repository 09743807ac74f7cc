"""The page of the codes and reasons of providers, from the tables of their adapters."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from outreach.providers.voice import base
from tests.reference.markdown import page, table

CARRIERS: Final = ("telnyx", "twilio", "vonage")
VOICE_PROVIDERS: Final = ("elevenlabs", "retell", "vapi")

MEANINGS: Final[Mapping[base.CallEnd, str]] = {
    base.ANSWERED_BY_PERSON: "a person was reached; the analysis is the result",
    base.MACHINE: "`voicemail`, tried again unless it got the message",
    base.MENU: "`voicemail`, tried again",
    base.TALKED_TO_MACHINE: "`voicemail`, with the agent's words",
    base.NO_ANSWER: "`no_answer`, tried again",
    base.BUSY: "`busy`, tried again",
    base.DECLINED: "`declined`, tried again",
    base.DO_NOT_CALL: "`negative`, and onto the register",
    base.CANCELED: "canceled at the provider",
    base.INVALID_NUMBER: "failed, `invalid_number`",
    base.BLOCKED: "failed, `filtered`",
    base.BAD_SETUP: "failed, `bad_sender`; counts against the error budget",
    base.CAPACITY: "nobody was called, `rate_limited`, tried again",
    base.DAILY_LIMIT: "nobody was called, `rate_limited`, tried again; the account waits an hour",
    base.NOT_CONNECTED: "nobody was reached, `temporary`, tried again",
    base.FUNDS: "failed, `provider_funds`; the account's campaigns pause",
    base.FAILED_AT_PROVIDER: "failed, `provider_error`; not tried again, counts against the error budget",
}
"""The effect of each end of a call."""


def codes_page() -> str:
    """Return the page of the failure classes of carriers' codes, and of the effects of voice providers' reasons."""
    parts = []
    for carrier in CARRIERS:
        parts += [f"## {carrier}", _codes(import_module(f"outreach.providers.carriers.{carrier}.errors").FAILURES)]
    for provider in VOICE_PROVIDERS:
        parts += [f"## {provider}", _reasons(provider)]
    introduction = (
        "The failure class of each code of a carrier, and the effect of each reason for the end of a call. "
        "For an unknown code of a carrier the HTTP status decides: 401 and 403 `provider_auth`, 402 `provider_funds`, "
        "429 `rate_limited`, 408 unknown, other 4xx `rejected`. In the answer to a request, "
        "`unreachable` is `temporary`. In a reason, … stands for any text. The guides of [carriers](../carriers/) and "
        "[voice](../voice/) say more."
    )
    return page("Codes and reasons of providers", introduction, *parts)


def _codes(failures: Mapping[str, str]) -> str:
    by_class: dict[str, list[str]] = {}
    for code, failure in sorted(failures.items()):
        by_class.setdefault(failure, []).append(code)
    return table(("Class", "Codes"), [(f"`{name}`", ", ".join(codes)) for name, codes in sorted(by_class.items())])


def _reasons(provider: str) -> str:
    reasons = import_module(f"outreach.providers.voice.{provider}.reasons")
    if provider == "elevenlabs":
        named = [(f"`{name}`", end) for name, end in {**reasons.TWILIO, **reasons.FAILURES}.items()]
        named += [(f"SIP {code}", end) for code, end in reasons.SIP.items()]
    else:
        named = [(f"`{name}`", end) for name, end in reasons.ENDS.items()]
        named += [(f"…`{part}`…", end) for part, end in reasons.PARTS]
    rows = {meaning: [name for name, its in named if its == end] for end, meaning in MEANINGS.items()}
    return table(("Effect", "Reasons"), [(meaning, ", ".join(names)) for meaning, names in rows.items() if names])
