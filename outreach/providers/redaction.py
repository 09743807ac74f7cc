"""Removes an account's secrets from the words of its provider, which may repeat what it was sent."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import unescape
from typing import Any, Final, Generic, TypeVar, cast
from urllib.parse import quote, quote_plus

import attrs

from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.protocols.adapter import CallbackEvent, CredentialField
from outreach.protocols.carrier import Carrier, CarrierCapabilities, ListsSent, LookupRequest, OutboundMessage
from outreach.protocols.sent_list import SentQuery, SentRequest
from outreach.protocols.voice import CallRequest, VoiceCapabilities, VoiceProvider

P = TypeVar("P", bound=Carrier | VoiceProvider)

_REMOVED: Final = "[removed]"

_MIN_LENGTH: Final = 6
"""Shorter values, and shorter beginnings at the end of a text, are parts of ordinary words."""

_MIN_PART: Final = 8
"""A beginning or an end of this length is removed wherever it stands: a provider may shorten what it repeats."""

_MIN_LINE_LENGTH: Final = 16
"""Of a secret with several lines, such as a private key."""

_CREDENTIALS: Final = re.compile(
    r"(?P<header>\b(?:proxy-)?authorization\\?[\"']?\s*[:=]\s*\\?[\"']?)(?:[a-z]+\s+)?[^\s\"',;]+"
    r"|(?P<scheme>\b(?:bearer|basic)\s+)(?=[^\s\"',;]*[\d=])[\w+/=.~-]{8,}"
    r"|\beyJ[\w-]{8,}(?:\.[\w-]*){0,2}",
    re.IGNORECASE,
)
"""Credentials whatever their value: a header of the request, and tokens that were made for it."""

_ESCAPE: Final = re.compile(
    r"%(?:25){0,4}(?P<url>[0-9a-f]{2})"
    r"|\\{1,8}u(?P<json>[0-9a-f]{4})"
    r"|&(?:amp;){0,4}(?:#x(?P<hex>[0-9a-f]{1,6})|#(?P<decimal>[0-9]{1,7})|(?P<name>[a-z]{2,8}));"
    r"|\\{1,8}(?P<itself>[/\"'])",
    re.IGNORECASE,
)
"""A character as URLs, JSON and HTML write it, also escaped several times."""

_CUT_ESCAPE: Final = re.compile(r"(?:%[0-9a-f]?|\\{1,8}(?:u[0-9a-f]{0,3})?|&[#\w]{0,8})\Z", re.IGNORECASE)
"""The beginning of an escape at the end of a text that was cut off."""

_END_OF_ASCII: Final = 128

_OUTCOME_WORDS: Final = ("error_code", "error_message")
_CALL_WORDS: Final = ("error", "summary", "answered_by", "transcript")
_MESSAGE_WORDS: Final = ("error_code",)


class Redaction:
    """Removes secrets from texts.

    Args:
        credentials: Those of an account.
        fields: Its fields, which mark the secret ones.
    """

    def __init__(self, credentials: Mapping[str, str], fields: Iterable[CredentialField]) -> None:
        secrets = [credentials[field.name] for field in fields if field.secret and field.name in credentials]
        self._forms = sorted(
            {form for secret in secrets for form in _forms(secret, credentials.values()) if len(form) >= _MIN_LENGTH},
            key=len,
            reverse=True,
        )
        # The first and last line of a private key are no secrets.
        self._of_parts = [form for form in self._forms if len(form) >= _MIN_PART and not form.startswith("---")]

    def text(self, text: str) -> str:
        """Return a text without secrets, whole or shortened, also where an answer escapes them."""
        text = _CREDENTIALS.sub(_without_value, text)
        spans = list(self._spans(text))
        plain, places = _unescaped(text)
        if plain != text:
            spans += [(places[start], places[end]) for start, end in self._spans(plain)]
        return _without_spans(text, spans)

    def _spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Return where secrets begin and end."""
        found = []
        for form in self._forms:
            start = text.find(form)
            while start >= 0:
                found.append((start, start + len(form)))
                start = text.find(form, start + len(form))
        for form in self._of_parts:
            found += _parts(text, form)
        whole = _CUT_ESCAPE.sub("", text)
        for form in self._forms:
            for length in range(min(len(form) - 1, len(whole)), _MIN_LENGTH - 1, -1):
                if whole.endswith(form[:length]):
                    return [*found, (len(whole) - length, len(text))]
        return found

    def outcome(self, outcome: Any) -> Any:
        """Return an adapter's answer to a request or look-up without secrets."""
        return self._without(outcome, _OUTCOME_WORDS) if isinstance(outcome, DispatchOutcome) else outcome

    def listed(self, found: Any) -> Sequence[SentRequest]:
        """Return what an adapter has listed without secrets; anything else in the list is left out."""
        return [attrs.evolve(one, outcome=self.outcome(one.outcome)) for one in found if isinstance(one, SentRequest)]

    def report(self, report: Any) -> Any:
        """Return a report without secrets."""
        if isinstance(report, CallReport):
            return self._without(report, _CALL_WORDS)
        return self._without(report, _MESSAGE_WORDS) if isinstance(report, MessageReport) else report

    def event(self, event: CallbackEvent) -> CallbackEvent:
        """Return an event of a callback whose report has no secrets."""
        if not isinstance(event.content, Report):
            return event
        content = self.report(event.content)
        return event if content is event.content else attrs.evolve(event, content=content)

    def _without(self, found: Any, names: Sequence[str]) -> Any:
        given = {name: getattr(found, name) for name in names}
        # Other values become texts later (`dispatch.adapter_answers`).
        texts = {name: self.text(str(value)) for name, value in given.items() if value is not None}
        changes = {name: text for name, text in texts.items() if text != given[name]}
        return attrs.evolve(found, **changes) if changes else found


