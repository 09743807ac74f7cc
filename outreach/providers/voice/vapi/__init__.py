"""Vapi: voice agents called assistants, placed by `POST /call`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from outreach.protocols.adapter import AccountCheck, Connection, CredentialField
from outreach.protocols.diagnosis import CallbackSetting
from outreach.protocols.voice import VoiceProvider
from outreach.providers.http.account_check import (
    API_BASE,
    api_base_problems,
    has_value_of,
    plain_text_problems,
    probe_account,
)
from outreach.providers.http.json_fields import text_at, value_at
from outreach.providers.voice import base
from outreach.providers.voice.vapi import callbacks
from outreach.providers.voice.vapi.provider import NAME, VapiVoice, api_of


class VapiAdapter:
    """Vapi accounts."""

    name = NAME
    kind: Final = "voice"
    trunks_by_identifier = True
    replies_to_keywords = False
    max_callback_bytes = 1024 * 1024
    """The report of half an hour of talk: its messages twice, with the time of each word, and the assistant."""
    fields: Sequence[CredentialField] = (
        CredentialField(name="api_key", description="The private key, from the dashboard under API Keys."),
        CredentialField(
            name="webhook_secret",
            description="The secret of the custom credential that the assistant's server uses.",
        ),
        CredentialField(
            name="webhook_signature_header",
            description="The header of the signature, where that credential is of the kind HMAC.",
            secret=False,
            required=False,
            verifies=True,
        ),
        CredentialField(
            name="webhook_timestamp_header",
            description="The header of the timestamp, where that credential signs {timestamp}.{body}.",
            secret=False,
            required=False,
            verifies=True,
        ),
        base.PHONE_NUMBER_ID,
        base.PHONE_NUMBERS,
        API_BASE,
    )
    read = staticmethod(callbacks.read)
    sign_callback = staticmethod(callbacks.sign)

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        """Return what is wrong with credentials, one sentence each."""
        problems = [
            *api_base_problems(credentials),
            *plain_text_problems(
                credentials, ["api_key", "webhook_secret", "webhook_signature_header", "webhook_timestamp_header"]
            ),
            *base.phone_number_problems(credentials),
        ]
        if credentials.get("webhook_timestamp_header") and not credentials.get("webhook_signature_header"):
            problems.append("webhook_timestamp_header goes with webhook_signature_header.")
        if len(credentials.get("webhook_secret", "")) < _MIN_SECRET_LENGTH:
            problems.append(f"webhook_secret alone verifies callbacks: use at least {_MIN_SECRET_LENGTH} characters.")
        return problems

    async def check(self, connection: Connection) -> AccountCheck:
        """List one call, which changes nothing."""
        request = api_of(connection).request("GET", "/call", params={"limit": "1"})
        answer = await probe_account(
            connection, request, provider="Vapi", fields=self.fields, expected=has_value_of(list)
        )
        return answer if isinstance(answer, AccountCheck) else AccountCheck(ok=True, message=_ACCEPTED)

    async def callback_settings(
        self, connection: Connection, *, senders: Sequence[str], agents: Sequence[str]
    ) -> Sequence[CallbackSetting]:
        """Read the server of each assistant; a request each."""
        api, found = api_of(connection), []
        for agent in agents:
            assistant = await api.fetch("GET", f"/assistant/{quote(agent, safe='')}")
            if text_at(assistant, "id") is None:
                continue
            sent = value_at(assistant, "serverMessages")
            lacking = [name for name in _MESSAGES if isinstance(sent, list) and name not in sent]
            found.append(
                CallbackSetting(
                    name=f"the server URL of the assistant {agent}",
                    url=text_at(assistant, "server", "url"),
                    wrong=f"The assistant does not send {' and '.join(lacking)}." if lacking else None,
                )
            )
        return found

    def connect(self, connection: Connection) -> VoiceProvider:
        """Return the account's voice provider."""
        return VapiVoice(connection)


_MESSAGES: Final = ("status-update", "end-of-call-report")
_MIN_SECRET_LENGTH: Final = 16
_ACCEPTED: Final = "Vapi accepts api_key. Only a call can show whether webhook_secret is that of the assistant."

ADAPTER: Final = VapiAdapter()
