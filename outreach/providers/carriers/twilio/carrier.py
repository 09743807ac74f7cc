"""Twilio as a carrier: https://www.twilio.com/docs/messaging/api/message-resource."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.protocols.adapter import Connection
from outreach.protocols.carrier import CarrierCapabilities, LookupRequest, OutboundMessage
from outreach.protocols.sent_list import SentListFailed, SentQuery, SentRequest
from outreach.providers.carriers import base
from outreach.providers.carriers.twilio.errors import FAILURES, LIMIT_RESETS, SENDER_LIMITS
from outreach.providers.http import sent_lists
from outreach.providers.http.account_check import api_base
from outreach.providers.http.json_fields import value_at
from outreach.providers.http.sending import (
    UnreadableResponse,
    fetch_json,
    json_object,
    json_object_or_empty,
    refusal,
    send_once,
)
from outreach.rules.phones import is_service

if TYPE_CHECKING:
    import httpx

NAME: Final = "twilio"
USUAL_BASE: Final = "https://api.twilio.com"

MAX_VALIDITY_SECONDS: Final = 36_000
"""`ValidityPeriod` is 1 to 36,000 s: https://www.twilio.com/docs/api/errors/90007."""

FAILED: Final = frozenset({"failed", "undelivered", "canceled"})
"""Final statuses of undelivered messages."""

SID: Final = re.compile(r"(?:SM|MM)[0-9a-fA-F]{32}")
"""A message's id."""

_PAGE_SIZE: Final = 200
_MAX_PAGES: Final = 5
_LIST_PAGE_SIZE: Final = 1000
_MAX_LIST_PAGES: Final = 200


def account_url(connection: Connection) -> str:
    """Return the account's base URL."""
    account = quote(connection.credentials["account_sid"], safe="")
    return f"{api_base(connection.credentials, USUAL_BASE)}/2010-04-01/Accounts/{account}"


def authorization(credentials: Mapping[str, str]) -> str:
    """Return the credentials for requests: the API key if given, else the account's token."""
    if "api_key_sid" in credentials:
        return base.basic_auth(credentials["api_key_sid"], credentials["api_key_secret"])
    return base.basic_auth(credentials["account_sid"], credentials["auth_token"])


