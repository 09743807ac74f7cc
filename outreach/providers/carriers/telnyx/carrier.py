"""Telnyx as a carrier: https://developers.telnyx.com/api-reference/messages/send-a-message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, urlsplit

from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.protocols.adapter import Connection
from outreach.protocols.carrier import CarrierCapabilities, LookupRequest, OutboundMessage
from outreach.protocols.sent_list import SentListFailed, SentQuery, SentRequest
from outreach.providers.carriers import base
from outreach.providers.carriers.telnyx.errors import AMBIGUOUS, LIMIT_RESETS, deciding_error, failure_class
from outreach.providers.http import sent_lists
from outreach.providers.http.account_api import AccountApi
from outreach.providers.http.callback_bodies import first_in, text_in
from outreach.providers.http.json_fields import object_at, value_at
from outreach.providers.http.sending import (
    UnreadableResponse,
    json_object,
    json_object_or_empty,
    refusal,
    text_of,
)
from outreach.rules.phones import is_service
from outreach.serialization.field_rules import read_timestamp

if TYPE_CHECKING:
    import httpx

NAME: Final = "telnyx"
_USUAL_BASE: Final = "https://api.telnyx.com"

FAILED: Final = frozenset({"sending_failed", "delivery_failed", "expired"})
"""Final statuses of undelivered messages."""

_FAILED_RECORDS: Final = frozenset({"failed", "gw_reject"})
"""The same in detail records."""

_PAGE_SIZE: Final = 50
_MAX_PAGES: Final = 4
_MAX_LIST_PAGES: Final = 2000


def api_of(connection: Connection) -> AccountApi:
    """Return the API of an account."""
    headers = {"authorization": f"Bearer {connection.credentials['api_key']}", "accept": "application/json"}
    return AccountApi(connection, _USUAL_BASE, headers)


class TelnyxCarrier:
    """Sends by one JSON POST each; the message's own webhook URL returns our dispatch id.

    A look-up searches the detail records, which have no text. A record whose webhook URL has our id is the message; if
    no record has such a URL, the only one between these numbers at the time is taken for it. There is no field for
    `not_after`.
    """

    name = NAME
    capabilities = CarrierCapabilities(look_up="evidence", supports_not_after=False, lists_sent=True)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._api = api_of(connection)

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Send one message, once."""
        if message.not_after is not None and message.not_after <= self._connection.clock.now():
            return base.TOO_LATE
        if message.from_number is None:
            return base.NO_SENDER
        body: dict[str, Any] = {"to": message.to, "text": message.body}
        profile = self._connection.credentials.get("messaging_profile_id")
        if is_service(message.from_number, NAME):
            # Telnyx chooses from the number pool of the profile; its events name the number.
            body["messaging_profile_id"] = message.from_number
        else:
            body["from"] = message.from_number
            if profile is not None and not message.from_number.startswith("+"):
                # A number belongs to a profile, a name needs one.
                body["messaging_profile_id"] = profile
        if self._connection.callback_url is not None:
            body["webhook_url"] = base.dispatch_callback_url(self._connection.callback_url, message.dispatch_id)
            body["use_profile_webhooks"] = False
        return await self._api.post("/v2/messages", self._read, json=body)

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Find a message by its id, or its detail record."""
        if lookup.provider_id is not None:
            answer = await self._api.fetch("GET", f"/v2/messages/{quote(lookup.provider_id, safe='')}")
            return self._found(object_at(answer, "data"))
        if lookup.from_number is None:
            return None  # A message always has a sender.
        try:
            rows = await self._records(lookup.from_number, lookup.since, lookup.until, _MAX_PAGES, to=lookup.to)
        except SentListFailed:
            return None
        candidates = [row for row in rows if _fits(row, lookup)]
        ours = [row for row in candidates if _dispatch_of(row) == lookup.dispatch_id]
        unclaimed = [row for row in candidates if _dispatch_of(row) is None]
        if ours:
            return self._recorded(ours[0]) if len(ours) == 1 else None
        return base.as_circumstantial(self._recorded(unclaimed[0])) if len(unclaimed) == 1 else None

    async def list_sent(self, query: SentQuery) -> Sequence[SentRequest]:
        """List the detail records of messages from a number or of a profile; they have no text."""
        if query.from_number is None:
            return ()  # A message always has a sender.
        rows = await self._records(query.from_number, query.since, query.until, _MAX_LIST_PAGES)
        found = []
        for row in rows:
            at, to, outcome = read_timestamp(text_in(row, "created_at") or ""), text_in(row, "cld"), self._recorded(row)
            if at is None or to is None or outcome is None or not _is_from(row, query.from_number):
                continue
            if base.is_between(at, query):
                found.append(SentRequest(outcome=outcome, to=to, at=at, dispatch_id=_dispatch_of(row)))
        return found

    def _read(self, response: httpx.Response) -> DispatchOutcome:
        if response.is_success:
            data = object_at(json_object(response), "data")
            text_of(data.get("id"))
            if (outcome := self._found(data)) is None:
                raise UnreadableResponse
            return outcome
        if not response.is_client_error:
            raise UnreadableResponse
        error = deciding_error(json_object_or_empty(response))
        code = text_in(error, "code")
        if code in AMBIGUOUS:
            return DispatchOutcome(state=DispatchState.UNKNOWN, reason="provider_error", error_code=code)
        return refusal(
            base.refusal_class(failure_class(error)),
            response,
            now=self._connection.clock.now(),
            code=code[:40] if code else None,
            message=text_in(error, "detail") or text_in(error, "title"),
            reset_seconds=base.seconds_to_reset(LIMIT_RESETS, code, self._connection.clock.now()),
        )

    def _found(self, data: Mapping[str, Any]) -> DispatchOutcome | None:
        """Return the outcome that a Telnyx message shows; None if it is not a message."""
        provider_id = text_in(data, "id")
        if provider_id is None:
            return None
        if text_in(first_in(data, "to"), "status") not in FAILED:
            return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=provider_id)
        return self._failed(data, provider_id)

    def _recorded(self, row: Mapping[str, Any]) -> DispatchOutcome | None:
        provider_id = text_in(row, "uuid")
        if provider_id is None:
            return None
        if text_in(row, "status") not in _FAILED_RECORDS:
            return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=provider_id)
        return self._failed(row, provider_id)

    def _failed(self, found: Mapping[str, Any], provider_id: str) -> DispatchOutcome:
        error = deciding_error(found)
        code = text_in(error, "code")
        return base.failed_after_accept(
            failure_class(error),
            provider_id=provider_id,
            code=code,
            message=text_in(error, "detail") or text_in(error, "title"),
            retry_after_seconds=base.seconds_to_reset(LIMIT_RESETS, code, self._connection.clock.now()),
        )

    async def _records(
        self, sender: str, since: datetime, until: datetime, limit: int, *, to: str | None = None
    ) -> list[Mapping[str, Any]]:
        """Return the records of messages from a sender on those days, to one number or to all.

        Raises:
            SentListFailed: A page could not be read, or there are more than `limit`.
        """
        # The API filters by day only; the caller compares the time.
        params = {
            "filter[record_type]": "messaging",
            "filter[direction]": "outbound",
            **({} if to is None else {"filter[cld]": to}),
            **({} if is_service(sender, NAME) else {"filter[cli]": sender}),
            "filter[created_at][gte]": (since - base.CLOCK_SKEW_BEFORE).date().isoformat(),
            "filter[created_at][lt]": (until + base.CLOCK_SKEW_AFTER + timedelta(days=1)).date().isoformat(),
            "page[size]": str(_PAGE_SIZE),
        }
        found: list[Mapping[str, Any]] = []
        for number in range(1, limit + 1):
            answer = await self._api.fetch("GET", "/v2/detail_records", params={**params, "page[number]": str(number)})
            rows = value_at(answer, "data")
            if not isinstance(rows, list):
                raise sent_lists.unreadable()
            found += [row for row in rows if isinstance(row, dict)]
            pages = object_at(answer, "meta").get("total_pages", 1)
            if not isinstance(pages, int) or pages <= number:
                return found
        raise sent_lists.too_long(limit)


def _fits(row: Mapping[str, Any], lookup: LookupRequest) -> bool:
    return (
        row.get("cld") == lookup.to
        and _is_from(row, lookup.from_number)
        and base.in_window(read_timestamp(text_in(row, "created_at") or ""), lookup)
    )


def _is_from(row: Mapping[str, Any], sender: str | None) -> bool:
    return row.get("profile_id" if is_service(sender, NAME) else "cli") == sender and row.get("direction") == "outbound"


def _dispatch_of(row: Mapping[str, Any]) -> str | None:
    """Return the dispatch id in the webhook URL of a record, if any."""
    try:
        query = urlsplit(text_in(row, "delivery_status_webhook_url") or "").query
        named = parse_qs(query, max_num_fields=50).get(base.DISPATCH_PARAMETER)
    except ValueError:
        return None
    return named[-1] if named else None
