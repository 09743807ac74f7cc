"""Telnyx's adapter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from outreach.protocols.adapter import (
    AccountCheck,
    CallbackRefused,
    Connection,
    CredentialField,
)
from outreach.protocols.diagnosis import CallbackSetting
from outreach.providers.carriers.telnyx import callbacks
from outreach.providers.carriers.telnyx.carrier import NAME, TelnyxCarrier, api_of
from outreach.providers.http.account_check import (
    API_BASE,
    api_base_problems,
    has_value_of,
    not_ok,
    plain_text_problems,
    probe_account,
)
from outreach.providers.http.callback_bodies import MESSAGE_BYTES
from outreach.providers.http.json_fields import object_at, text_at, value_at
from outreach.providers.http.sending import json_object_or_empty

_TITLE: Final = "Telnyx"

_STARTS: Final = frozenset({"start", "unstop"})
"""https://developers.telnyx.com/docs/messaging/messages/advanced-opt-in-out (default keywords)."""


class TelnyxAdapter:
    """Telnyx accounts; see `docs/carriers/telnyx.md`."""

    name = NAME
    kind: Final = "carrier"
    fields: Sequence[CredentialField] = (
        CredentialField(
            name="api_key", description="API key (version 2), under API Keys in the Mission Control Portal."
        ),
        CredentialField(
            name="public_key",
            description="Public key that verifies webhooks, under Keys & Credentials; the same for the whole account.",
            secret=False,
            verifies=True,
        ),
        CredentialField(
            name="messaging_profile_id",
            description="Messaging profile of senders that are names; numbers have their own.",
            secret=False,
            required=False,
        ),
        API_BASE,
    )
    replies_to_keywords = True
    max_callback_bytes = MESSAGE_BYTES
    read = staticmethod(callbacks.read)

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        """Return what is wrong with the form of credentials."""
        found = [
            *plain_text_problems(credentials, ("api_key", "public_key", "messaging_profile_id")),
            *api_base_problems(credentials),
        ]
        if not found:
            try:
                callbacks.public_key(credentials.get("public_key", ""))
            except CallbackRefused:
                found.append("public_key must be the 32 bytes of an Ed25519 key in base64, as the portal shows it.")
        return found

    async def check(self, connection: Connection) -> AccountCheck:
        """Read the messaging profile, or list one if none is named; one request."""
        profile = connection.credentials.get("messaging_profile_id")
        request = api_of(connection).request(
            "GET",
            "/v2/messaging_profiles" if profile is None else f"/v2/messaging_profiles/{quote(profile, safe='')}",
            params={"page[size]": "1"} if profile is None else None,
        )
        answer = await probe_account(
            connection,
            request,
            provider=_TITLE,
            fields=self.fields,
            expected=has_value_of(list if profile is None else dict, "data"),
        )
        if isinstance(answer, AccountCheck):
            return answer
        if profile is not None and object_at(json_object_or_empty(answer), "data").get("enabled") is False:
            return not_ok("The messaging profile is disabled: enable it in the Mission Control Portal.", "disabled")
        return AccountCheck(ok=True, message="Telnyx accepts the API key.")

    async def callback_settings(
        self, connection: Connection, *, senders: Sequence[str], agents: Sequence[str]
    ) -> Sequence[CallbackSetting]:
        """Read the messaging profiles of the account's numbers; two requests."""
        numbers = await self._list(connection, "phone_numbers/messaging")
        used = {text_at(one, "messaging_profile_id") for one in numbers if text_at(one, "phone_number") in senders}
        used.add(connection.credentials.get("messaging_profile_id"))
        found = []
        for profile in await self._list(connection, "messaging_profiles"):
            if text_at(profile, "id") not in used:
                continue
            version = text_at(profile, "webhook_api_version") or "2"
            found.append(
                CallbackSetting(
                    name=f"the inbound webhook URL of the messaging profile {text_at(profile, 'name')!r}",
                    url=text_at(profile, "webhook_url"),
                    wrong=None if version == "2" else f"The API version of its webhooks is {version}, not 2.",
                )
            )
        return found

    async def _list(self, connection: Connection, path: str) -> Sequence[object]:
        listed = value_at(await api_of(connection).fetch("GET", f"/v2/{path}", params={"page[size]": "250"}), "data")
        return listed if isinstance(listed, list) else []

    def connect(self, connection: Connection) -> TelnyxCarrier:
        """Return the carrier of an account."""
        return TelnyxCarrier(connection)

    def carrier_start_words(self, to: str) -> Collection[str]:
        """Return Telnyx's START words, the same for every number."""
        return _STARTS


ADAPTER: Final = TelnyxAdapter()