class TwilioCarrier:
    """Sends by one form POST each; the callback URL returns our dispatch id.

    A look-up lists the messages to the number and gives evidence only: a message has no field for our id, so one with
    the same numbers and text from that time is taken for it.
    """

    name = NAME
    capabilities = CarrierCapabilities(look_up="evidence", supports_not_after=True, lists_sent=True)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._headers = {"authorization": authorization(connection.credentials), "accept": "application/json"}
        self._base = api_base(connection.credentials, USUAL_BASE)
        self._messages = f"{account_url(connection)}/Messages"

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Send one message, once."""
        if message.from_number is None:
            return base.NO_SENDER
        # Of a Messaging Service, Twilio chooses the number; its callbacks name it.
        sender = "MessagingServiceSid" if is_service(message.from_number, NAME) else "From"
        form = {"To": message.to, sender: message.from_number, "Body": message.body}
        if self._connection.callback_url is not None:
            form["StatusCallback"] = base.dispatch_callback_url(self._connection.callback_url, message.dispatch_id)
        if message.not_after is not None:
            now = self._connection.clock.now()
            left = base.validity_seconds(message.not_after, now=now, least=1, most=MAX_VALIDITY_SECONDS)
            if left is None:
                return base.TOO_LATE
            form["ValidityPeriod"] = str(left)
        http = self._connection.http
        request = http.build_request("POST", f"{self._messages}.json", data=form, headers=self._headers)
        return await send_once(http, request, self._read, clock=self._connection.clock)

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Find a message by its id, or the only one with these numbers and this text from that time."""
        if lookup.provider_id is not None:
            return self._found(await self._get(f"{self._messages}/{quote(lookup.provider_id, safe='')}.json"))
        if lookup.from_number is None:
            return None  # A message always has a sender.
        listed = await self._list(to=lookup.to, from_number=lookup.from_number)
        if listed is None:
            return None
        matches = [message for message in listed if _fits(message, lookup)]
        return base.as_circumstantial(self._found(matches[0])) if len(matches) == 1 else None

    async def list_sent(self, query: SentQuery) -> Sequence[SentRequest]:
        """List the messages from a number or of a Messaging Service; the newest come first."""
        params = {"PageSize": str(_LIST_PAGE_SIZE)}
        service = is_service(query.from_number, NAME)
        if query.from_number is not None and not service:
            params["From"] = query.from_number
        found: list[SentRequest] = []
        async for page in self._pages(params, _MAX_LIST_PAGES):
            made = [(message, _moment(message.get("date_created"))) for message in page]
            for message, at in made:
                ours = not service or message.get("messaging_service_sid") == query.from_number
                if ours and at is not None and base.is_between(at, query):
                    found += self._sent(message, at)
            # Not by the day of sending, which a queued message does not have yet.
            if made and all(at is not None and at < query.since - base.CLOCK_SKEW_BEFORE for _, at in made):
                break
        return found

    def _sent(self, message: Mapping[str, Any], at: datetime) -> Sequence[SentRequest]:
        outcome, to, body = self._found(message), message.get("to"), message.get("body")
        if outcome is None or not isinstance(to, str) or not str(message.get("direction", "")).startswith("outbound"):
            return ()
        return [SentRequest(outcome=outcome, to=to, at=at, body=body if isinstance(body, str) else None)]

    def _read(self, response: httpx.Response) -> DispatchOutcome:
        if response.is_success:
            answer = json_object(response)
            if (outcome := self._found(answer)) is None:
                raise UnreadableResponse
            return outcome
        if not response.is_client_error:
            raise UnreadableResponse
        answer = json_object_or_empty(response)
        code, words = _code(answer.get("code")), answer.get("message")
        return refusal(
            base.refusal_class(FAILURES.get(code or "")),
            response,
            now=self._connection.clock.now(),
            code=code,
            message=words if isinstance(words, str) else None,
            account_wide=code not in SENDER_LIMITS,
            reset_seconds=base.seconds_to_reset(LIMIT_RESETS, code, self._connection.clock.now()),
        )

    def _found(self, message: object) -> DispatchOutcome | None:
        """Return the outcome that a Twilio message shows; None if it is not a message."""
        sid = value_at(message, "sid")
        if not isinstance(message, dict) or not isinstance(sid, str) or not SID.fullmatch(sid):
            return None
        status = message.get("status")
        if not isinstance(status, str) or status not in FAILED:
            return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=sid)
        code, words = _code(message.get("error_code")), message.get("error_message")
        return base.failed_after_accept(
            FAILURES.get(code or ""),
            provider_id=sid,
            code=code,
            message=words if isinstance(words, str) else None,
            retry_after_seconds=base.seconds_to_reset(LIMIT_RESETS, code, self._connection.clock.now()),
        )

    async def _get(self, url: str, params: Mapping[str, str] | None = None) -> Any:
        http = self._connection.http
        return await fetch_json(http, http.build_request("GET", url, params=params, headers=self._headers))

    async def _list(self, *, to: str, from_number: str) -> list[Mapping[str, Any]] | None:
        """Return all messages from a number, or from any for a Messaging Service, to another; None if incomplete.

        Not filtered by date: Twilio filters by the day of sending, which a queued message does not have yet.
        """
        params = {"To": to, "PageSize": str(_PAGE_SIZE)}
        if not is_service(from_number, NAME):
            params["From"] = from_number
        try:
            return [message async for page in self._pages(params, _MAX_PAGES) for message in page]
        except SentListFailed:
            return None

    async def _pages(self, params: Mapping[str, str], limit: int) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
        """Yield the pages of a list of messages.

        Raises:
            SentListFailed: A page could not be read, or there are more than `limit`.
        """
        url = f"{self._messages}.json"
        query: Mapping[str, str] | None = params
        for _ in range(limit):
            page = await self._get(url, query)
            messages = value_at(page, "messages")
            if not isinstance(messages, list):
                raise sent_lists.unreadable()
            yield [message for message in messages if isinstance(message, dict)]
            following = page.get("next_page_uri")
            if not isinstance(following, str) or not following:
                return
            if not following.startswith("/2010-04-01/"):
                raise sent_lists.unreadable()
            url, query = self._base + following, None
        raise sent_lists.too_long(limit)


def _fits(message: Mapping[str, Any], lookup: LookupRequest) -> bool:
    return (
        message.get("to") == lookup.to
        and message.get("body") == lookup.body
        and message.get("messaging_service_sid" if is_service(lookup.from_number, NAME) else "from")
        == lookup.from_number
        and str(message.get("direction", "")).startswith("outbound")
        and base.in_window(_moment(message.get("date_created")), lookup)
    )


def _code(value: object) -> str | None:
    """Return a code, which Twilio writes as a number."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return str(value)[:40] or None


def _moment(value: object) -> datetime | None:
    """Read an RFC 2822 date."""
    try:
        moment = parsedate_to_datetime(value) if isinstance(value, str) else None
        return moment.astimezone(UTC) if moment is not None and moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
