"""Twilio's adapter."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import attrs

from outreach.protocols.adapter import AccountCheck, Connection, CredentialField
from outreach.protocols.diagnosis import CallbackSetting
from outreach.providers.carriers import base
from outreach.providers.carriers.twilio import callbacks
from outreach.providers.carriers.twilio.carrier import NAME, TwilioCarrier, account_url, authorization
from outreach.providers.http.account_check import (
    API_BASE,
    api_base_problems,
    has_value_of,
    not_ok,
    plain_text_problems,
    probe_account,
)
from outreach.providers.http.callback_bodies import MESSAGE_BYTES
from outreach.providers.http.json_fields import text_at, value_at
from outreach.providers.http.sending import fetch_json, json_object_or_empty

_TITLE: Final = "Twilio"
_FORMS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "account_sid": (re.compile(r"AC[0-9a-fA-F]{32}"), "account_sid must be AC and 32 hexadecimal digits."),
    "api_key_sid": (re.compile(r"SK[0-9a-fA-F]{32}"), "api_key_sid must be SK and 32 hexadecimal digits."),
}

_STARTS: Final = frozenset({"start", "yes", "unstop"})
"""https://help.twilio.com/articles/223134027 (default keywords)."""

_TOLL_FREE_STARTS: Final = frozenset({"start", "unstop"})
"""Only these lift the network's block: https://help.twilio.com/articles/360058144374."""

_TOLL_FREE: Final = re.compile(r"\+18(?:00|33|44|55|66|77|88)[0-9]{7}")

_SHORT_CODE: Final = re.compile(r"\+?[0-9]{3,6}")


class TwilioAdapter:
    """Twilio accounts; see `docs/carriers/twilio.md`."""

    name = NAME
    kind: Final = "carrier"
    fields: Sequence[CredentialField] = (
        CredentialField(
            name="account_sid", description="Account SID, on the first page of the Twilio Console.", secret=False
        ),
        CredentialField(
            name="auth_token",
            description="Auth Token, beside it: it verifies callbacks, and makes requests without a key.",
        ),
        CredentialField(
            name="api_key_sid",
            description="SID of an API key to make requests with instead of the token.",
            secret=False,
            required=False,
        ),
        CredentialField(name="api_key_secret", description="The secret of that API key.", required=False),
        CredentialField(
            name="webhook_shared_secret",
            description="Secret of the shared key, where a webhook setting of Twilio signs with one.",
            required=False,
        ),
        API_BASE,
    )
    replies_to_keywords = True
    max_callback_bytes = MESSAGE_BYTES
    read = staticmethod(callbacks.read)
    sign_callback = staticmethod(callbacks.sign)

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        """Return what is wrong with the form of credentials."""
        found = [
            words
            for name, (form, words) in _FORMS.items()
            if name in credentials and not form.fullmatch(credentials[name])
        ]
        if ("api_key_sid" in credentials) != ("api_key_secret" in credentials):
            found.append("api_key_sid and api_key_secret must be given together.")
        secrets = ("auth_token", "api_key_secret", "webhook_shared_secret")
        return [*found, *plain_text_problems(credentials, secrets), *api_base_problems(credentials)]

    async def check(self, connection: Connection) -> AccountCheck:
        """Read the account with its token and, if an API key is given, one message with that; a request each."""
        credentials, http = connection.credentials, connection.http
        url = account_url(connection)
        token = base.basic_auth(credentials["account_sid"], credentials["auth_token"])
        request = http.build_request("GET", f"{url}.json", headers={"authorization": token})
        answer = await probe_account(
            connection, request, provider=_TITLE, fields=self.fields, expected=has_value_of(str, "sid")
        )
        if isinstance(answer, AccountCheck):
            return answer
        status = json_object_or_empty(answer).get("status")
        if status != "active":
            said = status if status in {"suspended", "closed"} else "not known to be active"
            return not_ok(f"The Twilio account is {said}: look at its balance and messages in the Console.", "disabled")
        if "api_key_sid" in credentials:
            request = http.build_request(
                "GET",
                f"{url}/Messages.json",
                params={"PageSize": "1"},
                headers={"authorization": authorization(credentials)},
            )
            answer = await probe_account(
                connection, request, provider=_TITLE, fields=self.fields, expected=has_value_of(list, "messages")
            )
            if isinstance(answer, AccountCheck):
                return attrs.evolve(answer, message=f"With the API key: {answer.message}")
        return AccountCheck(ok=True, message="Twilio accepts the credentials, and the account is active.")

    async def callback_settings(
        self, connection: Connection, *, senders: Sequence[str], agents: Sequence[str]
    ) -> Sequence[CallbackSetting]:
        """List the account's numbers; what a number's Messaging Service says instead is not seen."""
        request = connection.http.build_request(
            "GET",
            f"{account_url(connection)}/IncomingPhoneNumbers.json",
            params={"PageSize": "1000"},
            headers={"authorization": authorization(connection.credentials)},
        )
        listed = value_at(await fetch_json(connection.http, request), "incoming_phone_numbers")
        found = []
        for number in listed if isinstance(listed, list) else []:
            phone = text_at(number, "phone_number")
            # An application's address stands in place of the number's own.
            if phone in senders and not text_at(number, "sms_application_sid"):
                found.append(
                    CallbackSetting(
                        name=f'"A message comes in" of the number {phone}', url=text_at(number, "sms_url") or None
                    )
                )
        return found

    def connect(self, connection: Connection) -> TwilioCarrier:
        """Return the carrier of an account."""
        return TwilioCarrier(connection)

    def carrier_start_words(self, to: str) -> Collection[str] | None:
        """Return Twilio's START words; None for a short code, whose keywords Twilio leaves to its user.

        With Advanced Opt-Out Twilio replies there too, and reports it in each callback (`OptOutType`):
        https://help.twilio.com/articles/223181748.
        """
        if _SHORT_CODE.fullmatch(to):
            return None
        return _TOLL_FREE_STARTS if _TOLL_FREE.fullmatch(to) else _STARTS


ADAPTER: Final = TwilioAdapter()
