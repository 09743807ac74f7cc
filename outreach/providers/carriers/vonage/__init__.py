"""Vonage's adapter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from outreach.protocols.adapter import AccountCheck, Connection, CredentialField
from outreach.protocols.diagnosis import CallbackSetting
from outreach.providers.carriers.vonage import callbacks
from outreach.providers.carriers.vonage.carrier import NAME, VonageCarrier, api_of
from outreach.providers.carriers.vonage.tokens import load_private_key
from outreach.providers.http.account_check import (
    API_BASE,
    api_base_problems,
    has_value_of,
    plain_text_problems,
    probe_account,
)
from outreach.providers.http.callback_bodies import MESSAGE_BYTES
from outreach.providers.http.json_fields import object_at, text_at

_TITLE: Final = "Vonage"
_YES_OR_NO: Final = frozenset({"yes", "no"})

_STARTS: Final = frozenset({"start", "join"})
"""Of US short codes, and of 10DLC campaigns without their own (Opt-Out Assist)."""


class VonageAdapter:
    """Vonage accounts; see `docs/carriers/vonage.md`."""

    name = NAME
    kind: Final = "carrier"
    fields: Sequence[CredentialField] = (
        CredentialField(
            name="api_key",
            description="API key, on the first page of the Vonage API Dashboard.",
            secret=False,
            verifies=True,
        ),
        CredentialField(name="api_secret", description="API secret, under API settings."),
        CredentialField(
            name="signature_secret", description="Signature secret, under API settings: it verifies signed webhooks."
        ),
        CredentialField(
            name="application_id",
            description="Application with the Messages capability, to send as instead of the bare account.",
            secret=False,
            required=False,
        ),
        CredentialField(
            name="private_key",
            description="Private key of that application, the whole text of its file.",
            required=False,
        ),
        CredentialField(
            name="use_reports",
            description="`yes` lets unknown messages be looked up by the Reports API, which costs by the record.",
            secret=False,
            required=False,
        ),
        API_BASE,
    )
    replies_to_keywords = False
    max_callback_bytes = MESSAGE_BYTES
    read = staticmethod(callbacks.read)
    sign_callback = staticmethod(callbacks.sign)

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        """Return what is wrong with the form of credentials."""
        plain = ("api_key", "api_secret", "signature_secret", "application_id")
        found = [*plain_text_problems(credentials, plain), *api_base_problems(credentials)]
        if ("application_id" in credentials) != ("private_key" in credentials):
            found.append("application_id and private_key must be given together.")
        if "private_key" in credentials:
            try:
                load_private_key(credentials["private_key"])
            except ValueError:
                found.append("private_key must be the RSA key of the application in PEM, with its line breaks.")
        if credentials.get("use_reports", "no") not in _YES_OR_NO:
            found.append("use_reports must be yes or no.")
        return found

    async def check(self, connection: Connection) -> AccountCheck:
        """Read the application, or list one if none is named; one request."""
        application = connection.credentials.get("application_id")
        request = api_of(connection).request(
            "GET",
            "/v2/applications" if application is None else f"/v2/applications/{quote(application, safe='')}",
            params={"page_size": "1"} if application is None else None,
        )
        answer = await probe_account(
            connection,
            request,
            provider=_TITLE,
            fields=self.fields,
            expected=has_value_of(int, "total_items") if application is None else has_value_of(str, "id"),
        )
        if isinstance(answer, AccountCheck):
            return answer
        return AccountCheck(ok=True, message="Vonage accepts the API key and secret.")

    async def callback_settings(
        self, connection: Connection, *, senders: Sequence[str], agents: Sequence[str]
    ) -> Sequence[CallbackSetting]:
        """Read the webhooks of the application; those of a bare account are in its dashboard alone."""
        application = connection.credentials.get("application_id")
        if application is None:
            return []
        answer = await api_of(connection).fetch("GET", f"/v2/applications/{quote(application, safe='')}")
        if text_at(answer, "id") is None:
            return []
        messages = object_at(answer, "capabilities", "messages")
        version = text_at(messages, "version") or "v1"
        return [
            CallbackSetting(
                name=f"the {words} URL of the application {application}",
                url=text_at(messages, "webhooks", key, "address"),
                wrong=None if version == "v1" else f"Webhooks of the Messages API have version {version}, not v1.",
            )
            for key, words in (("inbound_url", "inbound"), ("status_url", "status"))
        ]

    def connect(self, connection: Connection) -> VonageCarrier:
        """Return the carrier of an account."""
        return VonageCarrier(connection)

    def carrier_start_words(self, to: str) -> Collection[str]:
        """Return Vonage's START words, the same for every number."""
        return _STARTS


ADAPTER: Final = VonageAdapter()