def _forms(secret: str, others: Iterable[str]) -> Iterator[str]:
    """Return how a secret may be written in a request and in an answer that repeats it."""
    lines = [line for line in secret.splitlines() if len(line) >= _MIN_LINE_LENGTH and not line.startswith("---")]
    for form in (secret, *lines):
        yield from (form, quote(form, safe=""), quote_plus(form), json.dumps(form)[1:-1])
    # Basic authentication (RFC 7617), as user or as password.
    for pair in (secret, *(text for other in others for text in (f"{other}:{secret}", f"{secret}:{other}"))):
        yield base64.b64encode(pair.encode()).decode().rstrip("=")
    yield base64.b64encode(f"{secret}:".encode()).decode().rstrip("=")
    # Within anything else: the text before it decides how its bytes are cut, and its first and last letter.
    for offset, first in ((0, 0), (1, 2), (2, 3)):
        raw = secret.encode()
        inside = base64.b64encode(bytes(offset) + raw).decode()[first : (offset + len(raw)) * 8 // 6]
        if len(inside) >= _MIN_PART:
            yield from (inside, inside.translate(_URL_SAFE))


_URL_SAFE: Final = str.maketrans("+/", "-_")
"""Base64 by RFC 4648, section 5."""


def _parts(text: str, form: str) -> Iterator[tuple[int, int]]:
    """Yield where a text has the beginning or the end of a secret, as far as it goes."""
    at = text.find(form[:_MIN_PART])
    while at >= 0:
        end = at + _MIN_PART
        while end < len(text) and end - at < len(form) and text[end] == form[end - at]:
            end += 1
        yield at, end
        at = text.find(form[:_MIN_PART], end)
    at = text.find(form[-_MIN_PART:])
    while at >= 0:
        start, end = at, at + _MIN_PART
        while start > 0 and end - start < len(form) and text[start - 1] == form[start - 1 - end]:
            start -= 1
        yield start, end
        at = text.find(form[-_MIN_PART:], end)


def _unescaped(text: str) -> tuple[str, Sequence[int]]:
    """Return a text without the escapes of URLs, JSON and HTML, and where its characters begin in the given one.

    The end of the text is the last place.
    """
    parts: list[str] = []
    places: list[int] = []
    end = 0
    for found in _ESCAPE.finditer(text):
        character = _character(found)
        if character is not None:
            parts += [text[end : found.start()], character]
            places += range(end, found.start() + 1)
            end = found.end()
    return "".join((*parts, text[end:])), [*places, *range(end, len(text) + 1)]


def _character(found: re.Match[str]) -> str | None:
    """Return the character that an escape stands for; None if it is not of ASCII, as secrets are."""
    if found["itself"]:
        return found["itself"]
    if found["name"]:
        named = unescape(f"&{found['name']};")
        return named if len(named) == 1 else None
    number = int(found["decimal"]) if found["decimal"] else int(found["url"] or found["json"] or found["hex"], 16)
    return chr(number) if number < _END_OF_ASCII else None


def _without_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text in which each span, or several that overlap, is replaced."""
    parts: list[str] = []
    end = 0
    for start, stop in sorted(spans):
        if start > end or not parts:
            parts += [text[end:start], _REMOVED]
        end = max(end, stop)
    return "".join((*parts, text[end:]))


def _without_value(found: re.Match[str]) -> str:
    return (found["header"] or found["scheme"] or "") + _REMOVED


class _Redacted(Generic[P]):
    """A provider whose answers have no secrets; what both kinds of providers have."""

    def __init__(self, provider: P, redaction: Redaction) -> None:
        self._provider = provider
        self._redaction = redaction

    @property
    def name(self) -> str:
        """The name in the ledger."""
        return self._provider.name

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Find out the outcome of a dispatch."""
        outcome: DispatchOutcome | None = self._redaction.outcome(await self._provider.look_up(lookup))
        return outcome

    async def list_sent(self, query: SentQuery) -> Sequence[SentRequest]:
        """List what was sent, if the provider can."""
        return self._redaction.listed(await cast("ListsSent", self._provider).list_sent(query))


class RedactedCarrier(_Redacted[Carrier]):
    """A carrier whose answers have no secrets."""

    @property
    def capabilities(self) -> CarrierCapabilities:
        """The features that the carrier supports."""
        return self._provider.capabilities

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Send one message, once."""
        outcome: DispatchOutcome = self._redaction.outcome(await self._provider.send(message))
        return outcome


class RedactedVoiceProvider(_Redacted[VoiceProvider]):
    """A voice provider whose answers have no secrets."""

    @property
    def capabilities(self) -> VoiceCapabilities:
        """The features that the provider supports."""
        return self._provider.capabilities

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        """Place one call, once."""
        outcome: DispatchOutcome = self._redaction.outcome(await self._provider.place_call(request))
        return outcome

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Return the status of an accepted call whose events have not arrived."""
        report: CallReport | None = self._redaction.report(
            await self._provider.status(workspace_id=workspace_id, dispatch_id=dispatch_id, provider_id=provider_id)
        )
        return report
