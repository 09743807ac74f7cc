"""Vonage as a carrier, by its Messages API: https://developer.vonage.com/en/api/messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from outreach.core.clock import format_timestamp
from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.protocols.adapter import Connection
from outreach.protocols.carrier import CarrierCapabilities, LookupRequest, OutboundMessage
from outreach.providers.carriers import base
from outreach.providers.carriers.vonage.errors import AMBIGUOUS, FAILURES, LIMIT_RESETS, error_code, reported_class
from outreach.providers.carriers.vonage.tokens import application_token, load_private_key
from outreach.providers.http.account_api import AccountApi
from outreach.providers.http.callback_bodies import text_in
from outreach.providers.http.json_fields import value_at
from outreach.providers.http.sending import (
    UnreadableResponse,
    json_object,
    json_object_or_empty,
    refusal,
    text_of,
)
from outreach.rules.phones import is_service

if TYPE_CHECKING:
    import httpx

NAME: Final = "vonage"
_USUAL_BASE: Final = "https://api.nexmo.com"

MIN_TTL_SECONDS: Final = 20
MAX_TTL_SECONDS: Final = 604_800
"""Bounds of `ttl`, as in Vonage's own libraries; the documentation gives none."""

_FAILED: Final = frozenset({"rejected", "undeliverable", "failed", "expired"})
_MAX_PAGES: Final = 5

_NO_SERVICE: Final = base.no_sender("Vonage has no Messaging Services: name a number, several numbers or a name.")


def digits(number: str) -> str:
    """Return a number as Vonage writes it, without the plus; a name unchanged."""
    return number.removeprefix("+")


def api_of(connection: Connection) -> AccountApi:
    """Return the API of an account, with the account's own credentials."""
    authorization = base.basic_auth(connection.credentials["api_key"], connection.credentials["api_secret"])
    return _api_with(connection, authorization)


def _api_with(connection: Connection, authorization: str) -> AccountApi:
    return AccountApi(connection, _USUAL_BASE, {"authorization": authorization, "accept": "application/json"})


class VonageCarrier:
    """Sends by one JSON POST each; every status returns our dispatch id as `client_ref`.

    A look-up uses the Reports API, which is charged by the record, and only if the account allows it.
    """

    name = NAME

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        credentials = connection.credentials
        self._api = api_of(connection)
        self._key = load_private_key(credentials["private_key"]) if "private_key" in credentials else None
        self._reports = credentials.get("use_reports") == "yes"

    @property
    def capabilities(self) -> CarrierCapabilities:
        """Look-ups only if the account allows paid ones."""
        return CarrierCapabilities(look_up="evidence" if self._reports else "none", supports_not_after=True)

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Send one message, once."""
        if message.from_number is None:
            return base.NO_SENDER
        if is_service(message.from_number):
            return _NO_SERVICE
        now = self._connection.clock.now()
        body: dict[str, Any] = {
            "message_type": "text",
            "channel": "sms",
            "to": digits(message.to),
            "from": digits(message.from_number),
            "text": message.body,
            "client_ref": message.dispatch_id,
        }
        if self._connection.callback_url is not None:
            # The version too, because the account's settings must not decide the format of statuses.
            body |= {"webhook_url": self._connection.callback_url, "webhook_version": "v1"}
        if message.not_after is not None:
            left = base.validity_seconds(message.not_after, now=now, least=MIN_TTL_SECONDS, most=MAX_TTL_SECONDS)
            if left is None:
                return base.TOO_LATE
            body["ttl"] = left
        api = self._api
        if self._key is not None:
            application_id = self._connection.credentials["application_id"]
            # One request per dispatch, so its id serves as the token's.
            token = application_token(self._key, application_id=application_id, token_id=message.dispatch_id, now=now)
            api = _api_with(self._connection, f"Bearer {token}")
        return await api.post("/v1/messages", self._read, json=body)

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Find the record of a message by its id or by our reference, if the account allows it."""
        if not self._reports:
            return None
        query = {"account_id": self._connection.credentials["api_key"], "product": "MESSAGES", "direction": "outbound"}
        if lookup.provider_id is not None:
            query["id"] = lookup.provider_id
        else:
            query["date_start"] = _second(lookup.since - base.CLOCK_SKEW_BEFORE)
            query["date_end"] = _second(lookup.until + base.CLOCK_SKEW_AFTER)
        records = await self._records(query)
        if records is None:
            return None
        if lookup.provider_id is not None:
            matches = [record for record in records if record.get("message_id") == lookup.provider_id]
        else:
            matches = [record for record in records if record.get("client_ref") == lookup.dispatch_id]
        return self._recorded(matches[0]) if len(matches) == 1 else None

    def _read(self, response: httpx.Response) -> DispatchOutcome:
        if response.is_success:
            return DispatchOutcome(
                state=DispatchState.ACCEPTED, provider_id=text_of(json_object(response).get("message_uuid"))
            )
        if not response.is_client_error:
            raise UnreadableResponse
        error = json_object_or_empty(response)
        code = error_code(error)
        if code in AMBIGUOUS:
            return DispatchOutcome(state=DispatchState.UNKNOWN, reason="provider_error", error_code=code)
        return refusal(
            base.refusal_class(FAILURES.get(code or "")),
            response,
            now=self._connection.clock.now(),
            code=code,
            message=text_in(error, "detail") or text_in(error, "title"),
            reset_seconds=base.seconds_to_reset(LIMIT_RESETS, code, self._connection.clock.now()),
        )

    def _recorded(self, record: Mapping[str, Any]) -> DispatchOutcome | None:
        provider_id = text_in(record, "message_id")
        if provider_id is None:
            return None
        if (text_in(record, "status") or "").lower() not in _FAILED:
            return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=provider_id)
        code = text_in(record, "error_code")
        return base.failed_after_accept(
            reported_class(code),
            provider_id=provider_id,
            code=code[:40] if code else None,
            retry_after_seconds=base.seconds_to_reset(LIMIT_RESETS, code, self._connection.clock.now()),
        )

    async def _records(self, query: Mapping[str, str]) -> list[Mapping[str, Any]] | None:
        """Return all records of a query; None if incomplete."""
        found: list[Mapping[str, Any]] = []
        more: dict[str, str] = {}
        for _ in range(_MAX_PAGES):
            page = await self._api.fetch("GET", "/v2/reports/records", params={**query, **more})
            records = value_at(page, "records")
            if not isinstance(records, list):
                return None
            found += [record for record in records if isinstance(record, dict)]
            if page.get("request_status") != "TRUNCATED":
                return found
            cursor, iv = text_in(page, "cursor"), text_in(page, "iv")
            if cursor is None or iv is None:
                return None
            more = {"cursor": cursor, "iv": iv}
        return None


def _second(moment: Any) -> str:
    return format_timestamp(moment)[:19] + "Z"
