"""Retell: voice agents, placed by `POST /v2/create-phone-call`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from outreach.protocols.adapter import AccountCheck, Connection, CredentialField
from outreach.protocols.voice import VoiceProvider
from outreach.providers.http.account_check import (
    API_BASE,
    api_base_problems,
    has_value_of,
    plain_text_problems,
    probe_account,
)
from outreach.providers.voice.retell import callbacks
from outreach.providers.voice.retell.provider import NAME, RetellVoice, api_of


class RetellAdapter:
    """Retell accounts."""

    name = NAME
    kind: Final = "voice"
    trunks_by_identifier = False
    replies_to_keywords = False
    max_callback_bytes = 1024 * 1024
    """The report of half an hour of talk: its words three times, with times."""
    fields: Sequence[CredentialField] = (
        CredentialField(name="api_key", description="An API key, from the dashboard under API Keys."),
        CredentialField(
            name="webhook_api_key",
            description="The API key with the webhook badge, which signs callbacks, where that is another one.",
            required=False,
        ),
        API_BASE,
    )
    read = staticmethod(callbacks.read)
    sign_callback = staticmethod(callbacks.sign)

    def problems(self, credentials: Mapping[str, str]) -> Sequence[str]:
        """Return what is wrong with credentials, one sentence each; the API key itself verifies callbacks."""
        return [
            *api_base_problems(credentials),
            *plain_text_problems(credentials, ["api_key", "webhook_api_key"]),
        ]

    async def check(self, connection: Connection) -> AccountCheck:
        """Request the number of running calls, which changes nothing."""
        answer = await probe_account(
            connection,
            api_of(connection).request("GET", "/get-concurrency"),
            provider="Retell",
            fields=self.fields,
            expected=has_value_of(int, "current_concurrency"),
        )
        return answer if isinstance(answer, AccountCheck) else AccountCheck(ok=True, message=_ACCEPTED)

    def connect(self, connection: Connection) -> VoiceProvider:
        """Return the account's voice provider."""
        return RetellVoice(connection)


_ACCEPTED: Final = "Retell accepts api_key. Only a callback can show whether it is the key with the webhook badge."

ADAPTER: Final = RetellAdapter()
